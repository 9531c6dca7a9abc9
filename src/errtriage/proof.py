"""Proves that a pack can be used: that its files are what they must be, that every name in it leads somewhere, that its
tree ends for every payload, and that nothing in it can hang, fetch or reach a terminal.

Whatever is not bundled goes through here before anything of it is used. What its examples prove says ``coverage``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import jsonschema_rs
import orjson

from errtriage import facts
from errtriage.contracts import Contract, bundled, compiled, load, names_in
from errtriage.model import Failure
from errtriage.packs import VARIABLE, Location, Pack, folders, packs_folder, read, shown
from errtriage.pointers import MISSING, follow, pointer
from errtriage.redact import clean
from errtriage.wording import READY, alternatives, facts_in

#: Bounds: how deep a file nests, how many parts a schema has with its references written out, how many patterns a pack has.
_DEEPEST, _LARGEST_SCHEMA, _MOST_PATTERNS = 60, 20_000, 200
#: Keywords that a pack's schemas may not have, each with why.
_REFUSED = {
    "$dynamicRef": "it leads to another place each time; use $ref into $defs",
    "$recursiveRef": "it leads back to itself; write the schema out to the depth that is needed",
    "patternProperties": "use propertyNames or additionalProperties",
    "unevaluatedProperties": "use additionalProperties",
    "unevaluatedItems": "use items",
}
#: Which types a fact may have that is printed.
_PRINTED = {
    "code": {"string", "integer"}, "operation": {"string"}, "resource": {"string"}, "message": {"string", "list"}, "retryable": {"boolean"},
}  # fmt: skip
#: Where the facts are listed.
_FACTS = "`errtriage contracts show mcp` lists the general facts beside the fields."
#: General facts that a field may give too: it is the same thing, read elsewhere.
_ALSO_FIELDS = {"http_status", "method", "operation", "tool"}
#: Field types that give milliseconds, or a number that may be meant so.
_DELAYS = {"integer", "positive-integer", "seconds", "duration"}
#: Parts of a schema in which nothing is a schema.
_DATA = ("const", "enum", "default", "examples")


class Problem(NamedTuple):
    """One thing that is wrong with a pack: the file, a JSON Pointer into it, what is wrong, and what to do about it."""

    file: str
    pointer: str
    message: str
    hint: str = ""


def problems(pack: Pack) -> list[Problem]:
    """Everything for which a pack cannot be used; empty for one that can."""
    values: dict[str, Any] = {}
    found: list[Problem] = []
    for name, data in pack.files:
        trouble, values[name] = parsed(name, data)
        found += trouble
    found += [Problem(name, "", "is missing", "A pack has contract.json, codes.json and tree.json.") for name in _NEEDED if name not in values]
    if found:
        return found
    found = [each for name, value in values.items() if f"{name.removesuffix('.json')}.schema.json" in _META for each in held(name, value)]
    if found:
        return found
    found = list(_catalogue(values["codes.json"]))
    if found:  # all that follows finds codes by their groups
        return found
    contract = Contract(Path(pack.folder), dict(pack.files), pack.origin)
    checks = (
        _sources(values),
        _files(contract, values),
        _places(contract),
        _conditions(contract, values),
        _names(contract, values),
    )
    return [*(each for check in checks for each in check), *tree(contract.tree), *_rules(contract)]


_NEEDED = ("contract.json", "codes.json", "tree.json")
_META = {"contract.schema.json", "codes.schema.json", "tree.schema.json", "rules.schema.json"}


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
    level: list[tuple[tuple[str | int, ...], Any]] = [((), value)]
    for _ in range(_DEEPEST):
        level = [(place, member) for at, each in level for place, member in _children(at, each)]
        if not level:
            return None
    return pointer(level[0][0][:3])


def _children(at: tuple[str | int, ...], value: Any) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    if isinstance(value, dict):
        yield from (((*at, name), member) for name, member in value.items())
    elif isinstance(value, list):
        yield from (((*at, number), item) for number, item in enumerate(value))


def _texts_of(value: Any, at: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], str]]:
    if isinstance(value, str):
        yield at, value
    if isinstance(value, dict):
        yield from ((at, name) for name in value)
    for place, member in _children(at, value):
        yield from _texts_of(member, place)


def _unprintable(text: str) -> bool:
    if text.isprintable():
        return False
    plain = text.replace("\r", "").replace("\n", "").replace("\t", "")
    return clean(plain) != plain


@cache
def _meta(name: str) -> tuple[Any, Any]:
    """A schema of our own formats, and what decides by it."""
    schema = load(packs_folder() / "meta" / name)
    texts = load(packs_folder() / "meta" / "texts.schema.json")
    registry = jsonschema_rs.Registry([("json-schema:///texts.schema.json", texts)])
    return schema, jsonschema_rs.Draft202012Validator(schema, offline=True, registry=registry, pattern_options=jsonschema_rs.RegexOptions())


def held(file: str, value: Any, kind: str = "") -> list[Problem]:
    """What is wrong with a file of a pack by the schema of its format (``kind``, else by the file's name)."""
    name = f"{kind or file.removesuffix('.json')}.schema.json"
    schema, validator = _meta(name)
    if validator.is_valid(value):
        return []
    from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped]
    from referencing import Resource

    from errtriage.violations import explain

    registry = REGISTRY.with_resource("texts.schema.json", Resource.from_contents(load(packs_folder() / "meta" / "texts.schema.json")))
    found = explain(schema, value, clean, registry)
    # Said once; it holds of all.
    hint = f"meta/{name} beside the pack describes this file, and an editor that follows `$schema` checks it as you write."
    return [Problem(file, each.pointer, each.message, hint if each is found[-1] else "") for each in found]


