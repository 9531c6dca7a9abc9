"""Contracts as the rest of errtriage uses them: packs, the data from which every decision follows.

Files of the bundled packs are read when they are needed, so that one pack more costs nothing at start-up. Nothing in a
pack is evaluated or fetched: conditions are JSON Schemas, compiled offline and with regular expressions that run in
linear time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import jsonschema_rs
import orjson

from errtriage.cuts import plain
from errtriage.model import Failure
from errtriage.packs import packs_folder, read_file, within_bound

if TYPE_CHECKING:
    from errtriage.packs import Pack

Condition = Mapping[str, Any]

_NUMBER = re.compile(r"-?[0-9]{1,19}")

#: The most memory of one compiled pattern, in bytes.
_LARGEST_PATTERN = 1 << 20


def load(path: Path) -> Any:
    """Read one JSON file of a pack. Raises Failure where it is missing, too large or not JSON."""
    try:
        return orjson.loads(read_file(path))
    except ValueError as error:
        raise Failure(f"The contract pack's file {path} is not JSON: {error}.", "Correct it and try again.") from None


def compiled(schema: Condition) -> jsonschema_rs.Draft202012Validator:
    """Compile a schema: nothing is fetched, and patterns cannot run away."""
    patterns = jsonschema_rs.RegexOptions(size_limit=_LARGEST_PATTERN)
    return jsonschema_rs.Draft202012Validator(schema if isinstance(schema, bool) else dict(schema), offline=True, pattern_options=patterns)


def names_in(condition: Any) -> set[str]:
    """The facts that a condition asks for, at any depth of its alternatives."""
    if not isinstance(condition, Mapping):
        return set()  # true or false
    names = {*condition.get("required", ()), *condition.get("properties", ())}
    parts = [each for keyword in ("anyOf", "allOf", "oneOf") for each in condition.get(keyword, ())]
    parts += [condition[keyword] for keyword in ("not", "if", "then", "else") if keyword in condition]
    return names.union(*map(names_in, parts))


def _valid(validator: jsonschema_rs.Draft202012Validator, value: Any) -> bool:
    try:
        return validator.is_valid(value)
    except ValueError:  # a value with the marks of a cut: the validator knows only the plain types
        return validator.is_valid(plain(value))


class Conditions:
    """Compiled conditions, each compiled when it is first asked for and kept by the identity of its data."""

    def __init__(self) -> None:
        self._validators: dict[int, tuple[Condition, jsonschema_rs.Draft202012Validator]] = {}

    def hold(self, condition: Condition | None, facts: Any) -> bool:
        """Whether ``facts`` satisfy ``condition``; no condition always holds."""
        if condition is None:
            return True
        kept = self._validators.get(id(condition))
        if kept is None:
            # The data is kept beside it, so that its identity cannot be reused.
            kept = self._validators[id(condition)] = (condition, compiled(condition))
        return _valid(kept[1], facts)


class Code(NamedTuple):
    """One entry of a catalogue, with what its group adds."""

    data: Mapping[str, Any]
    group: Mapping[str, Any]

    @property
    def retryable(self) -> bool | None:
        """What the contract says about retrying this code, where it says so."""
        value = self.data.get("retryable", self.group.get("retryable"))
        return value if isinstance(value, bool) else None


class Catalogue:
    """A contract's codes: single ones first, then ranges of numbers in their order."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        groups = {group["name"]: group for group in data["groups"]}
        self.unknown: Mapping[str, Any] = data["unknown"]
        self.groups: Mapping[str, Mapping[str, Any]] = groups
        self.entries = [Code(entry, groups[entry["group"]]) for entry in data["codes"]]
        self._by_code = {name: entry for entry in self.entries if "code" in entry.data for name in (entry.data["code"], *entry.data.get("aliases", ()))}
        self._ranges = [entry for entry in self.entries if "from" in entry.data]

    def find(self, code: str | None) -> Code | None:
        """The entry of ``code``, or None where the catalogue has none."""
        if code is None:
            return None
        if entry := self._by_code.get(code):
            return entry
        if _NUMBER.fullmatch(code):
            number = int(code)
            return next((entry for entry in self._ranges if entry.data["from"] <= number <= entry.data["to"]), None)
        return None


