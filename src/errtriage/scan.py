"""Finds and counts the payloads of logs, slice by slice: the function that workers run, and the merge in order.

A slice is a part of a file between two boundaries. In it the markers are searched for, and only what is around a hit is
parsed: the line, where that is clearly all of a record, else the lines between the boundaries around it. Requests name
the tool of answers that may lie slices later, so a slice returns the calls that it saw, and the answers whose tool it does
not know are decided in the merge.
"""

from __future__ import annotations

import re
import threading
from codecs import BOM_UTF8
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
from errtriage.signatures import WORD_WITH_DIGIT, Signatures
from errtriage.tally import Key, Moment, Spot, Tally
from errtriage.verdicts import Triage
from errtriage.wrappers import Calls

#: A line after one that ends so, or before one that begins so, may belong to it.
_GOES_ON = frozenset(b",{[(:=+\\\n")
_COMES_FROM = frozenset(b" \t\r\n}]),;>")
#: Lines that begin so are read with what is around them: responses, events, carriers.
_OTHERWISE = re.compile(rb"HTTP/|< |\* |data:|event:|[^{|]*+\||[^{]*?std(?:out|err) [PF]")
#: Terminal codes (see ``redact``) and NUL characters, in bytes.
_CODES = re.compile(rb"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)?|\x1b[ -/]*[0-~]?|\x00+")
_QUOTES = re.compile("[\"'`“‘(]|[{\\[](?=[\\[{])")
_NEWLINE, _RETURN, _BRACE = 10, 13, 123
#: How much of the words before a value is kept, in characters (as ``payloads`` keeps it).
_WORDS = 1024
#: How much longer than its first slice a process's buffer is: slices end where records do.
_SPARE = 1 << 20
#: How many signatures are remembered.
_MOST_KNOWN = 10_000
#: Words with a digit in them: ids, times, counts.
_WITH_DIGITS = re.compile(WORD_WITH_DIGIT.encode())
_VALUE = re.compile(rb'"(?P<text>[^"\\]*)"|(?P<number>[0-9]+(?:\.[0-9]+)?)(?=[,}])')
#: Lines longer than this together, in bytes, are not read (a document that is the whole input is).
_LONGEST_RECORD = 64 << 20
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
        self._buffer = bytearray()
        self._last: Slice | None = None
        #: What needs only to be counted in later slices of the same file.
        self._kept: set[Counted] = set()

    def slice(self, part: Slice) -> Part:
        """What one slice comes to, or why it could not be read."""
        try:
            data = part.data if part.data is not None else self._read(part)
        except OSError as error:
            return Part(Tally(), {}, [], [], failure=str(error.strerror))
        if self._last is None or part.path != self._last.path or part.start < self._last.end:
            self._kept.clear()
        work = _Work(data, part)
        self._take_all(work)
        self._remember_kept(part, work.result.tally)
        tally = work.result.tally
        tally.bytes = len(data)
        tally.lines = work.line - 1 + data.count(b"\n", work.counted) + (len(data) > 0 and data[-1] != _NEWLINE)
        return work.result._replace(troubles=tuple(dict.fromkeys(work.troubles)))

    def _take(self, payload: Payload, work: _Work) -> Counted | None:
        """Count a payload of a slice or, where its tool has to be looked for before the slice, keep it."""
        found = Found(payload, work.spot(payload.context.place.line), of_payload(payload, work.part.modified))
        if not self._within(found.when):
            return None
        if payload.tool is None and payload.context.rpc is not None:
            # What is around it stays here; where it stands in the text is known.
            work.result.open.append(found._replace(payload=payload._replace(context=payload.context._replace(place=Place(found.spot.line)))))
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

    def _read(self, part: Slice) -> bytearray:
        """The bytes of a slice, in a buffer that is used again: touching new memory takes longer than reading."""
        if inputs.is_url(part.path):
            from errtriage import remote

            return bytearray(remote.read_range(part.path, part.start, part.end, part.identity))
        size = part.end - part.start
        if not self._buffer:
            self._buffer = bytearray(size + _SPARE)
        # Within what was once allocated, both are only a matter of where it ends.
        self._buffer.extend(bytes(max(0, size - len(self._buffer))))
        del self._buffer[size:]
        with open(part.path, "rb", buffering=0) as file:  # noqa: PTH123 - unbuffered
            file.seek(part.start)
            view = memoryview(self._buffer)
            filled = 0
            while filled < size and (count := file.readinto(view[filled:size])):
                filled += count
        view.release()
        del self._buffer[filled:]
        return self._buffer

    def _take_all(self, work: _Work) -> None:
        """Count everything in a slice."""
        data = work.data
        if self._search is None:
            self._whole(work, 0, len(data))
            return
        lines = Lines(data, first=work.part.start == 0)
        # Terminal codes and NUL characters may stand in the middle of what is looked for.
        searched = _CODES.sub(b"", data) if b"\x1b" in data or b"\0" in data else data
        done = at = before = 0
        for number, found in self._search.candidates(searched):
            if searched is data:
                at = found
            else:  # codes hold no newlines, so a line is the same line without them
                for _ in range(searched.count(b"\n", before, found)):
                    at = data.find(b"\n", at) + 1
                before = found
            if at < done or (words := self._search.confirm(searched, number, found)) is None:
                continue
            start = data.rfind(b"\n", done, at) + 1 or done
            end = data.find(b"\n", at)
            end = len(data) if end < 0 else end
            alone = _is_alone(data, start, end)
            if not alone:
                start, end = lines.region(at)
            if end - start > _LONGEST_RECORD and not lines.is_document:
                work.troubles.append(f"lines that could be one record are longer than {_LONGEST_RECORD >> 20} MiB together, and are not read")
                done = end
                continue
            if words and not _any_in(data, words, start, end):
                continue
            done = self._take_line(work, lines, start, end, done) if alone else self._take_region(work, max(start, done), end)

    def _take_line(self, work: _Work, lines: Lines, start: int, end: int, done: int) -> int:
        """Count what is in a line with a hit; returns where to look on."""
        line = bytes(work.data[start:end])
        template = b"" if self._settings.verdicts else _WITH_DIGITS.sub(b"#", line)
        if template in self._templates and self._like(line, self._templates[template], work):
            return end
        read = _value(line)
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
            if b"{" not in line[:_WORDS]:
                return False  # of so many words before the record only the last are kept, and the time may be in none of them
            when = of_line(line[:_WORDS].decode("utf-8", "replace"), work.part.modified)
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


def _any_in(data: bytes | bytearray, words: tuple[bytes, ...], start: int, end: int) -> bool:
    for word in words:  # noqa: SIM110 - the loop is faster, and runs for every hit
        if data.find(word, start, end) >= 0:
            return True
    return False


def _is_alone(data: bytes | bytearray, start: int, end: int) -> bool:
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


def _value(line: bytes) -> tuple[Any, str, bytes] | None:
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
    return (value, prefix[-_WORDS:].strip(), written) if begin == 0 or not _QUOTES.search(prefix) else None
