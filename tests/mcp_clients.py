"""Two small clients on the official MCP SDK: one does what the contracts say, the other what they forbid, with the same records.

Over HTTP both see what the SDK keeps from its callers, the status and the Retry-After of an answer, by recording what
goes over the wire: that is the capture as well.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import httpx2
from mcp import ClientSession, MCPError, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CallToolResult, TextContent

HERE = Path(__file__).parent
#: How long a client waits for a record that is answered too slowly, in seconds.
PATIENCE = 0.3


@dataclass
class Exchange:
    """A request and its answer, with what HAR says of them: when it began, and the seconds until the answer was there."""

    request: httpx2.Request
    began: float = field(default_factory=time.time)
    took: float = 0.0
    response: httpx2.Response | None = None
    body: bytearray = field(default_factory=bytearray)

    @property
    def asked(self) -> dict[str, Any]:
        """The message that the request carries."""
        message: dict[str, Any] = json.loads(self.request.content) if self.request.content else {}
        return message


class Recorder(httpx2.AsyncHTTPTransport):
    """Sends requests, and keeps what was sent and what came back."""

    def __init__(self) -> None:
        super().__init__()
        self.exchanges: list[Exchange] = []

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request; the body of its answer is kept as it is read."""
        exchange = Exchange(request)
        self.exchanges.append(exchange)
        response = await super().handle_async_request(request)
        exchange.response = response
        exchange.took = time.time() - exchange.began
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = Kept(response.stream, exchange)
        return response


class Kept(httpx2.AsyncByteStream):
    """The body of an answer, kept as it comes."""

    def __init__(self, stream: httpx2.AsyncByteStream, exchange: Exchange) -> None:
        self.stream = stream
        self.exchange = exchange

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self.stream:
            self.exchange.body += chunk
            self.exchange.took = time.time() - self.exchange.began
            yield chunk

    async def aclose(self) -> None:
        """Nothing more is read."""
        await self.stream.aclose()


@asynccontextmanager
async def connected(session: ClientSession, *, modern: bool) -> AsyncIterator[ClientSession]:
    """A session whose client introduced itself as the revision has it, and knows the tools."""
    async with session:
        await (session.discover() if modern else session.initialize())
        await session.list_tools()
        yield session


@asynccontextmanager
async def over_stdio(log: Path, name: str, *, modern: bool) -> AsyncIterator[Client]:
    """A client of a server process of its own, with all that passes between them appended to the log."""
    server = [str(HERE / "mcp_tee.py"), str(log), name, sys.executable, str(HERE / "mcp_service.py"), "stdio"]
    async with (
        stdio_client(StdioServerParameters(command=sys.executable, args=server)) as (read, write),
        connected(ClientSession(read, write), modern=modern) as session,
    ):
        yield Client(session, name)


@asynccontextmanager
async def over_http(url: str, name: str, recorder: Recorder, *, modern: bool) -> AsyncIterator[Client]:
    """A client of the server there, with credentials of its own."""
    async with (
        httpx2.AsyncClient(transport=recorder, headers={"Authorization": f"Bearer {name}-credentials"}, timeout=30) as client,
        streamable_http_client(url, http_client=client) as (read, write),
        connected(ClientSession(read, write), modern=modern) as session,
    ):
        yield Client(session, name, recorder)


class Answer(NamedTuple):
    """What a client may know of an answer. ``status`` is 0 where none came in time."""

    status: int
    retry_after: float = 0.0
    failed: bool = False
    value: Mapping[str, Any] = {}
    hint: Mapping[str, Any] = {}

    @property
    def error(self) -> Mapping[str, Any]:
        """The error in an envelope or a result."""
        error: Mapping[str, Any] = self.value.get("error", {})
        return error

    @property
    def uncertain(self) -> bool:
        """Whether the change may have happened."""
        return self.value.get("status") == "uncertain" or self.error.get("code") == "CommitAmbiguous"


