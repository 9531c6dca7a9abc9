"""``errtriage scan``: what failed in logs, how often, since when, and what to do."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from errtriage.completion import complete_only
from errtriage.console import INTERRUPTED, Color, color_option, colored, format_option, guarded, one_of, pack_option, packs_in_use, say, width
from errtriage.model import Action, Failure, Outcome

if TYPE_CHECKING:
    from errtriage.packs import Pack


class Format(StrEnum):
    """Output formats of scan."""

    TEXT = "text"
    JSON = "json"
    JSONL = "jsonl"
    CSV = "csv"
    HTML = "html"


@guarded
def scan(
    paths: Annotated[list[str], typer.Argument(metavar="PATH...", help="Files, folders and globs; - for standard input.")],
    format: Annotated[Format, format_option(Format, "text, json, jsonl (a verdict a line), csv or html.")] = Format.TEXT,
    output: Annotated[str | None, typer.Option("--output", "-o", metavar="FILE", help="Write the report to this file.")] = None,
    since: Annotated[str | None, typer.Option(metavar="TIME", help="Only records from then on: ISO 8601, or 30m, 6h, 2d before now.")] = None,
    until: Annotated[str | None, typer.Option(metavar="TIME", help="Only records before then.")] = None,
    top: Annotated[int | None, typer.Option(min=1, metavar="N", help="Show only the first N groups.")] = None,
    only: Annotated[
        list[str] | None, typer.Option(metavar="WORD", help="Only this action, outcome or code; with commas or repeated.", autocompletion=complete_only)
    ] = None,
    all: Annotated[bool, typer.Option("--all", help="Count successes too; reads everything, and takes longer.")] = False,
    workers: Annotated[int | None, typer.Option(min=1, metavar="N", help="Processes to work in; by default as many as there are processors.")] = None,
    cluster: Annotated[str | None, typer.Option(metavar="WHERE", help="Scan on a Dask cluster: tcp://HOST:8786, a scheduler's file, or local.")] = None,
    follow: Annotated[bool, typer.Option("--follow", "-F", help="Go on reading files that grow, a line for each verdict.")] = False,
    fail_on: Annotated[
        Outcome | None,
        typer.Option(
            "--fail-on", parser=one_of("outcome", Outcome), help="Exit with 1 if this outcome or a worse one was found.", autocompletion=lambda: list(Outcome)
        ),
    ] = None,
    progress: Annotated[bool, typer.Option(help="Show progress on a terminal.")] = True,
    redact: Annotated[bool, typer.Option(help="Hide secrets.")] = True,
    pack: Annotated[list[str] | None, pack_option()] = None,
    color: Annotated[Color, color_option()] = Color.AUTO,
) -> int:
    """Say what failed in logs, how often, since when, and what to do.

    Reads files, folders and globs, compressed or not. What must not be done wrong comes first.

    Exit: 0 all was read, 1 something at or above --fail-on, 2 wrong usage or an input that could not be read.
    """
    from errtriage.moments import asked_for
    from errtriage.paths import NOTHING_THERE, expand
    from errtriage.scan import Settings

    packs = packs_in_use(pack)
    settings = Settings(
        successes=all,
        redact=redact,
        verdicts=format is Format.JSONL or follow,
        since=asked_for("--since", since),
        until=asked_for("--until", until),
        only=_words(only, packs),
        packs=packs,
    )
    listing = expand(paths)
    for name in listing.empty:
        say(f"{name}: {NOTHING_THERE}")
    if settings.since is not None and settings.until is not None and settings.since >= settings.until:
        raise Failure("--since is not before --until, so there is nothing between them.")
    if follow:
        for option, given in (("--output", output), ("--top", top), ("--fail-on", fail_on)):
            if given is not None:
                raise Failure(f"--follow has no end, and {option} is about one.", f"Leave {option} away, or scan without --follow.")
        return _follow(settings, listing, format, from_start=since is not None, color=color)
    bar = _bar if progress and sys.stderr and sys.stderr.isatty() else _no_bar
    if output and os.path.realpath(output) in {os.path.realpath(file) for file in listing.files}:
        raise Failure(f"{output} is read, and cannot be written over.", "Name another file for --output.")
    with _destination(output) as out:
        return _report(settings, listing, out, format, top, (workers, cluster), fail_on, bar, color)


def _follow(settings: Any, listing: Any, format: Format, *, from_start: bool, color: Color) -> int:
    """Print verdicts as they come, until standard input ends or the run is interrupted."""
    from errtriage.follow import verdicts
    from errtriage.inputs import is_url
    from errtriage.render import jsonl
    from errtriage.scan import scanner_for

    if url := next((name for name in listing.files if is_url(name)), None):
        raise Failure(f"{url} cannot be followed: --follow reads files of this machine.", "Scan it without --follow.")
    if format not in (Format.TEXT, Format.JSONL):
        raise Failure(f"--follow has no end, and --format {format} is written at the end.", "Use --format text or jsonl.")
    names = [*listing.files, *(name for name, _ in listing.missing)]  # a log may not be there yet
    for name, _ in listing.missing:
        say(f"{name} is not there; waiting for it.")
    if format is Format.JSONL:
        write: Callable[[Any], None] = lambda verdict: to_stdout(jsonl.line(verdict))  # noqa: E731 - two ways to write
    else:
        from errtriage.render import scan_text

        write = scan_text.line_writer(sys.stdout, color=colored(color), width=width())
    for verdict in verdicts(names, scanner_for(settings), from_start=from_start):
        write(verdict)
    return 0


def _words(given: Sequence[str] | None, packs: tuple[Pack, ...]) -> frozenset[str]:
    """The words of ``--only``; says where one is neither an action nor an outcome nor a code that a contract knows."""
    words = frozenset(part.strip() for each in given or () for part in each.split(",") if part.strip())
    if words:
        from errtriage.contracts import with_packs

        contracts = with_packs(packs)
        for word in sorted(words - {*Action, *Outcome}):
            if not any(contract.catalogue.find(word) for contract in contracts):
                say(f"--only {word}: no action or outcome is called so, and no contract knows such a code.")
    return words


def _report(
    settings: Any,
    listing: Any,
    out: Callable[[bytes], None],
    format: Format,
    top: int | None,
    engine: tuple[int | None, str | None],
    fail_on: Outcome | None,
    bar: Any,
    color: Color,
) -> int:
    """Scan everything and write the report; what was found until then, when it is interrupted."""
    from errtriage.contracts import with_packs
    from errtriage.merge import Merge
    from errtriage.render import jsonl
    from errtriage.scan import scanner_for
    from errtriage.survey import SEVERITY, of_merge
    from errtriage.wording import where

    merge = Merge(scanner_for(settings))
    for name, reason in listing.missing:
        merge.open(name)
        merge.skip(reason)
    interrupted = False
    try:
        for verdict in _verdicts(settings, listing.files, merge, engine, bar):
            if format is Format.JSONL:
                out(jsonl.line(verdict))
    except KeyboardInterrupt:
        interrupted = True
    for name, trouble in merge.troubles:
        say(f"{where(name)}: {trouble}.")
    for name, reason in merge.tally.skipped:
        say(f"{where(name)} could not be read: {reason}.")
    narrowed = settings.only or settings.since is not None or settings.until is not None
    survey = of_merge(merge, top)._replace(narrowed=bool(narrowed), packs=with_packs(settings.packs).origins)
    if format is not Format.JSONL:
        _write(survey, out, format, color)
    if interrupted:
        say("interrupted; this is what was found until then.")
        return INTERRUPTED
    if survey.skipped:
        return 2
    worst = survey.worst()
    return int(fail_on is not None and worst is not None and SEVERITY.index(worst) <= SEVERITY.index(fail_on))


def _verdicts(settings: Any, files: Sequence[str], merge: Any, engine: tuple[int | None, str | None], bar: Any) -> Iterator[Any]:
    """Merge the parts of all files in order, and pass on the verdicts that are asked for."""
    from errtriage import executors

    with _run(settings, files, merge, engine) as (queue, parts), bar(files) as advance:
        for part in parts:
            each = queue.next_slice()
            if isinstance(part, executors.Lost):
                merge.skip(f"the process that read it from byte {each.start:,} to {each.end:,} was ended")
            else:
                yield from merge.add(part)
            advance(each.end - each.start)
        queue.finish()


@contextmanager
def _run(settings: Any, files: Sequence[str], merge: Any, engine: tuple[int | None, str | None]) -> Iterator[tuple[Any, Any]]:
    """The queue of slices, and the parts that they come to: from this machine's processes, or from a cluster."""
    from errtriage import executors
    from errtriage.scan import scan_slice
    from errtriage.slices import Queue

    workers, cluster = engine
    if cluster is None:
        queue = Queue(merge, settings, files)
        yield queue, executors.run(scan_slice, queue.jobs(), workers or executors.processors())
        return
    from errtriage.cluster import connected
    from errtriage.inputs import is_url
    from errtriage.slices import with_bytes

    with connected(cluster, workers) as found:
        reached = found.reached([os.path.abspath(name) for name in files if not is_url(name) and name != "-"])  # noqa: PTH100 - as it is named

        def packed(part: Any) -> Any:
            absolute = part.path if is_url(part.path) else os.path.abspath(part.path)  # noqa: PTH100 - as above
            return part._replace(path=absolute) if absolute in reached else with_bytes(part)

        queue = Queue(merge, settings, files, packed=packed)
        parts = executors.run_on(found.executor, scan_slice, queue.jobs(), found.threads, found.lost)
        try:
            yield queue, parts
        finally:
            parts.close()


