"""Reads one JSON text.

orjson reads what it can. It refuses NaN, lone surrogates and depth, and turns integers beyond 64 bits into floats
without a word, so a text that has any of these is read by the standard library's decoder under our own rules: a
repair loses nothing that can be kept and never invents a value.
"""

from __future__ import annotations

import math
import re
from typing import Any

import orjson

#: Containers nested deeper than this are not read (a bound against hostile input).
MAX_DEPTH = 256

#: Python does not write integers of more bits than some 4,000 digits take.
_MOST_BITS = 13_000
LONG_DIGITS = re.compile(r"\d{19}")
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
LONE = re.compile("[\ud800-\udfff]")


class Unreadable(ValueError):
    """The text is not one JSON value; ``at`` is the offset of the first character that does not fit."""

    def __init__(self, at: int) -> None:
        super().__init__(f"not JSON at character {at}")
        self.at = at


class TooDeep(ValueError):
    """The JSON text is nested deeper than MAX_DEPTH."""


def read(text: str) -> tuple[Any, bool]:
    """Read ``text``, which is one JSON value, and say whether it had to be mended.

    Raises Unreadable where it is not JSON, TooDeep where its nesting is past the bound.
    """
    if not LONG_DIGITS.search(text):
        try:
            return orjson.loads(text), False
        except (ValueError, RecursionError):
            pass
    return _read_tolerantly(text)


def _read_tolerantly(text: str) -> tuple[Any, bool]:
    import json

    mended = False

    def not_a_number(_: str) -> None:
        nonlocal mended
        mended = True

    def integer(digits: str) -> int | str:
        # Python refuses to convert very long digit runs; as text they keep every digit.
        return int(digits) if len(digits) < 4000 else digits

    try:
        value = json.loads(text, parse_constant=not_a_number, parse_int=integer)
    except json.JSONDecodeError as error:
        raise Unreadable(error.pos) from None
    except RecursionError:
        raise TooDeep(f"its JSON nests deeper than {MAX_DEPTH} levels, and is not read") from None
    if _SURROGATE.search(text):
        # Escaped pairs are joined by the decoder; what is left stands alone.
        value, lone = _without_lone_surrogates(value)
        mended = mended or lone
    return value, mended


def paired(text: str) -> str:
    """A text whose escapes were decoded one by one: pairs of surrogates joined, halves without the other replaced."""
    if not LONE.search(text):
        return text
    text = _PAIR.sub(lambda pair: pair[0].encode("utf-16", "surrogatepass").decode("utf-16"), text)
    return LONE.sub("\ufffd", text)


def plain(value: Any, depth: int = 0) -> Any:
    """A Python value as JSON would give it: names are texts, numbers finite, surrogates paired; past the bound it is None."""
    if depth > MAX_DEPTH or (isinstance(value, float) and not math.isfinite(value)):
        return None
    if isinstance(value, str):
        return LONE.sub("\ufffd", value)
    if isinstance(value, bool | float | None):
        return value
    if isinstance(value, int):
        return value if value.bit_length() < _MOST_BITS else None
    if isinstance(value, dict):
        return {LONE.sub("\ufffd", str(name)): plain(member, depth + 1) for name, member in value.items()}
    return [plain(item, depth + 1) for item in value] if isinstance(value, list | tuple) else LONE.sub("\ufffd", str(value))


def _without_lone_surrogates(value: Any, depth: int = 0) -> tuple[Any, bool]:
    if depth > MAX_DEPTH:
        raise TooDeep(f"its JSON nests deeper than {MAX_DEPTH} levels, and is not read")
    if isinstance(value, str):
        fixed = LONE.sub("\ufffd", value)
        return fixed, fixed != value
    if isinstance(value, dict):
        names = [_without_lone_surrogates(name) for name in value]
        members = [_without_lone_surrogates(member, depth + 1) for member in value.values()]
        fixed_dict = {name: member for (name, _), (member, _) in zip(names, members, strict=True)}
        return fixed_dict, any(changed for _, changed in names + members)
    if isinstance(value, list):
        items = [_without_lone_surrogates(item, depth + 1) for item in value]
        return [item for item, _ in items], any(changed for _, changed in items)
    return value, False
