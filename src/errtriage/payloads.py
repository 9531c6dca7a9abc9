"""Finds records in a text: JSON values with their place, and raw HTTP responses.

A record is what carries payloads: a document, an element of a top-level array, a line of JSON Lines, JSON in a log
line, a response. What is inside of it is the business of ``wrappers``.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from errtriage import errortext, jsontext
from errtriage.model import Http

if TYPE_CHECKING:
    from errtriage import carriers

_REPLACED = "\ufffd"
_NOTHING_MENDED: list[int] = []
#: How many characters around a value are looked at for the words on its line.
_WORDS = 1024


class Record(NamedTuple):
    """One JSON value of a text or, when ``http`` is set, one response with its body as ``text``.

    ``line`` is 1-based; ``prefix`` holds the words before the value on its line; ``whole`` says that nothing but
    JSON stands around it (a document, an element, a line of JSON Lines). ``wrappers`` are what a carrier put around
    it, ``written`` is when the carrier says that it was written.
    """

    line: int
    value: Any = None
    prefix: str = ""
    http: Http | None = None
    text: str = ""
    repaired: bool = False
    truncated: bool = False
    whole: bool = False
    wrappers: tuple[str, ...] = ()
    written: Any = None
    #: An SDK's error text, as JSON-RPC would write the error, and the JSON that stands in its message.
    error: dict[str, Any] | None = None
    message: tuple[Record, ...] = ()
    #: Why the record was not read: a bound that it is past.
    trouble: str | None = None
    #: How many characters into the text the JSON (of a document: all of it) or the body starts; -1 where it does not
    #: stand there as it is.
    start: int = -1
    #: Of an element of an array: the whole array, which starts there.
    root: Any = None
    #: Which of the texts that a carrier interleaves it stands in, and what the request says that it is of.
    stream: str = ""
    asked: Mapping[str, str] = {}


class _Lines:
    """Line numbers of offsets that only grow, so that each newline is counted once."""

    def __init__(self, text: str, first: int = 1) -> None:
        self._text, self._offset, self._line = text, 0, first

    def at(self, offset: int) -> int:
        self._line += self._text.count("\n", self._offset, offset)
        self._offset = offset
        return self._line


def records(text: str, first_line: int = 1, *, lossy: bool = False, words: tuple[str, ...] = ()) -> Iterator[Record]:
    """Yield the records of ``text`` in order; ``first_line`` is the number of its first line.

    ``lossy`` says that bytes were replaced when the text was decoded, which counts as a repair where it shows. ``words``
    are those of the packs near which literals are read (see ``search``).
    """
    text, mended = _without_codes(text)
    base = -1 if mended else 0
    if _is_document(text):
        try:
            value, repaired = jsontext.read(text)
        except ValueError:
            pass
        else:
            yield from _document(text, value, repaired or _inside(mended, text) or (lossy and _REPLACED in text), first_line, base)
            return
    from errtriage import carriers

    if not carriers.MARK.search(text):
        yield from _responses(text, first_line, mended, base, lossy=lossy, words=words)
        return
    for texts in carriers.split(text, first_line):
        found = []
        for each in texts:
            # What was carried may bring terminal codes of its own.
            plain, codes = _without_codes(each.text)
            codes = codes or _within(mended, each)
            found += [_carried(record, each) for record in _responses(plain, 1, codes, _from(base, each.offset), lossy=lossy, words=words)]
        yield from sorted(found, key=lambda record: record.line)


def _inside(mended: list[int], text: str) -> bool:
    """Whether something was taken out between the first and the last character of a document."""
    start, end = len(text) - len(text.lstrip()), len(text.rstrip())
    return any(start < place < end for place in mended)


def _within(mended: list[int], text: carriers.Text) -> list[int]:
    """Where something was taken out of a text that stands in the file as it is."""
    if text.offset < 0 or not mended:
        return _NOTHING_MENDED
    return [offset - text.offset for offset in mended if text.offset <= offset <= text.offset + len(text.text)]


def _carried(record: Record, text: carriers.Text) -> Record:
    whole = record.whole and text.offset >= 0
    wrappers = text.wrappers + record.wrappers
    return record._replace(line=text.place(record.line), wrappers=wrappers, written=text.time(record.line), whole=whole, stream=text.name)


def _is_document(text: str) -> bool:
    return text.lstrip()[:1] in ("{", "[", '"') if text[:1].isspace() else text[:1] in ("{", "[", '"')


def _without_codes(text: str) -> tuple[str, list[int]]:
    """A text without terminal codes and NUL characters, and where in the result one was taken out."""
    if "\x1b" not in text and "\0" not in text:
        return text, _NOTHING_MENDED
    from errtriage.redact import terminal_codes

    parts: list[str] = []
    mended: list[int] = []
    length = position = 0
    for code in terminal_codes().finditer(text):
        parts.append(text[position : code.start()])
        length += len(parts[-1])
        mended.append(length)
        position = code.end()
    return "".join([*parts, text[position:]]), mended


def _from(base: int, offset: int) -> int:
    """An offset in a part of the text as one in the text; either may be -1, for nowhere."""
    return base + offset if base >= 0 and offset >= 0 else -1


def _responses(text: str, first_line: int, mended: list[int], base: int, *, lossy: bool, words: tuple[str, ...]) -> Iterator[Record]:
    if "HTTP/" not in text:
        yield from _events(text, first_line, mended, base, lossy=lossy, words=words)
        return
    from errtriage import rawhttp

    lines = _Lines(text, first_line)
    for part in rawhttp.split(text):
        line = lines.at(part.start)
        start = part.start if part.http is None else part.body
        here = [offset - start for offset in mended if start <= offset <= start + len(part.text)]
        if part.http is None:
            found = _events(part.text, line, here, _from(base, part.start), lossy=lossy, words=words)
            yield from (record._replace(asked=part.asked) for record in found) if part.asked else found
        else:
            repaired = bool(here) or (lossy and _REPLACED in part.text)
            yield Record(line, http=part.http, text=part.text, repaired=repaired, start=_from(base, part.body), asked=part.asked)


def _events(text: str, first_line: int, mended: list[int], base: int, *, lossy: bool, words: tuple[str, ...]) -> Iterator[Record]:
    if "data:" in text:
        from errtriage import carriers

        if carriers.EVENT_MARK.search(text):
            for each in carriers.events(text, first_line):
                for record in _values(each.text, 1, _within(mended, each), _from(base, each.offset), lossy=lossy, words=words):
                    yield record._replace(line=each.place(record.line), wrappers=each.wrappers)
            return
    yield from _values(text, first_line, mended, base, lossy=lossy, words=words)


def _values(text: str, first_line: int, mended: list[int], base: int, *, lossy: bool, words: tuple[str, ...]) -> Iterator[Record]:
    if not text or text.isspace():
        return
    found = _json(text, first_line, mended, base, lossy=lossy, words=words)
    if errortext.MARK in text:
        found = iter(sorted(_with_errors(text, first_line, list(found), words), key=lambda each: each[0]))
    yield from (record for _, record in found)


def _with_errors(text: str, first_line: int, found: list[tuple[int, Record]], words: tuple[str, ...]) -> Iterator[tuple[int, Record]]:
    """What was found with SDKs' error texts that stand in lines. What stands in an error's message is kept with the error;
    an error inside of JSON is found with that.
    """
    from errtriage import search

    inside = [(each.start, each.end) for each in search.scan(text, words)]
    lines = _Lines(text, first_line)
    for offset, mark, end, error in errortext.in_lines(text):
        if not any(start <= mark < stop for start, stop in inside):
            message = [each for each in found if mark < each[0] < end]
            found = [each for each in found if each not in message]
            yield mark, Record(lines.at(offset), error=error, message=tuple(record for _, record in message))
    yield from found


def _json(text: str, first_line: int, mended: list[int], base: int, *, lossy: bool, words: tuple[str, ...]) -> Iterator[tuple[int, Record]]:
    """The JSON in a text, each with where it starts there."""
    from errtriage import search

    lines = _Lines(text, first_line)
    for found in search.scan(text, words):
        prefix = text[max(0, found.start - _WORDS) : found.start].rpartition("\n")[2]
        line = lines.at(found.start)
        after = text[found.end : found.end + _WORDS].partition("\n")[0]
        here = bisect_right(mended, found.start)
        repaired = found.repaired or (here < len(mended) and mended[here] < found.end) or (lossy and _REPLACED in text[found.start : found.end])
        whole = not prefix.strip() and not after.strip()
        if found.trouble:
            yield found.start, Record(line, trouble=found.trouble)
        elif isinstance(found.value, list) and whole and not found.truncated:
            document = _document(text[found.start : found.end], found.value, repaired, line, _from(base, found.start))
            yield from ((found.start, record) for record in document)
        else:
            start = _from(base, found.start)
            yield found.start, Record(line, found.value, prefix.strip(), repaired=repaired, truncated=found.truncated, whole=whole, start=start)


def _document(text: str, value: Any, repaired: bool, first_line: int, base: int) -> Iterator[Record]:
    """A whole document: one record, or each element of a top-level array with the line that it starts on."""
    start = len(text) - len(text.lstrip())
    lines = _Lines(text, first_line)
    place = _from(base, start)
    if not isinstance(value, list):
        yield Record(lines.at(start), value, repaired=repaired, whole=True, start=place)
        return
    begins: list[int] = []
    if "\n" in text.strip():
        from errtriage import search

        begins = [begin for begin, _ in search.outline(text, start, parts=True)[0]]
    top = lines.at(start)
    parts = 0
    for element in value:
        line = top
        if isinstance(element, dict | list | str):
            if parts < len(begins):
                line = lines.at(begins[parts])
            parts += 1
        yield Record(line, element, repaired=repaired, whole=True, start=place, root=value)