class Client:
    """Calls tools, and reads what they answer."""

    def __init__(self, session: ClientSession, name: str, recorder: Recorder | None = None) -> None:
        self.session = session
        self.name = name
        self.recorder = recorder
        self.keys = 0
        self.over = False

    def key(self) -> str:
        """An idempotency key that was not used before."""
        self.keys += 1
        return f"{self.name}-{self.keys}"

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> Answer:
        """Call a tool once."""
        patience = PATIENCE if any(name in str(arguments) for name in ("slow", "blocked")) else None
        try:
            result = await self.session.call_tool(tool, dict(arguments), read_timeout_seconds=patience)
        except MCPError:
            sent = [each for each in self.recorder.exchanges if each.asked.get("method") == "tools/call"] if self.recorder else []
            response = sent[-1].response if sent else None
            if patience or response is None:
                return Answer(0, failed=True)
            return Answer(response.status_code, float(response.headers.get("retry-after", 0)), failed=True)
        return _answer(result)

    async def carry_out(self, tool: str, arguments: Mapping[str, Any], read: str = "") -> None:
        """Carry one thing through as the contracts say; ``read`` is the tool that reads the record."""
        record = {name: value for name, value in arguments.items() if name in ("address", "contactId")}
        pause, followed = 0.1, False
        for _ in range(5):
            if self.over:
                return
            answer = await self.call(tool, arguments)
            if answer.status in (0, 401):
                self.over = answer.status == 401
                return
            if answer.status == 429:
                await anyio.sleep(answer.retry_after)
            elif answer.hint:
                await anyio.sleep(answer.hint["retryAfterMs"] / 1000)
            elif answer.uncertain:
                await self.call(read, record)
                arguments = {**arguments, "idempotencyKey": self.key()} if "idempotencyKey" in arguments else arguments
            elif answer.error.get("next_action") and not followed:
                followed = True
                await self.call("ovstorage_connections_list", {})
            elif answer.error.get("retryable"):
                await anyio.sleep(pause)
                pause *= 3
            else:
                return


def _answer(result: CallToolResult) -> Answer:
    block = result.content[0]
    text = block.text if isinstance(block, TextContent) else ""
    value = json.loads(text) if text.startswith("{") else {}
    return Answer(200, 0.0, result.is_error, value, (result.meta or {}).get("coffeechats/retry", {}))


def note(contact: str) -> dict[str, Any]:
    """A change of a contact."""
    return {"contactId": contact, "note": "met at the fair"}


def at(record: str) -> dict[str, Any]:
    """An object."""
    return {"address": f"s3://plans/{record}.txt"}


#: After this call the student disconnects.
LAST = ("meetings.transcript.list", {"meetingId": "last"})
#: What the obedient client sets out to do: a tool, its arguments, and what reads the record. Changes of contacts get a key.
ERRANDS: list[tuple[str, dict[str, Any], str]] = [
    ("ovstorage_read", at("not-found"), ""),
    ("ovstorage_read", at("denied"), ""),
    ("ovstorage_read", {**at("plan"), "max_bytes": -1}, ""),
    ("ovstorage_read", {**at("plan"), "max_bytes": 10}, ""),
    ("ovstorage_read", at("no-route"), ""),
    ("ovstorage_read", at("flaky"), ""),
    ("ovstorage_write", {**at("ambiguous"), "data": "x"}, "ovstorage_stat"),
    ("contacts.notes.update", note("busy"), "contacts.get"),
    ("contacts.notes.update", note("unknown"), "contacts.get"),
    ("contacts.notes.update", note("moved"), "contacts.get"),
    ("jobs.search", {"query": "withheld"}, ""),
    ("ovstorage_read", at("slow"), ""),
    ("ovstorage_read", at("slow"), ""),
    ("ovstorage_read", at("blocked"), ""),
    ("jobs.search", {"query": "crowded"}, ""),
    (*LAST, ""),
    ("jobs.search", {"query": "after the last"}, ""),
    ("contacts.get", {"contactId": "moved"}, ""),
]


async def obedient(client: Client) -> None:
    """Do all errands as the contracts say."""
    for tool, arguments, read in ERRANDS:
        keyed = {"idempotencyKey": client.key()} if tool == "contacts.notes.update" else {}
        await client.carry_out(tool, {**arguments, **keyed}, read)


class Wrong(NamedTuple):
    """The same call several times, of which the last breaks a rule after that code: the pauses before each, and their keys."""

    rule: str
    code: str | None
    tool: str
    arguments: Mapping[str, Any]
    pauses: tuple[float, ...] = (0, 0)
    keys: tuple[str, ...] = ()
    #: Whether it can be done over HTTP only, and whether only times show it.
    http: bool = False
    timed: bool = False


#: What the disobedient client does, in this order. What is wrong over HTTP only comes last: over stdio it is no wrong.
WRONGS = [
    Wrong("AU101", "NotFound", "ovstorage_read", at("not-found")),
    Wrong("AU101", "PermissionDenied", "ovstorage_read", at("denied")),
    Wrong("AU101", "InvalidArgument", "ovstorage_read", {**at("plan"), "max_bytes": -1}),
    Wrong("AU101", "NoRoute", "ovstorage_read", at("no-route")),
    Wrong("AU101", "CommitAmbiguous", "ovstorage_write", {**at("ambiguous"), "data": "x"}),
    Wrong("AU101", "VERSION_CONFLICT", "contacts.notes.update", note("moved"), keys=("a", "a")),
    Wrong("AU102", "PERMIT_BACKPRESSURE", "contacts.notes.update", note("busy"), keys=("b", "b"), timed=True),
    Wrong("AU103", "OUTCOME_UNKNOWN", "contacts.notes.update", note("unknown"), keys=("c", "d")),
    Wrong("AU104", "Transient", "ovstorage_read", at("dead"), (0, 0.4, 0.05), timed=True),
    Wrong("AU104", "Transient", "ovstorage_stat", at("dead"), (0, 0.04, 0.1, 0.2, 0.35, 0.55)),
    Wrong("AU106", "PERMIT_BACKPRESSURE", "contacts.notes.update", note("full"), (0, 0.4), ("e", "f")),
    Wrong("AU108", None, "jobs.search", {"query": "withheld"}),
    Wrong("AU102", None, "jobs.search", {"query": "crowded"}, http=True, timed=True),
    Wrong("AU105", "invalid_token", "jobs.search", {"query": "after the last"}, http=True),
]


