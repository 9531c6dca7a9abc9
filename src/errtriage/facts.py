"""Locates what a contract decides by: the fields of a shape, what the wrappers know, and the ids.

Where a field is and what type counts stands in the pack; a field of another type is absent, so that no decision
rests on what the contract does not allow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from errtriage import delays, payloads
from errtriage.challenges import challenges
from errtriage.contracts import Condition, Contract, Shape
from errtriage.cuts import CutStr, may_go_on
from errtriage.model import Context, Http, Payload
from errtriage.pointers import MISSING, follow_parts, pointer_parts

Facts = dict[str, Any]

#: The facts that conditions and texts may name beside the fields of their shapes (``wrapper_facts`` and below).
GENERAL = frozenset((
    "shape", "truncated", "http_status", "reason", "method", "media_type", "retry_after", "retry_after_ms", "retry_after_header", "retry_after_fault",
    "allow", "headers_seen", "is_error", "mismatch", "silent", "meta", "rpc_members", "group", "documented_retryable", "tool", "operation", "tool_class",
))  # fmt: skip
#: What conditions of conduct.json may name beside those: what was decided.
JUDGED = frozenset(("outcome", "action", "delay_ms"))
#: What a shape's ``match`` may ask for (``probe``).
PROBED = frozenset((
    "value", "inner", "forced", "body", "rpc_result", "within", "http_status", "media_type", "headers", "challenges", "is_error", "structured", "only_text",
))  # fmt: skip

#: How many members of a payload are looked at for ids (a bound against hostile input).
_MOST_MEMBERS = 20_000
#: How many items of an array are asked whether they are the one that is meant, and how many become words.
_MOST_ITEMS, _MOST_WORDS = 1000, 20


def probe(value: Any, context: Context, inner: Any, *, forced: bool) -> Facts:
    """What a shape is recognised by: the value and what is known around it."""
    known: Facts = {
        "value": value,
        "forced": forced,
        "body": context.body,
        "rpc_result": context.wrappers[-1:] == ("jsonrpc",),
        "within": list(context.wrappers),
    }
    if inner is not None:
        known["inner"] = inner
    if context.http:
        _put(known, http_status=context.http.status, media_type=context.http.media_type)
        known |= {name: member for name, member in _http(context.http).items() if name in ("headers", "challenges")}
    result = context.tool_result
    if result is not None and result.value is value:
        _put(known, is_error=value.get("isError"), structured=value.get("structuredContent"))
        blocks = value.get("content")
        if len(result.texts) == 1 and not (isinstance(blocks, list) and len(blocks) > 1):
            known["only_text"] = result.texts[0]
    return known


def _put(facts: Facts, **values: Any) -> None:
    facts.update({name: value for name, value in values.items() if value is not None})


def wrapper_facts(context: Context) -> Facts:
    """What the wrappers around a payload know, by the names that conditions use."""
    facts: Facts = {}
    if http := context.http:
        wait = delays.retry_after(http.headers, context.received)
        _put(facts, http_status=http.status, reason=http.reason, method=http.method, media_type=http.media_type)
        _put(facts, retry_after_ms=wait.delay_ms, retry_after_header=wait.header, retry_after_fault=wait.fault, allow=http.headers.get("allow"))
        facts["headers_seen"] = http.headers_seen
        if wait.stated:
            facts["retry_after"] = True
    if result := context.tool_result:
        _put(facts, is_error=result.is_error)
        facts["mismatch"] = result.mismatch
        facts["silent"] = not (result.text or "").strip() and result.value.get("structuredContent") is None and not result.resources
    if context.meta is not None:
        facts["meta"] = context.meta
    if (rpc := context.rpc) is not None:
        both = [name for name in ("result", "error") if rpc.get(name) is not None]
        facts["rpc_members"] = ("neither", "one", "both")[len(both)]
    return facts


def payload_facts(payload: Payload, shape: Shape) -> Facts:
    """Every fact about a payload but those that its catalogue adds."""
    facts = wrapper_facts(payload.context)
    facts["shape"] = payload.shape
    facts["truncated"] = payload.context.truncated
    documents = _documents(payload)
    for name, ways, checks in _fields(shape.contract, shape.name):
        for way in ways:
            value = way.follow(documents)
            value = next((kept for check in checks if (kept := check(value)) is not None), None)
            if value is not None:
                facts[name] = str(value) if name == "code" else value
                break
    return facts


class _Way(NamedTuple):
    """The way to a place: a document and names there. With ``where`` or ``rest`` what is there is an array: of its items
    the first that fits, and the names in it; with ``each`` what is there is an array too, and each of its items a text.
    """

    document: str | None
    parts: tuple[str, ...]
    item: bool = False
    where: Condition | None = None
    rest: tuple[str, ...] = ()
    each: tuple[tuple[str, ...], ...] = ()
    hold: Callable[[Condition | None, Any], bool] | None = None

    def follow(self, documents: Mapping[str, Any]) -> Any:
        """What is at the place, or MISSING."""
        if self.document is None:
            return MISSING
        value = follow_parts(documents[self.document], self.parts)
        if not self.item:
            return value
        items = value[:_MOST_ITEMS] if isinstance(value, list) else []
        # What is asked of an object holds of everything else too.
        fitting = next((item for item in items if isinstance(item, dict) and (self.hold is None or self.hold(self.where, item))), MISSING)
        value = follow_parts(fitting, self.rest)
        return [self._words(item) for item in value[:_MOST_WORDS]] if self.each and isinstance(value, list) else value

    def _words(self, item: Any) -> str:
        found = (follow_parts(item, parts) for parts in self.each)
        return " – ".join(str(value) for value in found if isinstance(value, str | int | float) and not isinstance(value, bool | CutStr))

    def behind_cut(self, documents: Mapping[str, Any]) -> bool:
        """Whether the way ends at something that was cut, or leads to a text that has no end."""
        if self.document is None:
            return False
        value = documents[self.document]
        for part in self.parts:
            below = follow_parts(value, (part,))
            if below is MISSING:
                return may_go_on(value)
            value = below
        return may_go_on(value) if self.item else isinstance(value, CutStr)


def _way(contract: Contract, place: str | Mapping[str, Any]) -> _Way:
    if isinstance(place, str):
        document, path = _split(place)
        return _Way(document, pointer_parts(path))
    document, path = _split(place["in"])
    each = tuple(pointer_parts(pointer) for pointer in place.get("each", ()))
    return _Way(document, pointer_parts(path), True, place.get("where"), pointer_parts(place.get("at", "")), each, contract.conditions.hold)


@lru_cache(256)
def _fields(contract: Contract, shape: str) -> list[tuple[str, list[_Way], list[Callable[[Any], Any]]]]:
    """The fields of a shape, ready to be located: name, the ways to it, and what types it may have."""
    fields = contract.shape(shape).data["fields"].items()
    return [(name, [_way(contract, place) for place in field["at"]], [_TYPES[kind] for kind in field["type"]]) for name, field in fields]


@lru_cache(256)
def _id_ways(contract: Contract, shape: str) -> list[tuple[str, _Way]]:
    """The ways to the ids that a shape documents, each with the name that the id has there."""
    places = contract.shape(shape).data["ids"]["correlation"]
    return [((place if isinstance(place, str) else place.get("at") or place["in"]).rpartition("/")[2], _way(contract, place)) for place in places]


def undetermined(payload: Payload, shape: Shape) -> set[str]:
    """The fields of a cut payload of which it is not known whether they were there: they may lie behind the cut."""
    if not payload.context.truncated:
        return set()
    documents = _documents(payload)
    names = {name for name, ways, _ in _fields(shape.contract, shape.name) if any(way.behind_cut(documents) for way in ways)}
    if "code" in names:
        names |= {"group", "documented_retryable"}
    result = payload.context.tool_result
    if result is not None and may_go_on(result.value) and "isError" not in result.value:
        names |= {"is_error", "silent", "mismatch"}
    return names


def _documents(payload: Payload) -> dict[str, Any]:
    context = payload.context
    http = _http(context.http) if context.http else {}
    result = context.tool_result
    text = result.text if result is not None else None
    return {"": payload.value, "inner": payload.inner, "meta": context.meta, "http": http, "text": text}


def _http(http: Http) -> dict[str, Any]:
    """What packs may ask of a response."""
    known: dict[str, Any] = {"status": http.status, "reason": http.reason}
    if http.headers:
        known["headers"] = http.headers
        if asked := http.headers.get("www-authenticate"):
            known["challenges"] = challenges(asked)
    return known


@lru_cache(1024)
def _split(place: str) -> tuple[str | None, str]:
    """The document that a place names (empty: the payload; None: there is no such) and the pointer into it."""
    document, colon, path = place.rpartition(":") if not place.startswith("/") else ("", "", place)
    return document if colon or not document else None, path


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _whole(value: Any) -> int | None:
    return int(value) if _is_number(value) and (isinstance(value, int) or value.is_integer()) else None


def _positive(value: Any) -> int | None:
    return int(value) if _whole(value) is not None and 0 < value <= delays.LONGEST_MS else None


def _listed(value: Any) -> str | None:
    whole = isinstance(value, list) and value and all(isinstance(item, str | int) for item in value)
    return ", ".join(str(item) for item in value if item != "") or None if whole else None


#: What a field's value is taken as by each type that a pack may name, or None where it is of another one. ``keys`` and
#: ``list`` make names and scalars into a list of words.
_TYPES: Mapping[str, Callable[[Any], Any]] = {
    "string": lambda value: value if isinstance(value, str) and not isinstance(value, CutStr) else None,
    "boolean": lambda value: value if isinstance(value, bool) else None,
    "integer": _whole,
    "positive-integer": _positive,
    "number": lambda value: value if _is_number(value) else None,
    "seconds": delays.seconds,
    "duration": delays.duration,
    "object": lambda value: value if isinstance(value, dict) else None,
    "array": lambda value: value if isinstance(value, list) else None,
    "keys": lambda value: ", ".join(value) if isinstance(value, dict) and value else None,
    "list": _listed,
    "any": lambda value: None if value is MISSING else value,
}


def add_catalogue(facts: Facts, contract: Contract) -> Mapping[str, Any] | None:
    """Add what the catalogue says about the fact ``code``; return its entry, or None where there is none."""
    code = facts.get("code")
    if code is None:
        return None
    entry = contract.catalogue.find(code)
    if entry and "aliases" in entry.data:
        facts["code"] = entry.data["code"]
    facts["group"] = entry.data["group"] if entry else "unknown"
    if entry and entry.retryable is not None:
        facts["documented_retryable"] = entry.retryable
    return entry.data if entry else None


def add_tool(facts: Facts, contract: Contract, given: str | None, known_classes: frozenset[str], asked: str | None, prefix: str) -> None:
    """Add the tool and its class: as given by the user, else the payload's, else the request's, else the words before.

    ``given`` may be a class of tools instead (one of any contract's), which leaves the tool as found otherwise.
    """
    tools: Mapping[str, str] = contract.data.get("tools", {})
    as_class = given if given in known_classes and given not in tools else None
    word = prefix.rsplit(maxsplit=1)[-1].removesuffix(":") if prefix.strip() else ""
    named = None if as_class else given
    tool = named or facts.get("operation") or asked or (word if word in tools else None)
    _put(facts, tool=tool, operation=tool, tool_class=contract.class_of(as_class or tool))


def ids(payload: Payload, shape: Shape, names: list[str], headers: list[str]) -> tuple[str | None, dict[str, str]]:
    """The id to quote, and every id found by the name that it has there.

    A shape that documents its id has that one or none; elsewhere, where its own places hold none, it is the first of the
    well-known ``names`` in the payload (in their order, shallowest first), else the first of the ``headers``.
    """
    documents = _documents(payload)
    found: dict[str, str] = {}
    documented = []
    for name, way in _id_ways(shape.contract, shape.name):
        if (value := _id_text(way.follow(documents))) is not None:
            documented.append(value)
            found.setdefault(name, value)
    in_payload: dict[str, str] = {}
    for name, value in _named(payload, set(names)):
        in_payload.setdefault(_plain(name), value)
        found.setdefault(name, value)
    in_headers = list(_in_headers(payload.context, headers))
    for name, value in in_headers:
        found.setdefault(name, value)
    if documented or shape.data["ids"]["documented"]:
        return (documented[0] if documented else None), found
    known = [in_payload[name] for name in names if name in in_payload] + [value for _, value in in_headers]
    return (known[0] if known else None), found


def _plain(name: str) -> str:
    return name.replace("-", "").replace("_", "").lower()


def _id_text(value: Any) -> str | None:
    if isinstance(value, bool | CutStr) or not isinstance(value, str | int | float):
        return None  # MISSING is none of them
    return str(value) if str(value).strip() else None


def _named(payload: Payload, names: set[str]) -> Iterator[tuple[str, str]]:
    """Members with a well-known name, the shallowest first; also those of JSON objects in the text of a tool result."""
    level: list[Any] = [payload.value, payload.inner]
    result = payload.context.tool_result
    if result is not None and result.value is payload.value:
        level += [part.value for text in result.texts for part in payloads.records(text)]
    looked_at = 0
    while level and looked_at < _MOST_MEMBERS:
        below: list[Any] = []
        for value in level:
            looked_at += 1
            if isinstance(value, list):
                below += value
            elif isinstance(value, dict):
                for name, member in value.items():
                    if _plain(name) in names and (text := _id_text(member)) is not None:
                        yield name, text
                below += value.values()
        level = [value for value in below if isinstance(value, dict | list)]


def _in_headers(context: Context, headers: list[str]) -> Iterator[tuple[str, str]]:
    if context.http is None:
        return
    for name in headers:
        value = context.http.headers.get(name.lower(), "").strip()
        if name.lower() == "traceparent":
            value = value.split("-")[1] if value.count("-") >= 3 else ""
        if value:
            yield context.http.names.get(name.lower(), name), value
