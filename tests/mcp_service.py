"""A real server of the official MCP SDK that plays both services' failures: ``python mcp_service.py stdio``, or ``http``.

What a call comes to is told by the name of the record that it is about, so that whoever reads a test reads both sides.
Over HTTP the server says its address on standard output, refuses credentials by the SDK's own check, and limits the rate.
"""

from __future__ import annotations

import json
import socket
import sys
import time
from collections import Counter
from collections.abc import Mapping
from typing import Any

import anyio
import uvicorn
from mcp.server import Server, ServerRequestContext
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.server.stdio import stdio_server
from mcp.types import CallToolRequestParams, CallToolResult, ListToolsResult, PaginatedRequestParams, TextContent, Tool
from pydantic import AnyHttpUrl
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

#: The tools, with the argument that names a record. The service names no read of contacts; an agent has one all the same.
TOOLS = {
    "ovstorage_read": "address",
    "ovstorage_stat": "address",
    "ovstorage_write": "address",
    "ovstorage_connections_list": "",
    "contacts.notes.update": "contactId",
    "contacts.get": "contactId",
    "jobs.search": "query",
    "meetings.transcript.list": "meetingId",
}
#: What ovstorage fails with, by the record's name: the code, what is to be done next, and how often before it heals.
FAILURES: dict[str, tuple[str, str | None, float]] = {
    "not-found": ("NotFound", None, 9e9),
    "pondered": ("NotFound", None, 9e9),
    "denied": ("PermissionDenied", None, 9e9),
    "no-route": ("NoRoute", "Look at ovstorage_connections_list, then read again.", 1),
    "flaky": ("Transient", None, 3),
    "dead": ("Transient", None, 9e9),
    "ambiguous": ("CommitAmbiguous", None, 1),
}
#: What a retry hint asks to wait, in ms, and how long a blocked answer takes, in seconds.
DELAY_MS, BLOCKED = 300, 0.6
LIMITS = {"RateLimit-Policy": "120;w=60", "RateLimit-Limit": "120", "RateLimit-Remaining": "0", "RateLimit-Reset": "1", "Retry-After": "1"}

#: How often each caller has called for each record.
_tries: Counter[tuple[str, str]] = Counter()
_revoked: set[str] = set()


def ovstorage(tool: str, record: str, arguments: Mapping[str, Any], tries: int) -> CallToolResult:
    """An envelope v0.1 in one text block; a failure also sets ``isError``."""
    code, next_action, heals = FAILURES.get(record, ("", None, 0))
    if code == "CommitAmbiguous" and tool != "ovstorage_write":
        heals = 0
    if arguments.get("max_bytes", 0) < 0:
        code, heals = "InvalidArgument", 9e9
    envelope: dict[str, Any] = {"v": "0.1", "ok": True, "operation": tool, "operation_id": f"op-{record}-{tries}", "resource": arguments.get("address", "")}
    if tries > heals:
        envelope["result"] = {"size": 3}
    else:
        envelope["ok"] = False
        envelope["error"] = {"code": code, "message": f"{code}: {record}", "retryable": code == "Transient"}
        envelope["error"] |= {"next_action": next_action} if next_action else {}
    return CallToolResult(content=[TextContent(type="text", text=json.dumps(envelope))], is_error=not envelope["ok"])


def coffee_chats(tool: str, record: str, tries: int) -> CallToolResult:
    """A result object as structured content and as text, a retry hint beside it, or the fixed text of a failing read."""
    if tool != "contacts.notes.update":
        failed = record == "withheld"
        text = "Tool call failed." if failed else json.dumps({"items": [], "about": record})
        return CallToolResult(content=[TextContent(type="text", text=text)], is_error=failed)
    operation = f"{record}-{tries}".ljust(24, "0")
    result: dict[str, Any] = {"tag": "completed", "scenario": "success", "operationId": operation}
    meta = None
    if record in ("busy", "full") and tries <= 2:
        result |= {"tag": "accepted", "scenario": "loading", "operationStatus": "processing"}
        meta = {"coffeechats/retry": {"code": "PERMIT_BACKPRESSURE", "retryAfterMs": DELAY_MS, "retryable": True}}
    elif (failure := {"unknown": ("uncertain", "OUTCOME_UNKNOWN"), "moved": ("failed", "VERSION_CONFLICT")}.get(record)) and (record, tries) != ("unknown", 2):
        status, code = failure
        scenario = "uncertain" if status == "uncertain" else "conflict"
        error = {"code": code, "retryable": False, "correlationId": operation}
        result = {"status": status, "scenario": scenario, "operationId": operation, "error": error}
    return CallToolResult(content=[TextContent(type="text", text=json.dumps(result))], structured_content=result, _meta=meta)


