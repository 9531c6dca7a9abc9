"""Findings as workflow commands of GitHub Actions, which shows them beside the lines that they are about."""

from __future__ import annotations

from collections import Counter

from errtriage.reports import LintReport, Located

_COMMANDS = {"error": "error", "warning": "warning", "note": "notice"}
#: GitHub shows at most ten annotations of each kind for one step; what is beyond would push out what comes later.
MOST = 10


def render(report: LintReport) -> str:
    """One command a line, the worst findings first, and a line that counts what is not shown."""
    shown: Counter[str] = Counter()
    lines = []
    for level, command in _COMMANDS.items():
        findings = [finding for finding in report.findings if finding.level == level]
        lines += [_command(command, finding) for finding in findings[:MOST]]
        shown[level] = max(0, len(findings) - MOST)
    more = sum(shown.values())
    if more:
        lines.append(f"{more} more findings are not annotated, because GitHub shows {MOST} of each kind; --format text or sarif has them all.")
    return "".join(f"{line}\n" for line in lines)


def _command(command: str, finding: Located) -> str:
    within_line = finding.end_line == finding.line  # GitHub takes columns only then
    places = {
        "file": finding.file if finding.file != "-" else None,
        "line": finding.line,
        "col": finding.column if within_line else None,
        "endLine": finding.end_line,
        "endColumn": finding.end_column if within_line else None,
        "title": f"errtriage {finding.rule}",
    }
    properties = ",".join(f"{name}={_property(str(value))}" for name, value in places.items() if value is not None)
    where = f"{finding.pointer}: " if finding.pointer else ""
    related = f" (line {finding.related[0]}: {finding.related[1]})" if finding.related else ""
    return f"::{command} {properties}::{_data(where + finding.message + related)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
