"""The report of a scan for a terminal: what must not be done wrong comes first, one block for each group."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TextIO

from rich.cells import cell_len
from rich.text import Text

from errtriage.model import Action, Outcome, Verdict
from errtriage.render.terminal import Terminal
from errtriage.render.words import ACTIONS, LABELS, OUTCOMES, identity
from errtriage.survey import GroupShown, Survey
from errtriage.wording import counted

#: So many groups are shown in full; those after them in one line each.
_FULL = 20
_BARS = "▁▂▃▄▅▆▇█"
#: How wide a spark line and a report are at most, in cells.
_SPARK, _WIDEST = 40, 140
#: How many operations a group names.
_OPERATIONS = 3


def render(survey: Survey, stream: TextIO, *, color: bool, width: int | None) -> None:
    """Write the report to a stream; ``width`` is the terminal's, or None for a pipe."""
    terminal = Terminal(stream, color=color, width=width)
    room = min(width or _WIDEST, _WIDEST)
    _totals(terminal, survey)
    heading: str | None = None
    for number, group in enumerate(survey.groups):
        if group.key.action != heading or number == _FULL:
            heading = group.key.action
            terminal.line()
            if number >= _FULL:
                terminal.line(Text(ACTIONS[Action(heading)].capitalize(), "bold"))
        if number < _FULL:
            _block(terminal, group, room)
        else:
            _row(terminal, group, room)
    if survey.hidden:
        terminal.line()
        terminal.line(Text(f"{survey.hidden:,} more groups are left out by --top.", "dim"))
    found = {group.key.contract for group in survey.groups} & survey.packs.keys()
    for number, name in enumerate(sorted(found)):
        if not number:
            terminal.line()
        terminal.line(Text(f"Contract {name} from {survey.packs[name]}", "dim"))
    _skipped(terminal, survey)


def line_writer(stream: TextIO, *, color: bool, width: int | None) -> Callable[[Verdict], None]:
    """What writes a verdict in one line, for a log that is followed."""
    terminal = Terminal(stream, color=color, width=width)

    def write(verdict: Verdict) -> None:
        label = Text(f" {OUTCOMES[verdict.outcome].upper()} ", LABELS[verdict.outcome])
        place = f"{verdict.source.file}:{verdict.source.line}"
        quoted = f"  quote {verdict.correlation_id}" if verdict.correlation_id else ""
        terminal.line(Text.assemble(label, f" {ACTIONS[verdict.action]}  ", (identity(verdict), "dim"), quoted, (f"  {place}", "dim")))
        stream.flush()

    return write


def _totals(terminal: Terminal, survey: Survey) -> None:
    terminal.line(Text(f"{counted(survey.files, 'file')}, {_bytes(survey.bytes)}, {counted(survey.lines, 'line')}{_span(survey)}", "dim"))
    if not survey.payloads:
        if not survey.files:
            terminal.line(Text("Nothing was read.", "bold yellow"))
        elif survey.narrowed:
            terminal.line(Text("Nothing was found that was asked for.", "bold yellow"))
            terminal.line(Text("--only, --since and --until leave the rest out, and with a time also records that say none.", "dim"))
        else:
            terminal.line(Text("No failure was found.", "bold green"))
            terminal.line(Text("Successes are not looked for; --all counts them too.", "dim"))
        return
    parts: list[str | tuple[str, str]] = [(f"{counted(survey.payloads, 'payload')}: ", "bold")]
    for i, (outcome, count) in enumerate(survey.by_outcome.items()):
        parts += [", " if i else "", (f"{count:,} {OUTCOMES[Outcome(outcome)].lower()}", "bold")]
    if survey.truncated:
        parts.append(f"; {survey.truncated:,} of them cut short")
    terminal.line(Text.assemble(*parts))


def _span(survey: Survey) -> str:
    return f", {_when(survey.first_seen)} to {_when(survey.last_seen)}" if survey.first_seen else ""


