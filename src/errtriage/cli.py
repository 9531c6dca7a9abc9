"""The command line: options to calls to exit codes. Nothing imports this module, and it imports the work when it is needed."""

from __future__ import annotations

import gc

# Start-up makes many objects and no garbage; looking for some would take a tenth of it.
gc.set_threshold(100_000, 20, 20)

import os
import sys
from collections.abc import Callable, Iterator
from enum import StrEnum
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, ParamSpec

import typer

from errtriage import __version__
from errtriage.model import Failure, Http

if TYPE_CHECKING:
    from errtriage.contracts import Contracts
    from errtriage.model import Verdict

P = ParamSpec("P")

NOTHING_FOUND = 1
BUG = 70
INTERRUPTED = 130
READER_GONE = 141

app = typer.Typer(
    help="Turns a failing answer into the next right step: what happened, what to do, what never to do, and the id to quote.",
    rich_markup_mode=None,  # plain help: the same on a terminal, in a pipe and in CI
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)


class Format(StrEnum):
    """Output formats of explain."""

    TEXT = "text"
    JSON = "json"
    MARKDOWN = "markdown"


class Color(StrEnum):
    """When output is coloured."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


def say(message: str) -> None:
    """One line for people, on standard error."""
    from errtriage.redact import clean, secrets

    print(f"errtriage: {secrets(clean(message), ())}", file=sys.stderr)


def guarded(command: Callable[P, int]) -> Callable[P, None]:
    """Turn what a command returns or raises into an exit code: expected failures, interruption, a closed pipe, our bugs."""

    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        if sys.stdout is None:  # closed by the shell: what is printed goes nowhere, the exit code still counts
            sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 - it stays open to the end
        plain_substitutes()
        try:
            code = command(*args, **kwargs)
            sys.stdout.flush()
        except Failure as failure:
            say(str(failure))
            code = failure.exit_code
        except BrokenPipeError:
            leave_quietly()
        except KeyboardInterrupt:
            code = INTERRUPTED
        except OSError as error:  # inputs are read elsewhere, so it is the output
            say(f"The output cannot be written: {error.strerror}. Free some room or write it elsewhere.")
            drop_output()
            code = 2
        except (typer.Exit, typer.BadParameter):
            raise
        except Exception as error:  # noqa: BLE001 - the one guard, which reports it as our bug
            code = _bug(error)
        gc.freeze()  # spares the interpreter a last look for garbage
        raise typer.Exit(code)

    return run


def leave_quietly() -> NoReturn:
    """The reader of our output went away: end at once, without a word."""
    drop_output()
    raise typer.Exit(READER_GONE)


def drop_output() -> None:
    """Python would flush standard output once more on its way out and complain about it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _bug(error: Exception) -> int:
    from traceback import extract_tb

    place = extract_tb(error.__traceback__)[-1]
    where = f"{place.filename.rpartition(os.sep)[2]}:{place.lineno}"
    say(f"this is a bug in errtriage {__version__}: {type(error).__name__} at {where}. Please report it with this line and, if you can share it, the input.")
    return BUG


def plain_substitutes() -> None:
    """An output that cannot show a character gets a plain one instead, never an exception."""
    import codecs

    plain = str.maketrans({"“": '"', "”": '"', "’": "'", "…": "...", "·": "-", "✗": "x", "›": ">", "─": "-", "\u200b": ""})

    def substitute(error: UnicodeError) -> tuple[str, int]:
        if not isinstance(error, UnicodeEncodeError):
            raise error
        part = error.object[error.start : error.end].translate(plain)
        return part.encode("ascii", "replace").decode("ascii"), error.end

    codecs.register_error("errtriage", substitute)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="errtriage")


def colored(color: Color) -> bool:
    """Whether standard output is coloured: as asked for, else NO_COLOR, else FORCE_COLOR, else only on a terminal."""
    if color is not Color.AUTO:
        return color is Color.ALWAYS
    if os.environ.get("NO_COLOR"):
        return False
    return os.environ.get("FORCE_COLOR", "0") not in ("", "0", "false") or (sys.stdout.isatty() and os.environ.get("TERM") != "dumb")


def width() -> int | None:
    """The width to wrap at: the terminal's, or COLUMNS; None in a pipe."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and len(columns) < 6 and int(columns) > 0:
        return int(columns)
    return os.get_terminal_size(sys.stdout.fileno()).columns or 80 if sys.stdout.isatty() else None


def one_of(kind: str, known: type[StrEnum]) -> Any:
    """A parser for an option's value that offers the nearest known one."""

    def parse(value: str) -> StrEnum:
        try:
            return known(value)
        except ValueError:
            from errtriage.contracts import unknown_name

            raise typer.BadParameter(" ".join(unknown_name(kind, value, list(known)))) from None

    parse.__name__ = "|".join(known)
    return parse


