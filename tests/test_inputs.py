"""Every input as it is found in the wild: one payload, each carrier, each encoding, each printer; and the chains of them."""

from __future__ import annotations

import base64
import bz2
import gzip
import json
import lzma
import pprint
import random
from collections.abc import Callable
from typing import Any

import pytest
from conftest import Run
from hypothesis import given
from hypothesis import strategies as st

from errtriage import inputs, triage
from errtriage.render.jsonl import document

PAYLOADS: dict[str, dict[str, Any]] = {
    "ovstorage": {
        "v": "0.1",
        "ok": False,
        "operation": "ovstorage_move",
        "operation_id": "op-1",
        "error": {"code": "Locked", "message": "held, it's “his”\nnow", "retryable": False},
    },
    "coffeechats": {
        "status": "uncertain",
        "scenario": "uncertain",
        "operationId": "op-1",
        "error": {"code": "OUTCOME_UNKNOWN", "retryable": True, "correlationId": "op-1"},
    },
    "mcp": {"jsonrpc": "2.0", "id": 7, "error": {"code": -32602, "message": "Unknown tool: lamp", "data": {"requestId": "op-1"}}},
    "http": {"type": "https://errors.example/busy", "title": "Busy", "status": 409, "detail": "It's in use", "requestId": "op-1"},
}