class Shape(NamedTuple):
    """One shape of a contract: where it occurs, how it is recognised, where its fields are."""

    contract: Contract
    data: Mapping[str, Any]
    #: What must be known, and what members the value must have if it is an object: asked before anything is compiled.
    needs: frozenset[str]
    members: frozenset[str]

    @classmethod
    def of(cls, contract: Contract, data: Mapping[str, Any]) -> Shape:
        """A shape of a contract from its data."""
        match = data["match"]
        needs = frozenset(match.get("required", ()))
        value = match.get("properties", {}).get("value") if "value" in needs else None
        return cls(contract, data, needs, frozenset(value.get("required", ()) if isinstance(value, Mapping) else ()))

    @property
    def name(self) -> str:
        """The shape's name, as verdicts print it."""
        return str(self.data["name"])

    @property
    def schema(self) -> Mapping[str, Any]:
        """The shape's JSON Schema."""
        return self.contract.schema(self.data["schema"])

    def matches(self, probe: Mapping[str, Any]) -> bool:
        """Whether a value and what is known around it are this shape."""
        if not self.needs <= probe.keys():
            return False
        value = probe["value"]
        return not (isinstance(value, dict) and not self.members <= value.keys()) and self.contract.conditions.hold(self.data["match"], probe)

    def accepts(self, value: Any) -> bool:
        """Whether ``value`` satisfies the shape's JSON Schema (the fast validator's answer)."""
        return self.contract.accepts(self.data["schema"], value)


class Contract:
    """One contract pack. Everything but its ``contract.json`` is read when it is first needed.

    ``files`` are the bytes of a pack that is not bundled, by the names of its files; ``origin`` says where it is from.
    """

    def __init__(self, folder: Path, files: Mapping[str, bytes] | None = None, origin: str = "") -> None:
        self.folder = folder
        #: Where a pack is from that is not bundled, in words; empty for the bundled ones.
        self.origin = origin
        self._files = files
        self.data: Mapping[str, Any] = self.file("contract.json")
        self.name: str = self.data["name"]
        self.shapes = [Shape.of(self, shape) for shape in self.data["shapes"]]
        self.conditions = Conditions()
        self._schemas: dict[str, Mapping[str, Any]] = {}
        self._validators: dict[str, jsonschema_rs.Draft202012Validator] = {}

    def file(self, name: str) -> Any:
        """One of the pack's JSON files. Raises Failure where there is none, or none that can be read."""
        return load(self.folder / name) if self._files is None else orjson.loads(self._files[name])

    def examples(self) -> list[Mapping[str, Any]]:
        """The pack's examples, in the order of their files; a file may hold several. Raises Failure for one that cannot be read."""
        files = [load(path) for path in within_bound(self.folder / "examples", "*.json")]
        return [example for file in files for example in (file if isinstance(file, list) else [file])]

    @cached_property
    def catalogue(self) -> Catalogue:
        """The code catalogue."""
        return Catalogue(self.file("codes.json"))

    @cached_property
    def tree(self) -> Mapping[str, Any]:
        """The decision tree."""
        tree: Mapping[str, Any] = self.file("tree.json")
        return tree

    @cached_property
    def rules(self) -> list[Mapping[str, Any]]:
        """The lint rules."""
        if self._files is not None and "rules.json" not in self._files:
            return []
        return list(self.file("rules.json")["rules"])

    @cached_property
    def conduct(self) -> Mapping[str, Any]:
        """What a caller must not do after an answer; without a file of it, nothing is forbidden."""
        there = (self.folder / "conduct.json").exists() if self._files is None else "conduct.json" in self._files
        conduct: Mapping[str, Any] = self.file("conduct.json") if there else {"rules": []}
        return conduct

    @property
    def is_protocol(self) -> bool:
        """Whether the contract is one of a protocol, which other services' answers come in, and not of one service."""
        return bool(self.data.get("wraps")) and not self.data.get("tools")

    @cached_property
    def secret_parameters(self) -> frozenset[str]:
        """Query parameters whose values the service redacts."""
        return frozenset(self.data.get("redact", {}).get("query_parameters", []))

    def shape(self, name: str) -> Shape:
        """The shape of this name. Raises KeyError where the contract has none."""
        for shape in self.shapes:
            if shape.name == name:
                return shape
        raise KeyError(name)

    def class_of(self, tool: str | None) -> str | None:
        """The class of a tool that the contract knows (or of a class itself), else None."""
        value = self.data.get("tools", {}).get(tool, tool if tool in self.data.get("classes", {}) else None)
        return str(value) if value is not None else None

    def schema(self, file: str) -> Mapping[str, Any]:
        """One of the pack's JSON Schemas, by the name of its file."""
        if file not in self._schemas:
            self._schemas[file] = self.file(file)
        return self._schemas[file]

    def accepts(self, schema: str, value: Any) -> bool:
        """Whether ``value`` satisfies one of the pack's JSON Schemas, by the name of its file."""
        validator = self._validators.get(schema)
        if validator is None:
            validator = self._validators[schema] = compiled(self.schema(schema))
        return _valid(validator, value)


