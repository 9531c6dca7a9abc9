"""What is peeled, in which order it is recorded, and what is no payload."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_search import json_values

from errtriage import triage
from errtriage.render.jsonl import document, line

ENVELOPE = {
    "v": "0.1",
    "ok": False,
    "operation": "ovstorage_read",
    "operation_id": "op-9",
    "error": {"code": "NotFound", "message": "gone", "retryable": False},
}
RESULT = {"status": "failed", "scenario": "denied", "operationId": "op-9", "error": {"code": "ACTION_DENIED", "retryable": False, "correlationId": "op-9"}}
TEXT = json.dumps(ENVELOPE)


def block(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def rpc(result: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 7, "result": result}


WRAPPED: list[tuple[str, Any, list[str]]] = [
    ("bare", ENVELOPE, []),
    ("a string", json.dumps(TEXT), ["json-string"]),
    ("a string in a string", json.dumps(json.dumps(TEXT)), ["json-string", "json-string"]),
    ("a text block", {"content": [block(TEXT)], "isError": True}, ["tool-result", "text-content"]),
    ("words in a text block", {"content": [block(f"Error executing tool: {TEXT}")], "isError": True}, ["tool-result", "text-content"]),
    ("a string in a text block", {"content": [block(json.dumps([TEXT]))], "isError": True}, ["tool-result", "text-content", "json-string"]),
    ("structured content", {"content": [], "structuredContent": ENVELOPE, "isError": True}, ["tool-result", "structured-content"]),
    ("structured content under result", {"structuredContent": {"result": TEXT}, "isError": True}, ["tool-result", "structured-content", "json-string"]),
    ("both count once", {"content": [block(TEXT)], "structuredContent": ENVELOPE, "isError": True}, ["tool-result", "structured-content"]),
    ("an embedded resource", {"content": [{"type": "resource", "resource": {"uri": "x:y", "text": TEXT}}], "isError": True}, ["tool-result", "resource"]),
    ("a Python view", {"content": [block(TEXT)], "structured_content": None, "is_error": True, "meta": None}, ["tool-result", "text-content"]),
    ("JSON-RPC", rpc({"content": [block(TEXT)], "isError": True}), ["jsonrpc", "tool-result", "text-content"]),
    ("a JSON-RPC error's data", {"jsonrpc": "2.0", "id": 7, "error": {"code": -32603, "message": "x", "data": ENVELOPE}}, ["jsonrpc", "error-data"]),
    ("a JSON-RPC error's message", {"jsonrpc": "2.0", "id": 7, "error": {"code": -32603, "message": f"failed: {TEXT}"}}, ["jsonrpc", "error-data"]),
    ("an error's data alone", {"code": -32603, "message": "x", "data": ENVELOPE}, ["error-data"]),
    (
        "a model's tool_result block",
        {"type": "tool_result", "tool_use_id": "t", "is_error": True, "content": f"failed: {TEXT}"},
        ["tool-result", "text-content"],
    ),
    ("a log record", {"level": "error", "payload": ENVELOPE}, ["log-record"]),
    ("deep in a log record", {"a": {"b": [{"c": ENVELOPE}]}}, ["log-record"]),
    ("an escaped string in a log record", {"msg": f"failed: {TEXT}"}, ["log-record", "json-string"]),
    ("a record in a record", {"log": json.dumps({"msg": f"failed: {TEXT}"})}, ["log-record", "json-string", "log-record", "json-string"]),
    (
        "a request with its response",
        {"method": "tools/call", "params": {"x": 1}, "response": rpc({"content": [block(TEXT)], "isError": True})},
        ["log-record", "jsonrpc", "tool-result", "text-content"],
    ),
    ("an access log's verb is no method", {"method": "POST", "path": "/x", "body": TEXT}, ["log-record", "json-string"]),
    ("arrays add nothing", {"a": [[[ENVELOPE]]]}, ["log-record"]),
    ("a verb with parameters is no request", {"method": "POST", "params": {"id": 1}, "msg": TEXT}, ["log-record", "json-string"]),
    ("a request with its response as a text", {"method": "tools/call", "params": {}, "response": TEXT}, ["log-record", "json-string"]),
    ("message and stack count once", {"message": f"x {TEXT}", "stack": f"x {TEXT}\n  at f"}, ["log-record", "json-string"]),
    ("an error that is a text", {"jsonrpc": "2.0", "id": 7, "error": TEXT}, ["jsonrpc", "error-data"]),
    ("an exception's data", {"name": "McpError", "code": -32602, "message": "x", "stack": "y", "data": ENVELOPE}, ["error-data"]),
    ("one text twice", {"structuredContent": ENVELOPE, "content": [block(TEXT), block(TEXT)], "isError": True}, ["tool-result", "structured-content"]),
]


@pytest.mark.parametrize(("value", "wrappers"), [case[1:] for case in WRAPPED], ids=[case[0] for case in WRAPPED])
def test_wrappers_are_recorded_from_the_outside_in(value: Any, wrappers: list[str]) -> None:
    (verdict,) = triage(value if isinstance(value, str) else json.dumps(value))
    assert list(verdict.source.wrappers) == wrappers
    assert (verdict.code, verdict.correlation_id) == ("NotFound", "op-9")


def test_a_raw_response_is_a_wrapper() -> None:
    (verdict,) = triage(f"HTTP/1.1 404 Not Found\r\nX-Request-Id: r-1\r\n\r\n{TEXT}")
    assert (verdict.source.wrappers, verdict.source.http_status, verdict.source.ids) == (("http",), 404, {"operation_id": "op-9", "X-Request-Id": "r-1"})


NOTHING: list[tuple[str, Any]] = [
    ("a request", {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "x", "arguments": {"note": ENVELOPE}}}),
    ("a notification", {"method": "notifications/message", "params": {"data": ENVELOPE}}),
    ("a tool's input", {"type": "tool_use", "name": "x", "input": {"note": ENVELOPE}}),
    ("a function's arguments", {"function": {"name": "x", "arguments": TEXT}}),
    ("a schema's own examples", {"type": "object", "properties": {"v": {}}, "examples": [ENVELOPE]}),
    ("a tool's input as it streams", {"type": "input_json_delta", "partial_json": TEXT}),
    ("a part of a function call", {"type": "function", "function": {"arguments": TEXT}}),
    ("a function call of another model", {"functionCall": {"name": "x", "args": ENVELOPE}}),
    ("a tool call of a framework", {"type": "tool-call", "toolName": "x", "input": ENVELOPE}),
    ("a request's own metadata", {"method": "tools/call", "params": {}, "_meta": {"x": ENVELOPE}}),
    ("a status line in a log", "INFO start\nHTTP/1.1 404 Not Found\n12:00:01 INFO: next"),
    ("bare parameters of a call", {"name": "x", "arguments": {"note": ENVELOPE}}),
    ("a schema with an example", {"name": "x", "inputSchema": {"examples": [ENVELOPE]}}),
    ("an access log", {"method": "GET", "path": "/", "status": 200, "ok": True, "operation": "x"}),
    ("a health check", {"status": "ok"}),
    ("a long-running operation", {"status": "Succeeded", "operationId": "x"}),
    ("a failed one", {"status": "failed", "operationId": "x"}),
    ("a Kubernetes condition", {"type": "Ready", "status": "True"}),
    ("a JSON Schema", {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "x", "type": "object"}),
    ("npm's error", {"message": "Not Found", "status": "404", "documentation_url": "x"}),
    ("an editor's document", {"type": "doc", "content": [{"type": "paragraph", "content": [block("hello")]}]}),
    ("a chat message", {"role": "assistant", "content": [block("Tool call failed.")]}),
    ("isError without content", {"isError": True}),
    ("isError that is no boolean", {"isError": "true", "content": [block("x")]}),
    ("an HTTP client's log line", {"msg": "HTTP/1.1 500 Internal Server Error"}),
    ("ok that is no boolean", {**ENVELOPE, "ok": "false"}),
    ("another error", {"error": "not_found"}),
    ("a rate limit with more", {"error": "rate_limited", "retry": True}),
    ("GraphQL", {"data": None, "errors": [{"message": "x", "path": ["a"], "extensions": {"code": "NOT_FOUND"}}]}),
    ("a title and a status in words", {"title": "x", "status": "404", "detail": "y"}),
    ("a problem of a success", "HTTP/1.1 200 OK\r\n\r\n" + json.dumps({"title": "x", "status": 404, "detail": "y"})),
    ("a code outside of the protocol", {"code": 404, "message": "x"}),
    ("a success of JSON-RPC that is no tool result", rpc({"tools": []})),
]


@pytest.mark.parametrize("value", [case[1] for case in NOTHING], ids=[case[0] for case in NOTHING])
def test_what_is_no_payload(value: Any) -> None:
    assert triage(value if isinstance(value, str) else json.dumps(value)) == []


def test_inside_a_payload_nothing_further_is_sought() -> None:
    (verdict,) = triage({"v": "0.1", "ok": True, "operation": "doctor", "result": {"last": ENVELOPE, "again": TEXT}})
    assert verdict.outcome == "success"


def test_json_whose_quotes_are_not_escaped_is_found_in_a_text() -> None:
    (verdict,) = triage(f'{{"level":"info","msg":"failed: {TEXT}"}}')
    assert verdict.code == "NotFound"


def test_a_hint_belongs_to_the_accepted_result_wherever_that_stands() -> None:
    accepted = json.dumps({"tag": "accepted", "scenario": "loading", "operationId": "op-9"})
    hint = {"coffeechats/retry": {"code": "PERMIT_BACKPRESSURE", "retryAfterMs": 5, "retryable": True}}
    (verdict,) = triage({"content": [block('{"a": 1}'), block(accepted)], "_meta": hint})
    assert (verdict.shape, verdict.findings) == ("retry-hint", ())
    (verdict,) = triage({"content": [block("Tool call failed.")], "isError": True, "_meta": hint})
    assert [finding.rule for finding in verdict.findings] == ["CC104"]
    (verdict,) = triage({"structuredContent": json.loads(accepted), "content": [block(accepted.replace("accepted", "completed"))], "_meta": hint})
    assert (verdict.shape, [finding.rule for finding in verdict.findings]) == ("retry-hint", ["MC102"])


@pytest.mark.parametrize("delay", ["1" + "0" * 400, "1e300", "123456789012345678901234567890", "true", "null", '"5"', "1.5"])
def test_a_delay_that_is_none_is_none(delay: str) -> None:
    text = json.dumps(
        {"structuredContent": {"tag": "accepted", "operationId": "o"}, "_meta": {"coffeechats/retry": {"code": "X", "retryAfterMs": 0, "retryable": True}}}
    )
    (verdict,) = triage(text.replace('"retryAfterMs": 0', f'"retryAfterMs": {delay}'))
    assert verdict.retry is not None
    assert verdict.retry.delay_ms is None


@pytest.mark.parametrize("value", [
    {"v": "0.1", "ok": False, "operation": "o", "error": {"code": "\ud83d", "message": "\udc00", "retryable": False}},
    {"v": "0.1", "ok": False, "operation": "o", "operation_id": 10**5000, "error": {"code": 10**5000}},
    {"v": "0.1", "ok": False, "operation": "o", 5: (1, {2}), "error": {"code": float("nan")}},
])  # fmt: skip
def test_values_that_json_does_not_have_are_read_as_it_would_have_them(value: Any) -> None:
    (verdict,) = triage(value)
    assert line(verdict)


@pytest.mark.parametrize("depth", [90, 150, 240, 900])
def test_a_payload_may_hold_what_is_deep(depth: int) -> None:
    deep = '{"a":' * depth + "1" + "}" * depth
    for text in (
        f'{{"v": "0.1", "ok": true, "operation": "o", "result": {deep}}}',
        f'{{"v": "0.1", "ok": false, "operation": "o", "error": {{"code": 5, "x": {deep}}}}}',
    ):
        (verdict,) = triage(f"{text}\n")
        assert verdict.shape == "envelope"
        (verdict,) = triage(json.dumps({"structuredContent": 0, "content": [block(text), block(text)], "isError": True}))
        assert verdict.shape == "envelope"


def test_a_class_of_another_contract_is_no_operation() -> None:
    (verdict,) = triage(ENVELOPE, tool="safe-write")
    assert verdict.operation == "ovstorage_read"


def test_a_body_keeps_its_ids_when_only_the_status_is_told() -> None:
    (verdict,) = triage('{"requestId": "r-5"}', status=500)
    assert (verdict.shape, verdict.correlation_id) == ("response", "r-5")


def test_the_verb_of_a_log_record_tells_how_it_was_asked() -> None:
    (verdict,) = triage({"method": "POST", "res": "HTTP/1.1 502 Bad Gateway\r\nA: b\r\n\r\n"})
    assert (verdict.outcome, verdict.action) == ("uncertain", "read-first")


def test_only_a_tool_call_names_a_tool() -> None:
    prompt = {"jsonrpc": "2.0", "id": 7, "method": "prompts/get", "params": {"name": "lamp"}}
    (verdict,) = triage(f"{json.dumps(prompt)}\n{json.dumps(ANSWER)}")
    assert verdict.operation is None


def test_what_stands_alone_between_words_is_judged_too() -> None:
    (verdict,) = triage('reply {"v": "0.1", "ok": "no", "operation": "x"}', contract="ovstorage")
    assert verdict.outcome == "unrecognised"


def test_a_blank_id_is_none() -> None:
    (verdict,) = triage({**ENVELOPE, "operation_id": "  "})
    assert verdict.correlation_id is None


@pytest.mark.parametrize("change", [(', "retryable"', ',, "retryable"'), ("}}", ",}}"), ('"gone"', '"go\x01ne"')])
def test_json_that_had_to_be_mended_says_so(change: tuple[str, str]) -> None:
    verdicts = triage(TEXT.replace(*change))
    assert all(verdict.source.repaired for verdict in verdicts)
    assert len(verdicts) == (0 if ",," in change[1] else 1)


def test_many_payloads_in_one_answer_take_time_in_proportion() -> None:
    blocks = [block(json.dumps({**ENVELOPE, "operation_id": str(i)})) for i in range(3000)]
    assert len(triage({"content": blocks, "isError": True})) == 3000


def test_different_payloads_in_one_answer_are_two_and_a_finding() -> None:
    verdicts = triage({"isError": True, "structuredContent": ENVELOPE, "content": [block(json.dumps({**ENVELOPE, "operation_id": "op-10"}))]})
    assert [[finding.rule for finding in verdict.findings] for verdict in verdicts] == [["MC102"], ["MC102"]]


def test_every_answer_of_a_batch_has_its_verdict() -> None:
    batch = [rpc({"content": [block("42")]}), {"jsonrpc": "2.0", "id": 8, "error": {"code": -32601, "message": "no"}}, {"jsonrpc": "2.0", "method": "x"}]
    assert [(verdict.outcome, verdict.source.rpc_id) for verdict in triage(batch)] == [("success", 7), ("failure", 8)]


CALL = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "contacts.notes.update", "arguments": {}}}
ANSWER = rpc({"structuredContent": RESULT, "isError": True})
TOOLS: list[tuple[str, str, dict[str, Any], str | None]] = [
    ("given", TEXT, {"tool": "mine"}, "mine"),
    ("given as a class", TEXT, {"tool": "write"}, "write"),
    ("a class leaves it as it is", json.dumps(RESULT), {"tool": "proposal"}, None),
    ("the payload's own", TEXT, {}, "ovstorage_read"),
    ("the request's", f"--> {json.dumps(CALL)}\n<-- {json.dumps(ANSWER)}", {}, "contacts.notes.update"),
    ("another request's is not", f"--> {json.dumps({**CALL, 'id': '7'})}\n<-- {json.dumps(ANSWER)}", {}, None),
    ("a later request's is not", f"<-- {json.dumps(ANSWER)}\n--> {json.dumps(CALL)}", {}, None),
    ("the word before", f"ERROR actions.cancel {json.dumps(RESULT)}", {}, "actions.cancel"),
    ("the word before, with a colon", f"ERROR actions.cancel: {json.dumps(RESULT)}", {}, "actions.cancel"),
    ("a word that is no tool", f"ERROR lamp {json.dumps(RESULT)}", {}, None),
    ("a word further before", f"actions.cancel failed {json.dumps(RESULT)}", {}, None),
]


@pytest.mark.parametrize(("text", "given", "operation"), [case[1:] for case in TOOLS], ids=[case[0] for case in TOOLS])
def test_where_the_tool_comes_from(text: str, given: dict[str, Any], operation: str | None) -> None:
    verdicts = triage(text, **given)
    assert [verdict.operation for verdict in verdicts] == [operation]


@pytest.mark.parametrize(("contract", "value", "pointer"), [
    ("ovstorage", {"v": "0.1", "operation": "x", "error": {}}, "/error"),
    ("ovstorage", {"content": [block(json.dumps({"v": "0.1", "operation": "x"}))], "isError": True}, ""),
    ("coffeechats", {"status": "failed", "error": {"code": "X"}}, ""),
    ("mcp", {"jsonrpc": "2.0", "id": 1, "error": "broken"}, "/error"),
])  # fmt: skip
def test_with_a_contract_forced_what_does_not_match_is_judged(contract: str, value: Any, pointer: str) -> None:
    (verdict,) = triage(json.dumps(value), contract=contract)
    assert (verdict.contract, verdict.outcome, verdict.action, verdict.valid) == (contract, "unrecognised", "report", False)
    assert pointer in [violation.pointer for violation in verdict.violations]


def test_with_a_contract_forced_no_other_is_sought() -> None:
    (verdict,) = triage({"isError": True, "content": [block(TEXT)]}, contract="mcp")
    assert (verdict.shape, verdict.action) == ("tool-error", "follow-hint")


def test_a_request_is_not_judged() -> None:
    assert triage(json.dumps(CALL), contract="ovstorage") == []


IDS: list[tuple[str, Any, str | None, dict[str, str]]] = [
    ("names in their order, not the text's", {"content": [], "isError": True, "traceId": "t", "request_id": "r"}, "r", {"traceId": "t", "request_id": "r"}),
    (
        "the shallowest of one name",
        {"content": [], "isError": True, "a": {"request-id": "deep"}, "b": {"requestId": "deep too"}, "REQUEST_ID": "top"},
        "top",
        {"request-id": "deep", "requestId": "deep too", "REQUEST_ID": "top"},
    ),
    (
        "numbers digit for digit",
        '{"content": [], "isError": true, "requestId": 123456789012345678901234567890}',
        "123456789012345678901234567890",
        {"requestId": "123456789012345678901234567890"},
    ),
    (
        "in the data of a JSON-RPC error",
        {"jsonrpc": "2.0", "id": "not me", "error": {"code": 1, "message": "x", "data": {"activityId": "a-1"}}},
        "a-1",
        {"activityId": "a-1"},
    ),
    ("in JSON in the text", {"isError": True, "content": [block('failed: {"error_id": "e-1"}')]}, "e-1", {"error_id": "e-1"}),
    (
        "a header after the payload",
        'HTTP/1.1 400 x\r\nX-Request-ID: h\r\nX-Correlation-Id: c\r\n\r\n{"type": "a", "title": "t", "status": 400, "instance": "/no/id"}',
        "c",
        {"X-Correlation-Id": "c", "X-Request-ID": "h"},
    ),
    (
        "the trace id of traceparent",
        "HTTP/1.1 400 x\r\ntraceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\r\n\r\n",
        "4bf92f3577b34da6a3ce929d0e0e4736",
        {"traceparent": "4bf92f3577b34da6a3ce929d0e0e4736"},
    ),
    ("no id", {"content": [], "isError": True, "id": "x", "requestId": {"a": 1}}, None, {}),
]


@pytest.mark.parametrize(("value", "correlation", "ids"), [case[1:] for case in IDS], ids=[case[0] for case in IDS])
def test_ids(value: Any, correlation: str | None, ids: dict[str, str]) -> None:
    (verdict,) = triage(value if isinstance(value, str) else json.dumps(value))
    assert (verdict.correlation_id, dict(verdict.source.ids)) == (correlation, ids)


def test_a_shape_that_documents_its_id_has_that_one_or_none() -> None:
    (verdict,) = triage({**ENVELOPE, "operation_id": "", "requestId": "r"})
    assert (verdict.correlation_id, dict(verdict.source.ids)) == (None, {"requestId": "r"})


names = st.sampled_from(
    [
        "v",
        "ok",
        "operation",
        "error",
        "code",
        "message",
        "retryable",
        "next_action",
        "partial",
        "tag",
        "status",
        "scenario",
        "operationId",
        "correlationId",
        "content",
        "type",
        "text",
        "isError",
        "structuredContent",
        "_meta",
        "coffeechats/retry",
        "retryAfterMs",
        "jsonrpc",
        "id",
        "result",
        "data",
        "title",
        "detail",
        "resultType",
        "method",
        "params",
        "role",
        "x",
    ]
)
words = st.sampled_from(
    [
        "0.1",
        "2.0",
        "NotFound",
        "PartialCompletion",
        "VERSION_CONFLICT",
        "failed",
        "accepted",
        "completed",
        "conflict",
        "rate_limited",
        "input_required",
        "Tool call failed.",
        "text",
        '{"v": "0.1", "ok": false, "operation": "x"}',
        "HTTP/1.1 500 x\n\n",
    ]
)
near_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | words | st.just(-32602),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names | st.text(max_size=3), inner, max_size=6),
    max_leaves=25,
)


@given(json_values | near_values, st.sampled_from([None, "ovstorage", "coffeechats", "mcp", "http"]), st.sampled_from([None, 200, 401, 429, 503]))
def test_any_value_ends_in_a_verdict_or_in_nothing(value: Any, contract: str | None, status: int | None) -> None:
    for verdict in triage(value, contract=contract, status=status):
        assert json.loads(line(verdict)) == json.loads(json.dumps(document(verdict)))


@given(st.dictionaries(names, near_values, max_size=6))
def test_any_change_to_a_payload_ends_in_a_verdict_or_in_nothing(change: dict[str, Any]) -> None:
    for payload in (ENVELOPE, RESULT, {"isError": True, "content": [block("x")]}, {"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "x"}}):
        triage({**payload, **change})
        for name, member in payload.items():
            if isinstance(member, dict):
                triage({**payload, name: {**member, **change}})
