"""``errtriage explain``: every payload found, as a verdict."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from errtriage.completion import complete_contract, complete_tool
from errtriage.console import NOTHING_FOUND, Color, color_option, colored, format_option, guarded, pack_option, packs_in_use, say, width
from errtriage.model import Failure, Http

if TYPE_CHECKING:
    from errtriage.contracts import Contracts
    from errtriage.model import Verdict


class Format(StrEnum):
    """Output formats of explain."""

    TEXT = "text"
    JSON = "json"
    MARKDOWN = "markdown"


@guarded
def explain(
    files: Annotated[list[str] | None, typer.Argument(metavar="[FILE]...", help="Files to read; - or none: standard input.")] = None,
    format: Annotated[Format, format_option(Format, "text, json (a verdict a line) or markdown.")] = Format.TEXT,
    contract: Annotated[
        str | None, typer.Option(metavar="NAME", help="Seek only this contract, and judge what does not match it.", autocompletion=complete_contract)
    ] = None,
    tool: Annotated[
        str | None, typer.Option(metavar="NAME", help="The tool that answered, or a class of tools such as safe-write.", autocompletion=complete_tool)
    ] = None,
    status: Annotated[int | None, typer.Option(min=100, max=999, metavar="CODE", help="The HTTP status, when only the body was kept.")] = None,
    header: Annotated[list[str] | None, typer.Option(metavar="'NAME: VALUE'", help="An HTTP header, when only the body was kept. May be repeated.")] = None,
    trace: Annotated[
        bool | None, typer.Option("--trace/--no-trace", help="Draw the decision tree along the path taken, or leave the path out; else it is listed.")
    ] = None,
    redact: Annotated[bool, typer.Option(help="Hide secrets.")] = True,
    exit_code: Annotated[bool, typer.Option("--exit-code", help="Exit by action (none 0, retry 10, ... report 19, unrecognised 20).")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print no verdicts; for use with --exit-code.")] = False,
    pack: Annotated[list[str] | None, pack_option()] = None,
    color: Annotated[Color, color_option()] = Color.AUTO,
) -> int:
    """Explain every payload found in files or standard input.

    Reads JSON documents, JSON Lines, logs and raw HTTP responses, finds the error envelopes, tool results and
    protocol errors in them, and says what each means and what to do next.

    Exit: 0 a payload was found, 1 none was, 2 wrong usage or a file that could not be read.
    """
    from errtriage.contracts import with_packs
    from errtriage.verdicts import Triage

    contracts = with_packs(packs_in_use(pack, contract))
    http = Http.known(status, headers(header or []))
    triage = Triage(contracts, forced=contracts.get(contract) if contract else None, tool=tool, http=http, redact=redact)
    write = writer(format, color, contracts, trace=trace) if not quiet else void
    names = files or ["-"]
    if names == ["-"] and sys.stdin and sys.stdin.isatty():
        say("reading standard input: paste a failing answer, then press Ctrl-D (or name a file).")
    worst = -1
    unreadable = False
    for name in names:
        found = -1
        try:
            for verdict in verdicts(triage, name, contracts, quiet):
                write(verdict)
                found = max(found, verdict.exit_code)
        except Failure as failure:
            say(str(failure))
            unreadable = True
        worst = max(worst, found)
    if unreadable:
        return 2
    if worst < 0:
        return NOTHING_FOUND
    return worst if exit_code else 0


def verdicts(triage: Any, name: str, contracts: Contracts, quiet: bool) -> Iterator[Verdict]:
    """The verdicts of one input; says what was found instead where there are none."""
    from errtriage import inputs
    from errtriage.wording import where

    data, trouble = inputs.decompress(inputs.read(name))
    if trouble:
        say(f"{where(name)}: {trouble}.")
    text, lossy = inputs.decode(data)
    none = True
    for verdict in triage.text(text, name, lossy=lossy):
        none = False
        yield verdict
    for each in triage.troubles:
        say(f"{where(name)}: {each}.")
    if none and not quiet and not triage.troubles:
        from errtriage.absence import describe

        say(describe(name, data, text, contracts.names()))


def writer(format: Format, color: Color, contracts: Contracts, *, trace: bool | None) -> Callable[[Verdict], None]:
    """What writes a verdict to standard output in the format."""
    if format is Format.JSON:
        from errtriage.render import jsonl

        return lambda verdict: void(sys.stdout.buffer.write(jsonl.line(verdict)))
    if format is Format.MARKDOWN:
        from errtriage.render import markdown

        return lambda verdict: print(markdown.block(verdict, trace=trace, contracts=contracts))
    from errtriage.render.text import TextRenderer

    return TextRenderer(sys.stdout, color=colored(color), width=width(), trace=trace, contracts=contracts).write


def void(_: object) -> None:
    """Drop a value."""


def headers(given: list[str]) -> dict[str, str]:
    """The headers of ``--header``; each is NAME: VALUE."""
    pairs = [each.partition(":") for each in given]
    for name, colon, _ in pairs:
        if not colon or not name.strip():
            raise Failure(f"--header {name!r} is no header.", "Write it as 'Name: value', such as 'Retry-After: 5'.")
    return {name.strip(): value.strip() for name, _, value in pairs}