def _sources(values: Mapping[str, Any]) -> Iterator[Problem]:
    listed = values["contract.json"]["sources"]
    for name in (*_NEEDED, "rules.json"):
        for place, source in _named_sources(values.get(name), ()):
            if source not in listed:
                yield Problem(name, pointer(place), f"names the source `{source}`, which contract.json does not list", _near(source, listed))


def _named_sources(value: Any, at: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], str]]:
    for place, member in _children(at, value):
        if place[-1] == "source" and isinstance(member, str):
            yield place, member
        elif place[-1] not in ("when", "match", "where", "bad", "good", "sources", "fields", "tools", "classes"):
            yield from _named_sources(member, place)


def sources_named(contract: Contract) -> set[str]:
    """The sources that entries of a pack name."""
    files = [contract.data, contract.file("codes.json"), contract.tree, {"rules": contract.rules}]
    return {source for file in files for _, source in _named_sources(file, ())}


def _files(contract: Contract, values: Mapping[str, Any]) -> Iterator[Problem]:
    names = [shape.name for shape in contract.shapes]
    for number, shape in enumerate(contract.shapes):
        place = f"/shapes/{number}"
        if shape.name in names[:number]:
            yield Problem("contract.json", f"{place}/name", f"there are two shapes `{shape.name}`", "Rename one.")
        file = shape.data["schema"]
        if file not in values:
            near = _near(file, [each for each in values if ".schema." in each])
            yield Problem("contract.json", f"{place}/schema", f"there is no file {file} beside it", near)
    for name, value in values.items():
        if name.endswith(".schema.json"):
            yield from _schema(name, "", value)
    tools = contract.data.get("tools", {})
    classes = contract.data.get("classes", {})
    for tool, kind in tools.items():
        if kind not in classes:
            yield Problem("contract.json", pointer(["tools", tool]), f"there is no class `{kind}`", _near(kind, classes))


def _schema(file: str, place: str, schema: Any) -> Iterator[Problem]:
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


def _misspelt(schema: Any, at: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], str, str]]:
    """Names that stand for a keyword and are none, but like one: an annotation of one's own may have any other name."""
    if isinstance(schema, dict) and (not at or at[-1] not in _NAMED or (len(at) > 1 and at[-2] in _NAMED)):
        for word in schema:
            if word not in _KEYWORDS and (near := get_close_matches(word, _KEYWORDS, 1, 0.75)):
                yield (*at, word), word, near[0]
    for place, member in _children(at, schema):
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

    def size(self, part: Any, at: tuple[str | int, ...], through: tuple[int, ...]) -> int:
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
        for place, member in _children(at, part):
            if isinstance(member, dict | list) and not (isinstance(part, dict) and place[-1] in _DATA):
                total += self.size(member, place, through)
        if total > _LARGEST_SCHEMA:
            raise _Trouble(pointer(at), f"has more than {_LARGEST_SCHEMA:,} parts with its references written out", "Write it smaller.")
        self._sizes[id(part)] = total
        return total

    def _refuse(self, part: Mapping[str, Any], at: tuple[str | int, ...]) -> None:
        names_of_members = bool(at) and at[-1] == "properties"
        for keyword, why in _REFUSED.items():
            if keyword in part and not names_of_members:
                raise _Trouble(pointer((*at, keyword)), f"`{keyword}` may not be used in a pack", f"{why[0].upper()}{why[1:]}.")
        if at and isinstance(part.get("$id"), str):
            raise _Trouble(pointer((*at, "$id")), "a part of a schema has a name of its own", "Leave `$id` out.")

    def _referred(self, target: Any, at: tuple[str | int, ...], through: tuple[int, ...]) -> int:
        if not isinstance(target, str):
            return 0
        found = follow(self._schema, target[1:]) if target.startswith("#") else MISSING
        if found is MISSING:
            hint = "References lead to `#/$defs/NAME` in the same file; nothing is fetched."
            raise _Trouble(pointer(at), f"`{clean(target)}` leads to nothing in this file", hint)
        return self.size(found, at, through) if isinstance(found, dict | list) else 0


