"""Audit's report for a terminal: each forbidden step with what should have happened, then the sessions; or one session as a story."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from shlex import quote
from typing import Any, TextIO

from rich.text import Text

from errtriage.audit import AuditReport, Event, Late
from errtriage.conduct import Breach
from errtriage.connections import Session
from errtriage.delays import in_words
from errtriage.model import Action, Outcome
from errtriage.moments import Time, written_time
from errtriage.render.lint_text import LEVEL_STYLES
from errtriage.render.terminal import Terminal
from errtriage.render.words import ACTIONS, LABELS, OUTCOMES
from errtriage.wording import counted, where

#: How many places of findings like one another are listed, and how many sessions are shown.
_PLACES, _SESSIONS = 8, 20
#: From so many findings on, a list of what was broken stands before them.
_MANY = 4
#: The rules from the one whose breach does most harm to the one whose does least.
_HARM = ("AU103", "AU106", "AU101", "AU105", "AU108", "AU102", "AU104", "AU107")
#: How often the same call and answer is told before the rest is only counted.
_TOLD = 3
#: How wide the words before a line of a finding are.
_LABEL = 10


def render(report: AuditReport, stream: TextIO, *, color: bool, width: int | None) -> None:
    """Write the report to a stream; ``width`` is the terminal's, or None for a pipe."""
    terminal = Terminal(stream, color=color, width=width)
    if report.session is not None:
        _story(terminal, report)
    else:
        _digest(terminal, report)
        for file, breaches in groupby(report.breaches, key=lambda each: each.file):
            _file(terminal, file, list(breaches))
        _late(terminal, report.late)
        _sessions(terminal, report.sessions)
    _ending(terminal, report)


def _digest(terminal: Terminal, report: AuditReport) -> None:
    """Where there is much, what it is: the rules that were broken, the worst first."""
    if len(report.breaches) < _MANY:
        return
    counts = Counter(breach.rule for breach in report.breaches)
    widest = len(f"{max(counts.values()):,}")
    for rule in sorted(counts, key=lambda each: _HARM.index(each) if each in _HARM else len(_HARM)):
        lead = f"{counts[rule]:>{widest},} {rule}  "
        terminal.prose(str(report.lint.rules[rule]["what"]), indent=len(lead), first=lead, mark="bold red")
    terminal.line()


def _file(terminal: Terminal, file: str, breaches: list[Breach]) -> None:
    terminal.line(Text(where(file), "bold underline"))
    widest = max(len(str(each.line)) for each in breaches)
    groups: dict[tuple[str | None, ...], list[Breach]] = {}
    for breach in breaches:
        groups.setdefault(_alike(breach), []).append(breach)
    for first, *others in groups.values():
        _breach(terminal, first, widest)
        if others:
            more = f" and {len(others) - _PLACES} more" if len(others) > _PLACES else ""
            again = ", ".join(_again(each, first) for each in others[:_PLACES])
            terminal.prose(f"The same again in line{'' if len(others) == 1 else 's'} {again}{more}.", indent=widest + 4, style="bold")
    terminal.line()


def _again(breach: Breach, first: Breach) -> str:
    """Where a finding like another one is, and what was called there, if that is something else."""
    place = f"{breach.line} {breach.pointer}".rstrip()
    return place if breach.tool == first.tool else f"{place} ({breach.tool or 'another request'})"


def _alike(breach: Breach) -> tuple[str | None, ...]:
    # After a 401 it is the same whatever is called.
    return breach.rule, breach.contract, breach.session, breach.identity if breach.rule != "AU105" else None, breach.verdict.code if breach.verdict else None


def _breach(terminal: Terminal, breach: Breach, widest: int) -> None:
    level = Text(f"{breach.level:<7}", LEVEL_STYLES[breach.level])
    terminal.line(
        Text.assemble(
            f"  {breach.line:>{widest}}  ",
            level,
            f"  {breach.rule}  ",
            (breach.tool or "", "bold"),
            f"  session {breach.session}",
            (f"  {breach.pointer}".rstrip(), "dim"),
        )
    )
    indent = widest + 4
    terminal.prose(_sentence(breach.what), indent=indent)
    if breach.arguments:
        _detail(terminal, "call", breach.arguments, indent, "")
    _details(terminal, breach, indent)


