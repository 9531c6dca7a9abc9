"""Peels what is around a payload: log records, JSON strings, JSON-RPC, tool results, raw HTTP.

Only answers are payloads, so nothing is sought inside a request, a tool call's arguments or a schema. What a value
is recognised as is decided by the callback that a Peeler is made with; this module knows only the wrappers.
"""

from __future__ import annotations

import marshal
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import orjson

from errtriage import payloads
from errtriage.cuts import agree, may_go_on, plain
from errtriage.errortext import error_text
from errtriage.model import ASKED, POINTER, TOOK_MS, Context, Http, Payload, Place, ToolResult

#: Wrappers nested deeper than this are not searched (a bound against hostile input).
MAX_DEPTH = 100

#: Names under which Python views of MCP objects show the members of a tool result (the MCP SDK's dumps).
_SNAKE = {"is_error": "isError", "structured_content": "structuredContent", "result_type": "resultType", "meta": "_meta"}
#: Members that describe values instead of holding them.
_SCHEMAS = frozenset({"inputSchema", "outputSchema", "input_schema", "output_schema", "parameters"})
#: Where log records say when they were written.
TIMES = ("time", "ts", "timestamp", "@timestamp", "t", "date")
#: Codes that JSON-RPC and MCP keep for themselves; an error object with one of them needs no response around it.
_VERBS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"})
#: Members of a request or a notification; any other may hold what was answered.
_OF_A_REQUEST = frozenset({"method", "params", "id", "jsonrpc", "_meta"})
_PROTOCOL_CODES = range(-32768, -31999)


#: The tools that were called, by the JSON-RPC ids of the calls.
Calls = dict[tuple[str, Any], str]

if TYPE_CHECKING:
    #: Says whether a value, met at a place (object, answer, tool-result, rpc-response, http-response), is a payload; the
    #: last argument is the result inside an answer.
    Recogniser = Callable[[str, Any, Context, Any], Payload | None]
    #: Is told what is passed that is no payload: a request or a notification, an answer in which no payload was found, a
    #: tool call of a model, what a person said.
    Listener = Callable[[str, Mapping[str, Any], Context], None]

#: What a listener is told about.
REQUEST, EMPTY, RESULT, TOOL_USE, PERSON, RENEWED = "request", "empty", "result", "tool-use", "person", "renewed"