class _Condition(NamedTuple):
    file: str
    place: tuple[str | int, ...]
    schema: Any
    #: The names that it may ask for; None where it is about a value.
    known: frozenset[str] | None


def _every_condition(contract: Contract, values: Mapping[str, Any]) -> Iterator[_Condition]:
    known = _facts(contract)
    for number, shape in enumerate(contract.data["shapes"]):
        yield from _of_shape(shape, ("shapes", number))
    for name, node in contract.tree["nodes"].items():
        for i, branch in enumerate(node["branches"]):
            yield _Condition("tree.json", ("nodes", name, "branches", i, "when"), branch["when"], known)
    for i, note in enumerate(contract.tree["notes"]):
        yield _Condition("tree.json", ("notes", i, "when"), note["when"], known)
    for i, rule in enumerate(contract.rules):
        if "when" in rule:
            yield _Condition("rules.json", ("rules", i, "when"), rule["when"], known)
        if "item" in rule.get("check", ()):
            yield _Condition("rules.json", ("rules", i, "check", "item"), rule["check"]["item"], None)
    for file, place, text in _every_text(values):
        yield from (_Condition(file, (*place, *at, "when"), each["when"], known) for at, each in _conditional(text, ()))


def _of_shape(shape: Mapping[str, Any], at: tuple[str | int, ...]) -> Iterator[_Condition]:
    yield _Condition("contract.json", (*at, "match"), shape["match"], facts.PROBED)
    places = [(("fields", name, "at"), field["at"]) for name, field in shape["fields"].items()] + [(("ids", "correlation"), shape["ids"]["correlation"])]
    for way, each in places:
        for i, one in enumerate(each):
            if isinstance(one, dict) and "where" in one:
                yield _Condition("contract.json", (*at, *way, i, "where"), one["where"], None)


def _conditional(text: Any, at: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], Mapping[str, Any]]]:
    """The parts of a text that stand under a condition."""
    if isinstance(text, dict):
        yield at, text
        yield from _conditional(text["text"], (*at, "text"))
    elif isinstance(text, list):
        for i, each in enumerate(text):
            yield from _conditional(each, (*at, i))


def _every_text(values: Mapping[str, Any]) -> Iterator[tuple[str, tuple[str | int, ...], Any]]:
    """Every text of a pack, with its file and place."""
    for name, node in values["tree.json"]["nodes"].items():
        for i, branch in enumerate(node["branches"]):
            yield "tree.json", ("nodes", name, "branches", i, "answer"), branch["answer"]
        yield "tree.json", ("nodes", name, "otherwise", "answer"), node["otherwise"]["answer"]
    entries = [(("leaves", name), leaf) for name, leaf in values["tree.json"]["leaves"].items()]
    entries += [(("notes", i), note) for i, note in enumerate(values["tree.json"]["notes"])]
    for place, entry in entries:
        for kind in ("summary", "explanation", "steps", "finally", "never", "say"):
            yield from (("tree.json", (*place, kind, i), text) for i, text in enumerate(entry.get(kind, ())))
    for kind in ("meaning", "say"):
        yield from (("codes.json", ("unknown", kind, i), text) for i, text in enumerate(values["codes.json"]["unknown"][kind]))
    for number, code in enumerate(values["codes.json"]["codes"]):
        yield from (("codes.json", ("codes", number, kind), code[kind]) for kind in ("meaning", "say"))
        for kind in ("steps", "never"):
            yield from (("codes.json", ("codes", number, kind, i), text) for i, text in enumerate(code.get(kind, ())))
    for number, rule in enumerate(values.get("rules.json", {"rules": ()})["rules"]):
        yield "rules.json", ("rules", number, "message"), rule["message"]
        if rule.get("at"):
            yield "rules.json", ("rules", number, "at"), rule["at"]


