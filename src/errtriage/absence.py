"""Says what was found where no payload was, so that a person sees why."""

from __future__ import annotations

from errtriage import jsontext, search
from errtriage.wording import where


def describe(name: str, data: bytes, text: str, contracts: list[str]) -> str:
    """One sentence: what was looked for, and what was there instead."""
    return f"{where(name)}: no payload of {listed(contracts)} found; {instead(data, text)}."


def listed(names: list[str]) -> str:
    """Names as an enumeration: a, b or c."""
    return ", ".join(names[:-1]) + f" or {names[-1]}" if len(names) > 1 else names[0]


def instead(data: bytes, text: str) -> str:
    """What is there where no payload is."""
    if not data.strip():
        return "the input is empty"
    try:
        value, _ = jsontext.read(text)
    except jsontext.Unreadable as error:
        return _in_lines(text, error.at)
    except jsontext.TooDeep as error:
        return str(error)
    if isinstance(value, dict):
        return f"it is a JSON object with {_keys(value)}, which is none of their shapes"
    return f"it is a JSON array of {len(value)}, none of a known shape" if isinstance(value, list) else "it is a single JSON value, not an object"


def broken_at(text: str) -> int | None:
    """Where a text that begins as a JSON document stops being one, in characters; None for any other text."""
    if text.lstrip()[:1] not in ("{", "[") or _is_json(text.lstrip().partition("\n")[0]):
        return None  # no document, or one a line
    try:
        jsontext.read(text)
    except jsontext.Unreadable as error:
        return min(error.at, max(0, len(text) - 1))
    except jsontext.TooDeep:
        pass
    return None


def _is_json(text: str) -> bool:
    try:
        jsontext.read(text)
    except ValueError:
        return False
    return True


def _in_lines(text: str, at: int) -> str:
    parts = sum(1 for _ in search.scan(text))
    if not parts:
        return f"it is not JSON at byte {len(text[:at].encode('utf-8', 'replace'))}, and no line of it holds any"
    return f"{'a JSON value was' if parts == 1 else f'{parts} JSON values were'} read in it, none of a known shape"


def _keys(value: dict[str, object]) -> str:
    names = [repr(name[:40]) for name in list(value)[:6]]
    more = f" and {len(value) - 6} more" if len(value) > 6 else ""
    return f"the keys {', '.join(names)}{more}" if names else "no keys"
