"""Lint's report for a terminal: file by file, each finding with its line of JSON, and a last line that counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TextIO

from rich.cells import cell_len
from rich.text import Text

from errtriage.render.terminal import Terminal
from errtriage.reports import Excerpt, FileReport, LintReport, Located
from errtriage.wording import where

#: How a level is shown; its word stands there too.
LEVEL_STYLES: Mapping[str, str] = {"error": "bold red", "warning": "bold yellow", "note": "bold cyan"}
#: How wide an excerpt is where no terminal says it.
_WIDE = 120


def render(report: LintReport, stream: TextIO, *, color: bool, width: int | None) -> None:
    """Write the report to a stream; ``width`` is the terminal's, or None for a pipe."""
    terminal = Terminal(stream, color=color, width=width)
    for file in report.reports:
        if file.findings:
            _file(terminal, file)
    _totals(terminal, report)


def _file(terminal: Terminal, file: FileReport) -> None:
    terminal.line(Text(where(file.file), "bold underline"))
    places = [_place(finding) for finding in file.findings]
    widest = max(map(len, places))
    for place, finding in zip(places, file.findings, strict=True):
        level = Text(f"{finding.level:<7}", LEVEL_STYLES[finding.level])
        terminal.line(Text.assemble(f"  {place:>{widest}}  ", level, f"  {finding.rule}  {finding.pointer}".rstrip()))
        terminal.prose(finding.message, indent=widest + 4)
        if finding.excerpt:
            _excerpt(terminal, finding.line, finding.excerpt, widest + 4, finding.level)
    terminal.line()


def _place(finding: Located) -> str:
    return f"{finding.line}:{finding.column}" if finding.column else str(finding.line)


def _excerpt(terminal: Terminal, line: int, excerpt: Excerpt, indent: int, level: str) -> None:
    """The line of JSON, as much of it as fits, and a mark below what is meant."""
    gutter = f"{' ' * indent}{line} │ "
    text, start, end = _window(excerpt, (terminal.width or _WIDE) - len(gutter))
    terminal.line(Text.assemble((gutter, "dim"), text))
    if start is not None and end is not None:
        before = " " * cell_len(text[:start])
        marks = "^" * max(1, cell_len(text[start:end]))
        terminal.line(Text.assemble((f"{' ' * (len(gutter) - 2)}│ ", "dim"), before, (marks, LEVEL_STYLES[level])))


def _window(excerpt: Excerpt, width: int) -> tuple[str, int | None, int | None]:
    """The part of a line that fits into ``width`` characters, with some of what stands before the mark."""
    text = excerpt.text.replace("\t", " ")
    stripped = text.lstrip()
    cut = len(text) - len(stripped)
    start = max(0, (excerpt.start or 0) - cut)
    end = max(start, (excerpt.end or 0) - cut)
    text = stripped
    if len(text) > width:
        first = max(0, min(start - width // 3, len(text) - width))
        before = "…" if first else ""
        after = "…" if first + width < len(text) else ""
        text = before + text[first + len(before) : first + width - len(after)] + after
        start, end = max(start - first, len(before)), min(end - first, len(text) - len(after))
    if excerpt.start is None or excerpt.end is None:
        return text, None, None
    return text, start, end


def _totals(terminal: Terminal, report: LintReport) -> None:
    style = "bold red" if report.failed else "bold yellow" if report.findings else "bold green"
    terminal.prose(report.totals, style=style)
    if report.findings:
        terminal.line(Text(f"`errtriage rules {report.findings[0].rule}` explains a rule.", "dim"))