def node(value: Any, indent: int = 0) -> str:
    """A value as Node's util.inspect prints it over several lines."""
    pad = " " * (indent + 2)
    if isinstance(value, dict):
        members = (f"{pad}{name}: {node(member, indent + 2)}" for name, member in value.items())
        return "{\n" + ",\n".join(members) + "\n" + " " * indent + "}"
    if isinstance(value, str):
        pieces = [piece.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n") for piece in value.splitlines(keepends=True)] or [""]
        return f" +\n{pad}".join(f"'{piece}'" for piece in pieces)
    return {True: "true", False: "false", None: "undefined"}.get(value, str(value)) if isinstance(value, bool | None) else str(value)


def prefixed(prefix: str) -> Callable[[Any], str]:
    """Pretty-printed JSON, each line behind the prefix, with another service's lines in between."""
    return lambda value: "\n".join(f"{prefix}{line}\nother-1  | all is well" for line in ["start", *json.dumps(value, indent=1).splitlines(), "end"])


def behind(prefix: str) -> Callable[[Any], str]:
    """Pretty-printed JSON, each line behind a prefix that counts on."""
    return lambda value: "\n".join(prefix.format(i % 10) + line for i, line in enumerate(["start", *json.dumps(value, indent=2).splitlines(), "end"]))


def docker(lines: list[str], size: int = 10_000) -> str:
    records = [line[i : i + size] for line in lines for i in range(0, len(line), size)]
    return "\n".join(json.dumps({"log": record, "stream": "stderr", "time": "2026-11-28T09:00:00Z"}) for record in records)


def cri(value: Any) -> str:
    text = json.dumps(value)
    parts = [("P", text[:20]), ("P", text[20:40]), ("F", text[40:])]
    return "\n".join(f"2026-11-28T09:00:00.1Z stderr {flag} {part}\n2026-11-28T09:00:00.2Z stdout F other" for flag, part in parts)


def journal(message: Any) -> str:
    return (
        json.dumps({"__REALTIME_TIMESTAMP": "1781160000000000", "_PID": "1", "MESSAGE": message})
        + '\n{"__REALTIME_TIMESTAMP": "1", "_PID": "1", "MESSAGE": null}'
    )


def har(value: Any, *, encoded: bool = False) -> str:
    text = json.dumps(value)
    content = {"mimeType": "application/json", "text": base64.b64encode(text.encode()).decode(), "encoding": "base64"} if encoded else {"text": text}
    response = {"status": 409, "statusText": "Conflict", "headers": [{"name": "X-Trace", "value": "t"}], "content": content}
    entries = [
        {"request": {"method": "POST"}, "response": {"status": 0}},
        {"startedDateTime": "2026-11-28T09:00:00Z", "request": {"method": "POST"}, "response": response},
    ]
    return json.dumps({"log": {"version": "1.2", "creator": {}, "entries": entries}})


CARRIERS: dict[str, Callable[[Any], str]] = {
    "JSON": json.dumps,
    "pretty JSON": lambda value: json.dumps(value, indent=2),
    "a line of a log": lambda value: f"09:00 INFO start\n09:01 ERROR it failed: {json.dumps(value)} (twice)\n09:02 INFO end",
    "pretty in a log": lambda value: f"09:00 reply\n{json.dumps(value, indent=2)}\n09:01 end",
    "a field of a log record": lambda value: json.dumps({"level": "error", "reply": value}),
    "an escaped string": lambda value: json.dumps({"msg": f"failed: {json.dumps(value)}"}),
    "escaped four times": lambda value: json.dumps(json.dumps(json.dumps(json.dumps(value)))),
    "escaped without its quotes": lambda value: "body=" + json.dumps(json.dumps(value))[1:-1],
    "key=value": lambda value: f"level=error body={json.dumps(json.dumps(value))} end",
    "Python's repr": lambda value: f"ERROR got {value!r}",
    "pprint": lambda value: f"ERROR got\n{pprint.pformat(value, width=30)}\nend",
    "util.inspect": lambda value: f"tool failed {node(value)}\nend",
    "colours around names": lambda value: json.dumps(value, indent=1).replace('"', '\x1b[34m"', 1).replace(":", "\x1b[0m:\x1b[32m"),
    "NUL runs": lambda value: "\0\0\0" + json.dumps(value) + "\0\0",
    "docker": lambda value: docker([f"ERR {json.dumps(value)}\n"]),
    "docker, cut lines": lambda value: docker([f"ERR {json.dumps(value)}\n"], 17),
    "docker, pretty": lambda value: docker([line + "\n" for line in json.dumps(value, indent=2).splitlines()]),
    "Kubernetes CRI": cri,
    "the journal": lambda value: journal(f"ERR {json.dumps(value)}"),
    "the journal, as bytes": lambda value: journal(list(f"\x1b[31mERR\x1b[0m {json.dumps(value)}".encode())),
    "compose": prefixed("web-1    | "),
    "kubectl": lambda value: "\n".join(f"[pod/web-1/app] {line}" for line in json.dumps(value, indent=1).splitlines()),
    **{
        f"behind {prefix!r}": behind(prefix)
        for prefix in (
            "2026-01-01T00:00:0{}.1Z ",
            "[pod/a/b] 2026-01-01T00:00:0{}Z ",
            "a-1  | 2026-01-01T00:00:0{}Z ",
            "Jan  1 00:00:0{} host app[12]: ",
            "2026-01-01 00:00:00,12{} ERROR app: ",
            "[web] ",
            "web:dev: ",
        )
    },
    "an indented quotation": lambda value: "\n".join(f"  > {line}" for line in ["Look:", *json.dumps(value, indent=1).splitlines()]),
    "a quotation": lambda value: "\n".join(f"> {line}" for line in ["Look:", *json.dumps(value, indent=1).splitlines()]),
    "typographic quotes": lambda value: (
        "Here: " + json.dumps(value, ensure_ascii=False).replace("“", "").replace("”", "").replace('"', "”").replace("{”", "{“").replace(" ”", " “")
    ),
    "an event stream": lambda value: f": hi\n\nevent: message\ndata: {json.dumps(value)}\n\ndata: [DONE]\n",
    "an event over lines": lambda value: "id: 1\n" + "\n".join(f"data: {line}" for line in json.dumps(value, indent=1).splitlines()) + "\n\n",
    "a raw response": lambda value: f"HTTP/1.1 409 Conflict\r\nContent-Type: application/json\r\n\r\n{json.dumps(value)}",
    "curl -v": lambda value: (
        f"* Trying\n> POST / HTTP/2\n> Host: a\n> \n< HTTP/2 409 \n< content-type: application/json\n< \n{{ [99 bytes data]\n{json.dumps(value)}* Connection #0 left intact"
    ),
    "HAR": har,
    "HAR, base64": lambda value: har(value, encoded=True),
    "two responses": lambda value: f"HTTP/1.1 200 OK\r\n\r\n{{}}\nHTTP/1.1 409 Conflict\r\n\r\n{json.dumps(value)}\n",
}

ENCODINGS: dict[str, Callable[[bytes], bytes]] = {
    "UTF-8": lambda data: data,
    "a mark and CRLF": lambda data: b"\xef\xbb\xbf" + data.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n"),
    "UTF-16, little end first": lambda data: ("\ufeff" + data.decode()).encode("utf-16-le"),
    "UTF-16, big end first": lambda data: ("\ufeff" + data.decode()).encode("utf-16-be"),
    "gzip": gzip.compress,
    "gzip, twice on": lambda data: gzip.compress(data[:9]) + gzip.compress(data[9:]),
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zstd": inputs._zstd().compress,
}


def essence(data: Any) -> list[Any]:
    """What of the verdicts must not depend on how a payload was carried."""
    found = []
    for verdict in triage(data):
        plain = document(verdict)
        del plain["source"], plain["findings"]
        found.append(plain)
    return found


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("contract", PAYLOADS)
def test_a_payload_gets_the_same_verdict_however_it_comes(contract: str, carrier: str, encoding: str) -> None:
    payload = PAYLOADS[contract]
    if carrier == "typographic quotes":
        if contract == "ovstorage":
            payload = {**payload, "error": {**payload["error"], "message": "held"}}
        if contract == "http":
            payload = {**payload, "detail": "in use"}
    data = ENCODINGS[encoding](CARRIERS[carrier](payload).encode())
    assert essence(data) == essence(payload)


@pytest.mark.parametrize(
    ("carrier", "repaired"),
    [
        ("JSON", False),
        ("Python's repr", False),
        ("util.inspect", False),
        ("colours around names", True),
        ("typographic quotes", True),
        ("NUL runs", False),
        ("docker, cut lines", False),
    ],
)
def test_what_was_mended_is_said(carrier: str, repaired: bool) -> None:
    (verdict,) = triage(CARRIERS[carrier](PAYLOADS["coffeechats"]))
    assert verdict.source.repaired is repaired


PLACES = [
    ("docker, cut lines", 1, ("log-record", "json-string")),
    ("docker, pretty", 1, ("log-record", "json-string")),
    ("Kubernetes CRI", 1, ()),
    ("compose", 3, ()),
    ("a quotation", 2, ()),
    ("an event stream", 3, ("sse",)),
    ("an event over lines", 1, ("sse",)),
    ("curl -v", 5, ("http",)),
    ("two responses", 4, ("http",)),
    ("HAR", 1, ("har",)),
    ("the journal, as bytes", 1, ("log-record", "json-string")),
    ("escaped without its quotes", 1, ("json-string",)),
]


@pytest.mark.parametrize(("carrier", "line", "wrappers"), PLACES, ids=[carrier for carrier, _, _ in PLACES])
def test_where_it_was_found_and_what_was_around_it(carrier: str, line: int, wrappers: tuple[str, ...]) -> None:
    (verdict,) = triage(CARRIERS[carrier](PAYLOADS["coffeechats"]))
    assert (verdict.source.line, verdict.source.wrappers) == (line, wrappers)


def test_interleaved_services_are_kept_apart() -> None:
    texts = {name: json.dumps({**PAYLOADS["coffeechats"], "operationId": name}, indent=1).splitlines() for name in ("a", "b")}
    lines = [f"{name}-1 | {line}" for pair in zip(texts["a"], texts["b"], strict=True) for name, line in zip("ab", pair, strict=True)]
    assert [verdict.source.ids["operationId"] for verdict in triage("\n".join(lines))] == ["a", "b"]


def test_a_table_is_no_carrier() -> None:
    text = "name | {\n" + json.dumps(PAYLOADS["ovstorage"], indent=1)[2:]
    assert len(triage(text)) == 1


def test_the_time_of_a_carrier_is_when_a_response_came() -> None:
    response = ["HTTP/1.1 429 Too Many Requests\n", "Retry-After: Sat, 28 Nov 2026 09:00:30 GMT\n", "\n", '{"error": "rate_limited"}\n']
    (verdict,) = triage(docker(response))
    assert verdict.retry is not None
    assert verdict.retry.delay_ms == 30_000


ERROR_TEXTS: list[tuple[str, str, list[tuple[str, str]]]] = [
    ("in a line", "x McpError: MCP error -32001: Request timed out\n    at f (x.js:1)", [("-32001", "Request timed out")]),
    ("twice in a line", "MCP error -32001: a | String(e)=McpError: MCP error -32001: a", [("-32001", "a")]),
    ("in two lines", "MCP error -32001: a\nMCP error -32601: b", [("-32001", "a"), ("-32601", "b")]),
    ("the innermost counts", "MCP error -32603: MCP error -32602: a", [("-32602", "a")]),
    (
        "in a log record",
        json.dumps({"err": {"type": "McpError", "message": "MCP error -32602: a", "stack": "McpError: MCP error -32602: a\n    at f", "code": -32602}}),
        [("-32602", "a")],
    ),
    ("an application's own code", "MCP error 403: no", [("403", "no")]),
    ("words about it", "an MCP error occurred", []),
]


@pytest.mark.parametrize(("text", "errors"), [case[1:] for case in ERROR_TEXTS], ids=[case[0] for case in ERROR_TEXTS])
def test_error_texts_of_the_sdks(text: str, errors: list[tuple[str, str]]) -> None:
    verdicts = triage(text)
    assert [(verdict.code, verdict.message) for verdict in verdicts] == errors
    assert all(verdict.source.wrappers[-1] == "error-text" and verdict.shape == "rpc-error" for verdict in verdicts)


def test_a_payload_in_an_sdk_error_wins_over_it() -> None:
    (verdict,) = triage(json.dumps({"err": {"name": "McpError", "message": "MCP error -32000: x", "data": PAYLOADS["ovstorage"], "code": -32000}}))
    assert (verdict.code, verdict.source.wrappers) == ("Locked", ("log-record", "error-data"))


WHOLE = json.dumps(
    {
        "v": "0.1",
        "ok": False,
        "operation": "o",
        "operation_id": "op-1",
        "error": {"code": "Transient", "message": "m", "retryable": True, "next_action": "wait"},
    }
)
CUTS: list[tuple[str, str, str, bool | None]] = [
    ("retryable", "report", "failure", None),
    ("true", "report", "failure", None),
    ('"next_action"', "retry", "failure", True),
    ('"wait"', "retry", "failure", True),
    ('"Transient"', "report", "failure", None),
]


@pytest.mark.parametrize(("before", "action", "outcome", "retryable"), CUTS, ids=[cut[0] for cut in CUTS])
def test_a_cut_answer_is_decided_by_what_was_read(before: str, action: str, outcome: str, retryable: bool | None) -> None:
    (verdict,) = triage(f"09:00 reply={WHOLE[: WHOLE.index(before)]}\n09:01 end")
    assert (verdict.action, verdict.outcome, verdict.retryable, verdict.correlation_id) == (action, outcome, retryable, "op-1")
    assert (verdict.source.truncated, verdict.valid, verdict.violations, verdict.findings) == (True, False, (), ())
    assert not any("`next_action` is absent" in prohibition for prohibition in verdict.never)


def test_a_block_whose_type_was_cut_breaks_no_rule() -> None:
    (verdict,) = triage('{"isError": true, "content": [{"type": "text", "text": "no such lamp"}, {"type": "te')
    assert (verdict.shape, verdict.findings, verdict.source.truncated) == ("tool-error", (), True)


def test_what_was_not_printed_is_no_other_payload_and_no_violation() -> None:
    """Node prints three levels: the structured content of an answer shows less than its text."""
    partial = {"completed": "object_data", "failed": "source_removal", "failed_outcome": "unknown", "rollback": "restores_prior_state"}
    envelope = {"v": "0.1", "ok": False, "operation": "o", "error": {"code": "PartialCompletion", "message": "m", "retryable": False, "partial": partial}}
    shown = node(envelope).replace(node(partial, 4), "[Object]")
    assert "[Object]" in shown
    (verdict,) = triage(f"got {{ content: [ {{ type: 'text', text: '{json.dumps(envelope)}' }} ], structuredContent: {shown}, isError: true }}")
    assert (verdict.valid, verdict.source.truncated, verdict.findings, verdict.outcome) == (True, False, (), "partial")
    (verdict,) = triage(f"got {shown}")
    assert (verdict.action, verdict.source.truncated, verdict.violations) == ("report", True, ())
    assert not any("is safe" in step for step in verdict.steps)


def test_a_payload_that_ends_before_the_cut_is_whole() -> None:
    (verdict,) = triage(json.dumps({"structuredContent": PAYLOADS["coffeechats"], "isError": True})[:-2])
    assert (verdict.source.truncated, verdict.valid, verdict.action) == (False, True, "read-first")


def test_halves_of_pairs_in_escaped_text_are_replaced() -> None:
    (verdict,) = triage(r"body={\"v\": \"0.1\", \"ok\": false, \"operation\": \"a\ud83d \ud83d\ude00\", \"error\": {}} ")
    assert verdict.operation == "a\ufffd 😀"


def test_a_response_whose_body_was_cut_is_a_response() -> None:
    (verdict,) = triage('HTTP/1.1 503 Busy\r\nA: b\r\n\r\n{"isError": tr')
    assert (verdict.contract, verdict.shape, verdict.code) == ("http", "response", "503")


def test_a_flag_that_was_cut_says_nothing() -> None:
    verdicts = triage('{"jsonrpc": "2.0", "id": 5, "result": {"content": [{"type": "text", "text": "42"}], "isError": "tr')
    assert [(verdict.outcome, verdict.action) for verdict in verdicts] == [("unrecognised", "report")]


@pytest.mark.parametrize("rest", ["", "\n", "\n12:01 next", "… [truncated 9 chars]\n"])
@pytest.mark.parametrize("word", ["t", "tr", "tru", "fals", "f"])
def test_a_word_that_was_cut_is_none(word: str, rest: str) -> None:
    text = WHOLE[: WHOLE.index("true")] + word + rest
    (verdict,) = triage(f"12:00 ERR {text}")
    assert (verdict.action, verdict.retryable, verdict.violations, verdict.source.truncated) == ("report", None, (), True)


@pytest.mark.parametrize("rest", ["", "\n", "\n12:01 next", "...\n"])
def test_a_number_that_was_cut_is_none(rest: str) -> None:
    text = '{"structuredContent":{"tag":"accepted","operationId":"c9"},"content":[],"_meta":{"coffeechats/retry":{"code":"PERMIT_BACKPRESSURE","retryable":true,"retryAfterMs":25'
    (verdict,) = triage(f"12:00 {text}{rest}")
    assert verdict.retry is None or verdict.retry.delay_ms is None


def test_a_cut_at_a_backslash_does_not_swallow_the_next_line() -> None:
    inner = json.dumps(WHOLE)
    cut = '12:00 {"content": [{"type": "text", "text": ' + inner[: inner.index("retryable") - 1]
    verdicts = triage(f"{cut}\n12:01 INFO {json.dumps(PAYLOADS['coffeechats'])}")
    assert [(verdict.contract, verdict.source.truncated) for verdict in verdicts] == [("ovstorage", True), ("coffeechats", False)]


def test_a_constructor_that_was_cut_keeps_its_payload() -> None:
    (verdict,) = triage(f"12:00 ERR CallToolResult(meta=None, content=[TextContent(type='text', text='{WHOLE}', annot\n")
    assert (verdict.code, verdict.source.wrappers) == ("Transient", ("tool-result", "text-content"))


def test_a_capture_tells_the_tool_that_was_asked() -> None:
    asked = json.dumps({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "lamp.light", "arguments": {}}})
    answer = json.dumps({"jsonrpc": "2.0", "id": 7, "result": {"content": [{"type": "text", "text": "no"}], "isError": True}})
    entry = {"request": {"method": "POST", "postData": {"text": asked}}, "response": {"status": 200, "headers": [], "content": {"text": answer}}}
    (verdict,) = triage({"log": {"version": "1.2", "entries": [entry]}})
    assert (verdict.operation, verdict.source.wrappers) == ("lamp.light", ("har", "jsonrpc"))