class Peeler:
    """Walks values from the outside in and yields the payloads in them.

    Remembers the tool calls that it passes (by JSON-RPC id), so that a later answer knows its tool, and the
    outermost unwrapped objects that were no payload (``strangers``), for a run with a forced contract.
    """

    def __init__(self, recognise: Recogniser, calls: Calls | None = None, words: tuple[str, ...] = (), heard: Listener | None = None) -> None:
        self._recognise = recognise
        self._words = words
        self._heard = heard
        self.calls: Calls = {} if calls is None else calls
        self.strangers: list[tuple[Any, Context]] = []
        self.troubles: list[str] = []
        #: JSON-RPC responses in which no payload was found: a rule may speak of them all the same.
        self.empty: list[Payload] = []

    def record(self, record: payloads.Record, context: Context) -> Iterator[Payload]:
        """Yield the payloads of one record of a text."""
        yield from self._record(record, context, 0)

    def trouble(self, message: str) -> None:
        """Note a bound that was met, once."""
        if message not in self.troubles:
            self.troubles.append(message)

    def _record(self, record: payloads.Record, context: Context, depth: int) -> Iterator[Payload]:
        outer = context.place
        context = context._replace(
            place=_place(record, context.place, depth),
            wrappers=context.wrappers + record.wrappers,
            prefix=record.prefix or context.prefix,
            stream=record.stream or context.stream,
            around=(*context.around, record.asked) if record.asked else context.around,
            before=len(context.around) if record.prefix else context.before,
            received=record.written or context.received,
            inside=False,
            body=record.whole and context.body,
            repaired=context.repaired or record.repaired,
            truncated=context.truncated or record.truncated,
        )
        if record.trouble:
            self.trouble(record.trouble)
        if record.error is not None:
            # In a tool result the text is the tool's own, and the result says that it is an error.
            alone = context.tool_result is None
            around = _in(context, "error-data") if alone else context
            found = [payload for each in record.message for payload in self._record(each, around._replace(place=outer), depth)]
            if found or not alone:
                yield from once(found)
            else:
                yield from self._error_text(record.error, context)
        elif record.http is None:
            yield from self._value(record.value, context, depth)
        else:
            yield from self.response(record.http, record.text, context, depth)

    def response(self, http: Http, body: str, context: Context, depth: int = 0) -> Iterator[Payload]:
        """Yield the payloads of a raw HTTP response or, when its body holds none, the response itself."""
        context = context._replace(wrappers=(*context.wrappers, "http"), http=http._replace(method=http.method or context.method), prefix="")
        yield from self.body(body, context, depth)

    def body(self, body: str, context: Context, depth: int = 0) -> Iterator[Payload]:
        """Yield the payloads of the body of the HTTP response that ``context`` knows, else the response itself."""
        self._tell_renewal(context)
        found = False
        first: Any = None
        for record in payloads.records(body, words=self._words):
            first = record.value if first is None else first
            for payload in self._record(record, context._replace(body=True), depth + 1):
                found = True
                yield payload
        if not found and (response := self._recognise("http-response", body if first is None else first, context, None)):
            yield response

    def _value(self, value: Any, context: Context, depth: int) -> Iterator[Payload]:
        if depth > MAX_DEPTH:
            self.trouble(f"its wrappers nest deeper than {MAX_DEPTH} levels; what lies deeper is not searched")
        elif isinstance(value, dict):
            yield from self._object(value, context, depth)
        elif isinstance(value, list):
            for item in value:
                yield from self._value(item, context, depth + 1)
        elif isinstance(value, str):
            yield from self._text(value, context, "json-string", depth)

    def _text(self, text: str, context: Context, wrapper: str, depth: int) -> Iterator[Payload]:
        if "{" not in text and "[" not in text and "HTTP/" not in text:
            return
        wrapped = _decoded(text, context)._replace(wrappers=(*context.wrappers, wrapper), body=False)
        for record in payloads.records(text, words=self._words):
            yield from self._record(record, wrapped, depth + 1)

    def _object(self, value: dict[str, Any], context: Context, depth: int) -> Iterator[Payload]:
        if is_request(value):
            self._note_call(value, context)
            beside = (member for name, member in value.items() if name not in _OF_A_REQUEST)
            if "jsonrpc" in value or not any(isinstance(member, dict | list) or (isinstance(member, str) and "{" in member) for member in beside):
                return
        elif is_rpc_response(value):
            yield from self._rpc_response(value, context, depth)
            return
        elif value.get("jsonrpc") == "2.0" and "id" in value and not may_go_on(value):
            self._note_empty(value, context._replace(rpc=value))
        if payload := self._as_it_is(value, context):
            yield payload
        elif is_tool_result(value):
            yield from self._tool_result(value, context, depth)
        elif isinstance(value.get("log"), dict) and isinstance(value["log"].get("entries"), list):
            yield from self._har(value, context, depth)
        elif error := sdk_error(value):
            yield from self._sdk_error(value, error, context, depth)
        elif is_rpc_error(value):
            yield from self._rpc_error({"error": value}, context, depth)
        else:
            yield from self._members(value, context, depth)

    def _as_it_is(self, value: dict[str, Any], context: Context) -> Payload | None:
        """An object as a payload: as an answer with what is beside it in ``_meta``, else as an object."""
        meta = value.get("_meta")
        if isinstance(meta, dict):
            context = context._replace(meta=meta)
        answer = self._recognise("answer", value, context, value) if meta else None
        return answer or self._recognise("object", value, context, None)

    def _tell(self, kind: str, value: Mapping[str, Any], context: Context) -> None:
        if self._heard is not None:
            self._heard(kind, value, context)

    def _tell_renewal(self, context: Context) -> None:
        """A token was asked for and given (RFC 6749, 4: every request for one has a grant_type)."""
        asked = str(context.around[-1].get(ASKED, "")) if self._heard is not None and context.around else ""
        if "grant_type" in asked and context.http is not None and (context.http.status or 400) < 400:
            self._tell(RENEWED, {}, context)

    def _tell_call(self, value: Mapping[str, Any], context: Context) -> None:
        if self._heard is not None and (is_tool_use(value) or is_function_call(value)):
            self._heard(TOOL_USE, value, context)

    def _tell_word(self, value: Mapping[str, Any], context: Context) -> None:
        if self._heard is not None and value.get("role") == "user" and is_said(value.get("content")):
            self._heard(PERSON, value, context)

    def _members(self, value: dict[str, Any], context: Context, depth: int) -> Iterator[Payload]:
        """Search an object that is neither a payload nor a known wrapper: a log record, or a part of one."""
        self._stranger(value, context)
        if is_schema(value):
            return
        outside = context
        if not context.inside:
            received = next((value[name] for name in TIMES if value.get(name) is not None), context.received)
            context = context._replace(wrappers=(*context.wrappers, "log-record"), inside=True, received=received)
        context = context._replace(body=False, method=_verb(value) or context.method, around=(*context.around, value))
        self._tell_call(value, outside)
        # A logger writes one text twice, as message and in the stack; what both hold is one.
        in_texts: set[Any] = set()
        for name, member in value.items():
            if name == "MESSAGE" and isinstance(member, list):
                from errtriage.carriers import message

                member = message(member)  # noqa: PLW2901 - the journal's bytes are a text
            if not isinstance(member, dict | list | str) or _holds_no_answer(value, name):
                continue
            for payload in self._value(member, context, depth + 1):
                if isinstance(member, str):
                    key = _fingerprint(payload)
                    if key in in_texts:
                        continue
                    in_texts.add(key)
                yield payload
        self._tell_word(value, outside)  # behind the results that stand in the same message

    def _sdk_error(self, value: dict[str, Any], error: Mapping[str, Any], context: Context, depth: int) -> Iterator[Payload]:
        """What an SDK's exception was logged as: a payload in its data or message wins over the exception itself."""
        if not context.inside:
            context = _in(context, "log-record")._replace(inside=True)
        parts: dict[str, Any] = {name: value[name] for name in ("data", "message") if name in value}
        found = list(self._members(parts, _in(context, "error-data"), depth))
        if not found:
            rest = {name: member for name, member in value.items() if name not in ("data", "message", "stack")}
            found = list(self._members(rest, context, depth))
        if found:
            yield from once(found)
        else:
            yield from self._error_text(error, context)

    def _error_text(self, error: Mapping[str, Any], context: Context) -> Iterator[Payload]:
        """An SDK's ``MCP error CODE: MESSAGE``, read as the JSON-RPC error that it came from."""
        if payload := self._recognise("rpc-response", {"error": error}, _in(context, "error-text"), None):
            yield payload

    def _har(self, value: dict[str, Any], context: Context, depth: int) -> Iterator[Payload]:
        """Each entry of a HAR capture is one response."""
        from errtriage import har

        context = _in(context, "har")._replace(inside=True)
        for number, each in enumerate(har.exchanges(value["log"]["entries"])):
            # What was asked is told apart by what the request said about its session; its answer is the one beside it.
            known = {"mcp-session-id": each.headers.get("mcp-session-id"), "server": each.address, "authorization": each.headers.get("authorization")}
            known |= {ASKED: each.asked, POINTER: f"/log/entries/{number}"}
            asked = context._replace(received=each.started, around=(known,))
            for request in payloads.records(each.asked, words=self._words):
                if isinstance(request.value, dict) and is_request(request.value):
                    self._note_call(request.value, asked)
            if each.http is not None:
                answer = _decoded(each.body, asked)._replace(http=each.http, around=({**known, TOOK_MS: each.took_ms},))
                yield from self.body(each.body, answer, depth + 1)

    def _rpc_response(self, value: dict[str, Any], context: Context, depth: int) -> Iterator[Payload]:
        context = context._replace(rpc=value, inside=True, body=False)
        if isinstance(value.get("error"), dict):
            yield from self._rpc_error(value, context, depth)
            return
        wrapped = context._replace(wrappers=(*context.wrappers, "jsonrpc"))
        result = value.get("result")
        found = False
        if isinstance(value.get("error"), str):
            found_in_error = list(self._embedded(value["error"], _in(wrapped, "error-data"), depth + 1))
            found = bool(found_in_error)
            yield from found_in_error
        for payload in self._value(result, wrapped, depth + 1):
            found = True
            yield payload
        if not found:
            self._note_empty(value, context)
            if not isinstance(result, dict):
                self._stranger(value, context)

    def _rpc_error(self, value: dict[str, Any], context: Context, depth: int) -> Iterator[Payload]:
        """A payload inside the error's data or message wins over the error around it."""
        error = value["error"]
        outer = ("jsonrpc", "error-data") if context.rpc is value else ("error-data",)
        inner = context._replace(wrappers=(*context.wrappers, *outer), inside=True)
        found: list[Payload] = []
        for name in ("data", "message"):
            member = error.get(name)
            if isinstance(member, str):
                found += self._embedded(member, inner, depth + 1)
            else:
                found += self._value(member, inner, depth + 1)
        if found:
            yield from once(found)
        elif payload := self._recognise("rpc-response", value, context, None):
            yield payload
        else:
            self._stranger(value, context)

    def _embedded(self, text: str, context: Context, depth: int) -> Iterator[Payload]:
        """JSON in a text whose wrapper is recorded already."""
        context = _decoded(text, context)
        for record in payloads.records(text, words=self._words):
            yield from self._record(record, context, depth + 1)

    def _tool_result(self, value: dict[str, Any], context: Context, depth: int) -> Iterator[Payload]:
        value = canonical(value)
        blocks = _blocks(value)
        # A text that was cut is searched, but not quoted.
        texts = tuple(block["text"] for block in blocks if block.get("type") == "text" and isinstance(block.get("text"), str) and not may_go_on(block["text"]))
        meta = value.get("_meta")
        tool_result = ToolResult(value, texts)
        context = context._replace(tool_result=tool_result, meta=meta if isinstance(meta, dict) else context.meta, inside=True, body=False)
        inside = context._replace(wrappers=(*context.wrappers, "tool-result"))
        structured = list(self._value(value.get("structuredContent"), _in(inside, "structured-content"), depth + 1))
        in_text: list[Payload] = []
        for block in blocks:
            in_text += self._block(block, inside, depth + 1)
        if context.truncated:
            # What was not printed of the one may be printed of the other; the one with less in it is not another payload.
            structured = [each for each in structured if not any(agree(each.value, other.value) for other in in_text)]
        tool_result.mismatch = bool(structured and in_text) and {*map(_fingerprint, structured)} != {*map(_fingerprint, in_text)}
        if isinstance(meta, dict) and (payload := self._answer(value, texts, context)):
            yield payload
        elif structured or in_text:
            yield from once(structured + in_text)
        elif payload := self._recognise("tool-result", value, context, None):
            yield payload
        else:
            self._stranger(value, context)
            self._tell(RESULT, value, context)

    def _answer(self, value: dict[str, Any], texts: Iterable[str], context: Context) -> Payload | None:
        """The tool result as one answer: its structured content, or a JSON object in its texts, beside its ``_meta``."""
        results = [value.get("structuredContent"), *(part.value for text in texts for part in payloads.records(text, words=self._words))]
        answers = (self._recognise("answer", value, context, inner) for inner in results if isinstance(inner, dict))
        return next((answer for answer in answers if answer), None)

    def _block(self, block: Mapping[str, Any], context: Context, depth: int) -> Iterator[Payload]:
        text, resource = block.get("text"), block.get("resource")
        if isinstance(text, str):
            yield from self._text(text, context, "text-content", depth)
        elif isinstance(resource, dict) and isinstance(resource.get("text"), str):
            yield from self._text(resource["text"], context, "resource", depth)

    def _note_empty(self, value: dict[str, Any], context: Context) -> None:
        if not may_go_on(value):
            self.empty.append(Payload(value, "", "", context))
            self._tell(EMPTY, value, context)

    def _stranger(self, value: Any, context: Context) -> None:
        self.strangers.append((value, context))

    def _note_call(self, value: Mapping[str, Any], context: Context) -> None:
        self._tell(REQUEST, value, context)
        params = value.get("params")
        if value["method"] == "tools/call" and isinstance(params, dict) and isinstance(params.get("name"), str) and "id" in value:
            self.calls[rpc_key(value["id"])] = params["name"]

    def tool_of(self, context: Context) -> str | None:
        """The tool that the answer's JSON-RPC id was asked with earlier, if that was seen."""
        return None if context.rpc is None else self.calls.get(rpc_key(context.rpc.get("id")))


