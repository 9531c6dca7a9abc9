"""What a pack's files may be, before anything in them is looked at: JSON of bounded size and depth that can be printed,
and schemas that lead nowhere else, never round in circles, and make no more work than can be seen.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any, NamedTuple

import orjson

from errtriage.contracts import compiled
from errtriage.pointers import MISSING, follow, pointer
from errtriage.redact import clean

#: Bounds: how deep a file nests, how many parts a schema has with its references written out.
_DEEPEST, _LARGEST_SCHEMA = 60, 20_000
#: Keywords that a pack's schemas may not have, each with why.
_REFUSED = {
    "$dynamicRef": "it leads to another place each time; use $ref into $defs",
    "$recursiveRef": "it leads back to itself; write the schema out to the depth that is needed",
    "patternProperties": "use propertyNames or additionalProperties",
    "unevaluatedProperties": "use additionalProperties",
    "unevaluatedItems": "use items",
}
#: Parts of a schema in which nothing is a schema.
_DATA = ("const", "enum", "default", "examples")


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
        names = [each for each, _ in pairs]
        twice.extend(each for each in set(names) if names.count(each) > 1)
        return dict(pairs)

    try:
        value = orjson.loads(data)
        if (place := _beyond(value)) is not None:
            return [Problem(name, place, f"nests deeper than {_DEEPEST} levels", "Write it flatter.")], None
        json.loads(data, object_pairs_hook=members)
    except ValueError as error:
        line = data[: getattr(error, "pos", 0)].count(b"\n") + 1
        message = f"is not JSON: {str(error).partition(':')[0]}, line {line}"
        return [Problem(name, "", message, "Correct it; JSON has no comments and no comma after the last.")], None
    found = [Problem(name, "", f"the name `{clean(each)}` stands twice in one object", "Only the last would count; rename or drop one.") for each in twice]
    bad = next((place for place, text in _texts_of(value, ()) if _unprintable(text)), None)
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


def _unprintable(text: str) -> bool:
    if text.isprintable():
        return False
    plain = text.replace("\r", "").replace("\n", "").replace("\t", "")
    return clean(plain) != plain


def check_schema(file: str, place: str, schema: Any) -> Iterator[Problem]:
    """What is wrong with a schema: that it is none, that it leads out of itself or round in circles, that it is too large."""
    if (trouble := _unfolded(schema)) is not None:
        yield Problem(file, place + trouble[0], trouble[1], trouble[2])
        return
    yield from (
        Problem(file, place + pointer(at), f"`{word}` is no keyword of JSON Schema", f"Did you mean `{near}`?") for at, word, near in _misspelt(schema, ())
    )
    try:
        compiled(schema)
    except (ValueError, TypeError) as error:
        lines = str(error).splitlines()
        hint = "Patterns have no lookaround and no backreferences, and are of bounded size."
        yield Problem(file, place, f"is no usable JSON Schema: {clean(lines[0])}", hint)


#: The keywords of JSON Schema 2020-12 that packs use.
_KEYWORDS = (
    "$comment", "$defs", "$id", "$ref", "$schema", "additionalProperties", "allOf", "anyOf", "const", "contains", "contentEncoding", "contentMediaType",
    "contentSchema", "default", "dependentRequired", "dependentSchemas", "deprecated", "description", "else", "enum", "examples", "exclusiveMaximum",
    "exclusiveMinimum", "format", "if", "items", "maxContains", "maximum", "maxItems", "maxLength", "maxProperties", "minContains", "minimum", "minItems",
    "minLength", "minProperties", "multipleOf", "not", "oneOf", "pattern", "prefixItems", "properties", "propertyNames", "readOnly", "required", "then",
    "title", "type", "uniqueItems", "writeOnly",
)  # fmt: skip
#: Keywords under which names are those of members.
_NAMED = ("properties", "$defs", "dependentSchemas", "dependentRequired")


def _misspelt(schema: Any, at: Place) -> Iterator[tuple[Place, str, str]]:
    """Names that stand for a keyword and are none, but like one: an annotation of one's own may have any other name."""
    if isinstance(schema, dict) and (not at or at[-1] not in _NAMED or (len(at) > 1 and at[-2] in _NAMED)):
        for word in schema:
            if word not in _KEYWORDS and (near := get_close_matches(word, _KEYWORDS, 1, 0.75)):
                yield (*at, word), word, near[0]
    for place, member in children(at, schema):
        if place[-1] not in _DATA:
            yield from _misspelt(member, place)


class _Trouble(Exception):
    """A schema that cannot be used: where, why, and what to do."""


def _unfolded(schema: Any) -> tuple[str, str, str] | None:
    """Why a schema may not be used that compiles all the same; None where nothing is wrong."""
    try:
        _Unfolding(schema).size(schema, (), ())
    except _Trouble as trouble:
        place, message, hint = trouble.args
        return place, message, hint
    return None


class _Unfolding:
    """Counts the parts of a schema with its references written out: that is how much work it makes."""

    def __init__(self, schema: Any) -> None:
        self._schema = schema
        self._sizes: dict[int, int] = {}

    def size(self, part: Any, at: Place, through: tuple[int, ...]) -> int:
        """How many parts a part has, where it may be used at all; ``through`` are the parts around it. Raises _Trouble."""
        if len(through) > 4 * _DEEPEST:
            raise _Trouble(pointer(at), "leads through too many references", "Write it flatter.")
        if id(part) in through:
            raise _Trouble(pointer(at), "leads back to itself", "Write the schema out to the depth that is needed.")
        if id(part) in self._sizes:
            return self._sizes[id(part)]
        through = (*through, id(part))
        total = 1
        if isinstance(part, dict):
            self._refuse(part, at)
            total += self._referred(part.get("$ref"), (*at, "$ref"), through)
        for place, member in children(at, part):
            if isinstance(member, dict | list) and not (isinstance(part, dict) and place[-1] in _DATA):
                total += self.size(member, place, through)
        if total > _LARGEST_SCHEMA:
            raise _Trouble(pointer(at), f"has more than {_LARGEST_SCHEMA:,} parts with its references written out", "Write it smaller.")
        self._sizes[id(part)] = total
        return total

    def _refuse(self, part: Mapping[str, Any], at: Place) -> None:
        names_of_members = bool(at) and at[-1] == "properties"
        for keyword, why in _REFUSED.items():
            if keyword in part and not names_of_members:
                raise _Trouble(pointer((*at, keyword)), f"`{keyword}` may not be used in a pack", f"{why[0].upper()}{why[1:]}.")
        if at and isinstance(part.get("$id"), str):
            raise _Trouble(pointer((*at, "$id")), "a part of a schema has a name of its own", "Leave `$id` out.")

    def _referred(self, target: Any, at: Place, through: tuple[int, ...]) -> int:
        if not isinstance(target, str):
            return 0
        found = follow(self._schema, target[1:]) if target.startswith("#") else MISSING
        if found is MISSING:
            hint = "References lead to `#/$defs/NAME` in the same file; nothing is fetched."
            raise _Trouble(pointer(at), f"`{clean(target)}` leads to nothing in this file", hint)
        return self.size(found, at, through) if isinstance(found, dict | list) else 0


def near(name: str, known: Any) -> str:
    """A hint at the known name that an unknown one may be meant for, or at all of them where they are few."""
    found = get_close_matches(name, [*known], 1, 0.5)
    few = f"There are {', '.join(sorted(known))}." if known and len(known) <= 8 else ""
    return f"Did you mean `{found[0]}`?" if found else few
