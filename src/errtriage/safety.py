"""What a pack's files may be, before anything in them is looked at: JSON of bounded size and depth that can be printed,
and schemas that lead nowhere else, never round in circles, and make no more work than can be seen.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any, NamedTuple

import orjson

from errtriage.contracts import compiled
from errtriage.pointers import MISSING, follow, pointer
from errtriage.redact import clean

#: Bounds: how deep a file nests, how many parts a schema has with its references written out.
_DEEPEST, _LARGEST_SCHEMA = 60, 20_000
#: What is shown of what is wrong: characters of a message, misspelt keywords; and among how many names a near one is sought.
_LONGEST_MESSAGE, _MOST_MISSPELT, _MOST_NAMES = 300, 20, 500
#: Where a text may have several lines: examples, and what is never printed.
_MAY_HAVE_LINES = frozenset(("bad", "good", "input", "$comment", "description"))
#: Keywords that a pack's schemas may not have, each with why.
_REFUSED = {
    "$dynamicRef": "it leads to another place each time; use $ref into $defs",
    "$recursiveRef": "it leads back to itself; write the schema out to the depth that is needed",
    "patternProperties": "use propertyNames or additionalProperties",
    "unevaluatedProperties": "use additionalProperties",
    "unevaluatedItems": "use items",
    "$dynamicAnchor": "name the part in $defs",
    "$anchor": "name the part in $defs",
    "$id": "leave it out",
}


#: The names and indices that lead to a part of a file.
Place = tuple[str | int, ...]


class Problem(NamedTuple):
    """One thing that is wrong with a pack: the file, a JSON Pointer into it, what is wrong, and what to do about it."""

    file: str
    pointer: str
    message: str
    hint: str = ""


def parsed(name: str, data: bytes) -> tuple[list[Problem], Any]:
    """The JSON of a pack's file, and what is wrong with it as JSON."""
    twice: list[str] = []

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            counts = Counter(name for name, _ in pairs)
            twice.extend(name for name, count in counts.items() if count > 1)
        return found

    try:
        value = orjson.loads(data)
        if (place := _beyond(value)) is not None:
            return [Problem(name, place, f"nests deeper than {_DEEPEST} levels", "Write it flatter.")], None
        json.loads(data, object_pairs_hook=members)
    except ValueError as error:
        line = data[: getattr(error, "pos", 0)].count(b"\n") + 1
        message = f"is not JSON: {str(error).partition(':')[0]}, line {line}"
        return [Problem(name, "", message, "Correct it; JSON has no comments and no comma after the last.")], None
    found = [
        Problem(name, "", f"the name `{clean(each)}` stands twice in one object", "Only the last would count; rename or drop one.")
        for each in twice[:_MOST_MISSPELT]
    ]
    bad = next((place for place, text in _texts_of(value, ()) if _unprintable(text, lines=bool(_MAY_HAVE_LINES & {*place}))), None)
    if bad is not None:
        found.append(Problem(name, pointer(bad), "holds control characters", "Texts of a pack are printed; write them without."))
    return found, value


def _beyond(value: Any) -> str | None:
    """A place deeper than a pack's file may nest, or None. Goes down level by level, so that no depth is too much for it."""
    level: list[tuple[Place, Any]] = [((), value)]
    for _ in range(_DEEPEST):
        level = [(place, member) for at, each in level for place, member in children(at, each)]
        if not level:
            return None
    return pointer(level[0][0][:3])


def children(at: Place, value: Any) -> Iterator[tuple[Place, Any]]:
    """The members or items of a value, each with its place."""
    if isinstance(value, dict):
        yield from (((*at, name), member) for name, member in value.items())
    elif isinstance(value, list):
        yield from (((*at, number), item) for number, item in enumerate(value))


def _texts_of(value: Any, at: Place) -> Iterator[tuple[Place, str]]:
    if isinstance(value, str):
        yield at, value
    if isinstance(value, dict):
        yield from ((at, name) for name in value)
    for place, member in children(at, value):
        yield from _texts_of(member, place)


def _unprintable(text: str, *, lines: bool) -> bool:
    if text.isprintable():
        return False
    plain = text.replace("\r", "").replace("\n", "").replace("\t", "") if lines else text
    return clean(plain) != plain or (not lines and any(each in plain for each in "\r\n"))


def check_schema(file: str, place: str, schema: Any) -> Iterator[Problem]:
    """What is wrong with a schema: that it is none, that it leads out of itself or round in circles, that it is too large."""
    walk = _Walk(schema)
    try:
        walk.measure(schema, ())
    except _Trouble as trouble:
        at, message, hint = trouble.args
        yield Problem(file, place + at, message, hint)
        return
    yield from (Problem(file, place + pointer(at), f"`{word}` is no keyword of JSON Schema", f"Did you mean `{meant}`?") for at, word, meant in walk.misspelt)
    try:
        compiled(schema)
    except (ValueError, TypeError) as error:
        line = clean(str(error).partition("\n")[0])[:_LONGEST_MESSAGE]
        hint = "Patterns have no lookaround and no backreferences, and are of bounded size."
        yield Problem(file, place, f"is no usable JSON Schema: {line}", hint)