def rpc_key(identifier: Any) -> tuple[str, Any]:
    """A JSON-RPC id as a key; 1 and "1" are different ids."""
    return (type(identifier).__name__, identifier if isinstance(identifier, str | int | float) else None)


def _verb(value: Mapping[str, Any]) -> str | None:
    """The HTTP verb that a log record names."""
    verb = value.get("method")
    return verb.upper() if isinstance(verb, str) and verb.upper() in _VERBS else None


def is_request(value: Mapping[str, Any]) -> bool:
    """Whether an object is a request or a notification: a string ``method`` with ``jsonrpc`` or ``params``.

    An object with ``params`` that also holds a response is a log record about both.
    """
    method = value.get("method")
    if not isinstance(method, str):
        return False
    if "jsonrpc" in value:
        return True
    return "params" in value and method.upper() not in _VERBS and value.get("result") is None and value.get("error") is None


def is_schema(value: Mapping[str, Any]) -> bool:
    """Whether an object is a JSON Schema, whose examples and defaults nobody has answered."""
    return "json-schema.org/" in str(value.get("$schema")) or (value.get("type") == "object" and isinstance(value.get("properties"), dict))


def is_rpc_response(value: Mapping[str, Any]) -> bool:
    """Whether an object is a JSON-RPC 2.0 response."""
    return value.get("jsonrpc") == "2.0" and ("result" in value or "error" in value)


