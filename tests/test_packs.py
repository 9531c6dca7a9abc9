"""Every bundled pack is held by the meta-schemas, and carries its own proof."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from conftest import CORPUS, ROOT, SCHEMAS
from referencing import Registry, Resource

from errtriage import triage
from errtriage.contracts import Contract, Contracts, bundled
from errtriage.coverage import check
from errtriage.inputs import decode, decompress
from errtriage.packs import read
from errtriage.render.jsonl import document
from errtriage.rules import catalogue
from errtriage.verdicts import Triage

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


FIRST = ("ovstorage", "coffeechats", "mcp", "http")
INPUTS = [path for folder in ("explain", "scan", "lint", "nothing") for path in sorted((CORPUS / folder).rglob("*")) if path.is_file()]
INPUTS += [path for path in EXAMPLES if path.parents[1].name in FIRST]


@pytest.mark.parametrize("path", INPUTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_packs_that_came_later_change_no_verdict_of_the_first(path: Path) -> None:
    """They may only take what nothing recognised, or what was HTTP's for want of anything better."""
    text, lossy = decode(decompress(path.read_bytes()).data)
    first = Triage(Contracts([pack for pack in PACKS if pack.name in FIRST]))
    before, after = list(first.text(text, lossy=lossy)), list(Triage(bundled()).text(text, lossy=lossy))
    kept = [verdict for verdict in before if (verdict.contract, verdict.shape) != ("http", "response")]
    assert [verdict for verdict in after if verdict.contract in FIRST and (verdict.contract, verdict.shape) != ("http", "response")] == kept


INSIDE = [
    {"error": {"code": 403, "message": "no", "status": "PERMISSION_DENIED", "details": []}},
    {"error": "invalid_grant", "error_description": "used up"},
]


@pytest.mark.parametrize("error", INSIDE, ids=["google", "oauth"])
def test_what_mcp_answers_stays_an_answer_of_mcp(error: Any) -> None:
    """A tool's text is feedback of the tool, whatever service it quotes; with the contract given, what is quoted is sought."""
    result = {"content": [{"type": "text", "text": json.dumps(error)}], "isError": True}
    for answer in (
        result,
        {"jsonrpc": "2.0", "id": 1, "result": result},
        {"jsonrpc": "2.0", "id": 1, "error": {"code": -32603, "message": "x", "data": error}},
    ):
        (verdict,) = triage(answer)
        assert verdict.contract == "mcp"
        (verdict,) = triage(answer, contract="oauth" if isinstance(error["error"], str) else "google")
        assert verdict.contract in {"oauth", "google"}


def test_what_is_not_needed_is_not_read() -> None:
    """So that start-up does not grow with the number of packs."""
    code = (
        "import sys; opened = []; sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == 'open' else None)\n"
        "import errtriage; errtriage.triage({'v': '0.1', 'ok': False, 'operation': 'o', 'error': {'code': 'NotFound', 'message': 'm', 'retryable': False}})\n"
        "print(*(path for path in opened if '/schemas/' in path), sep='\\n')"
    )
    opened = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    read = {path.partition("/schemas/")[2] for path in opened}
    assert {path for path in read if not path.endswith("contract.json") and path.split("/")[0] not in FIRST} == set()
    assert {path for path in read if path.split("/")[0] == "ovstorage"} == {
        f"ovstorage/{name}.json" for name in ("contract", "codes", "tree", "rules", "envelope.schema")
    }


ENVELOPE = '{"v": "0.1", "ok": false, "operation": "o", "error": {"code": "NotFound", "message": "m", "retryable": false}}'


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (f"McpError: MCP error -32603: {ENVELOPE}", [("ovstorage", ("error-data",))]),
        (json.dumps({"level": 50, "msg": f"MCP error -32603: {ENVELOPE}"}), [("ovstorage", ("log-record", "json-string", "error-data"))]),
        ('call failed: MCP error -32000: {"a": 1}', [("mcp", ("error-text",))]),
        (f"{ENVELOPE} MCP error -32000: gone", [("ovstorage", ()), ("mcp", ("error-text",))]),
        (f"MCP error -32000: gone\n{ENVELOPE}", [("mcp", ("error-text",)), ("ovstorage", ())]),
    ],
    ids=["a line", "a string", "no payload", "before it", "on the next line"],
)
def test_a_payload_in_the_message_of_an_error_wins_over_it(text: str, found: list[tuple[str, tuple[str, ...]]]) -> None:
    assert [(verdict.contract, verdict.source.wrappers) for verdict in triage(text)] == found


def test_two_challenges_are_one_list() -> None:
    (verdict,) = triage('HTTP/1.1 401 No\r\nWWW-Authenticate: Basic realm="x"\r\nWWW-Authenticate: Bearer error="invalid_token"\r\n\r\n')
    assert (verdict.contract, verdict.code, verdict.action) == ("oauth", "invalid_token", "reauthorize")
    headers = [{"name": "WWW-Authenticate", "value": "Basic"}, {"name": "www-authenticate", "value": "Bearer"}]
    har = {"log": {"entries": [{"request": {}, "response": {"status": 401, "headers": headers, "content": {}}}]}}
    (verdict,) = triage(har)
    assert (verdict.contract, verdict.shape) == ("oauth", "challenge")


@pytest.mark.parametrize("code", ["--5", "-", "٣", "1e3", "-32000 ", "9" * 30, "", "0x1", "−32000"])
def test_a_code_that_is_no_number_is_in_no_range(code: str) -> None:
    (verdict,) = triage({"jsonrpc": "2.0", "id": 1, "error": {"code": code, "message": "m"}})
    assert (verdict.code or "", verdict.action) == (code, "report")
