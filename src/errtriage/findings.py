"""What the commands that report findings have in common: options that a project may set, a baseline, output formats.

Only commands import this module.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from errtriage.completion import complete_rule
from errtriage.console import one_of, say
from errtriage.model import Failure

if TYPE_CHECKING:
    from errtriage.baseline import Baseline
    from errtriage.contracts import Contracts
    from errtriage.paths import Listing
    from errtriage.reports import FileReport, LintReport
    from errtriage.settings import Project


class Format(StrEnum):
    """Output formats of findings."""

    TEXT = "text"
    JSON = "json"
    SARIF = "sarif"
    JUNIT = "junit"
    GITHUB = "github"


class Level(StrEnum):
    """Levels of findings."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


def select_option() -> Any:
    """The option ``--select``."""
    return typer.Option(metavar="RULE", help="Only these rules (ids or prefixes).", autocompletion=complete_rule)


def ignore_option() -> Any:
    """The option ``--ignore``."""
    return typer.Option(metavar="RULE", help="All but these rules.", autocompletion=complete_rule)


def fail_on_option() -> Any:
    """The option ``--fail-on``."""
    what = "Exit with 1 for this level and above; error unless a project sets another."
    return typer.Option("--fail-on", parser=one_of("level", Level), help=what, autocompletion=lambda: list(Level))


def baseline_option() -> Any:
    """The option ``--baseline``."""
    return typer.Option(metavar="FILE", help="Count only findings that are not in this file.")


def write_baseline_option() -> Any:
    """The option ``--write-baseline``."""
    return typer.Option("--write-baseline", metavar="FILE", help="Write today's findings to this file, and exit with 0.")


class Chosen(NamedTuple):
    """What options and the project's settings come to."""

    #: The rules that count, by id.
    rules: Mapping[str, Mapping[str, Any]]
    fail_on: str
    contract: str | None
    #: Where the project's settings stand.
    settings_file: str | None


def choose(
    contracts: Contracts,
    project: Project,
    rules: Sequence[Mapping[str, Any]],
    others: Callable[[], Sequence[str]],
    given: tuple[Sequence[str] | None, Sequence[str] | None, Level | None, str | None],
) -> Chosen:
    """What counts: what the options say (select, ignore, fail-on, contract) or, where they say nothing, what the project says.

    ``others`` tells the rules of other commands, which a project may name too. Raises Failure for what there is not.
    """
    select, ignore, fail_on, contract = given
    known = {rule["id"]: rule for rule in rules}
    chosen = _rules(select, ignore, project, list(known), others)
    return Chosen(
        {name: known[name] for name in known if name in chosen},
        _fail_on(fail_on, project),
        _contract(contracts, contract, project),
        project.file,
    )


def _rules(
    select: Sequence[str] | None, ignore: Sequence[str] | None, project: Project, known: Sequence[str], others: Callable[[], Sequence[str]]
) -> frozenset[str]:
    from errtriage.rules import selected
    from errtriage.settings import listed

    if select is None and ignore is None:
        try:
            return selected(project.select, project.ignore, known, others() if project.select or project.ignore else ())
        except Failure as failure:
            raise Failure(f"In {project.file}: {failure}") from None
    for option, given in (("--select", select), ("--ignore", ignore)):
        if given is not None and not listed(given):
            raise Failure(f"{option} names no rule.", "Is a variable empty?")
    return selected(listed(select or ()), listed(ignore or ()), known)


def _contract(contracts: Contracts, given: str | None, project: Project) -> str | None:
    """The contract to use, checked before any work is done."""
    if given is not None:
        return contracts.get(given).name
    try:
        return contracts.get(project.contract).name if project.contract else None
    except Failure as failure:
        raise Failure(f"In {project.file}: {failure}") from None


def _fail_on(given: Level | None, project: Project) -> str:
    if given is not None or project.fail_on is None:
        return given or Level.ERROR
    try:
        return Level(project.fail_on)
    except ValueError:
        from errtriage.contracts import unknown_name

        message, hint = unknown_name("level", project.fail_on, list(Level))
        raise Failure(f"In {project.file}, fail-on: {message}", hint) from None


def conduct_rules() -> list[str]:
    """The ids of audit's rules."""
    from errtriage.contracts import own_conduct

    return [rule["id"] for rule in own_conduct()["rules"]]


def read_baseline(baseline: str | None, write_baseline: str | None) -> Baseline | None:
    """The baseline, if one is named; a file that is to be written is looked at before any work is done. Raises Failure."""
    from errtriage import baseline as baselines

    for option, file in (("--baseline", baseline), ("--write-baseline", write_baseline)):
        if file == "":
            raise Failure(f"{option} names no file.", "Is a variable empty?")
    excused = baselines.read(baseline) if baseline else None
    if write_baseline:
        baselines.check(write_baseline)
    return excused


def inputs_of(paths: list[str], *ours: str | None) -> Listing:
    """The files behind the paths but for our own; says which are missing, and where nothing is."""
    from errtriage.paths import NOTHING_THERE, expand

    listing = expand(paths)
    own = {os.path.realpath(file) for file in ours if file}
    listing.files[:] = [file for file in listing.files if not own or os.path.realpath(file) not in own]
    for name, reason in listing.missing:
        say(f"{name} cannot be read: {reason}.")
    for name in listing.empty:
        say(f"{name}: {NOTHING_THERE}")
    return listing


def write_down(write_baseline: str, reports: Sequence[FileReport], listing: Listing) -> int:
    """Write a baseline, and return the exit code."""
    from errtriage import baseline as baselines
    from errtriage.wording import counted

    count = baselines.write(write_baseline, reports)
    say(f"{counted(count, 'finding')} written to {write_baseline}; --baseline {write_baseline} excuses them from now on.")
    return 2 if listing.missing or any(report.failure for report in reports) else 0


def without_known(reports: list[FileReport], excused: Baseline | None, baseline: str | None, rules: Mapping[str, Any]) -> tuple[list[FileReport], int]:
    """The reports without what the baseline excuses, and how much that was; says what of it is gone."""
    if excused is None:
        return reports, 0
    from errtriage.wording import counted

    before = sum(len(report.findings) for report in reports)
    reports = [excused.without_known(report) for report in reports]
    gone = excused.gone(reports, rules)
    if gone:
        say(f"{counted(gone, 'finding')} of the baseline {'is' if gone == 1 else 'are'} gone; --write-baseline {baseline} takes them out.")
    return reports, before - sum(len(report.findings) for report in reports)


def missing(listing: Listing) -> list[FileReport]:
    """A report for each path that could not be read."""
    from errtriage.redact import clean
    from errtriage.reports import FileReport

    return [FileReport(clean(name), failure=clean(f"{name} cannot be read: {reason}.")) for name, reason in listing.missing]


def project_here() -> Project:
    """The settings of the project that the working folder belongs to. Raises Failure for damaged ones."""
    from errtriage import settings

    return settings.find(Path.cwd())


def write(report: LintReport, form: Format, text: Callable[[], None], as_json: Callable[[], bytes]) -> None:
    """Write a report in a format; what text and JSON are is the command's own."""
    if form is Format.JSON:
        sys.stdout.buffer.write(as_json())
    elif form is Format.SARIF:
        from errtriage.render import sarif

        sys.stdout.buffer.write(sarif.render(report))
    elif form is Format.JUNIT:
        from errtriage.render import junit

        sys.stdout.buffer.write(junit.render(report))
    elif form is Format.GITHUB:
        from errtriage.render import github

        sys.stdout.write(github.render(report))
    else:
        text()