def is_rpc_error(value: Mapping[str, Any]) -> bool:
    """Whether an object is the bare error of a JSON-RPC response, with a code that the protocol keeps for itself."""
    code = value.get("code")
    return (
        type(code) is int
        and code in _PROTOCOL_CODES
        and isinstance(value.get("message"), str)
        and value.keys() <= {"code", "message", "data", "name", "type", "stack", "cause"}
    )


def is_tool_result(value: Mapping[str, Any]) -> bool:
    """Whether an object is a tool result as a wrapper: a content array or structured content, and no role."""
    if "role" in value:
        return False
    if isinstance(value.get("content"), list):
        return True
    if value.get("structuredContent") is not None or value.get("structured_content") is not None:
        return True
    return _is_result_block(value) and isinstance(value.get("content"), str)


def sdk_error(value: Mapping[str, Any]) -> dict[str, Any] | None:
    """The JSON-RPC error in an object that an SDK's exception was logged as, if one of its texts holds one."""
    for name, member in value.items():
        if isinstance(member, str) and "MCP error " in member and name != "stack" and (error := error_text(member)):
            if isinstance(value.get("data"), dict | list):
                error["data"] = value["data"]
            return error
    return None


def is_tool_use(value: Mapping[str, Any]) -> bool:
    """Whether an object is a tool call as a model writes it: a kind, a name, and what the tool is called with."""
    kind = str(value.get("type", "")).replace("-", "_")
    return kind.endswith(("tool_use", "tool_call", "function_call")) and isinstance(value.get("name", value.get("toolName")), str)


