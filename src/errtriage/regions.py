"""Which lines of a slice belong together around something that was found in it, decided from those lines alone.

A line that is clearly all of a record is read by itself; else the lines between the boundaries around it are.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Iterator
from typing import Any, NamedTuple

import orjson

from errtriage import inputs
from errtriage.boundaries import Lines
from errtriage.markers import Search

Data = bytes | bytearray

#: A line after one that ends so, or before one that begins so, may belong to it.
_GOES_ON = frozenset(b",{[(:=+\\\n")
_COMES_FROM = frozenset(b" \t\r\n}]),;>")
#: Lines that begin so are read with what is around them: responses, events, carriers.
_OTHERWISE = re.compile(rb"HTTP/|< |\* |data:|event:|[^{|]*+\||[^{]*?std(?:out|err) [PF]")
#: Terminal codes (see ``redact``) and NUL characters, in bytes.
_CODES = re.compile(rb"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)?|\x1b[ -/]*[0-~]?|\x00+")
_QUOTES = re.compile("[\"'`“‘(]|[{\\[](?=[\\[{])")
NEWLINE = 10
_RETURN, _BRACE = 13, 123
#: How much of the words before a value is kept, in characters (as ``payloads`` keeps it).
WORDS = 1024
#: How much longer than its first slice a process's buffer is: slices end where records do.
_SPARE = 1 << 20
#: Lines longer than this together, in bytes, are not read (a document that is the whole input is).
_LONGEST_RECORD = 64 << 20
#: What is said of those.
TOO_LONG = f"lines that could be one record are longer than {_LONGEST_RECORD >> 20} MiB together, and are not read"


class Slice(NamedTuple):
    """A part of an input: read from ``path`` where ``data`` is not given. Offsets are in bytes; ``end`` is exclusive.

    ``modified`` is when the file was written, in seconds since 1970, for times that do not name their year.
    """

    path: str
    start: int
    end: int
    modified: float
    data: bytes | None = None
    #: The whole input, as it was: what it is encoded in is still to be seen.
    lossy: bool = False
    #: Of a remote input, what changes when its content does.
    identity: str = ""


class Buffer:
    """Reads slices into memory that is used again: touching new memory takes longer than reading."""

    def __init__(self) -> None:
        self._data = bytearray()

    def read(self, part: Slice) -> Data:
        """The bytes of a slice, which hold until the next is read. Raises OSError."""
        if part.data is not None:
            return part.data
        if inputs.is_url(part.path):
            from errtriage import remote

            return bytearray(remote.read_range(part.path, part.start, part.end, part.identity))
        size = part.end - part.start
        if not self._data:
            self._data = bytearray(size + _SPARE)
        # Within what was once allocated, both are only a matter of where it ends.
        self._data.extend(bytes(max(0, size - len(self._data))))
        del self._data[size:]
        with open(part.path, "rb", buffering=0) as file:  # noqa: PTH123 - unbuffered
            file.seek(part.start)
            view = memoryview(self._data)
            filled = 0
            while filled < size and (count := file.readinto(view[filled:size])):
                filled += count
        view.release()
        del self._data[filled:]
        return self._data


def without_codes(data: Data) -> Data:
    """The bytes without terminal codes and NUL characters, which may stand in the middle of what is looked for."""
    return _CODES.sub(b"", data) if b"\x1b" in data or b"\0" in data else data


def hits(search: Search, searched: Data, data: Data) -> Iterator[tuple[int, int, int]]:
    """What may be in some bytes, in order: its number, where it ends in ``searched``, and that place in ``data``.

    ``searched`` is ``data`` without its codes, which hold no newlines: a line is the same line in both.
    """
    at = before = 0
    for number, found in search.candidates(searched):
        if searched is data:
            at = found
        else:
            for _ in range(searched.count(b"\n", before, found)):
                at = data.find(b"\n", at) + 1
            before = found
        yield number, found, at


def lines_around(lines: Lines, data: Data, at: int, done: int) -> tuple[int, int, bool]:
    """Start and end of the lines to read for a hit, and whether it is one line that is a record of its own.

    What lies before ``done`` was read already.
    """
    start = data.rfind(b"\n", done, at) + 1 or done
    end = data.find(b"\n", at)
    end = len(data) if end < 0 else end
    if _is_alone(data, start, end):
        return start, end, True
    start, end = lines.region(at)
    return start, end, False


def is_too_long(lines: Lines, start: int, end: int) -> bool:
    """Whether lines together are past what is read as one record."""
    return end - start > _LONGEST_RECORD and not lines.is_document


def any_in(data: Data, words: tuple[bytes, ...], start: int, end: int) -> bool:
    """Whether one of some words stands in a part of the bytes."""
    for word in words:  # noqa: SIM110 - the loop is faster, and runs for every hit
        if data.find(word, start, end) >= 0:
            return True
    return False


def _is_alone(data: Data, start: int, end: int) -> bool:
    """Whether a line is a record of its own, as far as it and the characters around it tell."""
    if start == 0 and data.startswith(BOM_UTF8):
        return False
    before = data[start - 2] if start > 1 else 0
    before = data[start - 3] if before == _RETURN and start > 2 else before
    after = data[end + 1] if end + 1 < len(data) else 0
    if before in _GOES_ON or after in _COMES_FROM or data[start] in _COMES_FROM:
        return False
    if data[start] == _BRACE:
        return not data.startswith(b'{"log":', start)
    return not _OTHERWISE.match(data, start, end)


def line_value(line: bytes) -> tuple[Any, str, bytes] | None:
    """The JSON object that a line ends with, the words before it, and the object as it is written; None where it takes
    more to read it.
    """
    begin = line.find(b"{")
    if begin < 0 or b"MCP error " in line or b'"MESSAGE"' in line or b"\x1b" in line or b"\0" in line:
        return None
    try:
        prefix = line[:begin].decode()
        value = orjson.loads(written := line[begin:])
    except ValueError:
        return None
    return (value, prefix[-WORDS:].strip(), written) if begin == 0 or not _QUOTES.search(prefix) else None
