"""Proves that a pack can be used: that its files are what they must be, that every name in it leads somewhere, and that
its tree ends for every payload.

Whatever is not bundled goes through here before anything of it is used. What its examples prove says ``coverage``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

import jsonschema_rs
import orjson

from errtriage import facts
from errtriage.contracts import Contract, bundled, load, names_in
from errtriage.model import Action, Outcome
from errtriage.packs import Pack, packs_folder
from errtriage.pointers import pointer
from errtriage.redact import clean
from errtriage.safety import Place, Problem, check_schema, children, near, parsed
from errtriage.wording import READY, alternatives, facts_in

#: How many patterns a pack may have.
_MOST_PATTERNS = 200
#: How many things that are wrong are said, and how many words to search for a pack may have in all.
_MOST_PROBLEMS, _MOST_WORDS = 50, 500
#: What is wrong with a file larger than this, in bytes, is said in the words of the fast validator.
_LARGEST_EXPLAINED = 100_000
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


def problems(pack: Pack, most: int = _MOST_PROBLEMS) -> list[Problem]:
    """For what a pack cannot be used, at most so many things; empty for one that can be."""
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
    found = list(islice(_catalogue(values["codes.json"]), most))
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
    return list(islice(chain(*checks, tree(contract.tree), _rules(contract)), most))


_NEEDED = ("contract.json", "codes.json", "tree.json")
_META = {"contract.schema.json", "codes.schema.json", "tree.schema.json", "rules.schema.json", "conduct.schema.json"}


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
    if len(orjson.dumps(value)) > _LARGEST_EXPLAINED:
        errors = islice(validator.iter_errors(value), _MOST_PROBLEMS)
        return [Problem(file, pointer(each.instance_path), clean(each.message)[:300]) for each in errors]
    from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped]
    from referencing import Resource

    from errtriage.violations import explain

    registry = REGISTRY.with_resource("texts.schema.json", Resource.from_contents(load(packs_folder() / "meta" / "texts.schema.json")))
    found = explain(schema, value, clean, registry, _MOST_PROBLEMS)
    # Said once; it holds of all.
    hint = f"meta/{name} beside the pack describes this file, and an editor that follows `$schema` checks it as you write."
    return [Problem(file, each.pointer, each.message, hint if each is found[-1] else "") for each in found]


def _sources(values: Mapping[str, Any]) -> Iterator[Problem]:
    listed = values["contract.json"]["sources"]
    for name in (*_NEEDED, "rules.json", "conduct.json"):
        for place, source in _named_sources(values.get(name), ()):
            if source not in listed:
                yield Problem(name, pointer(place), f"names the source `{source}`, which contract.json does not list", near(source, listed))


def _named_sources(value: Any, at: Place) -> Iterator[tuple[Place, str]]:
    for place, member in children(at, value):
        if place[-1] == "source" and isinstance(member, str):
            yield place, member
        elif place[-1] not in ("when", "match", "where", "bad", "good", "sources", "fields", "tools", "classes"):
            yield from _named_sources(member, place)


def sources_named(contract: Contract) -> set[str]:
    """The sources that entries of a pack name."""
    files = [contract.data, contract.file("codes.json"), contract.tree, {"rules": contract.rules}, contract.conduct]
    return {source for file in files for _, source in _named_sources(file, ())}


def _files(contract: Contract, values: Mapping[str, Any]) -> Iterator[Problem]:
    names = [shape.name for shape in contract.shapes]
    for number, shape in enumerate(contract.shapes):
        place = f"/shapes/{number}"
        if shape.name in names[:number]:
            yield Problem("contract.json", f"{place}/name", f"there are two shapes `{shape.name}`", "Rename one.")
        file = shape.data["schema"]
        if file not in values:
            hint = near(file, [each for each in values if ".schema." in each])
            yield Problem("contract.json", f"{place}/schema", f"there is no file {file} beside it", hint)
    for name, value in values.items():
        if name.endswith(".schema.json"):
            yield from check_schema(name, "", value)
    tools = contract.data.get("tools", {})
    classes = contract.data.get("classes", {})
    for i, kind in enumerate(contract.conduct.get("reads", ())):
        if kind not in classes:
            yield Problem("conduct.json", pointer(["reads", i]), f"there is no class `{kind}`", near(kind, classes))
    for tool, kind in tools.items():
        if kind not in classes:
            yield Problem("contract.json", pointer(["tools", tool]), f"there is no class `{kind}`", near(kind, classes))


class _Condition(NamedTuple):
    file: str
    place: Place
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
    yield from _of_conduct(contract.conduct, known | facts.JUDGED)
    for file, place, text in _every_text(values):
        yield from (_Condition(file, (*place, *at, "when"), each["when"], known) for at, each in _conditional(text, ()))


def _of_conduct(conduct: Mapping[str, Any], known: frozenset[str]) -> Iterator[_Condition]:
    for i, entry in enumerate(conduct["rules"]):
        if "when" in entry:
            yield _Condition("conduct.json", ("rules", i, "when"), entry["when"], known)
    if "gave_up" in conduct:
        yield _Condition("conduct.json", ("gave_up", "when"), conduct["gave_up"]["when"], known)


def _of_shape(shape: Mapping[str, Any], at: Place) -> Iterator[_Condition]:
    yield _Condition("contract.json", (*at, "match"), shape["match"], facts.PROBED)
    places = [(("fields", name, "at"), field["at"]) for name, field in shape["fields"].items()] + [(("ids", "correlation"), shape["ids"]["correlation"])]
    for way, each in places:
        for i, one in enumerate(each):
            if isinstance(one, dict) and "where" in one:
                yield _Condition("contract.json", (*at, *way, i, "where"), one["where"], None)


def _conditional(text: Any, at: Place) -> Iterator[tuple[Place, Mapping[str, Any]]]:
    """The parts of a text that stand under a condition."""
    if isinstance(text, dict):
        yield at, text
        yield from _conditional(text["text"], (*at, "text"))
    elif isinstance(text, list):
        for i, each in enumerate(text):
            yield from _conditional(each, (*at, i))


def _every_text(values: Mapping[str, Any]) -> Iterator[tuple[str, Place, Any]]:
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
    yield from _texts_of_rules(values)


def _texts_of_rules(values: Mapping[str, Any]) -> Iterator[tuple[str, Place, Any]]:
    for number, rule in enumerate(values.get("rules.json", {"rules": ()})["rules"]):
        yield "rules.json", ("rules", number, "message"), rule["message"]
        if rule.get("at"):
            yield "rules.json", ("rules", number, "at"), rule["at"]
    for number, entry in enumerate(values.get("conduct.json", {"rules": ()})["rules"]):
        yield from (("conduct.json", ("rules", number, kind), entry[kind]) for kind in ("says", "instead"))


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
                hint = "Names of headers and challenges are in lower case." if first in _OF_A_RESPONSE else near(first, _OF_A_RESPONSE)
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
        broken = list(check_schema(each.file, pointer(each.place), each.schema))
        yield from broken
        if each.known is None or broken or not isinstance(each.schema, dict):
            continue
        for name in sorted(names_in(each.schema) - each.known):
            hint = near(name, each.known) or _FACTS
            if each.known is facts.PROBED:
                hint = f"{near(name, each.known)} What is asked of the payload itself stands under `value`.".strip()
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
        **({"outcome": {*Outcome}, "action": {*Action}} if condition.file == "conduct.json" else {}),
    }
    for name, values in known.items():
        for word in sorted(_asked_of(condition.schema, name) - values):
            yield Problem(condition.file, pointer(condition.place), f"asks whether `{name}` is `{word}`, which it never is", near(word, values))


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
    markers = [marker for shape in contract.data["shapes"] for marker in shape.get("markers", ())]
    words = sum(len(marker.get(kind, ())) for marker in markers for kind in ("begins", "except", "with")) + len(markers)
    if words > _MOST_WORDS:
        yield Problem("contract.json", "/shapes", f"the markers have {words} words, more than {_MOST_WORDS}", "Name what is rare, and less of it.")
    for file, place, text in _every_text(values):
        for name in sorted(facts_in(text) - ready):
            yield Problem(file, pointer(place), f"names {{{name}}}, which nothing gives, so that it would never be said", near(name, ready) or _FACTS)
        if any(brace in re.sub(r"\{[a-z_]+\}", "", each) for each in alternatives(text) for brace in "{}"):
            yield Problem(file, pointer(place), "has a brace that names no fact, and would be shown as it is", "A fact stands in braces, such as {code}.")
    types = {(name, kind) for shape in contract.shapes for name, field in shape.data["fields"].items() for kind in field["type"]}
    for number, shape in enumerate(contract.shapes):
        for name, field in shape.data["fields"].items():
            if name in (facts.GENERAL - _ALSO_FIELDS) | READY:
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
                yield Problem("tree.json", at, f"names the fact `{fact}`, which nothing gives", near(fact, known))
            elif not {kind for each, kind in types if each == fact} <= _DELAYS:
                yield Problem("tree.json", at, f"`{fact}` is no number", f"Give its field one of the types {', '.join(sorted(_DELAYS))}.")


def _catalogue(codes: Mapping[str, Any]) -> Iterator[Problem]:
    groups = [group["name"] for group in codes["groups"]]
    seen: set[str] = set()
    for number, entry in enumerate(codes["codes"]):
        place = f"/codes/{number}"
        if entry["group"] not in groups:
            yield Problem("codes.json", f"{place}/group", f"there is no group `{entry['group']}`", near(entry["group"], groups))
        for name in [entry["code"], *entry.get("aliases", ())] if "code" in entry else ():
            if name in seen:
                yield Problem("codes.json", place, f"the code `{name}` stands twice", "Drop one.")
            seen.add(name)
        if "from" in entry and "to" in entry and entry["from"] > entry["to"]:
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
    lost = [Problem("tree.json", "/root", f"there is no node `{data['root']}`", near(data["root"], nodes))] if data["root"] not in nodes else []
    for name, targets in ways.items():
        lost += [
            Problem("tree.json", pointer(["nodes", name, *way, "to"]), f"leads to `{to}`, which is neither a node nor a leaf", near(to, everything))
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
                yield Problem("rules.json", f"{place}/shapes", f"there is no shape `{shape}`", near(shape, shapes))
