"""``errtriage lint``: captured answers against their contracts."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from errtriage.completion import complete_contract, complete_rule
from errtriage.console import Color, color_option, colored, format_option, guarded, one_of, pack_option, packs_in_use, say, width
from errtriage.model import Failure

if TYPE_CHECKING:
    from errtriage.contracts import Contracts
    from errtriage.settings import Project


class Format(StrEnum):
    """Output formats of lint."""

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


#: How many small files one worker takes at a time, and how many files are worth a second process.
_TOGETHER, _MANY = 100, 1000
#: How many bytes are worth a second process.
_MUCH = 8 << 20


@guarded
def lint(
    paths: Annotated[list[str], typer.Argument(metavar="PATH...", help="Files, folders and globs; - for standard input.")],
    format: Annotated[Format, format_option(Format, "text, json, sarif, junit or github.")] = Format.TEXT,
    select: Annotated[list[str] | None, typer.Option(metavar="RULE", help="Only these rules (ids or prefixes).", autocompletion=complete_rule)] = None,
    ignore: Annotated[list[str] | None, typer.Option(metavar="RULE", help="All but these rules.", autocompletion=complete_rule)] = None,
    fail_on: Annotated[
        Level | None,
        typer.Option(
            "--fail-on",
            parser=one_of("level", Level),
            help="Exit with 1 for this level and above; error unless a project sets another.",
            autocompletion=lambda: list(Level),
        ),
    ] = None,
    contract: Annotated[
        str | None, typer.Option(metavar="NAME", help="Seek only this contract, and judge what does not match it.", autocompletion=complete_contract)
    ] = None,
    baseline: Annotated[str | None, typer.Option(metavar="FILE", help="Count only findings that are not in this file.")] = None,
    write_baseline: Annotated[
        str | None, typer.Option("--write-baseline", metavar="FILE", help="Write today's findings to this file, and exit with 0.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Processes to work in; by default as many as there are processors, for many files.")
    ] = None,
    redact: Annotated[bool, typer.Option(help="Hide secrets.")] = True,
    pack: Annotated[list[str] | None, pack_option()] = None,
    color: Annotated[Color, color_option()] = Color.AUTO,
) -> int:
    """Check captured responses against their contracts.

    Every payload is held to the JSON Schema of its shape and to the rules that `errtriage rules` lists. A project can
    set select, ignore, fail-on and contract in errtriage.toml, or in pyproject.toml under [tool.errtriage].

    Exit: 0 clean, 1 findings at or above --fail-on, 2 wrong usage or a file that could not be read.
    """
    from errtriage import baseline as baselines
    from errtriage import settings as projects
    from errtriage.contracts import with_packs
    from errtriage.lint import Settings
    from errtriage.paths import NOTHING_THERE, expand
    from errtriage.reports import LintReport
    from errtriage.rules import catalogue

    project = projects.find(Path.cwd())
    packs = packs_in_use(pack, contract or project.contract)
    contracts = with_packs(packs)
    known = {rule["id"]: rule for rule in catalogue(contracts)}
    rules = _rules(select, ignore, project, list(known))
    settings = Settings(_contract(contracts, contract, project), rules, redact, packs)
    if format is not Format.TEXT:
        settings = settings._replace(excerpts=0)
    for option, file in (("--baseline", baseline), ("--write-baseline", write_baseline)):
        if file == "":
            raise Failure(f"{option} names no file.", "Is a variable empty?")
    excused = baselines.read(baseline) if baseline else None
    if write_baseline:
        baselines.check(write_baseline)
    listing = expand(paths)
    ours = {os.path.realpath(file) for file in (baseline, write_baseline) if file}
    listing.files[:] = [file for file in listing.files if not ours or os.path.realpath(file) not in ours]
    for name, reason in listing.missing:
        say(f"{name} cannot be read: {reason}.")
    for name in listing.empty:
        say(f"{name}: {NOTHING_THERE}")
    reports = [_told(report) for report in _reports(settings, listing.files, workers)]
    if write_baseline:
        count = baselines.write(write_baseline, reports)
        say(f"{count} findings written to {write_baseline}; --baseline {write_baseline} excuses them from now on.")
        return 2 if listing.missing or any(report.failure for report in reports) else 0
    before = sum(len(report.findings) for report in reports)
    if excused:
        reports = [excused.without_known(report) for report in reports]
        gone = excused.gone(reports, rules)
        if gone:
            say(f"{gone} findings of the baseline are gone; --write-baseline {baseline} takes them out.")
    report = LintReport(
        [*reports, *(_missing(name, reason) for name, reason in listing.missing)],
        {name: known[name] for name in known if name in rules},
        _fail_on(fail_on, project),
        before - sum(len(each.findings) for each in reports),
        project.file,
        contracts.origins,
    )
    _write(report, format, color)
    return 2 if report.unread else int(report.failed)


def _rules(select: list[str] | None, ignore: list[str] | None, project: Project, known: list[str]) -> frozenset[str]:
    """The rules that count: what the options say or, where they say nothing, what the project says."""
    from errtriage.lint import selected
    from errtriage.settings import listed

    if select is None and ignore is None:
        try:
            return selected(project.select, project.ignore, known)
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


def _reports(settings: Any, files: Sequence[str], workers: int | None) -> Iterator[Any]:
    """The report of every file, in order; many or large files are shared out among processes."""
    from errtriage import executors
    from errtriage.lint import check_files
    from errtriage.redact import clean
    from errtriage.reports import FileReport

    chunks, much = _chunks(files)
    count = workers or (executors.processors() if much else 1)
    if "-" in files:
        count = 1  # a worker has no standard input
    for chunk, reports in zip(chunks, executors.run(check_files, [(settings, chunk) for chunk in chunks], min(count, len(chunks))), strict=True):
        if isinstance(reports, executors.Lost):
            yield from (FileReport(clean(name), failure=f"{name} could not be checked: the process that read it was ended.") for name in chunk)
        else:
            yield from reports


def _chunks(files: Sequence[str]) -> tuple[list[list[str]], bool]:
    """Files in portions for workers, each file beyond some size alone; and whether there is enough for a second one."""
    chunks: list[list[str]] = []
    total = open_bytes = 0
    for file in files:
        size = _size(file)
        total += size
        if chunks and len(chunks[-1]) < _TOGETHER and open_bytes + size < _MUCH // 4:
            chunks[-1].append(file)
            open_bytes += size
        else:
            chunks.append([file])
            open_bytes = size
    return chunks, len(files) >= _MANY or total >= _MUCH


def _size(file: str) -> int:
    try:
        return os.stat(file).st_size  # noqa: PTH116 - for thousands of small files a Path costs as much as reading them
    except OSError:
        return 0


def _told(report: Any) -> Any:
    """Say what was noticed about a file, and pass it on."""
    from errtriage.wording import where

    if report.failure:
        say(report.failure)
    for trouble in report.troubles:
        say(f"{where(report.file)}: {trouble}.")
    return report


def _missing(name: str, reason: str) -> Any:
    from errtriage.redact import clean
    from errtriage.reports import FileReport

    return FileReport(clean(name), failure=clean(f"{name} cannot be read: {reason}."))


def _write(report: Any, format: Format, color: Color) -> None:
    if format is Format.JSON:
        from errtriage.render import lint_json

        sys.stdout.buffer.write(lint_json.render(report))
    elif format is Format.SARIF:
        from errtriage.render import sarif

        sys.stdout.buffer.write(sarif.render(report))
    elif format is Format.JUNIT:
        from errtriage.render import junit

        sys.stdout.buffer.write(junit.render(report))
    elif format is Format.GITHUB:
        from errtriage.render import github

        print(github.render(report), end="")
    elif report.findings or colored(color):
        from errtriage.render import lint_text

        lint_text.render(report, sys.stdout, color=colored(color), width=width())
    else:
        print(report.totals)  # spares a clean run, as most are, the import of Rich