def is_function_call(value: Mapping[str, Any]) -> bool:
    """Whether an object is a tool call as models of another make write it: an id, and a function with its name."""
    function = value.get("function")
    return isinstance(value.get("id"), str) and isinstance(function, dict) and isinstance(function.get("name"), str) and "arguments" in function


def is_said(content: Any) -> bool:
    """Whether a message's content is what somebody said, and not only results of tools."""
    if isinstance(content, str):
        return bool(content.strip())
    return isinstance(content, list) and any(isinstance(block, dict) and block.get("type") in ("text", "input_text") for block in content)


def _is_result_block(value: Mapping[str, Any]) -> bool:
    kind = value.get("type")
    return isinstance(kind, str) and kind.endswith("tool_result")


def canonical(value: dict[str, Any]) -> dict[str, Any]:
    """A tool result under MCP's own member names, where a Python view shows it in snake case."""
    names = {snake: name for snake, name in _SNAKE.items() if snake in value and name not in value}
    return type(value)({names.get(name, name): member for name, member in value.items()}) if names else value


def _blocks(value: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    content = value.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def _holds_no_answer(value: Mapping[str, Any], name: str) -> bool:
    """Whether a member holds a question, a tool's input or a schema, and so no answer."""
    if name in _SCHEMAS:
        return True
    if name == "params":
        return isinstance(value.get("method"), str)
    if name in ("arguments", "partial_json"):
        return True
    if name == "args":
        return isinstance(value.get("name", value.get("toolName")), str)
    kind = str(value.get("type", "")).replace("-", "_")
    return name == "input" and ("toolName" in value or kind.endswith(("tool_use", "tool_call")))


def _place(record: payloads.Record, around: Place, depth: int) -> Place:
    """Where a record stands: in the text, in the body of a response there, or in a decoded string."""
    root = record.value if record.root is None else record.root
    if not depth:
        return Place(record.line, root, record.start)
    if around.string is not None:
        return Place(around.line, root, record.start, None, around)
    # The body of a response stands in the text as it is.
    start = around.start + record.start if around.start >= 0 and record.start >= 0 else -1
    return Place(around.line, root, start, None, around.around)


def _decoded(text: str, context: Context) -> Context:
    """The context of what is in a string."""
    return context._replace(place=context.place._replace(string=text))


def _in(context: Context, wrapper: str) -> Context:
    return context._replace(wrappers=(*context.wrappers, wrapper))


def _fingerprint(payload: Payload) -> Any:
    """A key that is the same for payloads with the same value and shape."""
    value = plain(payload.value) if payload.context.truncated else payload.value
    try:
        return payload.shape, orjson.dumps(value, option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS)
    except TypeError:  # an integer beyond 64 bits, or nested deeper than orjson writes
        return payload.shape, marshal.dumps(value, 2)


def once(found: Iterable[Payload]) -> Iterator[Payload]:
    """Yield each payload once: the same value in two places of one answer counts once."""
    kept: set[Any] = set()
    for payload in found:
        key = _fingerprint(payload)
        if key not in kept:
            kept.add(key)
            yield payload
