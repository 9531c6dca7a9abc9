"""Checks captured answers: every payload of a file against its schema and the lint rules, each finding with its place.

No output here and no exit codes: a Linter turns the bytes of a file into a report of what was found in it.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, cached_property
from typing import Any, NamedTuple

from errtriage import inputs, places, rules
from errtriage.contracts import Conditions, Contracts, own_rules, with_packs
from errtriage.model import Failure, Finding, Payload, Place
from errtriage.packs import Pack
from errtriage.pointers import pointer_parts
from errtriage.redact import clean
from errtriage.reports import Excerpt, FileReport, Located
from errtriage.search import unescaped
from errtriage.verdicts import Triage
from errtriage.wording import Words

#: How much of a line is read around a finding, in characters, and how much of that is kept to be shown. The first is
#: longer than any key, so that no part of a secret is shown that was cut before it could be recognised.
_READ, _SHOWN = 4000, 120
#: What no secret goes on behind.
_BREAK = re.compile(r"[\s\"',;{}]")
#: How often escapes are decoded before a line is not shown at all.
_MOST_LEVELS = 8


class Settings(NamedTuple):
    """How a run lints, as plain data that travels to workers."""

    contract: str | None = None
    rules: frozenset[str] = frozenset()
    redact: bool = True
    #: The packs beyond the bundled ones.
    packs: tuple[Pack, ...] = ()
    #: How many findings of a file are shown with their line: a line takes longer to redact than to check.
    excerpts: int = 50


def check_files(job: tuple[Settings, Sequence[str]]) -> list[FileReport]:
    """Lint files by name; what workers do."""
    settings, names = job
    linter = _linter(settings)
    return [linter.file(name) for name in names]


@cache
def _linter(settings: Settings) -> Linter:
    return Linter(with_packs(settings.packs), settings)


class _Raw(NamedTuple):
    """A finding before it is located: where what it is about was read, and what to look for there."""

    finding: Finding
    place: Place
    wanted: places.Wanted


def _whole(payload: Payload, finding: Finding) -> _Raw:
    """A finding that points into the payload."""
    place = payload.context.place
    return _Raw(finding, place, places.Wanted(payload.value, pointer_parts(finding.pointer), place.string))


class Linter:
    """Lints files one after the other."""

    def __init__(self, contracts: Contracts, settings: Settings) -> None:
        forced = contracts.get(settings.contract) if settings.contract else None
        self._settings = settings
        self._triage = Triage(contracts, forced=forced, redact=settings.redact)
        self._sought = [forced.name] if forced else contracts.names()
        self._conditions = Conditions()
        self._own_rules = own_rules()
        self._about = {rule["id"]: rule.get("in", "payload") for pack in contracts for rule in pack.rules}

    def file(self, name: str) -> FileReport:
        """What is found in one file, or why it could not be read."""
        try:
            data, trouble = inputs.decompress(inputs.read(name))
        except Failure as failure:
            return FileReport(self._named(name), failure=self._triage.show(str(failure)))
        report = self.data(name, data)
        if trouble and data:  # what was read of it counts, but it is not all
            return report._replace(failure=f"{self._named(name)} could not be read whole: {trouble}.")
        return report._replace(troubles=(trouble, *report.troubles)) if trouble else report

    def _named(self, name: str) -> str:
        """A file's name as it is shown: an address may carry a password or a signature."""
        return self._triage.show(name) if inputs.is_url(name) else clean(name)

    def data(self, name: str, data: bytes) -> FileReport:
        """What is found in the bytes of a file."""
        text, lossy = inputs.decode(data)
        raw: list[_Raw] = []
        count = 0
        for payload in self._triage.find(self._triage.records(text, lossy=lossy), text):
            count += 1
            raw += self._payload(payload)
        for response in self._triage.empty:
            raw += self._pointing(response, self._triage.check_empty(response))
        if not count and not raw:
            raw += self._nothing(data, text)
        raw = [each for each in _once(raw) if each.finding.rule in self._settings.rules]
        found = sorted(self._located(name, text, raw), key=_order) if raw else []
        return FileReport(self._named(name), count, tuple(found), tuple(self._triage.troubles))

    def _payload(self, payload: Payload) -> Iterator[_Raw]:
        check = self._triage.check(payload)
        yield from self._pointing(payload, check.findings)
        for violation in check.violations:
            for finding in self._own(violation=violation.message):
                yield _whole(payload, finding._replace(pointer=violation.pointer))
        known = {"contract": payload.contract, "shape": payload.shape, "outcome": str(check.outcome)}
        for finding in self._own(**known, truncated=check.truncated, repaired=payload.context.repaired):
            yield _whole(payload, finding)

    def _pointing(self, payload: Payload, findings: Iterable[Finding]) -> Iterator[_Raw]:
        """Findings with what their pointers lead into."""
        for finding in findings:
            about = self._about[finding.rule]
            if about == "http":  # headers are no JSON; a body stands beside them
                place = places.outermost(payload.context.place)
                yield _Raw(finding, place, places.Wanted(None, (), place.string or None))
                continue
            if about == "payload":
                yield _whole(payload, finding)
                continue
            target = rules.wrappers(payload).get(about)
            parts = pointer_parts(finding.pointer)
            if parts[:1] == ("_meta",) and target is not payload.value:
                # Rules point into the member alone, whatever object it stands in.
                target, parts = payload.context.meta, parts[1:]
            yield _Raw(finding, places.holding(payload.context.place, target), places.Wanted(target, parts, payload.context.place.string))

    def _nothing(self, data: bytes, text: str) -> Iterator[_Raw]:
        from errtriage.absence import broken_at, instead, listed

        at = broken_at(text)
        place = Place(start=at) if at is not None else Place()
        for finding in self._own(payloads=0, contracts=listed(self._sought), instead=instead(data, text)):
            yield _Raw(finding, place, places.Wanted(text if at is not None else None))

    def _own(self, **facts: Any) -> Iterator[Finding]:
        """The rules of errtriage itself that facts break."""
        words = Words(facts, self._triage.show, lambda condition: self._conditions.hold(condition, facts))
        for rule in self._own_rules:
            if self._conditions.hold(rule["when"], facts):
                yield Finding(rule["id"], rule["level"], "", words.say(rule["message"]) or rule["what"])

    def _located(self, name: str, text: str, raw: Sequence[_Raw]) -> Iterator[Located]:
        """Findings with their lines and columns."""
        lines = _Lines(text)
        spans = places.locate(text, [(each.place, each.wanted) for each in raw])
        for number, (each, span) in enumerate(zip(raw, spans, strict=True)):
            yield self._finding(name, each, span, lines, excerpt=number < self._settings.excerpts)

    def _finding(self, name: str, raw: _Raw, span: places.Span | None, lines: _Lines, *, excerpt: bool) -> Located:
        finding = raw.finding
        if span is None:
            line, column, end_line, end_column = raw.place.line, None, None, None
            shown = None
        else:
            line, column = lines.place(span.start)
            end_line, end_column = lines.place(span.end)
            before = lines.line(line - 1) if line > 1 else ""
            end = end_column - 1 if end_line == line else None
            shown = _excerpt(before, lines.line(line), column - 1, end, self._triage.show) if excerpt else None
        return Located(finding.rule, finding.level, self._named(name), line, column, end_line, end_column, finding.pointer, finding.message, shown)