class Contracts:
    """The packs of a run, the most specific first."""

    def __init__(self, packs: list[Contract], secret_parameters: frozenset[str] = frozenset()) -> None:
        self.packs = sorted(packs, key=lambda pack: (pack.data["rank"], pack.name))
        self.classes = frozenset(name for pack in self.packs for name in pack.data.get("classes", {}))
        self.secret_parameters = secret_parameters.union(*(pack.secret_parameters for pack in self.packs))
        #: Where the packs are from that are not bundled, in words, by their names.
        self.origins = {pack.name: pack.origin for pack in self.packs if pack.origin}

    def __iter__(self) -> Iterator[Contract]:
        return iter(self.packs)

    @cached_property
    def words(self) -> tuple[str, ...]:
        """Patterns for what marks a payload of some contract, by the markers of its shapes: texts, and names as members."""
        markers = [marker for pack in self.packs for shape in pack.shapes for marker in shape.data.get("markers", ())]
        texts = {marker["text"] for marker in markers if "text" in marker}
        names = {name for marker in markers for name in (*marker.get("with", ()), *([marker["member"]] if "member" in marker else ()))}
        return (*map(re.escape, sorted(texts)), *(rf"\b{re.escape(name)}\b(?=\\*[\"'”’]?\s?[:=])" for name in sorted(names)))

    def names(self) -> list[str]:
        """The names of all contracts."""
        return [pack.name for pack in self.packs]

    def get(self, name: str) -> Contract:
        """The contract of this name. Raises Failure, which offers the nearest name, where there is none."""
        for pack in self.packs:
            if pack.name == name:
                return pack
        raise Failure(*unknown_name("contract", name, self.names()))


def unknown_name(kind: str, name: str, known: list[str]) -> tuple[str, str]:
    """Message and hint for a name that is none of the known ones, with the nearest of them."""
    from difflib import get_close_matches

    lower = {each.lower(): each for each in known}
    near = get_close_matches(name.lower(), lower, 1, 0.5)
    hint = f"Did you mean '{lower[near[0]]}'? " if near else ""
    return f"There is no {kind} '{name}'.", f"{hint}Known: {', '.join(known)}."


@cache
def own_rules() -> list[Mapping[str, Any]]:
    """The lint rules of errtriage itself, which are about finding payloads and not about one contract."""
    return list(load(packs_folder() / "errtriage" / "rules.json")["rules"])


@cache
def own_conduct() -> Mapping[str, Any]:
    """The rules of audit, and what errtriage itself chose for them."""
    conduct: Mapping[str, Any] = load(packs_folder() / "errtriage" / "conduct.json")
    return conduct


@cache
def bundled() -> Contracts:
    """The packs that errtriage brings along."""
    return Contracts([Contract(path.parent) for path in sorted(packs_folder().glob("*/contract.json"))])


@cache
def with_packs(packs: tuple[Pack, ...]) -> Contracts:
    """The bundled packs with others over them: one of the same name takes the place of the one before."""
    if not packs:
        return bundled()
    by_name = {pack.name: pack for pack in bundled()}
    for pack in packs:
        contract = Contract(Path(pack.folder), dict(pack.files), pack.origin)
        by_name[contract.name] = contract
    # What a bundled pack hides stays hidden, also where another stands in its place.
    return Contracts(list(by_name.values()), bundled().secret_parameters)