def _details(terminal: Terminal, breach: Breach, indent: int, *, told: bool = False) -> None:
    """What should have happened, the contract's words and, unless that was told before, the verdict with its id."""
    _detail(terminal, "instead", _sentence(breach.instead), indent, "bold")
    _detail(terminal, "contract", f"{_sentence(breach.says)} ({breach.source})", indent, "")
    if breach.verdict is not None and not told:
        verdict = breach.verdict
        called = OUTCOMES[Outcome(verdict.outcome)].lower()
        parts = [f"line {verdict.line} {verdict.pointer}".rstrip(), _clock(verdict.time), f"{verdict.contract} {verdict.code or ''}".strip(), called]
        _detail(terminal, "verdict", ", ".join(filter(None, parts)), indent, "")
        if verdict.correlation_id:
            terminal.line(Text.assemble(" " * indent, (f"{'quote':<{_LABEL}}", "dim"), verdict.correlation_id))


def _detail(terminal: Terminal, label: str, text: str, indent: int, style: str) -> None:
    lead = f"{' ' * indent}{label:<{_LABEL}}"
    terminal.prose(text, indent=len(lead), first=lead, mark="dim", style=style)


def _sentence(text: str) -> str:
    """A clause as a sentence."""
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "?", "!")) else ".")


def _late(terminal: Terminal, late: Sequence[Late]) -> None:
    if not late:
        return
    terminal.line(Text("Answers that came after the client had given up", "bold"))
    for each in late:
        outcome = OUTCOMES[Outcome(each.outcome)].lower()
        code = f" ({each.code})" if each.code else ""
        place = f"{where(each.file)}, line {each.answered}"
        terminal.prose(f"{place}: {each.tool} of line {each.called}, given up in line {each.gave_up}: what really happened is {outcome}{code}.", indent=2)
    terminal.line()


def _sessions(terminal: Terminal, sessions: Sequence[Session]) -> None:
    """A row for each session with calls, those first in which something was broken."""
    ordered = sorted((each for each in sessions if each.calls or each.breaches), key=lambda each: -each.breaches)
    if not ordered:
        return
    label = max(7, *(len(each.label) for each in ordered[:_SESSIONS]))
    head = f"{'session':<{label}}  {'calls':>7}{'failed':>8}{'verdicts':>10}{'obeyed':>8}{'broken':>8}{'late':>6}"
    terminal.line(Text(head, "bold"))
    for each in ordered[:_SESSIONS]:
        broken = Text(f"{each.broken:>8,}", "bold red" if each.broken else "")
        row = f"{each.label:<{label}}  {each.calls:>7,}{each.failures:>8,}{each.verdicts:>10,}{each.obeyed:>8,}"
        terminal.line(Text.assemble(row, broken, f"{each.late:>6,}", (f"  {', '.join(sorted(each.contracts))}", "dim")))
    if len(ordered) > _SESSIONS:
        terminal.line(Text(f"and {len(ordered) - _SESSIONS} more; --format json has them all", "dim"))
    terminal.line()


def _ending(terminal: Terminal, report: AuditReport) -> None:
    for (rule, reason), count in report.unapplied.items():
        terminal.prose(f"{rule} was not applied to {counted(count, 'call')}, because {reason} there.", style="bold yellow")
    if report.unassigned:
        terminal.prose(f"{counted(report.unassigned, 'answer')} could be of several calls, because ids are used by several clients.", style="bold yellow")
    for file in report.mixed:
        terminal.prose(f"{where(file)} does not say which of several connections a call belongs to: no rule was applied to those.", style="bold yellow")
    lint = report.lint
    style = "bold red" if lint.failed else "bold yellow" if lint.findings else "bold green"
    terminal.prose(lint.totals, style=style)
    if report.breaches and report.session is None:
        first = report.breaches[0]
        terminal.line(Text(f"`errtriage rules {first.rule}` explains a rule; `--session {quote(first.session)}` tells that session in order.", "dim"))


# A session as a story.


def _story(terminal: Terminal, report: AuditReport) -> None:
    for session in report.sessions:
        parts = [f"session {session.label}", where(session.file), ", ".join(sorted(session.contracts)), _span(session), counted(session.calls, "call")]
        terminal.line(Text(" · ".join(filter(None, parts)), "bold"))
        terminal.line()
        _events(terminal, sorted((each for each in report.story if each.session is session), key=lambda each: each.line))
        terminal.line()


