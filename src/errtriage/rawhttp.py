"""Finds raw HTTP responses in a text: a status line, headers, a blank line, a body.

Imported when a text names HTTP. The standard library's readers want a socket and stop at the first response; a
capture holds several, with other lines in between.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import orjson

from errtriage import boundaries
from errtriage.challenges import by_name
from errtriage.model import ASKED, Http

# The status line of a raw response starts its line and is followed by a header or a blank line (RFC 9112).
_STATUS_LINE = re.compile(
    r"^HTTP/\d(?:\.\d)?[ \t]++(?P<status>\d{3})(?:[ \t]++(?P<reason>[^\r\n]*+))?+[ \t]*+\r?\n(?=\r?\n|[A-Za-z][A-Za-z0-9_-]{0,100}:)",
    re.MULTILINE | re.ASCII,
)
# The request that a capture shows before its response; the response alone does not say how it was asked for.
_REQUEST_LINE = re.compile(r"^(?:> )?(?P<method>[A-Z]{3,10})[ \t]+(?P<target>\S{1,8192})[ \t]+HTTP/\d(?:\.\d)?[ \t]*\r?$", re.MULTILINE)
_BLANK_LINE = re.compile(r"\r?\n\r?\n|\A\r?\n")


class Part(NamedTuple):
    """A response with its body as ``text``, or (without ``http``) text between responses; both offsets in characters."""

    start: int
    text: str
    http: Http | None = None
    #: Where the body starts.
    body: int = -1
    #: What the request says that this is the text or the answer of: its headers by lower-case name, and its address.
    asked: Mapping[str, str] = {}


def split(text: str) -> Iterator[Part]:
    """Split a text into its raw HTTP responses and what stands around them, in order."""
    responses = list(_STATUS_LINE.finditer(text))
    starts = [*(match.start() for match in responses), len(text)]
    before = text[: starts[0]]
    yield from _requests(0, before)
    for match, end in zip(responses, starts[1:], strict=True):
        http, head, body, rest = _response(match, text[match.end() : end])
        request = next(reversed(list(_REQUEST_LINE.finditer(before))), None)
        method, asked = (request["method"], _asked(request, before, len(before))) if request else (None, {})
        yield Part(match.start(), body, http._replace(method=method), match.end() + head, asked)
        yield from _requests(end - len(rest), rest)
        before = text[match.end() : end]


def _requests(offset: int, text: str) -> Iterator[Part]:
    """What stands between responses, cut where requests begin: what follows a request's head is its body."""
    found = list(_REQUEST_LINE.finditer(text))
    starts = [*(match.start() for match in found), len(text)]
    yield Part(offset, text[: starts[0]])
    for match, end in zip(found, starts[1:], strict=True):
        yield Part(offset + match.start(), text[match.start() : end], asked=_asked(match, text, end))


def _asked(match: re.Match[str], text: str, end: int) -> dict[str, str]:
    """What a request says that reaches to ``end``: its headers, and its body."""
    blank = _BLANK_LINE.search(text, match.end(), end)
    lines = text[match.end() : blank.start() if blank else end].splitlines()
    pairs = [(name.lstrip("> ").strip(), value.strip()) for name, colon, value in (line.partition(":") for line in lines) if colon]
    headers = dict(by_name(pairs))
    body = text[blank.end() : end] if blank else ""
    return {**headers, "server": headers.get("host", "") + re.split(r"[?#]", match["target"], maxsplit=1)[0], ASKED: body}


def _response(match: re.Match[str], after: str) -> tuple[Http, int, str, str]:
    """Split what follows a status line into headers, their length, body, and what stands behind the body."""
    blank = _BLANK_LINE.search(after)
    head, body = (after[: blank.start()], after[blank.end() :]) if blank else (after, "")
    pairs = [(name.strip(), value.strip()) for name, colon, value in (line.partition(":") for line in head.splitlines()) if colon]
    headers = by_name(pairs)
    names = {name.lower(): name for name, _ in pairs}
    http = Http(int(match["status"]), (match["reason"] or "").strip() or None, headers, headers_seen=True, names=names)
    start = blank.end() if blank else len(after)
    body, rest = _cut(body, headers.get("content-length", ""))
    return http, start, body, rest


def _end(body: str) -> int:
    """Where a body without a stated length ends, in characters: at the latest where the next request begins."""
    if request := _REQUEST_LINE.search(body):
        body = body[: request.start()]
    start = len(body) - len(body.lstrip())
    line = body[start:].partition("\n")[0]
    if "{" in line and _is_asked(line[line.index("{") :]):
        return 0
    if body[start : start + 1] in ("{", "["):
        from errtriage.search import outline

        spans, end = outline(body, start)
        if spans == [(start, end)]:
            newline = body.find("\n", end)
            return len(body) if newline < 0 else end if body[end:newline].strip() else newline
    at = body.find("\n", start)
    while at >= 0:
        following = body.find("\n", at + 1)
        line = body[body.rfind("\n", 0, at) + 1 : at].rstrip("\r")
        if boundaries.ends(line) and boundaries.begins(body[at + 1 : following if following >= 0 else None].rstrip("\r")):
            return at
        at = following
    return len(body)


def _is_asked(text: str) -> bool:
    """Whether JSON is a request of JSON-RPC, or a log record of one: nobody is answered so, it stands behind the response."""
    if '"method"' not in text or '"jsonrpc"' not in text:
        return False
    try:
        value = orjson.loads(text)
    except ValueError:
        return False
    candidates = [value, *value.values()] if isinstance(value, dict) else []
    return any(isinstance(each, dict) and "jsonrpc" in each and isinstance(each.get("method"), str) for each in candidates)


def _cut(body: str, length: str) -> tuple[str, str]:
    """Cut what stands behind the body off: behind the stated length in bytes (if it falls on the end of a line), else
    behind its JSON, else behind the first line after which something else may begin."""
    if "\n" not in body:
        return body, ""
    if not (length.isascii() and length.isdigit() and len(length) < 12):
        end = _end(body)
        return body[:end], body[end:]
    size = int(length)
    if not size:
        return "", body
    characters = size if body.isascii() else len(body.encode("utf-8", "replace")[:size].decode("utf-8", "ignore"))
    rest = body[characters:]
    return (body[:characters], rest) if rest.startswith(("\n", "\r\n")) else (body, "")