def _once(raw: Iterable[_Raw]) -> list[_Raw]:
    """Findings about a wrapper once, where several payloads lie in it; others are as many as there are."""
    kept: dict[Any, _Raw] = {}
    for number, each in enumerate(raw):
        kept.setdefault(number if each.wanted.target is None else (each.finding, id(each.wanted.target)), each)
    return list(kept.values())


def _order(finding: Located) -> tuple[int, int, str, str]:
    return finding.line, finding.column or 0, finding.rule, finding.pointer


class _Lines:
    """Lines and columns of offsets in a text, made when first asked for."""

    def __init__(self, text: str) -> None:
        self._text = text

    @cached_property
    def _starts(self) -> list[int]:
        starts = [0]
        at = self._text.find("\n")
        while at >= 0:
            starts.append(at + 1)
            at = self._text.find("\n", at + 1)
        return starts

    def place(self, offset: int) -> tuple[int, int]:
        """The line and the column of an offset, 1-based."""
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1

    def line(self, number: int) -> str:
        """A line without its end."""
        start = self._starts[number - 1]
        end = self._text.find("\n", start)
        return self._text[start : end if end >= 0 else None].removesuffix("\r")


def _excerpt(above: str, line: str, start: int, end: int | None, show: Callable[[str], str]) -> Excerpt | None:
    """A line around what is marked in it, without secrets; where hiding one moved the mark, it is left out.

    Without ``end`` the value goes on in further lines, and its first character is marked. None where only what is around
    the line, or what its escapes stand for, tells that there is a secret in it.
    """
    end = start + 1 if end is None else end
    first = max(0, start - _READ)
    before, marked, after = line[first:start], line[start:end], line[end : end + _READ]
    whole = before + marked + after
    shown = show(whole)
    if _is_hidden_only_in(above[-_READ:], whole, shown, show) or (first and not _BREAK.search(whole, 0, max(0, len(before) - _SHOWN))):
        return None
    if shown == whole:
        cut = max(0, len(before) - _SHOWN)
        return Excerpt(shown[cut : len(before) + max(len(marked), 1) + _SHOWN], len(before) - cut, len(before) - cut + len(marked))
    # What is the same before and behind tells where the mark is now.
    same_before = _common(whole, shown)
    same_after = _common(whole[::-1], shown[::-1])
    begin = len(before) if same_before >= len(before) else None
    finish = len(shown) - len(after) if same_after >= len(after) and begin is not None else None
    cut = max(0, (begin or 0) - _SHOWN)
    if begin is None or finish is None or finish <= begin:
        return Excerpt(shown[cut : cut + 3 * _SHOWN])
    return Excerpt(shown[cut : finish + _SHOWN], begin - cut, finish - cut)


def _is_hidden_only_in(above: str, whole: str, shown: str, show: Callable[[str], str]) -> bool:
    """Whether a secret shows only behind the line before, or when escapes are decoded (as often as they are nested)."""
    if show(f"{above}\n{whole}") != f"{show(above)}\n{shown}":
        return True
    text = shown
    for _ in range(_MOST_LEVELS):
        plain = unescaped(text)
        if plain == text:
            return False
        if show(plain) != plain:
            return True
        text = plain
    return True


def _common(left: str, right: str) -> int:
    return next((i for i, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right)))