def _places(contract: Contract) -> Iterator[Problem]:
    """Places in a response that it does not have."""
    for number, shape in enumerate(contract.data["shapes"]):
        places = [(("fields", name, "at"), field["at"]) for name, field in shape["fields"].items()] + [(("ids", "correlation"), shape["ids"]["correlation"])]
        for way, each in places:
            for i, one in enumerate(each):
                path = one if isinstance(one, str) else one["in"]
                first, _, rest = path.removeprefix("http:/").partition("/")
                if not path.startswith("http:/") or (first in _OF_A_RESPONSE and rest.partition("/")[0] == rest.partition("/")[0].lower()):
                    continue
                at = pointer(["shapes", number, *way, i])
                hint = "Names of headers and challenges are in lower case." if first in _OF_A_RESPONSE else _near(first, _OF_A_RESPONSE)
                yield Problem("contract.json", at, f"a response has nothing at {path}", hint)


_OF_A_RESPONSE = ("status", "reason", "headers", "challenges")


def _facts(contract: Contract) -> frozenset[str]:
    return facts.GENERAL | {name for shape in contract.shapes for name in shape.data["fields"]}


def _conditions(contract: Contract, values: Mapping[str, Any]) -> Iterator[Problem]:
    patterns = sum(str(data).count("'pattern'") for data in values.values())
    if patterns > _MOST_PATTERNS:
        yield Problem("contract.json", "", f"the pack has {patterns} patterns, more than {_MOST_PATTERNS}", "Use const and enum where the texts are known.")
        return
    for each in _every_condition(contract, values):
        broken = list(_schema(each.file, pointer(each.place), each.schema))
        yield from broken
        if each.known is None or broken or not isinstance(each.schema, dict):
            continue
        for name in sorted(names_in(each.schema) - each.known):
            hint = _near(name, each.known) or _FACTS
            if each.known is facts.PROBED:
                hint = f"{_near(name, each.known)} What is asked of the payload itself stands under `value`.".strip()
            yield Problem(each.file, pointer(each.place), f"asks for `{name}`, which nothing gives", hint)
        yield from _unknown_words(contract, each)


def _unknown_words(contract: Contract, condition: _Condition) -> Iterator[Problem]:
    """Groups, shapes and classes that a condition asks for and that there are not."""
    if condition.known is facts.PROBED:
        return
    known = {
        "group": {*contract.catalogue.groups, "unknown"},
        "shape": {shape.name for shape in contract.shapes},
        "tool_class": {*contract.data.get("classes", {})},
    }
    for name, values in known.items():
        for word in sorted(_asked_of(condition.schema, name) - values):
            yield Problem(condition.file, pointer(condition.place), f"asks whether `{name}` is `{word}`, which it never is", _near(word, values))


def _asked_of(schema: Any, name: str) -> set[str]:
    """The texts that a condition compares a fact with, at any depth of its alternatives."""
    if isinstance(schema, list):
        return {word for each in schema for word in _asked_of(each, name)}
    if not isinstance(schema, dict):
        return set()
    asked = schema.get("properties", {}).get(name) if isinstance(schema.get("properties"), dict) else None
    words = _compared(asked)
    return words.union(*(_asked_of(schema[keyword], name) for keyword in ("anyOf", "allOf", "oneOf", "not", "if", "then", "else") if keyword in schema))


def _compared(asked: Any) -> set[str]:
    if not isinstance(asked, dict):
        return set()
    words = {each for each in (asked.get("const"), *(asked.get("enum") or ())) if isinstance(each, str)}
    return words | _compared(asked.get("not"))


