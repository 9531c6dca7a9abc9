"""Finds and counts the payloads of logs, slice by slice: the function that workers run, and the merge in order.

A slice is a part of a file between two boundaries. In it the markers are searched for, and only what is around a hit is
parsed: the line, where that is clearly all of a record, else the lines between the boundaries around it. Requests name
the tool of answers that may lie slices later, so a slice returns the calls that it saw, and the answers whose tool it does
not know are decided in the merge.
"""

from __future__ import annotations

import re
import threading
from typing import Any, NamedTuple

import orjson

from errtriage import inputs, payloads
from errtriage.boundaries import Lines
from errtriage.contracts import with_packs
from errtriage.markers import Search
from errtriage.model import Payload, Place, Verdict
from errtriage.moments import of_line, of_payload, of_value, stated, way_to
from errtriage.packs import Pack
from errtriage.pointers import follow_parts
from errtriage.regions import NEWLINE, TOO_LONG, WORDS, Buffer, Slice, any_in, hits, is_too_long, line_value, lines_around, without_codes
from errtriage.signatures import WORD_WITH_DIGIT, Signatures
from errtriage.tally import Key, Moment, Spot, Tally
from errtriage.verdicts import Triage
from errtriage.wrappers import Calls

#: How many signatures are remembered.
_MOST_KNOWN = 10_000
#: Words with a digit in them: ids, times, counts.
_WITH_DIGITS = re.compile(WORD_WITH_DIGIT.encode())
_VALUE = re.compile(rb'"(?P<text>[^"\\]*)"|(?P<number>[0-9]+(?:\.[0-9]+)?)(?=[,}])')
_LONG_DIGITS = re.compile(rb"\d{19}")


class Settings(NamedTuple):
    """How a run scans, as plain data that travels to workers."""

    #: Whether successes count too, so that there is nothing to search for and everything is read.
    successes: bool = False
    redact: bool = True
    #: Whether the verdicts themselves are wanted, and not only their counts.
    verdicts: bool = False
    #: Times (microseconds since 1970) outside of which nothing counts.
    since: int | None = None
    until: int | None = None
    #: Actions, outcomes and codes of which one must hold.
    only: frozenset[str] = frozenset()
    #: The packs beyond the bundled ones.
    packs: tuple[Pack, ...] = ()


class Found(NamedTuple):
    """A payload in a slice that is not decided yet: its spot there, and when it was written."""

    payload: Payload
    spot: Spot
    when: Moment | None


class Part(NamedTuple):
    """What a slice came to. Lines count from 1 at its start; ``open`` are the answers whose tool was not seen.

    With ``verdicts``, ``verdicts`` holds each in its order, and None in the place of one that is open.
    """

    tally: Tally
    calls: Calls
    open: list[Found]
    verdicts: list[Verdict | None]
    troubles: tuple[str, ...] = ()
    failure: str | None = None


class Counted(NamedTuple):
    """What a payload was counted as, and whether it has an id to quote."""

    key: Key
    operation: str | None
    has_id: bool


class _Template(NamedTuple):
    """What a line comes to, and what stands before its time (None: the line begins with it)."""

    counted: list[Counted]
    mark: bytes | None
    #: Whether a pattern of the packs must not match in the line.
    plain: bool


class _Work:
    """A slice while it is scanned: how far its lines are counted, and how many payloads were met."""

    def __init__(self, data: bytes | bytearray, part: Slice) -> None:
        self.data = data
        self.part = part
        self.result = Part(Tally(), {}, [], [])
        #: The line at the offset ``counted``, from 1.
        self.line = 1
        self.counted = 0
        self.troubles: list[str] = []
        self._number = 0

    def spot(self, line: int) -> Spot:
        """The spot of the next payload."""
        self._number += 1
        return Spot(0, line, self._number)


def scan_slice(job: tuple[Settings, Slice]) -> Part:
    """Scan one slice; what workers do."""
    settings, part = job
    return scanner_for(settings).slice(part)


class _Scanners(threading.local):
    """The scanners of a thread: a worker of a cluster may have several threads, and a scanner is for one."""

    def __init__(self) -> None:
        self.by_settings: dict[Settings, Scanner] = {}


_SCANNERS = _Scanners()


def scanner_for(settings: Settings) -> Scanner:
    """The scanner of a run; processes that are copies of this one have what it has learnt."""
    if settings not in _SCANNERS.by_settings:
        _SCANNERS.by_settings[settings] = Scanner(settings)
    return _SCANNERS.by_settings[settings]