#: The keywords of JSON Schema 2020-12 that packs use, by what stands under them: a schema, a list of schemas, schemas by
#: the names of members or by names of their own, or something that is none.
_ONE = frozenset(("additionalProperties", "contains", "contentSchema", "else", "if", "items", "not", "propertyNames", "then"))
_LISTED = frozenset(("allOf", "anyOf", "oneOf", "prefixItems"))
_BY_NAME = frozenset(("$defs", "dependentSchemas", "properties"))
_OTHERS = frozenset((
    "$comment", "$id", "$ref", "$schema", "const", "contentEncoding", "contentMediaType", "default", "dependentRequired", "deprecated", "description",
    "enum", "examples", "exclusiveMaximum", "exclusiveMinimum", "format", "maxContains", "maximum", "maxItems", "maxLength", "maxProperties",
    "minContains", "minimum", "minItems", "minLength", "minProperties", "multipleOf", "pattern", "readOnly", "required", "title", "type", "uniqueItems",
    "writeOnly",
))  # fmt: skip
_KEYWORDS = _ONE | _LISTED | _BY_NAME | _OTHERS
_DIALECT = "https://json-schema.org/draft/2020-12/schema"


class _Trouble(Exception):
    """A schema that cannot be used: where, why, and what to do."""


class _Walk:
    """Goes through a schema as a validator does, and counts its parts with its references written out: that is how much
    work it makes. What is no schema (data, annotations) is not entered, whatever it is called.
    """

    def __init__(self, schema: Any) -> None:
        self._schema = schema
        #: Of each part that was measured: how many parts it has, and how deep it is.
        self._measured: dict[int, tuple[int, int]] = {}
        self._open: set[int] = set()
        self.misspelt: list[tuple[Place, str, str]] = []

    def measure(self, part: Any, at: Place) -> tuple[int, int]:
        """Parts and depth of a part, where it may be used at all. Raises _Trouble."""
        if not isinstance(part, dict):
            return 1, 1
        if id(part) in self._open:
            raise _Trouble(pointer(at), "leads back to itself", "Write the schema out to the depth that is needed.")
        if id(part) not in self._measured:
            self._open.add(id(part))
            self._refuse(part, at)
            below = [self.measure(each, place) for each, place in self._below(part, at)]
            self._open.discard(id(part))
            self._measured[id(part)] = 1 + sum(size for size, _ in below), 1 + max((depth for _, depth in below), default=0)
        size, depth = self._measured[id(part)]
        if size > _LARGEST_SCHEMA:
            raise _Trouble(pointer(at), f"has more than {_LARGEST_SCHEMA:,} parts with its references written out", "Write it smaller.")
        if depth > 2 * _DEEPEST or len(self._open) > 2 * _DEEPEST:
            raise _Trouble(pointer(at), "leads through too many references", "Write it flatter.")
        return size, depth

    def _below(self, part: Mapping[str, Any], at: Place) -> Iterator[tuple[Any, Place]]:
        for keyword, value in part.items():
            place = (*at, keyword)
            if keyword == "$ref":
                yield self._referred(value, place), place
            elif keyword in _ONE:
                yield value, place
            elif keyword in _LISTED and isinstance(value, list):
                yield from ((each, (*place, i)) for i, each in enumerate(value))
            elif keyword in _BY_NAME and isinstance(value, dict):
                yield from ((each, (*place, name)) for name, each in value.items())

    def _refuse(self, part: Mapping[str, Any], at: Place) -> None:
        for keyword, value in part.items():
            if keyword in _REFUSED:
                why = _REFUSED[keyword]
                raise _Trouble(pointer((*at, keyword)), f"`{keyword}` may not be used in a pack", f"{why[0].upper()}{why[1:]}.")
            if keyword == "$schema" and (at or value != _DIALECT):
                raise _Trouble(pointer((*at, keyword)), "is of another kind of JSON Schema", f"Write {_DIALECT}, at the top.")
            if keyword not in _KEYWORDS and len(self.misspelt) < _MOST_MISSPELT and (meant := get_close_matches(keyword[:40], _KEYWORDS, 1, 0.75)):
                self.misspelt.append(((*at, keyword), clean(keyword), meant[0]))

    def _referred(self, target: Any, at: Place) -> Any:
        hint = "References lead to `#/$defs/NAME` in the same file; nothing is fetched."
        if not isinstance(target, str) or "%" in target or not (target == "#" or target.startswith("#/")):
            raise _Trouble(pointer(at), f"`{clean(str(target)[:80])}` leads to nothing in this file", hint)
        found = follow(self._schema, target[1:])
        if found is MISSING:
            raise _Trouble(pointer(at), f"`{clean(target[:80])}` leads to nothing in this file", hint)
        return found


def near(name: str, known: Any) -> str:
    """A hint at the known name that an unknown one may be meant for, or at all of them where they are few."""
    few = f"There are {', '.join(sorted(known))}." if known and len(known) <= 8 else ""
    if len(name) > _LONGEST_MESSAGE or len(known) > _MOST_NAMES:
        return few
    found = get_close_matches(name, [each[:100] for each in known], 1, 0.5)
    return f"Did you mean `{found[0]}`?" if found else few