def _events(terminal: Terminal, events: Sequence[Event]) -> None:
    widest = max((len(str(event.line)) for event in events), default=1)
    indent = widest + 2 + (14 if any(event.time for event in events) else 0)
    before: Time | None = None
    number = 0
    while number < len(events):
        same = _repeated(events, number)
        for event in events[number : number + 2 * min(same, _TOLD)] if same else events[number : number + 1]:
            _event(terminal, event, before, widest, indent)
            before = event.time or before
        number += 2 * same if same else 1
        if same > _TOLD:
            before = events[number - 1].time or before
            rules = ", ".join(breach.rule for breach in events[number - 2].breaches)
            more = f"the same call and answer {same - _TOLD:,} times more, up to line {events[number - 1].line}" + (f" (each {rules})" if rules else "")
            terminal.prose(more, indent=indent + 2, first=f"{' ' * indent}… ", mark="dim", style="bold")


def _repeated(events: Sequence[Event], start: int) -> int:
    """How often a call and its answer come one after the other from there on, each time the same; 0 where they do not."""
    count = 0
    first = [_plainly(event) for event in events[start : start + 2]]
    if len(first) < 2 or events[start].side != "call" or events[start + 1].side != "answer":
        return 0
    while [_plainly(event) for event in events[start + 2 * count : start + 2 * count + 2]] == first:
        count += 1
    return count if count > _TOLD else 0


def _plainly(event: Event) -> tuple[Any, ...]:
    code = event.judgement.code if event.judgement else None
    outcome = event.judgement.outcome if event.judgement else None
    return event.side, event.text, event.called, outcome, code, tuple(breach.rule for breach in event.breaches)


def _event(terminal: Terminal, event: Event, before: Time | None, widest: int, indent: int) -> None:
    lead = f"{event.line:>{widest}}  {_clock(event.time, before):<{indent - widest - 2}}"
    for number, (mark, text, style) in enumerate(_told(event)):
        terminal.prose(text, indent=indent + len(mark), first=(lead if not number else " " * indent) + mark, mark="dim", style=style)
    identifier = event.judgement.correlation_id if event.judgement and event.judgement.outcome != Outcome.SUCCESS else None
    if identifier:
        terminal.line(Text.assemble(" " * (indent + 2), ("quote ", "dim"), identifier))
    for breach in event.breaches:
        terminal.prose(f"{breach.rule} {_sentence(breach.what)}", indent=indent + 4, first=f"{' ' * indent}  ✗ ", mark="bold red", style="bold red")
        _details(terminal, breach, indent + 4, told=True)


def _told(event: Event) -> Iterator[tuple[str, str, str]]:
    """Each line of an event: the mark before it, its words, their style."""
    if event.side == "call":
        yield "→ ", event.text, ""
    elif event.side == "withdrawn":
        yield "→ ", f"the client takes back {event.text}", ""
    elif event.side == "word":
        yield "· ", "a person had a say", "bold"
    elif event.side == "refused":
        yield "· ", f"no answer shows that {event.text} was let in again", ""
    elif event.judgement is None or event.judgement.outcome == Outcome.SUCCESS:
        late = " after all: what the client gave up was carried out" if event.side == "late" else ""
        yield "← ", f"{event.text}: answered{late}", "green"
    else:
        judgement = event.judgement
        outcome = Outcome(judgement.outcome)
        late = " after all, what the client gave up" if event.side == "late" else ""
        named = f"{OUTCOMES[outcome].upper()}{late} {judgement.code or ''}".rstrip()
        yield "← ", f"{event.text}: {named}", LABELS[outcome].split(" on ")[-1] + " bold" if outcome is not Outcome.CANCELLED else "bold"
        if judgement.summary and outcome is not Outcome.SUCCESS:
            yield "  ", f"{ACTIONS[Action(judgement.action)]}: {judgement.summary}", ""


def _clock(time: Time | None, before: Time | None = None) -> str:
    """The time of day and, behind another one, what passed since."""
    if time is None:
        return ""
    if before is not None and 0 <= time.at - before.at < 3_600_000_000:
        return f"+{in_words((time.at - before.at) // 1000)}"
    return (written_time(time) or "")[11:].removesuffix("Z")


def _span(session: Session) -> str:
    first, last = (written_time(each) for each in session.times)
    if first is None or last is None:
        return ""
    return f"{first} to {last[11:] if last[:10] == first[:10] else last}"