class Scanner:
    """Scans slices one after the other, and decides about what it found."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._contracts = with_packs(settings.packs)
        self.triage = Triage(self._contracts, redact=settings.redact)
        self._search = None if settings.successes else Search(self._contracts)
        self._signatures = Signatures(self._contracts)
        #: What records come to, by their signatures: what is counted, and the way to their time.
        self._known: dict[tuple[Any, ...], tuple[list[Counted], tuple[str, ...] | None]] = {}
        #: The same by lines without their digits, for lines in which no digit decides.
        self._templates: dict[bytes, _Template] = {}
        self._buffer = Buffer()
        self._last: Slice | None = None
        #: What needs only to be counted in later slices of the same file.
        self._kept: set[Counted] = set()

    def slice(self, part: Slice) -> Part:
        """What one slice comes to, or why it could not be read."""
        try:
            data = self._buffer.read(part)
        except OSError as error:
            return Part(Tally(), {}, [], [], failure=str(error.strerror))
        if self._last is None or part.path != self._last.path or part.start < self._last.end:
            self._kept.clear()
        work = _Work(data, part)
        self._take_all(work)
        self._remember_kept(part, work.result.tally)
        tally = work.result.tally
        tally.bytes = len(data)
        tally.lines = work.line - 1 + data.count(b"\n", work.counted) + (len(data) > 0 and data[-1] != NEWLINE)
        return work.result._replace(troubles=tuple(dict.fromkeys(work.troubles)))

    def _take(self, payload: Payload, work: _Work) -> Counted | None:
        """Count a payload of a slice or, where its tool has to be looked for before the slice, keep it."""
        found = Found(payload, work.spot(payload.context.place.line), of_payload(payload, work.part.modified))
        if not self._within(found.when):
            return None
        if payload.tool is None and payload.context.rpc is not None:
            # What is around it stays here; where it stands in the text is known.
            work.result.open.append(found._replace(payload=payload._replace(context=payload.context._replace(place=Place(found.spot.line), around=()))))
            work.result.verdicts.append(None)
            return None
        return self.count(found, work.result.tally, work.result.verdicts)

    def count(self, found: Found, tally: Tally, verdicts: list[Verdict | None]) -> Counted | None:
        """Decide about a payload and count it, if it is asked for."""
        brief = self.triage.brief(found.payload)
        key = Key(*brief[:5])
        if (brief.success and not self._settings.successes) or not self._asked_for(key):
            return None
        identifier = self.triage.correlation(found.payload)
        tally.payloads += 1
        tally.truncated += brief.truncated
        group = tally.group(key)
        group.add(found.when, brief.operation, found.spot)
        if identifier is not None:
            group.add_id(found.spot, identifier)
        verdict = None
        if self._settings.verdicts:
            verdict = self.triage.decide(found.payload)
            verdicts.append(verdict)
        if group.example is None or found.spot < group.example[0]:
            group.example = (found.spot, verdict or self.triage.decide(found.payload))
        return Counted(key, brief.operation, identifier is not None)

    def _again(self, counted: list[Counted], when: Moment | None, work: _Work) -> bool:
        """Count a record like one that was counted before, unless something of it has to be kept."""
        tally = work.result.tally
        for each in counted:
            if each in self._kept:
                continue
            group = tally.groups.get(each.key)
            if group is None or group.wants(identifier=each.has_id):
                return False
        if self._within(when):
            tally.payloads += len(counted)
            for each in counted:
                tally.group(each.key).again(when, each.operation)
        return True

    def _remember_kept(self, part: Slice, tally: Tally) -> None:
        """Note of which groups a slice has kept all that is ever kept: of later slices of its file nothing more is.

        Slices come here in their order, though not each of them.
        """
        self._last = part._replace(data=None)
        for counted, _ in self._known.values():
            for each in counted:
                group = tally.groups.get(each.key)
                if group is not None and not group.wants(identifier=each.has_id):
                    self._kept.add(each)

    def _within(self, when: Moment | None) -> bool:
        since, until = self._settings.since, self._settings.until
        if since is None and until is None:
            return True
        return when is not None and (since is None or when.microseconds >= since) and (until is None or when.microseconds < until)

    def _asked_for(self, key: Key) -> bool:
        only = self._settings.only
        return not only or key.action in only or key.outcome in only or key.code in only

    def _take_all(self, work: _Work) -> None:
        """Count everything in a slice."""
        data = work.data
        if self._search is None:
            self._whole(work, 0, len(data))
            return
        lines = Lines(data, first=work.part.start == 0)
        searched = without_codes(data)
        done = 0
        for number, found, at in hits(self._search, searched, data):
            if at < done or (words := self._search.confirm(searched, number, found)) is None:
                continue
            start, end, alone = lines_around(lines, data, at, done)
            if is_too_long(lines, start, end):
                work.troubles.append(TOO_LONG)
                done = end
                continue
            if words and not any_in(data, words, start, end):
                continue
            done = self._take_line(work, lines, start, end, done) if alone else self._take_region(work, max(start, done), end)

    def _take_line(self, work: _Work, lines: Lines, start: int, end: int, done: int) -> int:
        """Count what is in a line with a hit; returns where to look on."""
        line = bytes(work.data[start:end])
        template = b"" if self._settings.verdicts else _WITH_DIGITS.sub(b"#", line)
        if template in self._templates and self._like(line, self._templates[template], work):
            return end
        read = line_value(line)
        if not read:
            start, end = lines.region(start)
            return self._take_region(work, max(start, done), end)
        work.line += work.data.count(b"\n", work.counted, start)
        work.counted = start
        if not self._record(work, template, *read):
            self._whole(work, start, end)
        return end

    def _take_region(self, work: _Work, start: int, end: int) -> int:
        """Count what is in some lines with a hit; returns where to look on."""
        work.line += work.data.count(b"\n", work.counted, start)
        work.counted = start
        self._whole(work, start, end)
        return end

    def _like(self, line: bytes, template: _Template, work: _Work) -> bool:
        """Count a line that differs only in its digits from one that was counted, in which no digit decided."""
        if template.plain and self._signatures.has_pattern(line):
            return False
        if template.mark is None:
            if b"{" not in line[:WORDS]:
                return False  # of so many words before the record only the last are kept, and the time may be in none of them
            when = of_line(line[:WORDS].decode("utf-8", "replace"), work.part.modified)
        else:
            value = _VALUE.match(line, line.find(template.mark) + len(template.mark))
            if value is None:
                return False
            when = of_value(value["text"].decode("utf-8", "replace") if value["text"] is not None else orjson.loads(value["number"]))
        return self._again(template.counted, when, work)

    def _record(self, work: _Work, template: bytes, value: Any, prefix: str, written: bytes) -> bool:
        """Count the payloads of a line that ends with one JSON object; False where it takes more to read it."""
        signature = None if self._settings.verdicts else self._signatures.of(value, prefix, written)
        known = self._known.get(signature) if signature else None
        if known is not None:
            counted, way = known
            received = follow_parts(value, way) if way is not None else None
            # A record whose time is null here has another one, or none.
            again = not counted or (received is None) == (way is None)
            if again and self._again(counted, of_line(prefix, work.part.modified) if received is None else of_value(received), work):
                self._keep_template(template, signature, counted, way, written)
                return True
        if signature is None and _LONG_DIGITS.search(written):
            return False
        found = list(self.triage.find([payloads.Record(work.line, value, prefix, whole=not prefix)], "", work.result.calls))
        taken = [self._take(payload, work) for payload in found]
        # Records of the same signature come to the same, but for what was left out here for its time, or for its call.
        if signature and known is None and len(self._known) < _MOST_KNOWN and self._settings.since is None and self._settings.until is None:
            # What a call is answered with later hangs on its having been seen.
            if b"tools/call" not in written and not any(payload.context.rpc for payload in found):
                times = [time for payload in found if (time := stated(payload)) is not None]
                self._known[signature] = ([each for each in taken if each is not None], way_to(value, times[0]) if times else None)
        return True

    def _keep_template(self, template: bytes, signature: Any, counted: list[Counted], way: tuple[str, ...] | None, written: bytes) -> None:
        """Remember a line without its digits, if none of them is in what decides, or in an escape of that."""
        if len(self._templates) >= _MOST_KNOWN or b"\\" in written:
            return
        same = self._signatures.without_digits(signature, written)
        mark = f'"{way[-1]}":'.encode() if way else None
        if same is not False and (mark is None or written.count(mark) == 1):
            self._templates[template] = _Template(counted, mark, plain=same is None)

    def _whole(self, work: _Work, start: int, end: int) -> None:
        """Count the payloads of a part, read as any input is."""
        text, replaced = inputs.decode(bytes(work.data[start:end]))
        for payload in self.triage.find(self.triage.records(text, work.line, lossy=work.part.lossy or replaced), text, work.result.calls):
            self._take(payload, work)
        work.troubles += self.triage.troubles