def test_hidden_members_of_an_array_are_passed_over() -> None:
    (verdict,) = triage("failed { content: [ { type: 'text', text: 'boom' }, [length]: 1 ], isError: true }")
    assert (verdict.shape, verdict.message) == ("tool-error", "boom")


def test_a_hint_that_was_cut_is_none() -> None:
    text = WHOLE.replace("true, ", "false, ")
    (verdict,) = triage(text[: text.index("ait")])
    assert (verdict.action, verdict.retryable) == ("report", False)


def test_a_cut_success_is_not_called_one() -> None:
    (verdict,) = triage('{"v": "0.1", "ok": true, "operation": "o", "result": {"a": ')
    assert (verdict.outcome, verdict.action) == ("unrecognised", "report")


@given(st.sampled_from(list(CARRIERS)), st.sampled_from(list(PAYLOADS)), st.integers(0, 3000))
def test_any_input_may_be_cut_anywhere(carrier: str, contract: str, cut: int) -> None:
    for verdict in triage(CARRIERS[carrier](PAYLOADS[contract])[:cut]):
        assert verdict.summary


WRAPPERS: dict[str, Callable[[str], Any]] = {
    "a string": lambda text: text,
    "a record": lambda text: {"level": "error", "msg": f"failed: {text}"},
    "a text block": lambda text: {"content": [{"type": "text", "text": text}], "isError": True},
    "a resource": lambda text: {"content": [{"type": "resource", "resource": {"uri": "a:b", "text": text}}], "isError": True},
    "structured content": lambda text: {"structuredContent": {"result": text}, "isError": True},
    "JSON-RPC": lambda text: {"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": text}], "isError": True}},
    "an error's data": lambda text: {"jsonrpc": "2.0", "id": 1, "error": {"code": -32603, "message": "m", "data": text}},
    "a model's block": lambda text: {"role": "user", "content": [{"type": "tool_result", "is_error": True, "content": text}]},
}


