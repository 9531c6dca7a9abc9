"""Finds and loads contract packs: the data in ``schemas`` from which every decision follows.

Files are read when they are needed, so that one pack more costs nothing at start-up. Nothing in a pack is evaluated
or fetched: conditions are JSON Schemas, compiled offline and with regular expressions that run in linear time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple

import jsonschema_rs
import orjson

from errtriage.cuts import plain
from errtriage.model import Failure

Condition = Mapping[str, Any]


@cache
def packs_folder() -> Path:
    """The folder with the bundled packs: beside the package in a wheel, at the top of a checkout."""
    here = Path(__file__).resolve().parent
    for folder in (here / "schemas", here.parents[1] / "schemas"):
        if folder.is_dir():
            return folder
    raise Failure("errtriage is installed without its contract packs (no folder `schemas`).", "Install it again.", 70)


def load(path: Path) -> Any:
    """Read one JSON file of a pack. Raises Failure where it is missing or not JSON."""
    try:
        return orjson.loads(path.read_bytes())
    except OSError as error:
        raise Failure(f"The contract pack's file {path} cannot be read ({error.strerror}).", "Install errtriage again.") from None
    except ValueError as error:
        raise Failure(f"The contract pack's file {path} is not JSON: {error}.", "Correct it and try again.") from None


def compiled(schema: Condition) -> jsonschema_rs.Draft202012Validator:
    """Compile a schema: nothing is fetched, and patterns cannot run away."""
    return jsonschema_rs.Draft202012Validator(dict(schema), offline=True, pattern_options=jsonschema_rs.RegexOptions())


def names_in(condition: Condition) -> set[str]:
    """The facts that a condition asks for, at any depth of its alternatives."""
    names = {*condition.get("required", ()), *condition.get("properties", ())}
    for keyword in ("anyOf", "allOf", "oneOf"):
        names |= {name for each in condition.get(keyword, ()) for name in names_in(each)}
    return names | names_in(condition["not"]) if "not" in condition else names


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
        self._by_code = {entry.data["code"]: entry for entry in self.entries if "code" in entry.data}
        self._ranges = [entry for entry in self.entries if "from" in entry.data]

    def find(self, code: str | None) -> Code | None:
        """The entry of ``code``, or None where the catalogue has none."""
        if code is None:
            return None
        if entry := self._by_code.get(code):
            return entry
        if code.lstrip("-").isdecimal() and len(code) < 20:
            number = int(code)
            return next((entry for entry in self._ranges if entry.data["from"] <= number <= entry.data["to"]), None)
        return None


class Shape(NamedTuple):
    """One shape of a contract: where it occurs, how it is recognised, where its fields are."""

    contract: Contract
    data: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The shape's name, as verdicts print it."""
        return str(self.data["name"])

    @property
    def schema_names(self) -> frozenset[str]:
        """The members that the shape's JSON Schema names at its top."""
        return _top_names(self.schema_file)

    @property
    def schema_file(self) -> Path:
        """The file of the shape's JSON Schema."""
        return self.contract.folder / str(self.data["schema"])

    def matches(self, probe: Mapping[str, Any]) -> bool:
        """Whether a value and what is known around it are this shape."""
        return self.contract.conditions.hold(self.data["match"], probe)

    def accepts(self, value: Any) -> bool:
        """Whether ``value`` satisfies the shape's JSON Schema (the fast validator's answer)."""
        return self.contract.accepts(self.data["schema"], value)


@cache
def _top_names(schema_file: Path) -> frozenset[str]:
    return frozenset(load(schema_file).get("properties", ()))


class Contract:
    """One contract pack. Everything but its ``contract.json`` is read when it is first needed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data: Mapping[str, Any] = load(folder / "contract.json")
        self.name: str = self.data["name"]
        self.shapes = [Shape(self, shape) for shape in self.data["shapes"]]
        self.conditions = Conditions()
        self._schemas: dict[str, jsonschema_rs.Draft202012Validator] = {}

    @cached_property
    def catalogue(self) -> Catalogue:
        """The code catalogue."""
        return Catalogue(load(self.folder / "codes.json"))

    @cached_property
    def tree(self) -> Mapping[str, Any]:
        """The decision tree."""
        tree: Mapping[str, Any] = load(self.folder / "tree.json")
        return tree

    @cached_property
    def rules(self) -> list[Mapping[str, Any]]:
        """The lint rules."""
        path = self.folder / "rules.json"
        return list(load(path)["rules"]) if path.is_file() else []

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

    def accepts(self, schema: str, value: Any) -> bool:
        """Whether ``value`` satisfies one of the pack's JSON Schemas, by the name of its file."""
        validator = self._schemas.get(schema)
        if validator is None:
            validator = self._schemas[schema] = compiled(load(self.folder / schema))
        return _valid(validator, value)


class Contracts:
    """The packs of a run, the most specific first."""

    def __init__(self, packs: list[Contract]) -> None:
        self.packs = sorted(packs, key=lambda pack: (pack.data["rank"], pack.name))
        self.classes = frozenset(name for pack in self.packs for name in pack.data.get("classes", {}))
        self.secret_parameters = frozenset(name for pack in self.packs for name in pack.secret_parameters)

    def __iter__(self) -> Iterator[Contract]:
        return iter(self.packs)

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
def bundled() -> Contracts:
    """The packs that errtriage brings along."""
    return Contracts([Contract(path.parent) for path in sorted(packs_folder().glob("*/contract.json"))])