def complete_contract(incomplete: str) -> list[str]:
    """Contract names for TAB, from the folders alone."""
    from errtriage.contracts import packs_folder

    names = (path.parent.name for path in sorted(packs_folder().glob("*/contract.json")))
    return [name for name in names if name.startswith(incomplete)]


def version(asked: bool) -> None:
    """Print the version and end."""
    if asked:
        print(f"errtriage {__version__}")
        raise typer.Exit


@app.callback()
def main(
    _version: Annotated[bool, typer.Option("--version", callback=version, is_eager=True, help="Print the version.")] = False,
) -> None:
    """Options that come before any command."""


@app.command()
@guarded
def explain(
    files: Annotated[list[str] | None, typer.Argument(metavar="[FILE]...", help="Files to read; - or none: standard input.")] = None,
    format: Annotated[
        Format,
        typer.Option("--format", "-f", parser=one_of("format", Format), help="text, json (a verdict a line) or markdown.", autocompletion=lambda: list(Format)),
    ] = Format.TEXT,
    contract: Annotated[str | None, typer.Option(help="Seek only this contract, and judge what does not match it.", autocompletion=complete_contract)] = None,
    tool: Annotated[str | None, typer.Option(help="The tool that answered, or a class of tools such as safe-write.")] = None,
    status: Annotated[int | None, typer.Option(min=100, max=999, metavar="CODE", help="The HTTP status, when only the body was kept.")] = None,
    header: Annotated[list[str] | None, typer.Option(metavar="'NAME: VALUE'", help="An HTTP header, when only the body was kept. May be repeated.")] = None,
    trace: Annotated[bool, typer.Option(help="Show the path through the decision tree.")] = True,
    redact: Annotated[bool, typer.Option(help="Hide secrets.")] = True,
    exit_code: Annotated[bool, typer.Option("--exit-code", help="Exit by action (none 0, retry 10, ... report 19, unrecognised 20).")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print no verdicts; for use with --exit-code.")] = False,
    color: Annotated[
        Color, typer.Option(parser=one_of("colour setting", Color), metavar="auto|always|never", help="When to colour.", autocompletion=lambda: list(Color))
    ] = Color.AUTO,
) -> int:
    """Explain every payload found in files or standard input.

    Reads JSON documents, JSON Lines, logs and raw HTTP responses, finds the error envelopes, tool results and
    protocol errors in them, and says what each means and what to do next.

    Exit: 0 a payload was found, 1 none was, 2 wrong usage or a file that could not be read.
    """
    from errtriage.contracts import bundled
    from errtriage.verdicts import Triage

    contracts = bundled()
    http = Http.known(status, headers(header or []))
    triage = Triage(contracts, forced=contracts.get(contract) if contract else None, tool=tool, http=http, redact=redact)
    write = writer(format, color, trace=trace) if not quiet else void
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

    data, trouble = inputs.decompress(inputs.read(name))
    where = "standard input" if name == inputs.STDIN else name
    if trouble:
        say(f"{where}: {trouble}.")
    text, lossy = inputs.decode(data)
    none = True
    for verdict in triage.text(text, name, lossy=lossy):
        none = False
        yield verdict
    for each in triage.troubles:
        say(f"{where}: {each}.")
    if none and not quiet and not triage.troubles:
        from errtriage.absence import describe

        say(describe(name, data, text, contracts.names()))


def writer(format: Format, color: Color, *, trace: bool) -> Callable[[Verdict], None]:
    """What writes a verdict to standard output in the format."""
    if format is Format.JSON:
        from errtriage.render import jsonl

        return lambda verdict: void(sys.stdout.buffer.write(jsonl.line(verdict)))
    if format is Format.MARKDOWN:
        from errtriage.render import markdown

        return lambda verdict: print(markdown.block(verdict, trace=trace))
    from errtriage.render.text import TextRenderer

    return TextRenderer(sys.stdout, color=colored(color), width=width(), trace=trace).write


def void(_: object) -> None:
    """Drop a value."""


def headers(given: list[str]) -> dict[str, str]:
    """The headers of ``--header``; each is NAME: VALUE."""
    pairs = [each.partition(":") for each in given]
    for name, colon, _ in pairs:
        if not colon or not name.strip():
            raise Failure(f"--header {name!r} is no header.", "Write it as 'Name: value', such as 'Retry-After: 5'.")
    return {name.strip(): value.strip() for name, _, value in pairs}
