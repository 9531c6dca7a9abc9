"""``errtriage audit``: what a client did after each verdict, against what the contracts forbid."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from errtriage.completion import complete_contract
from errtriage.console import INTERRUPTED, Color, color_option, colored, format_option, guarded, pack_option, packs_in_use, say, width
from errtriage.findings import (
    Format,
    Level,
    baseline_option,
    choose,
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
from errtriage.model import Failure

#: How many bytes are read at a time: messages take several times the room of what they are read from.
_SLICE = 4 << 20
#: How many sessions are named where one was asked for that there is not.
_NAMED = 10


@guarded
def audit(
    paths: Annotated[list[str], typer.Argument(metavar="PATH...", help="Files, folders and globs; - for standard input.")],
    format: Annotated[Format, format_option(Format, "text, json, sarif, junit or github.")] = Format.TEXT,
    session: Annotated[str | None, typer.Option(metavar="ID", help="Tell this session in order, and audit only it; the begin of its id will do.")] = None,
    select: Annotated[list[str] | None, select_option()] = None,
    ignore: Annotated[list[str] | None, ignore_option()] = None,
    fail_on: Annotated[Level | None, fail_on_option()] = None,
    contract: Annotated[str | None, typer.Option(metavar="NAME", help="Judge every answer by this contract alone.", autocompletion=complete_contract)] = None,
    baseline: Annotated[str | None, baseline_option()] = None,
    write_baseline: Annotated[str | None, write_baseline_option()] = None,
    workers: Annotated[int | None, typer.Option(min=1, metavar="N", help="Processes to work in; by default as many as there are processors.")] = None,
    redact: Annotated[bool, typer.Option(help="Hide secrets.")] = True,
    pack: Annotated[list[str] | None, pack_option()] = None,
    color: Annotated[Color, color_option()] = Color.AUTO,
) -> int:
    """Say which steps of a client its contracts forbid.

    Reads the traffic of MCP clients in order, from wire captures, logs and HAR files, each input by itself: requests,
    answers, and what was called next. `errtriage rules AU` lists what is looked for. Settings are those of lint.

    Exit: 0 clean, 1 findings at or above --fail-on, 2 wrong usage or an input that could not be read.
    """
    from errtriage.audit import Audit, file_reports
    from errtriage.contracts import with_packs
    from errtriage.judge import Settings
    from errtriage.rules import catalogue, conduct_catalogue

    project = project_here()
    packs = packs_in_use(pack, contract or project.contract)
    contracts = with_packs(packs)
    given = (select, ignore, fail_on, contract)
    chosen = choose(contracts, project, conduct_catalogue(contracts), lambda: [rule["id"] for rule in catalogue(contracts)], given)
    settings = Settings(chosen.contract, redact, session is not None, packs)
    excused = read_baseline(baseline, write_baseline)
    listing = inputs_of(paths, baseline, write_baseline)
    found = Audit(settings, frozenset(chosen.rules), session)
    interrupted = _run(found, settings, listing.files, workers)
    if session is not None:
        _only(found, session)
    reports, breaches = file_reports(found)
    _say(found, reports)
    if write_baseline:
        return write_down(write_baseline, reports, listing)
    reports, known = without_known(reports, excused, baseline, chosen.rules)
    report = _report(found, breaches, [*reports, *missing(listing)], chosen, known, contracts.origins)
    write(report.lint, format, lambda: _text(report, color), lambda: _json(report))
    if interrupted:
        return INTERRUPTED
    return 2 if report.lint.unread else int(report.lint.failed)


def _run(found: Any, settings: Any, files: Sequence[str], workers: int | None) -> bool:
    """Read everything; whether that was interrupted, in which case what was found until then counts."""
    from errtriage import executors
    from errtriage.slices import Queue
    from errtriage.traffic import read_slice

    queue = Queue(found, settings, files, _SLICE)
    try:
        for part in executors.run(read_slice, queue.jobs(), workers or executors.processors()):
            each = queue.next_slice()
            if isinstance(part, executors.Lost):
                found.skip(f"the process that read it from byte {each.start:,} to {each.end:,} was ended")
            else:
                found.add(part)
        queue.finish()
    except KeyboardInterrupt:
        say("interrupted; this is what was found until then.")
        found.finish()
        return True
    found.finish()
    return False


def _only(found: Any, session: str) -> None:
    """Leave only one session. Raises Failure where there is none of this name."""
    labels = list(dict.fromkeys(each.label for each in found.sessions if each.calls))
    meant = [session] if session in labels else [label for label in labels if session and label.startswith(session)]
    if len(meant) != 1:
        named = ", ".join(labels[:_NAMED]) + (f" and {len(labels) - _NAMED} more" if len(labels) > _NAMED else "")
        what = f"Several sessions begin with {session!r}." if meant else f"There is no session {session!r}."
        raise Failure(what, f"Sessions: {named}." if labels else "No call was found.")
    (session,) = meant
    found.story = [each for each in found.story if each.session.label == session]
    found.sessions = [each for each in found.sessions if each.label == session]
    found.breaches = [each for each in found.breaches if each.session == session]
    found.late = [each for each in found.late if each.session == session]


def _say(found: Any, reports: Sequence[Any]) -> None:
    """Say what was noticed about the inputs."""
    from errtriage.wording import where

    for report in reports:
        for trouble in report.troubles:
            say(f"{where(report.file)}: {trouble}.")
        if report.failure:
            say(report.failure)
        elif not report.payloads and found.asked_for is None:
            say(f"{where(report.file)}: no call of a client was found in it.")


def _report(found: Any, breaches: Any, reports: list[Any], chosen: Any, known: int, packs: Any) -> Any:
    from errtriage.audit import AuditReport
    from errtriage.reports import LintReport

    lint = LintReport(reports, chosen.rules, chosen.fail_on, known, chosen.settings_file, packs, unit="call")
    return AuditReport(
        lint,
        tuple(breaches[id(finding)] for finding in lint.findings),
        tuple(found.sessions),
        tuple(found.late),
        dict(sorted(found.unapplied.items())),
        tuple(found.mixed),
        found.unassigned,
        found.lines,
        found.bytes,
        found.asked_for,
        tuple(found.story),
    )


def _text(report: Any, color: Color) -> None:
    from errtriage.render import audit_text

    audit_text.render(report, sys.stdout, color=colored(color), width=width())


def _json(report: Any) -> bytes:
    from errtriage.render import audit_json

    return audit_json.render(report)