def _names(contract: Contract, values: Mapping[str, Any]) -> Iterator[Problem]:
    """Facts that texts and leaves name, and the types of those that are printed or that are delays."""
    known = _facts(contract)
    ready = known | READY
    for file, place, text in _every_text(values):
        for name in sorted(facts_in(text) - ready):
            yield Problem(file, pointer(place), f"names {{{name}}}, which nothing gives, so that it would never be said", _near(name, ready) or _FACTS)
        if any(brace in re.sub(r"\{[a-z_]+\}", "", each) for each in alternatives(text) for brace in "{}"):
            yield Problem(file, pointer(place), "has a brace that names no fact, and would be shown as it is", "A fact stands in braces, such as {code}.")
    types = {(name, kind) for shape in contract.shapes for name, field in shape.data["fields"].items() for kind in field["type"]}
    for number, shape in enumerate(contract.shapes):
        for name, field in shape.data["fields"].items():
            if name in facts.GENERAL - _ALSO_FIELDS:
                at_field = pointer(["shapes", number, "fields", name])
                yield Problem(
                    "contract.json", at_field, f"`{name}` is the name of a general fact, which would stand in where the field is absent", "Rename it."
                )
            if wrong := sorted({*field["type"]} - _PRINTED.get(name, {*field["type"]})):
                types_at = pointer(["shapes", number, "fields", name, "type"])
                allowed = " or ".join(sorted(_PRINTED[name]))
                yield Problem("contract.json", types_at, f"`{name}` is printed and cannot be of type {wrong[0]}", f"Make it {allowed}.")
    yield from _delays(contract, types, known)


def _delays(contract: Contract, types: set[tuple[str, str]], known: frozenset[str]) -> Iterator[Problem]:
    """Facts that leaves name for a delay: they must be there, and be numbers."""
    for name, leaf in contract.tree["leaves"].items():
        delay = (leaf.get("retry") or {}).get("delay_ms")
        named = delay.get("longest", [delay.get("fact")]) if isinstance(delay, dict) else []
        for fact in (each for each in named if each != "retry_after_ms"):
            at = pointer(["leaves", name, "retry", "delay_ms"])
            if fact in facts.GENERAL:
                yield Problem("tree.json", at, f"`{fact}` is no delay in milliseconds", "Did you mean `retry_after_ms`?")
            elif fact not in known:
                yield Problem("tree.json", at, f"names the fact `{fact}`, which nothing gives", _near(fact, known))
            elif not {kind for each, kind in types if each == fact} <= _DELAYS:
                yield Problem("tree.json", at, f"`{fact}` is no number", f"Give its field one of the types {', '.join(sorted(_DELAYS))}.")


def _catalogue(codes: Mapping[str, Any]) -> Iterator[Problem]:
    groups = [group["name"] for group in codes["groups"]]
    seen: set[str] = set()
    for number, entry in enumerate(codes["codes"]):
        place = f"/codes/{number}"
        if entry["group"] not in groups:
            yield Problem("codes.json", f"{place}/group", f"there is no group `{entry['group']}`", _near(entry["group"], groups))
        for name in [entry["code"], *entry.get("aliases", ())] if "code" in entry else ():
            if name in seen:
                yield Problem("codes.json", place, f"the code `{name}` stands twice", "Drop one.")
            seen.add(name)
        if "from" in entry and entry["from"] > entry["to"]:
            yield Problem("codes.json", place, "the range ends before it begins", "Exchange from and to.")


def tree(data: Mapping[str, Any]) -> Iterator[Problem]:
    """What is wrong with a tree: targets that are not there, ways round in circles, parts that are never reached."""
    nodes, leaves = data["nodes"], data["leaves"]
    for name in sorted(nodes.keys() & leaves.keys()):
        yield Problem("tree.json", pointer(["nodes", name]), f"a node and a leaf are both called `{name}`", "Rename one.")
    ways: dict[str, list[tuple[Any, str]]] = {}
    for name, node in nodes.items():
        ways[name] = [(("branches", i), branch["to"]) for i, branch in enumerate(node["branches"])] + [(("otherwise",), node["otherwise"]["to"])]
    everything = [*nodes, *leaves]
    lost = [Problem("tree.json", "/root", f"there is no node `{data['root']}`", _near(data["root"], nodes))] if data["root"] not in nodes else []
    for name, targets in ways.items():
        lost += [
            Problem("tree.json", pointer(["nodes", name, *way, "to"]), f"leads to `{to}`, which is neither a node nor a leaf", _near(to, everything))
            for way, to in targets if to not in nodes and to not in leaves
        ]  # fmt: skip
    if lost:
        yield from lost
        return
    # Every node that only leads to finished ones is finished; what is left over then goes round in circles.
    finished: set[str] = set(leaves)
    left = dict(ways)
    while done := [name for name, targets in left.items() if all(to in finished for _, to in targets)]:
        finished |= {*done}
        for name in done:
            del left[name]
    circles = _in_circles(left)
    yield from (Problem("tree.json", pointer(["nodes", name]), "leads back to itself", "Every way must end at a leaf.") for name in circles)
    reached = [data["root"]]
    for name in reached:
        reached += [to for _, to in ways.get(name, ()) if to not in reached]
    for name in everything:
        if name not in reached:
            kind = "nodes" if name in nodes else "leaves"
            yield Problem("tree.json", pointer([kind, name]), "is never reached", "Lead a branch there, or drop it.")


