"""Finds records in a text: JSON values with their place, and raw HTTP responses.

A record is what carries payloads: a document, an element of a top-level array, a line of JSON Lines, JSON in a log
line, a response. What is inside of it is the business of ``wrappers``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from errtriage import jsontext
from errtriage.model import Http

# The status line of a raw response starts its line and is followed by a header or a blank line (RFC 9112).
_STATUS_LINE = re.compile(
    r"^HTTP/\d(?:\.\d)?[ \t]+(?P<status>\d{3})(?:[ \t]+(?P<reason>[^\r\n]*?))?[ \t]*\r?\n"
    r"(?=\r?\n|[!#$%&'*+.^_`|~0-9A-Za-z-]{1,200}:)",
    re.MULTILINE,
)
_REPLACED = "\ufffd"
#: How many characters around a value are looked at for the words on its line.
_WORDS = 1024
_BLANK_LINE = re.compile(r"\r?\n\r?\n|\A\r?\n")


@dataclass(frozen=True, slots=True)
class Record:
    """One JSON value of a text or, when ``http`` is set, one response with its body as ``text``.

    ``line`` is 1-based; ``prefix`` holds the words before the value on its line; ``whole`` says that nothing but
    JSON stands around it (a document, an element, a line of JSON Lines).
    """

    line: int
    value: Any = None
    prefix: str = ""
    http: Http | None = None
    text: str = ""
    repaired: bool = False
    whole: bool = False


class _Lines:
    """Line numbers of offsets that only grow, so that each newline is counted once."""

    def __init__(self, text: str, first: int = 1) -> None:
        self._text, self._offset, self._line = text, 0, first

    def at(self, offset: int) -> int:
        self._line += self._text.count("\n", self._offset, offset)
        self._offset = offset
        return self._line


def records(text: str, first_line: int = 1, *, lossy: bool = False) -> Iterator[Record]:
    """Yield the records of ``text`` in order; ``first_line`` is the number of its first line.

    ``lossy`` says that bytes were replaced when the text was decoded, which counts as a repair where it shows.
    """
    responses = list(_STATUS_LINE.finditer(text)) if "HTTP/" in text else []
    if not responses:
        yield from _json_records(text, first_line, lossy)
        return
    lines = _Lines(text, first_line)
    yield from _json_records(text[: responses[0].start()], first_line, lossy)
    ends = [match.start() for match in responses[1:]] + [len(text)]
    for match, end in zip(responses, ends, strict=True):
        line = lines.at(match.start())
        http, body, rest = _response(match, text[match.end() : end])
        yield Record(line, http=http, text=body, repaired=lossy and _REPLACED in body)
        yield from _json_records(rest, lines.at(end - len(rest)), lossy)


def _response(match: re.Match[str], after: str) -> tuple[Http, str, str]:
    """Split what follows a status line into headers, body, and what stands behind the body."""
    blank = _BLANK_LINE.search(after)
    head, body = (after[: blank.start()], after[blank.end() :]) if blank else (after, "")
    pairs = [(name.strip(), value.strip()) for name, colon, value in (line.partition(":") for line in head.splitlines()) if colon]
    # Of a header that occurs twice the first counts.
    headers = {name.lower(): value for name, value in reversed(pairs)}
    names = {name.lower(): name for name, _ in pairs}
    http = Http(int(match["status"]), match["reason"] or None, headers, headers_seen=True, names=names)
    body, rest = _cut(body, headers.get("content-length", ""))
    return http, body, rest


def _cut(body: str, length: str) -> tuple[str, str]:
    """Cut what stands behind the stated length in bytes (if it falls on the end of a line) off the body."""
    if not (length.isascii() and length.isdigit() and len(length) < 12) or "\n" not in body:
        return body, ""
    size = int(length)
    characters = size if body.isascii() else len(body.encode("utf-8", "replace")[:size].decode("utf-8", "ignore"))
    rest = body[characters:]
    return (body[:characters], rest) if rest.startswith(("\n", "\r\n")) else (body, "")


def _json_records(text: str, first_line: int, lossy: bool = False) -> Iterator[Record]:
    if not text or text.isspace():
        return
    start = len(text) - len(text.lstrip())
    if text[start] in '{["':
        try:
            value, repaired = jsontext.read(text)
        except ValueError:
            pass
        else:
            yield from _document(text, start, value, repaired or (lossy and _REPLACED in text), first_line)
            return
    lines = _Lines(text, first_line)
    for found in jsontext.scan(text):
        prefix = text[max(0, found.start - _WORDS) : found.start].rpartition("\n")[2]
        line = lines.at(found.start)
        after = text[found.end : found.end + _WORDS].partition("\n")[0]
        repaired = found.repaired or (lossy and _REPLACED in text[found.start : found.end])
        whole = not prefix.strip() and not after.strip()
        if isinstance(found.value, list) and whole:
            yield from _document(text[found.start : found.end], 0, found.value, repaired, line)
        else:
            yield Record(line, found.value, prefix.strip(), repaired=repaired, whole=whole)


def _document(text: str, start: int, value: Any, repaired: bool, first_line: int) -> Iterator[Record]:
    """A whole document: one record, or each element of a top-level array with the line that it starts on."""
    lines = _Lines(text, first_line)
    if not isinstance(value, list):
        yield Record(lines.at(start), value, repaired=repaired, whole=True)
        return
    begins = [begin for begin, _ in jsontext.outline(text, start, parts=True)[0]] if "\n" in text.strip() else []
    top = lines.at(start)
    containers = 0
    for element in value:
        line = top
        if isinstance(element, dict | list):
            if containers < len(begins):
                line = lines.at(begins[containers])
            containers += 1
        yield Record(line, element, repaired=repaired, whole=True)