def _write(survey: Any, out: Callable[[bytes], None], format: Format, color: Color) -> None:
    if format is Format.JSON:
        from errtriage.render import scan_json

        out(scan_json.render(survey))
    elif format is Format.CSV:
        from errtriage.render import scan_csv

        out(scan_csv.render(survey).encode())
    elif format is Format.HTML:
        from errtriage.render import scan_html

        out(scan_html.render(survey).encode())
    else:
        from errtriage.render import scan_text

        if out is not to_stdout:
            from io import StringIO

            text = StringIO()
            scan_text.render(survey, text, color=color is Color.ALWAYS, width=None)
            out(text.getvalue().encode())
        else:
            scan_text.render(survey, sys.stdout, color=colored(color), width=width())


def to_stdout(data: bytes) -> None:
    """Write some of the report to standard output."""
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


@contextmanager
def _destination(output: str | None) -> Iterator[Callable[[bytes], None]]:
    """What writes the report: to standard output, or to a file, which is opened before any work is done."""
    if output is None:
        yield to_stdout
        return
    try:
        file = open(output, "wb")  # noqa: PTH123, SIM115 - closed below
    except OSError as error:
        raise Failure(f"The report cannot be written to {output}: {error.strerror}.") from None
    with file:

        def write(data: bytes) -> None:
            file.write(data)

        yield write


@contextmanager
def _no_bar(_files: Sequence[str]) -> Iterator[Callable[[int], None]]:
    """Progress that nobody sees."""
    yield lambda _: None


@contextmanager
def _bar(files: Sequence[str]) -> Iterator[Callable[[int], None]]:
    """A bar on standard error, with bytes, rate and time left (where the size of everything is known)."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn, TransferSpeedColumn

    from errtriage.slices import plain_size

    sizes = [plain_size(name) for name in files]
    total = None if None in sizes else sum(size for size in sizes if size is not None)
    columns = (BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=total)
        yield lambda size: bar.advance(task, size)