def _in_circles(left: Mapping[str, Sequence[tuple[Any, str]]]) -> list[str]:
    """Those of some nodes that are on a circle themselves, and do not only lead into one."""
    circles = []
    for name in left:
        reached = [to for _, to in left[name]]
        for each in reached:
            reached += [to for _, to in left.get(each, ()) if to not in reached]
        if name in reached:
            circles.append(name)
    return circles


def _rules(contract: Contract) -> Iterator[Problem]:
    shapes = [shape.name for shape in contract.shapes]
    others = {rule["id"]: pack.name for pack in bundled() if pack.name != contract.name for rule in pack.rules}
    for number, rule in enumerate(contract.rules):
        place = f"/rules/{number}"
        ids = [each["id"] for each in contract.rules[:number]]
        if rule["id"] in ids or rule["id"] in others or rule["id"].startswith("ET"):
            yield Problem("rules.json", f"{place}/id", f"`{rule['id']}` is the id of another rule", "Begin it with two letters of your own.")
        for shape in rule.get("shapes", ()):
            if shape not in shapes:
                yield Problem("rules.json", f"{place}/shapes", f"there is no shape `{shape}`", _near(shape, shapes))


def _near(name: str, known: Any) -> str:
    near = get_close_matches(name, [*known], 1, 0.5)
    few = f"There are {', '.join(sorted(known))}." if known and len(known) <= 8 else ""
    return f"Did you mean `{near[0]}`?" if near else few


class Broken(NamedTuple):
    """A pack that cannot be used: where it is, by whose wish it was looked at, and what is wrong with it."""

    name: str
    folder: Path
    kind: str
    problems: Sequence[Problem]

    def __str__(self) -> str:
        first = self.problems[0]
        where = " ".join(filter(None, (first.file, first.pointer)))
        more = f" (and {len(self.problems) - 1} more)" if len(self.problems) > 1 else ""
        return f"The contract pack {shown(self.folder)} cannot be used: {where}: {first.message}{more}."


class InUse(NamedTuple):
    """The packs beyond the bundled ones that a run uses, in the order in which they go over each other, and the broken ones."""

    packs: tuple[Pack, ...] = ()
    broken: tuple[Broken, ...] = ()
    #: Locations of packs that were named and hold none.
    empty: tuple[Location, ...] = ()


def in_use(places: Sequence[Location]) -> InUse:
    """Find, read and prove the packs of some locations, in their order."""
    packs: list[Pack] = []
    broken: list[Broken] = []
    empty: list[Location] = []
    for location in places:
        found = folders(location)
        if not found and location.kind in (VARIABLE, "--pack"):
            empty.append(location)
        for folder in found:
            try:
                pack = read(folder, location.kind)
                trouble = problems(pack)
            except Failure as failure:
                trouble = [Problem("", "", str(failure).rstrip("."))]
            if trouble:
                broken.append(Broken(folder.name, folder, location.kind, trouble))
            else:
                packs.append(pack)
    return InUse(tuple(packs), tuple(broken), tuple(empty))


def named(places: Sequence[str]) -> tuple[Pack, ...]:
    """The packs in folders that are named. Raises Failure where one cannot be used, or where there is none."""
    found = in_use([Location("--pack", Path(each)) for each in places])
    for location in found.empty:
        raise Failure(*no_pack(location))
    for broken in found.broken:
        raise Failure(str(broken), hint(broken))
    return found.packs


def no_pack(location: Location) -> tuple[str, str]:
    """Message and hint for a location without a pack."""
    return f"{location.folder} is no contract pack and holds none: a pack is a folder with contract.json.", "`errtriage contracts new NAME` starts one."


def hint(broken: Broken) -> str:
    """Where to read more about what is wrong with a pack."""
    return f"`errtriage contracts check {shown(broken.folder)}` says all."
