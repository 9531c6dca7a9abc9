"""Puts the parts of a scan together, in order: lines count through a file, calls meet their answers, tallies add up."""

from __future__ import annotations

from collections.abc import Iterator

from errtriage.inputs import is_url
from errtriage.model import Verdict
from errtriage.redact import clean
from errtriage.scan import Part, Scanner
from errtriage.tally import Tally
from errtriage.wrappers import Calls, rpc_key


class Merge:
    """Takes the parts of files in order, and keeps the tally of all."""

    def __init__(self, scanner: Scanner) -> None:
        self.tally = Tally()
        #: The names of the files, by their numbers.
        self.files: list[str] = []
        #: What was noticed, with the file.
        self.troubles: list[tuple[str, str]] = []
        self._scanner = scanner
        self._files_read: set[int] = set()
        self._calls: Calls = {}
        self._line = 1

    def open(self, name: str) -> None:
        """Begin with a file."""
        # An address may carry a password or a signature.
        self.files.append(self._scanner.triage.show(name) if is_url(name) else clean(name))
        self._calls = {}
        self._line = 1

    def skip_lines(self, count: int) -> None:
        """Begin behind so many lines of the file, which were not scanned."""
        self._line += count

    def read(self) -> None:
        """Count the file as one that was read, at least in part."""
        self._files_read.add(len(self.files))
        self.tally.files = len(self._files_read)

    def skip(self, reason: str) -> None:
        """Note why the file, or the rest of it, could not be read."""
        self.tally.skipped.append((self.files[-1], reason))

    def add(self, part: Part) -> Iterator[Verdict]:
        """Add the next part of the file; yields its verdicts, where they are asked for, with their place in the file."""
        if part.failure:
            self.skip(part.failure)
        else:
            self.read()
        number = len(self.files) - 1
        decided: list[Verdict | None] = []
        for found in part.open:
            tool = self._calls.get(rpc_key((found.payload.context.rpc or {}).get("id")))
            before = len(decided)
            self._scanner.count(found._replace(payload=found.payload._replace(tool=tool), spot=found.spot.moved(number, self._line)), self.tally, decided)
            if len(decided) == before:
                decided.append(None)
        self.tally.merge(part.tally, number, self._line)
        self._calls.update(part.calls)
        self.troubles += [(self.files[-1], trouble) for trouble in part.troubles]
        opened = iter(decided)
        for verdict in part.verdicts:
            shown = next(opened) if verdict is None else verdict
            if shown is not None:
                yield self._placed(shown)
        self._line += part.tally.lines

    def _placed(self, verdict: Verdict) -> Verdict:
        line = verdict.source.line + self._line - 1
        return verdict._replace(source=verdict.source._replace(file=self.files[-1], line=line))