@given(
    st.lists(st.sampled_from(list(WRAPPERS)), max_size=5),
    st.sampled_from([name for name in CARRIERS if name != "typographic quotes"]),
    st.sampled_from(["ovstorage", "coffeechats"]),
)
def test_any_chain_of_wrappers_leads_to_the_same_verdict(chain: list[str], carrier: str, contract: str) -> None:
    payload: dict[str, Any] = {**PAYLOADS[contract]}
    if contract == "ovstorage":
        payload["error"] = {**payload["error"], "message": "held"}
    value: Any = payload
    for wrapper in chain:
        value = WRAPPERS[wrapper](json.dumps(value))
    assert essence(CARRIERS[carrier](value) if isinstance(value, dict) else json.dumps(value)) == essence(payload)


@given(st.binary(max_size=300))
def test_any_bytes_end(data: bytes) -> None:
    triage(data)
    for mark in (b"\x1f\x8b", b"BZh9", b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd", b"\xff\xfe"):
        triage(mark + data)


@pytest.mark.parametrize("kind", ["gzip", "xz", "zstd"])
def test_damaged_compression_gives_what_was_read(run: Run, kind: str) -> None:
    dice = random.Random(3)
    whole = ENCODINGS[kind](json.dumps(PAYLOADS["coffeechats"]).encode() + b"\n" + dice.randbytes(400_000))
    done = run("explain", "--format", "json", stdin=whole[: len(whole) - 200])
    assert (done.returncode, len(done.stdout.splitlines())) == (0, 1)
    assert done.stderr.decode().startswith(f"errtriage: standard input: its {kind} data is damaged or cut short (")


def test_a_bomb_is_not_unpacked(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "HARMLESS", 1 << 20)
    bomb = gzip.compress(bytes(8 << 20))
    data, trouble = inputs.decompress(bomb)
    assert (data, trouble) == (b"", "it decompresses to more than 1 MiB, which is past what errtriage reads")
    done = run("explain", stdin=gzip.compress(bytes(80 << 20)))
    assert (done.returncode, done.stderr.count(b"\n")) == (1, 2)
