"""Traffic of clients for tests of audit: what was called, answered and said, as records with times."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

Record = dict[str, Any]

#: What services answer, as results of JSON-RPC.
FIXED_TEXT = {"isError": True, "content": [{"type": "text", "text": "Tool call failed."}]}
COMPLETED = {"structuredContent": {"tag": "completed", "scenario": "success", "operationId": "op-9"}}


def at(ms: int) -> str:
    """A time, so many milliseconds after eight."""
    seconds, ms = divmod(ms, 1000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"2031-05-02T{8 + hours:02}:{minutes:02}:{seconds:02}.{ms:03}Z"


def request(ms: int, identifier: Any, method: str, params: Mapping[str, Any]) -> Record:
    """A request of JSON-RPC."""
    return {"time": at(ms), "message": {"jsonrpc": "2.0", "id": identifier, "method": method, "params": params}}


def call(ms: int, identifier: Any, tool: str, **arguments: Any) -> Record:
    """A tool call."""
    return request(ms, identifier, "tools/call", {"name": tool, "arguments": arguments})


def note(ms: int, identifier: Any, key: str | None = "k-1", contact: str = "c-1") -> Record:
    """A change of Coffee Chats."""
    keys = {} if key is None else {"idempotencyKey": key}
    return call(ms, identifier, "contacts.notes.update", contactId=contact, note="met at the fair", **keys)


def answer(ms: int, identifier: Any, result: Any) -> Record:
    """A response with a result."""
    return {"time": at(ms), "message": {"jsonrpc": "2.0", "id": identifier, "result": result}}


def error(ms: int, identifier: Any, code: int, message: str = "no") -> Record:
    """A response with an error."""
    return {"time": at(ms), "message": {"jsonrpc": "2.0", "id": identifier, "error": {"code": code, "message": message}}}


def notice(ms: int, method: str, **params: Any) -> Record:
    """A notification."""
    return {"time": at(ms), "message": {"jsonrpc": "2.0", "method": method, "params": params}}


def response(ms: int, status: str, *headers: str) -> Record:
    """A raw HTTP response in a log record."""
    return {"time": at(ms), "response": "\n".join([f"HTTP/1.1 {status}", *headers, "Content-Length: 0", "", ""])}


def failed(code: str, tool: str = "ovstorage_read", *, retryable: bool = False, **more: Any) -> Record:
    """A failure of ovstorage."""
    envelope = {"v": "0.1", "ok": False, "operation": tool, "error": {"code": code, "message": "it did not work", "retryable": retryable, **more}}
    return {"content": [{"type": "text", "text": json.dumps(envelope)}], "isError": True}


def stored(tool: str = "ovstorage_read") -> Record:
    """A success of ovstorage."""
    return {"content": [{"type": "text", "text": json.dumps({"v": "0.1", "ok": True, "operation": tool, "result": {}})}]}


def result(status: str, scenario: str, code: str, *, retryable: bool = False) -> Record:
    """A failing result of Coffee Chats."""
    wrong = {"code": code, "retryable": retryable, "correlationId": "op-7"}
    return {"structuredContent": {"status": status, "scenario": scenario, "operationId": "op-7", "error": wrong}}


UNCERTAIN = result("uncertain", "uncertain", "OUTCOME_UNKNOWN", retryable=True)


def hint(ms: int) -> Record:
    """An accepted result with a retry hint."""
    retry = {"code": "PERMIT_BACKPRESSURE", "retryAfterMs": ms, "retryable": True}
    return {"structuredContent": {"tag": "accepted", "scenario": "loading", "operationId": "op-7"}, "_meta": {"coffeechats/retry": retry}}


def log(records: Iterable[Record], **members: Any) -> str:
    """The records as JSON Lines, with further members in each."""
    return "".join(json.dumps({**members, **record}, separators=(",", ":")) + "\n" for record in records)


def plain(records: Iterable[Record]) -> str:
    """The messages alone, without times, as a wire capture has them."""
    return "".join(json.dumps(record["message"]) + "\n" for record in records)


def with_arrows(records: Iterable[Record]) -> str:
    """The messages behind times and arrows."""
    return "".join(f"{record['time']} {'-->' if 'method' in record['message'] else '<--'} {json.dumps(record['message'])}\n" for record in records)