def _block(terminal: Terminal, group: GroupShown, room: int) -> None:
    outcome = Outcome(group.key.outcome)
    label = Text(f" {OUTCOMES[outcome].upper()} ", LABELS[outcome])
    named = f"{group.key.contract} · {group.key.code or group.key.shape}"
    terminal.line(Text.assemble(f"{group.total:>9,}  ", label, f"  {ACTIONS[Action(group.key.action)]}", (f"  {named}", "dim")))
    indent = 11
    terminal.prose(group.summary, indent=indent, style="bold")
    times = _times(group)
    if times:
        spark = _spark(group.histogram, max(10, min(_SPARK, room - indent - cell_len(times) - 2)))
        terminal.line(Text.assemble(" " * indent, (times, "dim"), "  ", spark))
    operations = ", ".join(f"{name} {count:,}" for name, count in list(group.operations.items())[:_OPERATIONS])
    more = len(group.operations) - _OPERATIONS
    where = f"{group.places[0][0]}:{group.places[0][1]}" if group.places else ""
    files = f"in {group.files:,} files, first {where}" if group.files > 1 else f"first {where}"
    terminal.prose("; ".join(filter(None, [operations + (f" and {more} more" if more > 0 else ""), files])), indent=indent, style="dim")
    _ids(terminal, group.ids, indent, room)


def _ids(terminal: Terminal, ids: Sequence[str], indent: int, room: int) -> None:
    """Ids to quote, as many on a line as fit; none is ever cut."""
    line = ""
    for identifier in ids:
        if line and indent + 7 + cell_len(line) + 2 + cell_len(identifier) > room:
            terminal.line(Text.assemble(" " * indent, ("quote  ", "dim"), line))
            line = ""
        line = f"{line}  {identifier}" if line else identifier
    if line:
        terminal.line(Text.assemble(" " * indent, ("quote  ", "dim"), line))


def _row(terminal: Terminal, group: GroupShown, room: int) -> None:
    outcome = OUTCOMES[Outcome(group.key.outcome)].lower()
    named = f"{group.key.contract} · {group.key.code or group.key.shape}, {outcome}"
    start = f"{group.total:>9,}  {named}"
    spark = _spark(group.histogram, 12) if group.histogram else ""
    used = cell_len(start) + 2 + cell_len(spark)
    times = _times(group)
    terminal.line(Text.assemble(start, "  ", spark, (f"  {times}", "dim") if used + 2 + cell_len(times) <= room else ""))


def _times(group: GroupShown) -> str:
    if group.first_seen is None:
        return ""
    first, last = _when(group.first_seen), _when(group.last_seen)
    if first[:10] == last[:10]:
        last = last[11:]
    return first if group.first_seen == group.last_seen else f"{first} to {last}"


def _when(time: str | None) -> str:
    """A time to the second, as people read it."""
    text = (time or "").replace("T", " ")
    zone = " UTC" if text.endswith("Z") else ""
    return text[:19] + zone


def _spark(histogram: Sequence[int], width: int) -> str:
    """A line of bars; a part in which nothing was is empty."""
    if not any(histogram):
        return ""
    bins = [0] * min(width, len(histogram))
    for i, count in enumerate(histogram):
        bins[i * len(bins) // len(histogram)] += count
    most = max(bins)
    return "".join(" " if not count else _BARS[min(len(_BARS) - 1, count * len(_BARS) // (most + 1))] for count in bins)


def _skipped(terminal: Terminal, survey: Survey) -> None:
    if survey.skipped:
        terminal.line()
        terminal.line(Text("Not read", "bold"))
        for file, reason in survey.skipped:
            terminal.line(f"  {file}: {reason}")


def _bytes(count: int) -> str:
    size = float(count)
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            return f"{size:,.0f} {unit}" if unit == "bytes" else f"{size:,.1f} {unit}"
        size /= 1024
    raise AssertionError
