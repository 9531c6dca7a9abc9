"""Finds records in a text: JSON values with their place, and raw HTTP responses.

A record is what carries payloads: a document, an element of a top-level array, a line of JSON Lines, JSON in a log
line, a response. What is inside of it is the business of ``wrappers``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from errtriage import jsontext
from errtriage.model import Http

_REPLACED = "\ufffd"
#: How many characters around a value are looked at for the words on its line.
_WORDS = 1024


class Record(NamedTuple):
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
    if "HTTP/" not in text:
        yield from _json_records(text, first_line, lossy)
        return
    from errtriage import rawhttp

    lines = _Lines(text, first_line)
    for part in rawhttp.split(text):
        line = lines.at(part.start)
        if part.http is None:
            yield from _json_records(part.text, line, lossy)
        else:
            yield Record(line, http=part.http, text=part.text, repaired=lossy and _REPLACED in part.text)


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
    from errtriage import search

    lines = _Lines(text, first_line)
    for found in search.scan(text):
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
    begins: list[int] = []
    if "\n" in text.strip():
        from errtriage import search

        begins = [begin for begin, _ in search.outline(text, start, parts=True)[0]]
    top = lines.at(start)
    containers = 0
    for element in value:
        line = top
        if isinstance(element, dict | list):
            if containers < len(begins):
                line = lines.at(begins[containers])
            containers += 1
        yield Record(line, element, repaired=repaired, whole=True)
