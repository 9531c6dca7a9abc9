"""The nouns of lint and audit: a finding with its place, what one file came to, and the report that every format shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from errtriage.wording import counted

#: The levels of findings, the worst first.
LEVELS = ("error", "warning", "note")


class Excerpt(NamedTuple):
    """The line of a finding, ready to be shown; the mark's ends are offsets in it, or None where they are not known."""

    text: str
    start: int | None = None
    end: int | None = None


class Located(NamedTuple):
    """A finding in a file. Lines and columns are 1-based, columns in characters; the end is the first character behind it.

    Without ``column`` only the line is known on which the record around it starts.
    """

    rule: str
    level: str
    file: str
    line: int
    column: int | None
    end_line: int | None
    end_column: int | None
    pointer: str
    message: str
    excerpt: Excerpt | None = None
    #: The line that the finding hangs on, and what stands there.
    related: tuple[int, str] | None = None
    #: By what it is known again in another run; by its message, where there is nothing.
    identity: str = ""


class FileReport(NamedTuple):
    """What one file came to: its payloads, its findings in order, what was noticed, and why it could not be read."""

    file: str
    payloads: int = 0
    findings: tuple[Located, ...] = ()
    troubles: tuple[str, ...] = ()
    failure: str | None = None


class LintReport(NamedTuple):
    """The reports of all files, and what is needed to judge them.

    ``known`` counts the findings that the baseline excused; ``rules`` are the rules that were applied, by id.
    """

    reports: Sequence[FileReport]
    rules: Mapping[str, Mapping[str, Any]]
    fail_on: str = "error"
    known: int = 0
    settings_file: str | None = None
    #: Where contracts are from that are not bundled, by their names.
    packs: Mapping[str, str] = {}
    #: What was looked at, as it is counted.
    unit: str = "payload"

    @property
    def command(self) -> str:
        """The command whose report it is."""
        return "audit" if self.unit == "call" else "lint"

    @property
    def findings(self) -> list[Located]:
        """All findings, file by file."""
        return [finding for report in self.reports for finding in report.findings]

    @property
    def files(self) -> int:
        """How many files were read."""
        return sum(report.failure is None for report in self.reports)

    @property
    def payloads(self) -> int:
        """How many payloads were checked."""
        return sum(report.payloads for report in self.reports)

    @property
    def by_level(self) -> dict[str, int]:
        """How many findings there are of each level."""
        levels = [finding.level for finding in self.findings]
        return {level: levels.count(level) for level in LEVELS}

    @property
    def unread(self) -> list[tuple[str, str]]:
        """The files that could not be read, with the reason."""
        return [(report.file, report.failure) for report in self.reports if report.failure is not None]

    @property
    def totals(self) -> str:
        """One line that counts what was read and found."""
        counts = self.by_level
        found = ", ".join(counted(counts[level], level) for level in LEVELS if counts[level]) or "no findings"
        parts = [f"{counted(self.files, 'file')}, {counted(self.payloads, self.unit)}: {found}"]
        if self.known:
            parts.append(f"{self.known} more in the baseline")
        if self.unread:
            parts.append(f"{counted(len(self.unread), 'file')} not read")
        if self.settings_file:
            parts.append(f"settings of {self.settings_file}")
        parts += [f"contract {name} from {origin}" for name, origin in self.packs.items()]
        return "; ".join(parts) + "."

    def fails(self, finding: Located) -> bool:
        """Whether a finding is at or above the level that fails the run."""
        return LEVELS.index(finding.level) <= LEVELS.index(self.fail_on)

    @property
    def failed(self) -> bool:
        """Whether any finding fails the run."""
        return any(self.fails(finding) for finding in self.findings)
