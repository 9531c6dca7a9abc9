"""``errtriage lint``: captured answers against their contracts."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import typer

from errtriage.completion import complete_contract
from errtriage.console import Color, color_option, colored, format_option, guarded, pack_option, packs_in_use, say, width
from errtriage.findings import (
    Format,
    Level,
    baseline_option,
    choose,
    conduct_rules,
    fail_on_option,
    ignore_option,
    inputs_of,
    missing,
    project_here,
    read_baseline,
    select_option,
    without_known,
    write,
    write_baseline_option,
    write_down,
)

#: How many small files one worker takes at a time, and how many files are worth a second process.
_TOGETHER, _MANY = 100, 1000
#: How many bytes are worth a second process.
_MUCH = 8 << 20


@guarded
def lint(
    paths: Annotated[list[str], typer.Argument(metavar="PATH...", help="Files, folders and globs; - for standard input.")],
    format: Annotated[Format, format_option(Format, "text, json, sarif, junit or github.")] = Format.TEXT,
    select: Annotated[list[str] | None, select_option()] = None,
    ignore: Annotated[list[str] | None, ignore_option()] = None,
    fail_on: Annotated[Level | None, fail_on_option()] = None,
    contract: Annotated[
        str | None, typer.Option(metavar="NAME", help="Seek only this contract, and judge what does not match it.", autocompletion=complete_contract)
    ] = None,
    baseline: Annotated[str | None, baseline_option()] = None,
    write_baseline: Annotated[str | None, write_baseline_option()] = None,
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
    from errtriage.contracts import with_packs
    from errtriage.lint import Settings
    from errtriage.reports import LintReport
    from errtriage.rules import catalogue

    project = project_here()
    packs = packs_in_use(pack, contract or project.contract)
    contracts = with_packs(packs)
    chosen = choose(contracts, project, catalogue(contracts), conduct_rules, (select, ignore, fail_on, contract))
    settings = Settings(chosen.contract, frozenset(chosen.rules), redact, packs)
    if format is not Format.TEXT:
        settings = settings._replace(excerpts=0)
    excused = read_baseline(baseline, write_baseline)
    listing = inputs_of(paths, baseline, write_baseline)
    reports = [_told(report) for report in _reports(settings, listing.files, workers)]
    if write_baseline:
        return write_down(write_baseline, reports, listing)
    reports, known = without_known(reports, excused, baseline, chosen.rules)
    report = LintReport([*reports, *missing(listing)], chosen.rules, chosen.fail_on, known, chosen.settings_file, contracts.origins)
    write(report, format, lambda: _text(report, color), lambda: _json(report))
    return 2 if report.unread else int(report.failed)


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


def _text(report: Any, color: Color) -> None:
    if report.findings or colored(color):
        from errtriage.render import lint_text

        lint_text.render(report, sys.stdout, color=colored(color), width=width())
    else:
        print(report.totals)  # spares a clean run, as most are, the import of Rich


def _json(report: Any) -> bytes:
    from errtriage.render import lint_json

    return lint_json.render(report)
