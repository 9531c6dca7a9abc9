"""Reads what a client asked and what it was answered, slice by slice and in order: the function that workers run.

The traffic of MCP is found wherever explain finds a payload: in wire captures, logs, HAR files, event streams, and as the
tool calls of a model's messages. An answer is judged here as far as its call is known; what then must not follow it, and
whether it did, is the business of ``audit``.
"""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from hashlib import blake2b
from typing import Any, NamedTuple

import orjson

from errtriage import carriers, inputs, jsontext, payloads, places
from errtriage.boundaries import Lines
from errtriage.contracts import Contracts
from errtriage.judge import Judge, Settings
from errtriage.markers import Search
from errtriage.messages import MASKED, NO_CALL, NO_ID, Answer, Call, Change, Judgement, Message, Origin, Spot, Withdrawal, Word, simple
from errtriage.model import ASKED, POINTER, TOOK_MS, Context, Payload, Place
from errtriage.moments import time_of
from errtriage.places import outermost
from errtriage.pointers import pointer_parts
from errtriage.regions import NEWLINE, TOO_LONG, Buffer, Data, Slice, any_in, hits, is_too_long, line_value, lines_around, without_codes
from errtriage.wrappers import EMPTY, PERSON, RENEWED, RESULT, TOOL_USE, Calls, is_request, is_rpc_response, rpc_key

#: What marks traffic: messages of JSON-RPC, status lines, an SDK's errors, the tool calls of models, and what people say.
_MARKS = (
    "jsonrpc", "HTTP/1.0 ", "HTTP/1.1 ", "HTTP/2 ", "HTTP/2.0 ", "HTTP/3 ", "MCP error ", "tool_use", "tool_result", "tool_call", "function_call",
    '"role":"user"', '"role": "user"',
)  # fmt: skip
#: How many arguments of a call are compared with those of another, how long their values may be, and how long arguments
#: may be to be kept for showing, in characters.
_MOST_PAIRS, _LONGEST_VALUE, _KEPT = 24, 300, 1000
#: A word that says what stands behind it, as programs put them before a message; a logger's name says nothing.
_SAID = re.compile(r"(?<![\w.])([A-Za-z][\w-]{2,30})(?:=|:(?=\S)|[\"']\s?[:=]\s?)[\"']?([^\s\"',;\])}|]{1,200})")
#: How a host names the server in its log of all messages.
_HOST = re.compile(r"\[([^\[\]]{1,100})\](?: \[[a-z]+\])? Message from (?:client|server)")
#: Words before a bar that name no service: levels, and who speaks, which differs between a call and its answer.
_NO_SERVICE = re.compile(r"trace|debug|info|notice|warn(?:ing)?|error|critical|fatal|client|server|request|response|in|out|sent|received", re.IGNORECASE)
#: Values of a header that has a name like a connection's.
_NO_NAMES = frozenset(("keep-alive", "close", "upgrade"))
#: What stands in an argument that is not all of what was sent.
_MASKED = re.compile(r"\ufffd|\*{3}|\bx{4,}\b|redacted|masked|truncated|omitted|elided|…|\.{3} ?\d+ more|\.{3}\]", re.IGNORECASE)
_LONG_DIGITS = re.compile(rb"\d{19}")
#: A status line behind what a logger puts before it; a client that quotes one in its own words puts it in quotes.
_STATUS = re.compile(rb"(?P<words>[^<*>\n][^\n]{0,300}?[\s\]|:])(?P<line>HTTP/\d(?:\.\d)?[ \t]+[1-5]\d\d(?:[ \t][^\r\n\"]*)?)\r?\Z")
#: The headers behind such a line and the blank line that ends them, or one of these; a message on a line is no header.
_HEAD = re.compile(rb"(?=\n\r?(?:\n|\Z)|\n[A-Za-z-]{1,100}:)(?:\n[A-Za-z][A-Za-z0-9-]{0,100}:[^\n{]*(?=\n|\Z))*+(?:\n\r?(?=\n|\Z))?")
#: Lines that curl shows of a request's or a response's head.
_MARKED = frozenset(b"><*")
#: How hosts put the server's name before a tool's.
_PREFIX = re.compile(r"mcp__((?:(?!__).)+)__")