async def disobedient(client: Client) -> None:
    """Do all that is wrong."""
    for wrong in WRONGS:
        if wrong.rule == "AU105":
            await client.call(*LAST)
        for number, pause in enumerate(wrong.pauses):
            await anyio.sleep(pause)
            keyed = {"idempotencyKey": wrong.keys[number]} if wrong.keys else {}
            await client.call(wrong.tool, {**wrong.arguments, **keyed})


async def parallel(client: Client) -> None:
    """Make several calls at a time, as agents do: of each group, none is made after another's answer."""
    for calls in ([("ovstorage_read", at("pondered"))] * 2, [LAST], [("jobs.search", {"query": "after the last"}), ("contacts.get", {"contactId": "moved"})]):
        async with anyio.create_task_group() as group:
            for tool, arguments in calls:
                group.start_soon(client.call, tool, arguments)


CLIENTS: dict[str, Callable[[Client], Awaitable[None]]] = {"obedient": obedient, "disobedient": disobedient, "parallel": parallel}


async def talk_over_stdio(log: Path, *, modern: bool) -> None:
    """All clients at the same time, each with a server process of its own, in one log."""

    async def run(name: str) -> None:
        async with over_stdio(log, name, modern=modern) as client:
            await CLIENTS[name](client)

    async with anyio.create_task_group() as group:
        for name in CLIENTS:
            group.start_soon(run, name)


async def talk_over_http(url: str, *, modern: bool) -> dict[str, list[Exchange]]:
    """All clients at the same time with one server; gives what each exchanged with it."""
    recorders = {name: Recorder() for name in CLIENTS}

    async def run(name: str) -> None:
        async with over_http(url, name, recorders[name], modern=modern) as client:
            await CLIENTS[name](client)

    async with anyio.create_task_group() as group:
        for name in CLIENTS:
            group.start_soon(run, name)
    return {name: recorder.exchanges for name, recorder in recorders.items()}


def har(exchanges: Iterable[Exchange]) -> bytes:
    """A HAR capture, as browsers and proxies write it: entries by their beginning, times in ms."""
    entries = []
    for each in sorted(exchanges, key=lambda each: each.began):
        asked = each.request
        entry: dict[str, Any] = {
            "startedDateTime": datetime.fromtimestamp(each.began, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "time": round(each.took * 1000, 3),
            "request": {"method": asked.method, "url": str(asked.url), "httpVersion": "HTTP/1.1", "headers": _pairs(asked.headers)},
            "response": {"status": 0, "statusText": "", "headers": [], "content": {"size": 0, "mimeType": ""}},
        }
        if asked.content:
            entry["request"]["postData"] = {"mimeType": "application/json", "text": asked.content.decode()}
        if (answer := each.response) is not None:
            content = {"size": len(each.body), "mimeType": answer.headers.get("content-type", ""), "text": each.body.decode()}
            entry["response"] = {"status": answer.status_code, "statusText": answer.reason_phrase, "headers": _pairs(answer.headers), "content": content}
        entries.append(entry)
    return json.dumps({"log": {"version": "1.2", "creator": {"name": "tests", "version": "1"}, "entries": entries}}, indent=1).encode()


def _pairs(headers: httpx2.Headers) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in headers.multi_items()]


def raw(exchanges: Iterable[Exchange]) -> bytes:
    """The messages of HTTP with their heads, in the order in which they were answered; bodies as they were before chunking."""
    parts = []
    for each in sorted(exchanges, key=lambda each: each.began + each.took):
        asked = each.request
        parts.append(f"{asked.method} {asked.url.raw_path.decode()} HTTP/1.1\n{_head(asked.headers)}\n{asked.content.decode()}\n")
        if (answer := each.response) is not None:
            parts.append(f"HTTP/1.1 {answer.status_code} {answer.reason_phrase}\n{_head(answer.headers)}\n{each.body.decode()}\n")
    return "\n".join(parts).encode()


def _head(headers: httpx2.Headers) -> str:
    return "".join(f"{name}: {value}\n" for name, value in headers.multi_items())
