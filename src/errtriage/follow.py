"""Reads what is appended to files, as ``tail -F`` does: across rotation, truncation, and a file that is not there yet."""

from __future__ import annotations

import os
import select
import sys
import time
from collections.abc import Iterator
from typing import Any

from errtriage import inputs
from errtriage.boundaries import Lines
from errtriage.merge import Merge
from errtriage.model import Verdict
from errtriage.regions import Slice
from errtriage.scan import Scanner

#: How often files are looked at, and how long an unfinished record waits for its rest, in seconds.
INTERVAL, PATIENCE = 0.2, 1.0
_PIECE = 1 << 20


class Tail:
    """What is appended to one file (or comes on standard input, for ``-``)."""

    def __init__(self, name: str, *, from_start: bool) -> None:
        self.name = name
        self._file: Any = None
        self._identity: tuple[int, int] | None = None
        # All of a file that comes later is new.
        self._from_start = from_start or not os.path.exists(name)  # noqa: PTH110 - as below
        #: How many lines were passed before what is read, and how often the file has begun anew.
        self.lines = self.begun = 0

    def read(self) -> bytes:
        """What has come since the last time; nothing where nothing has, or where the file is not there.

        The rest of a file that was moved away comes by itself, before the new file begins.
        """
        if self.name == inputs.STDIN:
            return self._from_stdin()
        data = self._rest()
        if data or not self._replaced():
            return data
        self._open()
        return self._rest()

    def _from_stdin(self) -> bytes:
        stream = sys.stdin.buffer
        ready, _, _ = select.select([stream], [], [], INTERVAL)
        if not ready:
            return b""
        data = os.read(stream.fileno(), _PIECE)
        if not data:
            raise EOFError
        return data

    def _rest(self) -> bytes:
        if self._file is None:
            return b""
        if os.fstat(self._file.fileno()).st_size < self._file.tell():
            self._file.seek(0)  # it was truncated, and begins anew
            self.begun += 1
        return bytes(self._file.read())

    def _replaced(self) -> bool:
        """Whether the name stands for another file now."""
        try:
            status = os.stat(self.name)  # noqa: PTH116 - a name may be asked for five times a second
        except OSError:
            return False
        return (status.st_dev, status.st_ino) != self._identity

    def _open(self) -> None:
        first = self._identity is None
        if self._file is not None:
            self._file.close()
        self._file = open(self.name, "rb")  # noqa: PTH123, SIM115 - kept open
        status = os.fstat(self._file.fileno())
        self._identity = (status.st_dev, status.st_ino)
        self.begun += not first
        if first and not self._from_start:
            while piece := self._file.read(_PIECE):
                self.lines += piece.count(b"\n")


def verdicts(names: list[str], scanner: Scanner, *, from_start: bool) -> Iterator[Verdict]:
    """Yield the verdicts of what comes, until standard input ends or the run is interrupted."""
    followed = [_Followed(name, scanner, from_start=from_start) for name in names]
    while followed:
        busy = False
        for each in list(followed):
            try:
                came = each.tail.read()
            except EOFError:
                yield from each.finish()
                followed.remove(each)
                continue
            busy |= bool(came)
            yield from each.take(came)
        if not busy and all(each.tail.name != inputs.STDIN for each in followed):
            time.sleep(INTERVAL)


class _Followed:
    """One input: what of it is not scanned yet, and the merge that knows its lines and its calls."""

    def __init__(self, name: str, scanner: Scanner, *, from_start: bool) -> None:
        self.tail = Tail(name, from_start=from_start)
        self._scanner = scanner
        self._merge = Merge(scanner)
        self._merge.open(name)
        self._pending = bytearray()
        self._waiting_since = 0.0
        self._started = False
        self._begun = 0

    def take(self, data: bytes) -> Iterator[Verdict]:
        """Take what came, and yield the verdicts of what is complete; an unfinished record waits a while for its rest."""
        if self.tail.begun != self._begun:
            yield from self.finish()
            self._begun = self.tail.begun
            self._merge.open(self.tail.name)  # its lines count from the first again
        if data:
            self._pending += data
            self._waiting_since = time.monotonic()
            end = self._complete()
        else:
            end = len(self._pending) if time.monotonic() - self._waiting_since > PATIENCE else 0
        if end:
            yield from self._scan(end)

    def finish(self) -> Iterator[Verdict]:
        """The verdicts of what is left."""
        if self._pending:
            yield from self._scan(len(self._pending))

    def _complete(self) -> int:
        """How much of what is pending is settled: up to the last line that begins something new."""
        lines = Lines(self._pending)
        start = lines.start(len(self._pending))
        while start > 0 and not lines.is_boundary(start):
            start = lines.before(start)
        return start

    def _scan(self, end: int) -> Iterator[Verdict]:
        if not self._started:
            self._merge.skip_lines(self.tail.lines)
            self._started = True
        data = bytes(self._pending[:end])
        del self._pending[:end]
        yield from self._merge.add(self._scanner.slice(Slice(self.tail.name, 0, len(data), time.time(), data)))
