"""From inputs to slices: files are cut at boundaries and read by whoever scans them; streams are cut here, as they come.

Only what a worker could read itself travels by name: a plain file. Standard input, compressed files and files in UTF-16
are read here, and their slices carry the bytes.
"""

from __future__ import annotations

import os
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from errtriage import inputs
from errtriage.boundaries import LONGEST, MOST, Lines, is_document
from errtriage.regions import Slice

#: How many bytes a slice has, unless no record ends there.
SLICE = 16 << 20
#: The first slice of an input is small: what is learnt from it is there before other processes are started.
_FIRST = 1 << 20
#: Into how many slices a remote input is cut, unless they would be so many times larger than others.
_PARTS, _LARGER = 64, 8
#: How much of a file is looked at to find a boundary, at first; and how much before it.
_WINDOW, _BACK = 1 << 20, 1 << 16


class Trouble(NamedTuple):
    """Why an input, or the rest of it, could not be read."""

    reason: str


def of_input(name: str, size: int = SLICE) -> Iterator[Slice | Trouble]:
    """The slices of a file, or of standard input for ``-``, in order; a Trouble in the place of what cannot be read."""
    try:
        if name == inputs.STDIN:
            if sys.stdin is None:
                yield Trouble("standard input is closed")
                return
            yield from _of_stream(name, sys.stdin.buffer, time.time(), size)
            return
        if inputs.is_url(name):
            yield from _of_remote(name, size)
            return
        with open(name, "rb", buffering=0) as file:  # noqa: PTH123 - unbuffered
            status = os.fstat(file.fileno())
            head = file.read(6)
            if inputs.is_compressed(head) or inputs.is_wide(head) or not os.path.isfile(name):  # noqa: PTH113 - as above
                yield from _of_stream(name, _Ahead(head, file), status.st_mtime, size)
            else:
                yield from _of_file(name, file, status.st_size, status.st_mtime, size)
    except OSError as error:
        yield Trouble(str(error.strerror))


