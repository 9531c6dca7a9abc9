"""Every bundled pack is held by the meta-schemas, and carries its own proof."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from conftest import SCHEMAS
from referencing import Registry, Resource

from errtriage import triage
from errtriage.contracts import Contract, bundled
from errtriage.coverage import check
from errtriage.packs import read
from errtriage.render.jsonl import document
from errtriage.rules import catalogue

PACKS = list(bundled())
EXAMPLES = sorted(SCHEMAS.glob("*/examples/*.json"))
META = {path.name: json.loads(path.read_text()) for path in (SCHEMAS / "meta").glob("*.json")}
REGISTRY: Registry[Any] = Registry().with_resources((name, Resource.from_contents(schema)) for name, schema in META.items())


def each_pack() -> pytest.MarkDecorator:
    return pytest.mark.parametrize("pack", PACKS, ids=lambda pack: pack.name)


def held(document: Any, meta: str) -> None:
    jsonschema.Draft202012Validator(META[meta], registry=REGISTRY).validate(document)


def test_the_rules_of_errtriage_itself_satisfy_theirs() -> None:
    held(json.loads((SCHEMAS / "errtriage" / "rules.json").read_text()), "rules.schema.json")


@pytest.mark.parametrize("schema", sorted(SCHEMAS.glob("*/*.schema.json")), ids=lambda path: f"{path.parent.name}/{path.name}")
def test_every_schema_is_a_schema(schema: Path) -> None:
    jsonschema.Draft202012Validator.check_schema(json.loads(schema.read_text()))


@each_pack()
def test_a_bundled_pack_proves_itself(pack: Contract) -> None:
    """Files, references, tree and schemas; examples get their verdicts, go every way and have every code; rules, markers."""
    assert check(read(pack.folder, "bundled")).problems == []


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: f"{path.parents[1].name}/{path.stem}")
def test_the_verdict_about_an_example_satisfies_the_published_schema(path: Path) -> None:
    example = json.loads(path.read_text())
    (verdict,) = triage(example["input"], **example.get("given", {}))
    assert verdict.contract == path.parents[1].name
    held(json.loads(json.dumps(document(verdict))), "verdict.schema.json")


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


def test_rule_ids_are_unique() -> None:
    ids = [rule["id"] for rule in catalogue(bundled())]
    assert len(ids) == len(set(ids))
