"""Every bundled pack is held by the meta-schemas, and carries its own proof."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from conftest import SCHEMAS
from referencing import Registry, Resource

from errtriage import triage
from errtriage import verdicts as decisions
from errtriage.contracts import Contract, bundled
from errtriage.render.jsonl import document

PACKS = list(bundled())
EXAMPLES = sorted(SCHEMAS.glob("*/examples/*.json"))
META = {path.name: json.loads(path.read_text()) for path in (SCHEMAS / "meta").glob("*.json")}
REGISTRY: Registry[Any] = Registry().with_resources((name, Resource.from_contents(schema)) for name, schema in META.items())


def each_pack() -> pytest.MarkDecorator:
    return pytest.mark.parametrize("pack", PACKS, ids=lambda pack: pack.name)


def held(document: Any, meta: str) -> None:
    jsonschema.Draft202012Validator(META[meta], registry=REGISTRY).validate(document)


@each_pack()
@pytest.mark.parametrize("name", ["contract", "codes", "tree", "rules"])
def test_the_files_of_a_pack_satisfy_their_meta_schema(pack: Contract, name: str) -> None:
    held(json.loads((pack.folder / f"{name}.json").read_text()), f"{name}.schema.json")


def test_the_rules_of_errtriage_itself_satisfy_theirs() -> None:
    held(json.loads((SCHEMAS / "errtriage" / "rules.json").read_text()), "rules.schema.json")


@pytest.mark.parametrize("schema", sorted(SCHEMAS.glob("*/*.schema.json")), ids=lambda path: f"{path.parent.name}/{path.name}")
def test_every_schema_is_a_schema(schema: Path) -> None:
    jsonschema.Draft202012Validator.check_schema(json.loads(schema.read_text()))


def entries(value: Any) -> Iterator[Mapping[str, Any]]:
    """Every object of a pack that names a source."""
    if isinstance(value, dict):
        if isinstance(value.get("source"), str):
            yield value
        for member in value.values():
            yield from entries(member)
    elif isinstance(value, list):
        for item in value:
            yield from entries(item)


@each_pack()
def test_every_source_that_is_named_is_listed_and_used(pack: Contract) -> None:
    files = [json.loads((pack.folder / f"{name}.json").read_text()) for name in ("contract", "codes", "tree", "rules")]
    named = {entry["source"] for file in files for entry in entries(file)}
    assert named == set(pack.data["sources"])


@each_pack()
def test_the_tree_ends_for_every_payload_and_uses_all_of_itself(pack: Contract) -> None:
    nodes, leaves = pack.tree["nodes"], pack.tree["leaves"]
    targets = {name: [branch["to"] for branch in [*node["branches"], node["otherwise"]]] for name, node in nodes.items()}
    reached: set[str] = set()

    def visit(name: str, path: tuple[str, ...]) -> None:
        assert name not in path, f"a cycle: {path} -> {name}"
        assert name in nodes or name in leaves, f"{path[-1]} leads to {name}, which is not there"
        reached.add(name)
        for target in targets.get(name, []):
            visit(target, (*path, name))

    visit(pack.tree["root"], ())
    assert reached == {*nodes, *leaves}
    assert not nodes.keys() & leaves.keys()


@each_pack()
def test_every_group_is_used_and_every_code_has_one(pack: Contract) -> None:
    assert {entry.data["group"] for entry in pack.catalogue.entries} == pack.catalogue.groups.keys()


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: f"{path.parents[1].name}/{path.stem}")
def test_an_example_gets_the_verdict_that_it_promises(path: Path) -> None:
    example = json.loads(path.read_text())
    held(example, "example.schema.json")
    (verdict,) = triage(example["input"], **example.get("given", {}))
    assert verdict.contract == path.parents[1].name
    got = json.loads(json.dumps(document(verdict)))
    held(got, "verdict.schema.json")
    assert part_of(example["expect"], got) == example["expect"]


def part_of(want: Any, got: Any) -> Any:
    """What ``got`` has in the places that ``want`` has."""
    if isinstance(want, dict) and isinstance(got, dict):
        return {name: part_of(member, got[name]) for name, member in want.items()}
    if isinstance(want, list) and isinstance(got, list) and len(want) == len(got):
        return [part_of(each, other) for each, other in zip(want, got, strict=True)]
    return got


@each_pack()
def test_the_examples_reach_every_leaf_and_take_and_refuse_every_branch(pack: Contract, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, Any]] = []
    walk = decisions._walk

    def recording(contract: Contract, facts: dict[str, Any], unread: set[str]) -> Any:
        asked.append(dict(facts))
        return walk(contract, facts, unread)

    monkeypatch.setattr(decisions, "_walk", recording)
    for path in (pack.folder / "examples").glob("*.json"):
        example = json.loads(path.read_text())
        triage(example["input"], **example.get("given", {}))

    answers: dict[tuple[str, int], set[bool]] = defaultdict(set)
    leaves = set()
    for facts in asked:
        name = pack.tree["root"]
        while name in pack.tree["nodes"]:
            node = pack.tree["nodes"][name]
            for i, branch in enumerate(node["branches"]):
                taken = pack.conditions.hold(branch["when"], facts)
                answers[name, i].add(taken)
                if taken:
                    name = branch["to"]
                    break
            else:
                answers[name, len(node["branches"])].add(True)
                name = node["otherwise"]["to"]
        leaves.add(name)
    assert leaves == pack.tree["leaves"].keys()
    every = {(name, i) for name, node in pack.tree["nodes"].items() for i in range(len(node["branches"]))}
    assert {branch for branch in every if True not in answers[branch]} == set(), "never taken"
    assert {branch for branch in every if False not in answers[branch]} == set(), "never refused"
    otherwise = {(name, len(node["branches"])) for name, node in pack.tree["nodes"].items()}
    assert {branch for branch in otherwise if branch not in answers} == set(), "never fallen through"


@each_pack()
def test_every_note_and_every_code_occurs_in_an_example(pack: Contract) -> None:
    seen = set()
    for path in (pack.folder / "examples").glob("*.json"):
        example = json.loads(path.read_text())
        seen |= {verdict.code for verdict in triage(example["input"], **example.get("given", {}))}
    missing = [entry.data for entry in pack.catalogue.entries if not any(pack.catalogue.find(code) == entry for code in seen)]
    assert missing == []


@each_pack()
def test_plain_words_hold_no_code(pack: Contract) -> None:
    for path in (pack.folder / "examples").glob("*.json"):
        example = json.loads(path.read_text())
        for verdict in triage(example["input"], **example.get("given", {})):
            assert verdict.code is None or verdict.code.lower() not in verdict.say.lower()


CONTRADICTIONS = [
    (
        {"status": "uncertain", "scenario": "uncertain", "operationId": "o", "error": {"code": "STRANGE", "retryable": False, "correlationId": "o"}},
        "uncertain",
        ["could not be made", "not made"],
    ),
    ({"status": "uncertain", "scenario": "uncertain", "operationId": "o"}, "uncertain", ["could not be made"]),
    (
        {"status": "uncertain", "scenario": "uncertain", "operationId": "o", "error": {"code": "ACTION_DENIED", "retryable": False, "correlationId": "o"}},
        "uncertain",
        ["turned down"],
    ),
    (
        {"status": "failed", "scenario": "denied", "operationId": "o", "error": {"code": "PERMIT_BACKPRESSURE", "retryable": False, "correlationId": "o"}},
        "failure",
        ["accepted"],
    ),
    ({"status": "cancelled", "scenario": "cancelled", "operationId": "o"}, "cancelled", ["could not be made"]),
    ({"tag": "completed", "scenario": "success", "operationId": "o", "error": {"code": "VERSION_CONFLICT"}}, "success", ["not made"]),
    (
        {"structuredContent": {"tag": "accepted", "operationId": "o"}, "_meta": {"coffeechats/retry": {"code": "X", "retryAfterMs": 5, "retryable": True}}},
        "pending",
        ["could not"],
    ),
    ({"v": "0.1", "ok": True, "operation": "o", "result": 1, "error": {"code": "NotFound"}}, "unrecognised", ["nothing was found"]),
]


@pytest.mark.parametrize(("value", "outcome", "words"), CONTRADICTIONS, ids=[f"{outcome}-{words[0]}" for _, outcome, words in CONTRADICTIONS])
def test_what_the_user_is_told_fits_the_outcome_whatever_the_code(value: Any, outcome: str, words: list[str]) -> None:
    (verdict,) = triage(value)
    assert verdict.outcome == outcome
    assert verdict.say
    assert verdict.explanation
    assert not any(word in verdict.say.lower() for word in words)


@pytest.mark.parametrize("status", [200, True, "failed", {}])
def test_tag_and_status_together_are_not_recognised(status: Any) -> None:
    (verdict,) = triage({"tag": "completed", "operationId": "x", "status": status})
    assert (verdict.outcome, verdict.action) == ("unrecognised", "report")
    assert "CC103" in [finding.rule for finding in verdict.findings]


def test_an_answer_in_the_trace_is_never_empty() -> None:
    (verdict,) = triage({"v": "0.1", "ok": False, "operation": "x", "error": {"message": "m", "retryable": True}})
    assert verdict.action == "retry"
    assert all(step.answer for step in verdict.trace)


RULES = [(pack, rule) for pack in PACKS for rule in pack.rules]


@pytest.mark.parametrize("rule", [rule for _, rule in RULES], ids=lambda rule: rule["id"])
def test_a_rule_finds_its_bad_example_and_not_its_good_one(rule: Mapping[str, Any]) -> None:
    def found(example: Any) -> list[str]:
        return [finding.rule for verdict in triage(example) for finding in verdict.findings]

    assert rule["id"] in found(rule["bad"])
    assert found(rule["good"]) == []


def test_rule_ids_are_unique() -> None:
    ids = [rule["id"] for _, rule in RULES]
    assert len(ids) == len(set(ids))