def _of_remote(url: str, size: int) -> Iterator[Slice | Trouble]:
    """The slices of a remote input: ranges for whoever scans them, or what is decompressed here."""
    from errtriage import remote

    known = remote.info(url)
    file, ranged = remote.opened(url)
    head = file.read(6)
    if not ranged or known.size is None or inputs.is_compressed(head) or inputs.is_wide(head):
        yield from _of_stream(url, _Ahead(head, file), known.modified, size)
        return
    # To find where a slice may end takes a request, so a large object is cut into fewer.
    size = min(max(size, known.size // _PARTS), size * _LARGER)
    for each in _of_file(url, file, known.size, known.modified, size):
        # What is read in one piece is of one time.
        yield each if each.end - each.start == known.size else each._replace(identity=known.identity)


def with_bytes(part: Slice) -> Slice:
    """A slice that carries its bytes, for a worker that cannot reach its file. One that cannot be read stays as it is."""
    if part.data is not None or inputs.is_url(part.path):
        return part
    try:
        with open(part.path, "rb") as file:  # noqa: PTH123 - as above
            file.seek(part.start)
            return part._replace(data=file.read(part.end - part.start))
    except OSError:
        return part


def plain_size(name: str) -> int | None:
    """The size of a file in bytes, if what is read of it is what it holds; None where only reading it tells."""
    if inputs.is_url(name):
        return _remote_size(name)
    try:
        with open(name, "rb") as file:  # noqa: PTH123 - as above
            head = file.read(6)
            if name != inputs.STDIN and os.path.isfile(name) and not inputs.is_compressed(head) and not inputs.is_wide(head):  # noqa: PTH113 - as above
                return os.fstat(file.fileno()).st_size
    except OSError:
        return 0 if name != inputs.STDIN else None
    return None


def _remote_size(url: str) -> int | None:
    from errtriage import remote

    try:
        return remote.info(url).size
    except OSError:
        return 0


class _Ahead:
    """A file of which some bytes were read already."""

    def __init__(self, head: bytes, file: Any) -> None:
        self._head = head
        self._file = file

    def read(self, size: int) -> bytes:
        """At most ``size`` bytes, none at the end."""
        if self._head:
            head, self._head = self._head[:size], self._head[size:]
            return head
        return bytes(self._file.read(size))


def _of_file(name: str, file: Any, length: int, modified: float, size: int) -> Iterator[Slice]:
    file.seek(0)
    document = is_document(file.read(_BACK))
    start = 0
    while start < length:
        aim = start + (size if start else min(size, _FIRST))
        end = length if aim >= length else _boundary(file, aim, length, LONGEST if document else MOST)
        yield Slice(name, start, end, modified)
        start = end


def _boundary(file: Any, at: int, size: int, most: int) -> int:
    """The first boundary of a file at or behind an offset; the end of a line where there is none in ``most`` bytes."""
    window = _WINDOW
    while True:
        begin = max(0, at - _BACK)
        file.seek(begin)
        data = file.read(min(window, size - begin))
        whole = begin + len(data) >= size
        found = _cut(data, at - begin, whole=whole)
        if found is not None:
            return begin + found
        if whole:
            return size
        if window > most:
            return begin + (data.rfind(b"\n") + 1 or len(data))
        window *= 4


def _cut(data: bytes | bytearray, at: int, *, whole: bool) -> int | None:
    """The first boundary at or behind an offset of some bytes; ``whole`` says that nothing comes after them."""
    lines = Lines(data)
    start = lines.next(lines.start(at)) if at else 0
    while start < lines.size:
        if lines.is_boundary(start) and (whole or start + _BACK < lines.size):
            return start
        start = lines.next(start)
    return lines.size if whole else None


def _of_stream(name: str, stream: Any, modified: float, size: int) -> Iterator[Slice | Trouble]:
    """The slices of a stream, which is decompressed and decoded here."""
    start = 0
    pending = bytearray()
    lossy = False
    interrupted = False
    for piece in _until_interrupted(inputs.pieces(stream)):
        if piece is None:
            interrupted = True
            break
        if isinstance(piece, str):
            yield Trouble(piece)
            continue
        lossy |= piece.lossy
        pending += piece.data
        while len(pending) > size + 2 * _BACK:
            end = _cut(pending, size, whole=False)
            if end is None and len(pending) < (LONGEST if start == 0 and is_document(pending[:_BACK]) else size + MOST):
                break
            end = (pending.rfind(b"\n") + 1 or len(pending)) if end is None else end
            yield Slice(name, start, start + end, modified, bytes(pending[:end]), lossy)
            start += end
            del pending[:end]
    if pending:
        yield Slice(name, start, start + len(pending), modified, bytes(pending), lossy)
    if interrupted:
        raise KeyboardInterrupt


def _until_interrupted(pieces: Iterator[inputs.Piece | str]) -> Iterator[inputs.Piece | str | None]:
    """The pieces of a stream, and None where the wait for the next was interrupted: what came until then counts."""
    try:
        yield from pieces
    except KeyboardInterrupt:
        yield None


class Taker(Protocol):
    """What is told, in order, which input is read, that it was, and why it or the rest of it was not."""

    def open(self, name: str) -> None:
        """An input begins."""

    def read(self) -> None:
        """The input was read, at least in part."""

    def skip(self, reason: str) -> None:
        """The input, or the rest of it, could not be read."""


class Queue:
    """The slices of all files as jobs, and what happened between them: slices are cut before the parts of earlier ones
    come back, and files begin and end in the order of the parts.
    """

    def __init__(self, merge: Taker, settings: Any, files: Sequence[str], size: int = SLICE, packed: Callable[[Slice], Slice] | None = None) -> None:
        #: Makes a slice ready to travel.
        self._packed = packed
        self._merge = merge
        self._settings = settings
        self._files = files
        self._size = size
        self._happened: deque[str | Slice | Trouble | None] = deque()

    def jobs(self) -> Iterator[tuple[Any, Slice]]:
        """The jobs for whoever reads slices, in order: the settings, and a slice."""
        for name in self._files:
            self._happened.append(name)
            for each in of_input(name, self._size):
                self._happened.append(each)
                if isinstance(each, Slice):
                    yield self._settings, self._packed(each) if self._packed else each
            if not (self._happened and isinstance(self._happened[-1], Trouble)):
                self._happened.append(None)

    def next_slice(self) -> Slice:
        """The slice that the next part belongs to; what happened before it is told to the merge."""
        while True:
            each = self._happened.popleft()
            if isinstance(each, Slice):
                return each
            self._tell(each)

    def finish(self) -> None:
        """Tell the merge what happened after the last part."""
        while self._happened:
            each = self._happened.popleft()
            if not isinstance(each, Slice):
                self._tell(each)

    def _tell(self, each: str | Trouble | None) -> None:
        if isinstance(each, str):
            self._merge.open(each)
        elif isinstance(each, Trouble):
            self._merge.skip(each.reason)
        else:
            self._merge.read()