class Part(NamedTuple):
    """What a slice holds: its messages in order, how many lines and bytes it has, and what was noticed."""

    messages: list[Message]
    lines: int = 0
    bytes: int = 0
    troubles: tuple[str, ...] = ()
    failure: str | None = None


def read_slice(job: tuple[Settings, Slice]) -> Part:
    """Read the traffic of one slice; what workers do."""
    settings, part = job
    if settings not in _READERS.by_settings:
        _READERS.by_settings[settings] = Reader(settings)
    return _READERS.by_settings[settings].slice(part)


class _Readers(threading.local):
    """The readers of a thread."""

    def __init__(self) -> None:
        self.by_settings: dict[Settings, Reader] = {}


_READERS = _Readers()


class Names:
    """What names mean in the log and in arguments, as the packs have it."""

    def __init__(self, contracts: Contracts) -> None:
        self._sessions: dict[str, int] = {}
        self._keys: tuple[str, ...] = ()
        self._keys_by_tool: dict[str, tuple[str, ...]] = {}
        for contract in contracts:
            for kind, names in contract.conduct.get("sessions", {}).items():
                self._sessions |= {simple(name): Origin._fields.index(kind) for name in names}
            keys = tuple(contract.conduct.get("idempotency_keys", ()))
            if contract.is_protocol:
                self._keys += keys  # whatever tool is called
            elif keys:
                self._keys_by_tool |= {tool: self._keys_by_tool.get(tool, ()) + keys for tool in contract.data.get("tools", ())}
        self.origin_of_prefix = lru_cache(1024)(self._of_prefix)

    def keys(self, tool: str | None) -> tuple[str, ...]:
        """The arguments of a tool that hold an idempotency key; of several in a call the first counts."""
        own = self._keys_by_tool.get(tool or "")
        return own + self._keys if own else self._keys

    def origin(self, context: Context) -> Origin:
        """Where a message belongs, by the records around it and the words before it; what stands nearer counts."""
        found = list(self.origin_of_prefix(context.prefix) if context.prefix else Origin())
        for record in context.around:
            self._read(record, found)
            for member in record.values():
                if type(member) is dict and "jsonrpc" not in member and "method" not in member:
                    self._read(member, found)
        if context.stream and not _NO_SERVICE.fullmatch(context.stream):
            found[3] = context.stream
        if found[0] is None and (known := _credentials(context)) != MASKED:
            found[4] = known
        return Origin(*found)

    def _read(self, record: Mapping[str, Any], found: list[str | None]) -> None:
        for name, value in record.items():
            kind = self._sessions.get(simple(name))
            if kind is not None and type(value) in (str, int) and value != "" and str(value).lower() not in _NO_NAMES:
                found[kind] = str(value)[:_LONGEST_VALUE]

    def _of_prefix(self, prefix: str) -> Origin:
        found: list[str | None] = [None] * len(Origin._fields)
        if host := _HOST.search(prefix):
            found[2] = host[1]
        if (service := carriers.named(prefix)) and not _NO_SERVICE.fullmatch(service):
            found[3] = service
        for match in _SAID.finditer(prefix):
            kind = self._sessions.get(simple(match[1]))
            if kind is not None:
                found[kind] = match[2]
        return Origin(*found)


class _Hits:
    """Hits one after the other, of which the next is known."""

    def __init__(self, hits: Iterator[tuple[int, int, int]]) -> None:
        self._hits = hits
        self.next = next(hits, None)

    def step(self) -> None:
        """Go on to the next."""
        self.next = next(self._hits, None)


