"""What a log record is decided by, without what makes each record another one: ids, times, addresses, prose.

Two records with the same signature get the same verdicts, so the second is only counted. A signature keeps every name,
and every value that could decide: any value under a name that a pack or a wrapper knows, but of prose only whether it is
a word of the packs, and which of their patterns it matches.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Any

from errtriage.contracts import Contracts
from errtriage.delays import LONGEST_MS
from errtriage.pointers import pointer_parts

#: Names by which wrappers are recognised (see ``wrappers``): values under them count as they are.
_WRAPPERS = frozenset(
    ("jsonrpc", "method", "type", "role", "isError", "is_error", "resultType", "result_type", "toolName", "tool_name", "stream", "$schema", "name", "id")
)
#: Keywords of conditions for which a text's own characters count, beyond those that are followed here.
_OTHER_KEYWORDS = frozenset(
    ("minLength", "maxLength", "format", "contentEncoding", "contentMediaType", "contains", "patternProperties", "propertyNames", "multipleOf")
)
_DEEPEST = 20
_MOST_EXACT = 2.0**53
#: How many names from logs are remembered.
_MOST_NAMES = 10_000

EXACT, KNOWN, FREE = "exact", "known", "free"


class Signatures:
    """Makes the signatures of values, for the packs of a run."""

    def __init__(self, contracts: Contracts) -> None:
        self._words: set[str] = set()
        self._patterns: list[re.Pattern[str]] = []
        self._names: dict[str, str] = dict.fromkeys(_WRAPPERS, EXACT)
        self._numbers: set[float] = {0, LONGEST_MS}
        self._blind = False
        self._ids: set[str] = set()
        for contract in contracts:
            self._learn(contract.data)
            self._learn(contract.tree)
            self._words |= {entry.data["code"] for entry in contract.catalogue.entries if "code" in entry.data}
            self._words |= {*contract.data.get("tools", ()), *contract.data.get("classes", ())}
            self._ids |= set(contract.data.get("well_known_ids", {}).get("names", ()))
            for shape in contract.shapes:
                for name, field in shape.data["fields"].items():
                    for place in [*field["at"], *shape.data["ids"]["correlation"]]:
                        for part in pointer_parts(place[place.find("/") :] if "/" in place else ""):
                            self._names.setdefault(part, KNOWN)
                    if name in ("code", "operation"):
                        self._names.update({pointer_parts(place[place.find("/") :])[-1]: EXACT for place in field["at"] if "/" in place})
        self._bounds = sorted(self._numbers)
        # A text that matches none of them is asked once. What asks only whether there is anything is not among them.
        self._any_pattern = re.compile("|".join(f"(?:{pattern.pattern})" for pattern in self._patterns) or r"(?!)")

    def _learn(self, condition: Any) -> None:
        """Take the names, words and patterns of every condition in a pack's data."""
        for value in _objects(condition):
            self._names.update({name: self._names.get(name, KNOWN) for name in value.get("properties", ()) if isinstance(value["properties"], dict)})
            if isinstance(value.get("required"), list):
                self._names.update({name: self._names.get(name, KNOWN) for name in value["required"]})
            consts = [value["const"]] if "const" in value else []
            consts += value["enum"] if isinstance(value.get("enum"), list) else []
            self._words |= {each for each in consts if isinstance(each, str)}
            pattern = value.get("pattern")
            if isinstance(pattern, str) and "{gap}" not in pattern and pattern != r"\S":
                self._patterns.append(re.compile(pattern))
            numbers = [*consts, *(value.get(keyword) for keyword in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"))]
            self._numbers |= {each for each in numbers if isinstance(each, int | float) and not isinstance(each, bool)}
            self._blind |= bool(_OTHER_KEYWORDS & value.keys())

    def of(self, value: dict[str, Any], prefix: str, written: bytes) -> tuple[Any, ...] | None:
        """The signature of a record and the words before it; None where it holds texts that have to be read.

        ``written`` is the record as it stands in the log.
        """
        # Texts with these may hold more JSON, a response, or an error: what is in them has to be read.
        if self._blind or b"(" in written or b"HTTP/" in written or b"MCP error " in written or b"data:" in written:
            return None
        last = prefix.rsplit(maxsplit=1)[-1].removesuffix(":") if prefix else ""
        tokens: list[Any] = [last if last in self._words else bool(prefix)]
        opened = [0, 0]
        if not self._object(value, tokens, opened, 0):
            return None
        # As many brackets as objects and arrays: none stands in a text.
        return tuple(tokens) if opened == [written.count(b"{"), written.count(b"[")] else None

    def _object(self, value: dict[str, Any], tokens: list[Any], opened: list[int], depth: int) -> bool:
        """Add an object's tokens; every record goes through here, so that it does without calls where it can."""
        opened[0] += 1
        tokens.append(tuple(value))
        names = self._names
        for name, member in value.items():
            kind = names.get(name) or self._kind(name)
            if type(member) is str:
                if kind == FREE:
                    continue
                tokens.append(member if kind == EXACT or member in self._words else self._like(member))
            elif type(member) is dict:
                if depth > _DEEPEST or not self._object(member, tokens, opened, depth + 1):
                    return False
            elif not self._other(member, kind, tokens, opened, depth):
                return False
        return True

    def _other(self, value: Any, kind: str, tokens: list[Any], opened: list[int], depth: int) -> bool:
        if isinstance(value, list):
            opened[1] += 1
            tokens.append(len(value))
            return depth <= _DEEPEST and all(self._other(item, kind, tokens, opened, depth + 1) for item in value)
        if isinstance(value, dict):
            return self._object(value, tokens, opened, depth + 1)
        if isinstance(value, str):
            tokens.append(value if kind == EXACT or value in self._words else self._like(value))
        elif isinstance(value, float) and abs(value) > _MOST_EXACT:
            return False  # it may have been written with more digits than a float keeps
        elif isinstance(value, bool) or value is None or kind == EXACT:
            tokens.append((type(value), value))
        elif kind == FREE:
            tokens.append(type(value))
        else:  # between which of the packs' numbers it lies, and whether it is whole
            tokens.append((type(value), value == int(value), bisect_left(self._bounds, value), bisect_right(self._bounds, value)))
        return True

    def _like(self, text: str) -> Any:
        """What of a text could decide: a number it may be, whether it says anything, and which patterns it matches."""
        if text.lstrip("-").isdecimal():
            return text
        if not self._any_pattern.search(text):
            return text.isspace() or not text
        return tuple(bool(pattern.search(text)) for pattern in self._patterns), text.isspace() or not text

    def _kind(self, name: str) -> str:
        """How much of the values under a name counts."""
        plain = name.replace("-", "").replace("_", "").lower()
        kind = KNOWN if plain in self._ids else FREE
        if len(self._names) < _MOST_NAMES:
            self._names[name] = kind
        return kind


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    """Every object in some data."""
    if isinstance(value, dict):
        yield value
        for member in value.values():
            yield from _objects(member)
    elif isinstance(value, list):
        for item in value:
            yield from _objects(item)