async def call_tool(context: ServerRequestContext[Any], params: CallToolRequestParams) -> CallToolResult:
    """Answer a call; one is answered so slowly that it is taken back, one blocks the server so that it cannot hear that."""
    arguments = params.arguments or {}
    record = str(arguments.get(TOOLS[params.name], "")).rpartition("/")[2].partition(".")[0]
    caller = context.request.headers.get("authorization", "") if context.request is not None else ""
    _tries[caller, f"{params.name} {record}"] += 1
    if record == "slow":
        await anyio.sleep(30)
    elif record == "pondered":
        await anyio.sleep(0.2)
    elif record == "blocked":
        time.sleep(BLOCKED)  # noqa: ASYNC251 - this is what makes an answer late: the server reads nothing meanwhile
    elif record == "last":
        _revoked.add(caller.removeprefix("Bearer "))  # the student disconnects after this call
    tries = _tries[caller, f"{params.name} {record}"]
    return ovstorage(params.name, record, arguments, tries) if params.name.startswith("ovstorage_") else coffee_chats(params.name, record, tries)


async def list_tools(_: ServerRequestContext[Any], __: PaginatedRequestParams | None) -> ListToolsResult:
    """The tools, of which a client is told no more than their names."""
    return ListToolsResult(tools=[Tool(name=name, input_schema={"type": "object"}) for name in TOOLS])


class Credentials:
    """Knows every token until its student disconnects."""

    async def verify_token(self, token: str) -> AccessToken | None:
        """What a token stands for; None for one that was taken back."""
        return None if token in _revoked else AccessToken(token=token, client_id=token, scopes=[])


class RateLimit:
    """Answers the first search for ``crowded`` of each caller with 429, before the SDK sees it."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self.refused: set[bytes] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on what is not limited, with the body that was read."""
        if scope["type"] != "http" or scope["method"] != "POST":
            await self.app(scope, receive, send)
            return
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message.get("body", b""), message.get("more_body", False)
        caller = dict(scope["headers"]).get(b"authorization", b"")
        if b'"crowded"' in body and caller not in self.refused:
            self.refused.add(caller)
            await JSONResponse({"error": "rate_limited"}, 429, LIMITS)(scope, receive, send)
            return
        read: list[Message] = [{"type": "http.request", "body": body}]

        async def replayed() -> Message:
            return read.pop() if read else await receive()

        await self.app(scope, replayed, send)


def main() -> None:
    """Serve until standard input ends or the process is ended."""
    server: Server[Any] = Server("storage and chats", version="1", on_call_tool=call_tool, on_list_tools=list_tools)
    if sys.argv[1] == "stdio":

        async def serve() -> None:
            async with stdio_server() as (read, write):
                await server.run(read, write, server.create_initialization_options())

        anyio.run(serve)
        return
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    address = f"http://127.0.0.1:{listening.getsockname()[1]}"
    auth = AuthSettings(issuer_url=AnyHttpUrl(address), resource_server_url=AnyHttpUrl(f"{address}/mcp"), validate_token_resource=False)
    app = server.streamable_http_app(auth=auth, token_verifier=Credentials())
    print(f"{address}/mcp", flush=True)
    uvicorn.Server(uvicorn.Config(RateLimit(app), log_level="error")).run(sockets=[listening])


if __name__ == "__main__":
    main()