class Reader:
    """Reads slices one after the other."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._judge = Judge(settings)
        self._triage = self._judge.triage
        self._names = Names(self._judge.contracts)
        self._search = Search(self._judge.contracts, _MARKS)
        self._buffer = Buffer()
        self._modified = 0.0
        self._messages: list[Message] = []
        #: The response that the last answer was made of.
        self._response: Any = None
        self._elided = False
        #: The words before the response that is read.
        self._before = ""
        #: Where the capture that is read stands in its text.
        self._capture: Place | None = None
        #: How often a person's words stood in the records that are read.
        self._words: dict[bytes, int] = {}

    def slice(self, part: Slice) -> Part:
        """The traffic of one slice, or why it could not be read."""
        try:
            data = self._buffer.read(part)
        except OSError as error:
            return Part([], failure=str(error.strerror))
        self._messages = []
        self._modified = part.modified
        troubles = self._read_all(data, part)
        lines = data.count(b"\n") + (len(data) > 0 and data[-1] != NEWLINE)
        return Part(self._messages, lines, len(data), tuple(dict.fromkeys(troubles)))

    def _read_all(self, data: Data, part: Slice) -> list[str]:
        lines = Lines(data, first=part.start == 0)
        searched = without_codes(data)
        troubles: list[str] = []
        calls: Calls = {}
        found = _Hits(hits(self._search, searched, data))
        done = counted = 0
        line = 1
        while found.next is not None:
            at = found.next[2]
            if at < done:
                found.step()
                continue
            start, end, alone = lines_around(lines, data, at, done)
            if alone and start and data[data.rfind(b"\n", 0, start - 1) + 1] in _MARKED:
                start, end, alone = *lines.region(at), False  # curl shows a request's head with marks, and its body without
            start = max(start, done)
            traffic, failing = self._marks(found, searched, data, start, end)
            done = end
            if not traffic:
                continue
            if is_too_long(lines, start, end):
                troubles.append(TOO_LONG)
                continue
            line += data.count(b"\n", counted, start)
            counted = start
            if alone and (read := line_value(bytes(data[start:end]))) and self._plainly(line, read, calls, failing=failing):
                continue
            if alone and (response := _STATUS.match(bytes(data[start:end]))) and (head := _HEAD.match(data, end)):
                done = head.end()
                self._take_response(line, response, head[0], calls)
                continue
            text, replaced = inputs.decode(bytes(data[start:end]))
            self._elided = "more item" in text  # as Node prints a long array: which items, nobody can tell
            self._take_all(self._triage.records(text, line, lossy=part.lossy or replaced), text, calls)
            self._elided = False
            troubles += self._triage.troubles
        return troubles

    def _take_response(self, line: int, response: re.Match[bytes], head: bytes, calls: Calls) -> None:
        """Take a response whose status line stands behind the words of a logger, and whose headers follow."""
        self._before = response["words"].decode("utf-8", "replace").strip()
        text = (response["line"] + head).decode("utf-8", "replace") + "\n\n"
        self._take_all(self._triage.records(text, line), text, calls)
        self._before = ""

    def _marks(self, found: _Hits, searched: Data, data: Data, start: int, end: int) -> tuple[bool, bool]:
        """Whether lines hold traffic, and whether anything failed in them; takes the hits in them."""
        traffic = failing = False
        while found.next is not None and found.next[2] < end:
            number, ending, _ = found.next
            if number in self._search.opaque:
                traffic = failing = True
            elif number in self._search.also:
                traffic = True
            elif not failing and (words := self._search.confirm(searched, number, ending)) is not None:
                failing = not words or any_in(data, words, start, end)
            found.step()
        return traffic, failing

    def _plainly(self, line: int, read: tuple[Any, str, bytes], calls: Calls, *, failing: bool) -> bool:
        """Take a line that is one message, or one log record with a message in it, without a search for more."""
        value, prefix, written = read
        message: Any = value
        around: tuple[Mapping[str, Any], ...] = ()
        if "jsonrpc" not in value:
            message, around = _only_message(value)
            if message is None:
                return False
        context = Context(prefix=prefix, around=around, place=Place(line))
        if _LONG_DIGITS.search(written):
            return False  # an id may have more digits than a number keeps
        if is_request(message):
            self._request(message, context)
            params = message.get("params")
            if message["method"] == "tools/call" and isinstance(params, dict) and isinstance(params.get("name"), str) and "id" in message:
                calls[rpc_key(message["id"])] = params["name"]
            return True
        if is_rpc_response(message) and not failing:
            self._success(message, context, written)
            return True
        self._take_all([payloads.Record(line, value, prefix, whole=not prefix)], "", calls)
        return True

    def _take_all(self, records: Iterable[payloads.Record], text: str, calls: Calls) -> None:
        before = len(self._messages)
        self._words.clear()
        self._capture = None
        for payload in self._triage.find(records, text, calls, self._hear):
            self._answer(payload)
        self._messages[before:] = _in_order(self._placed(text, self._messages[before:]))

    def _placed(self, text: str, messages: list[Message]) -> list[Message]:
        """The messages with the lines of their entries, where they are those of a capture."""
        pointers = list(dict.fromkeys(message.spot.pointer for message in messages if message.spot.pointer))
        if not pointers or self._capture is None:
            return messages
        place, line = self._capture, self._capture.line
        spans = places.locate(text, [(place, places.Wanted(place.root, pointer_parts(pointer))) for pointer in pointers])
        lines, counted = {}, place.start
        for start, pointer in sorted((span.start, pointer) for pointer, span in zip(pointers, spans, strict=True) if span is not None):
            line += text.count("\n", counted, start)
            lines[pointer], counted = line, start
        return [message._replace(spot=message.spot._replace(line=lines.get(message.spot.pointer, message.spot.line))) for message in messages]

    def _hear(self, kind: str, value: Mapping[str, Any], context: Context) -> None:
        """Take what is passed beside payloads."""
        if kind == EMPTY:
            if value.get("result") is not None or value.get("error") is not None:
                self._success(value, context)
        elif kind == TOOL_USE:
            self._tool_use(value, context)
        elif kind == RESULT:
            identifier = _result_id(value)
            if identifier is not None:
                self._messages.append(Answer(self._spot(context, None), (TOOL_USE, identifier)))
        elif kind == PERSON:
            self._word(value, context)
        elif kind == RENEWED:
            self._messages.append(Change(self._spot(context, None), access=True))
        else:
            self._request(value, context)

    def _word(self, value: Mapping[str, Any], context: Context) -> None:
        digest = b""
        if context.around:  # one of several in a history, which will stand there again
            digest = blake2b(orjson.dumps(str(value.get("content"))), digest_size=12).digest()
            self._words[digest] = self._words.get(digest, 0) + 1
        self._messages.append(Word(self._spot(context, value), digest, self._words.get(digest, 1)))

    def _request(self, value: Mapping[str, Any], context: Context) -> None:
        spot = self._spot(context, value)
        params = value.get("params")
        params = params if isinstance(params, dict) else {}
        method = value["method"]
        if method == "notifications/cancelled":
            reason = params.get("reason")
            identifier = rpc_key(params.get("requestId", params.get("request_id")))
            self._messages.append(Withdrawal(spot, identifier, self._triage.show(reason) if isinstance(reason, str) else ""))
        elif "id" in value and value["id"] is not None:
            name = params.get("name")
            tool = name if method == "tools/call" and isinstance(name, str) else None
            arguments = params.get("arguments") if method == "tools/call" else {name: each for name, each in params.items() if name != "_meta"}
            if context.truncated or self._elided or (context.repaired and _has_gap(arguments)):
                arguments = NO_ID
            elif arguments is None:
                arguments = {}
            resumed = "inputResponses" in params or "requestState" in params
            call = self._call(spot, rpc_key(value["id"]), method, tool, arguments)
            self._messages.append(call._replace(credentials=_credentials(context), resumed=resumed, wired=any(ASKED in record for record in context.around)))
        elif method == "notifications/elicitation/complete":
            self._messages.append(Word(spot))
        elif method.startswith("notifications/") and method.endswith(("list_changed", "resources/updated")):
            self._messages.append(Change(spot))

    def _tool_use(self, value: Mapping[str, Any], context: Context) -> None:
        identifier = next((value[name] for name in _USE_IDS if isinstance(value.get(name), str)), None)
        if identifier is None:
            return
        called = value["function"] if isinstance(value.get("function"), dict) else value
        arguments = next((called[name] for name in ("input", "arguments", "args") if name in called), None)
        if isinstance(arguments, str):
            try:
                arguments = jsontext.read(arguments)[0]
            except ValueError:
                arguments = NO_ID
        spot = self._spot(context, value)
        name = called.get("name", called.get("toolName"))
        if prefix := _PREFIX.match(name):
            name = name[prefix.end() :]
            spot = spot._replace(origin=spot.origin._replace(server=self._triage.show(prefix[1])))
        self._messages.append(self._call(spot, (TOOL_USE, identifier), "tools/call", name, arguments))

    def _call(self, spot: Spot, identifier: Any, method: str, tool: str | None, arguments: Any) -> Call:
        keys = self._names.keys(tool)
        key = None
        digest = b""
        written = ""
        pairs: tuple[tuple[str, str], ...] = ()
        if isinstance(arguments, dict):
            key = next((str(arguments[name]) for name in keys if isinstance(arguments.get(name), str | int)), None)
            rest = {name: value for name, value in arguments.items() if name not in keys}
            written = _written(rest)
            digest = _digest(written)
            pairs = tuple(_pairs(rest))
        name = None if tool is None else self._triage.shown(tool)
        return Call(spot, identifier, method, name, digest, key, pairs, arguments=written if len(written) <= _KEPT else f"… ({len(written):,} characters)")

    def _success(self, value: Mapping[str, Any], context: Context, written: bytes | None = None) -> None:
        """An answer in which nothing was found that failed; ``written`` is the record as it stands in the log, if it does."""
        result = value.get("result")
        decided = server = None
        contracts: tuple[str, ...] = ()
        if isinstance(result, dict):
            decided = next((each for each in (result.get("action"), "roots" if "roots" in result else None, _said_by(result)) if each is not None), None)
            meta = result.get("_meta")
            info = result.get("serverInfo") or (meta.get("io.modelcontextprotocol/serverInfo") if isinstance(meta, dict) else None)
            server = info.get("name") if isinstance(info, dict) else None
            contracts = self._judge.recognised(result) if written is None or self._judge.may_be_recognised(written) else ()
        self._messages.append(
            Answer(
                self._spot(context, value),
                rpc_key(value.get("id")),
                server=self._triage.show(server) if isinstance(server, str) else None,
                contracts=contracts,
                decided=decided if isinstance(decided, str) else None,
            )
        )

    def _answer(self, payload: Payload) -> None:
        """Add a payload to the answer that it is of."""
        context = payload.context
        identifier, response = _answered(payload)
        if identifier is NO_CALL or (identifier is NO_ID and context.http is None and "error-text" not in context.wrappers):
            return  # nothing says that it is the answer to somebody's call
        judged: tuple[Judgement, ...] = ()
        waiting: tuple[Payload, ...] = ()
        if payload.tool is None and identifier is not NO_ID:
            waiting = (payload._replace(context=context._replace(place=Place(context.place.line), around=())),)
        else:
            judged = (self._judge.judge(payload),)
            if identifier is NO_ID and not _may_be_guessed(judged[0]):
                return
        last = self._messages[-1] if self._messages else None
        if response is not None and response is self._response and isinstance(last, Answer):
            self._messages[-1] = last._replace(judged=last.judged + judged, payloads=last.payloads + waiting)
        else:
            self._messages.append(Answer(self._spot(context, context.rpc), identifier, judged, waiting))
        self._response = response

    def _spot(self, context: Context, value: Any) -> Spot:
        if self._before:
            context = context._replace(prefix=self._before)
        time = time_of(context, value, self._modified)
        pointer = ""
        for record in context.around:
            if POINTER in record:
                pointer, self._capture = record[POINTER], outermost(context.place)
            if TOOK_MS in record and time is not None:  # a capture says when an exchange began; its answer was there so much later
                time = time._replace(at=time.at + round(record[TOOK_MS] * 1000))
        return Spot(context.place.line, time, self._names.origin(context), pointer)


def _said_by(result: Mapping[str, Any]) -> str | None:
    """Whether a result is what a model said, which a server may have asked its client for."""
    return "sampled" if isinstance(result.get("role"), str) and "model" in result else None


def _may_be_guessed(judgement: Judgement) -> bool:
    """Whether an answer that names no call is about the connection, or about a wait that its client ended."""
    return judgement.gave_up or any(demand.rule in ("AU102", "AU105") for demand in judgement.demands)


def _in_order(messages: list[Message]) -> list[Message]:
    """The messages of one text in the order of their times, where they are those of a capture; a time that several of a
    record share is the record's and nobody's own.
    """
    if len(messages) > 1 and all(message.spot.pointer and message.spot.time for message in messages):
        return sorted(messages, key=lambda message: message.spot.time.at if message.spot.time else 0)
    counts = Counter((message.spot.line, message.spot.time) for message in messages)
    return [
        message._replace(spot=message.spot._replace(time=None)) if counts[message.spot.line, message.spot.time] > 1 and not message.spot.pointer else message
        for message in messages
    ]


#: Where a model's tool call has its id.
_USE_IDS = ("call_id", "id", "toolCallId", "tool_call_id")
#: Where a result names the tool call that it is of.
_RESULT_IDS = ("tool_use_id", "toolUseId", "call_id", "tool_call_id", "toolCallId")


def _answered(payload: Payload) -> tuple[Any, Any]:
    """The id of the call that a payload answers, and the response that it stands in."""
    context = payload.context
    if context.rpc is not None and context.rpc.get("id") is not None:
        return rpc_key(context.rpc["id"]), context.rpc
    result = context.tool_result.value if context.tool_result is not None else {}
    for record in (result, *reversed(context.around)):
        if ASKED in record:
            return _asked_id(record[ASKED]), context.http
        if record is result or record.get("role") == "tool" or str(record.get("type")).endswith("_output"):
            identifier = _result_id(record)
            if identifier is not None:
                return (TOOL_USE, identifier), record
    return NO_ID, None


def _result_id(record: Mapping[str, Any]) -> str | None:
    """The id of the tool call that a result names."""
    return next((record[name] for name in _RESULT_IDS if isinstance(record.get(name), str)), None)


def _asked_id(text: str) -> Any:
    """The id of the call that a request carried; NO_CALL where it carried none."""
    try:
        value = orjson.loads(text)
    except ValueError:
        return NO_CALL
    return rpc_key(value["id"]) if isinstance(value, dict) and is_request(value) and value.get("id") is not None else NO_CALL


def _only_message(value: dict[str, Any]) -> tuple[Any, tuple[Mapping[str, Any], ...]]:
    """The one message of JSON-RPC in a log record, and what is around it; None where more than that could be in it."""
    message = None
    for member in value.values():
        if type(member) is dict:
            if message is not None or "jsonrpc" not in member:
                return None, ()
            message = member
        elif type(member) is list or (type(member) is str and ("{" in member or "[" in member or "HTTP/" in member or "MCP error" in member)):
            return None, ()
    return message, (value,)


def _credentials(context: Context) -> str | None:
    """What stands for the credentials of a request, where they were seen; MASKED where they are not all there."""
    given = next((record["authorization"] for record in context.around if isinstance(record.get("authorization"), str)), None)
    if not given:
        return None
    return MASKED if _MASKED.search(given) else blake2b(given.encode("utf-8", "replace"), digest_size=12).hexdigest()


def _written(arguments: Mapping[str, Any]) -> str:
    """Arguments as JSON, the same in whatever order their members stand; empty where they cannot be written."""
    try:
        return orjson.dumps(arguments, option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS).decode()
    except TypeError:  # an integer beyond 64 bits, or nested deeper than orjson writes
        return ""


def _digest(written: str) -> bytes:
    """The same for equal arguments; empty where it is not known what was sent."""
    return b"" if not written or _MASKED.search(written) else blake2b(written.encode(), digest_size=12).digest()


def _has_gap(value: Any) -> bool:
    """Whether a value that was mended holds a null, which may stand for NaN or for what could not be read."""
    if isinstance(value, dict | list):
        return any(map(_has_gap, value.values() if isinstance(value, dict) else value))
    return value is None


def _pairs(arguments: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Names and values that may tell which record a call is about, of the arguments and of the objects in them."""
    count = 0
    for name, value in arguments.items():
        members = value.items() if type(value) is dict else ((name, each) for each in value) if type(value) is list else ((name, value),)
        for each, member in members:
            if type(member) in (str, int) and member != "" and len(str(member)) <= _LONGEST_VALUE:
                yield simple(str(each)), str(member)
                count += 1
                if count >= _MOST_PAIRS:
                    return
