"""How every command meets people and shells: what it says, in which colours and width, and how it ends.

Only commands import this module. It turns what a command returns or raises into an exit code, in one place.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Sequence
from enum import StrEnum
from functools import wraps
from typing import TYPE_CHECKING, Any, NoReturn, ParamSpec

import typer

from errtriage import __version__
from errtriage.model import Failure

if TYPE_CHECKING:
    from errtriage.packs import Pack

P = ParamSpec("P")

#: What stands for a character that an output cannot show.
_PLAIN = {
    "“": '"', "”": '"', "’": "'", "…": "...", "·": "-", "✗": "x", "›": ">", "─": "-", "–": "-", "│": "|", "├": "|", "└": "`", "▶": ">", "→": "->", "\u200b": "",
}  # fmt: skip
NOTHING_FOUND = 1
BUG = 70
INTERRUPTED = 130
READER_GONE = 141


class Color(StrEnum):
    """When output is coloured."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


def say(message: str) -> None:
    """One line for people, on standard error."""
    if sys.stderr is None:  # closed by the shell, and standard output is for results
        return
    from errtriage.redact import clean, secrets

    parameters: frozenset[str] = frozenset()
    if "://" in message and "?" in message:  # an address may carry a signature
        from errtriage.contracts import bundled

        parameters = bundled().secret_parameters
    print(f"errtriage: {secrets(clean(message), parameters)}", file=sys.stderr)


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

    plain = str.maketrans(_PLAIN)

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


def pack_option() -> Any:
    """The option ``--pack`` of every command that uses contracts."""
    return typer.Option("--pack", metavar="DIR", help="Use this contract pack too, or those in this folder. May be repeated.")


def packs_in_use(named: Sequence[str] | None, asked: str | None = None) -> tuple[Pack, ...]:
    """The contract packs beyond the bundled ones: the user's, the project's, and those that ``--pack`` names.

    Says which cannot be used and which stand in the place of a bundled one. Raises Failure for a broken one that was
    asked for, by ``--pack`` or by its name.
    """
    from errtriage.packs import folders, locations

    places = locations()
    if not named and not any(map(folders, places)):
        return ()
    from errtriage import overlay
    from errtriage.contracts import bundled, with_packs

    asked_for = overlay.named(named or ())
    found = overlay.in_use(places)
    for location in found.empty:
        say(f"{location.kind}: {overlay.no_pack(location)[0]}")
    packs = found.packs + asked_for
    contracts = with_packs(packs)
    for broken in found.broken:
        if broken.name == asked and asked not in contracts.origins:
            raise Failure(str(broken), overlay.hint(broken))
        say(f"{broken} It is left out; {overlay.hint(broken)}")
    for name in bundled().names():
        if name in contracts.origins:
            say(f"the contract {name} is that of {contracts.origins[name]}, in the place of the bundled one.")
    return packs


def format_option(known: type[StrEnum], what: str) -> Any:
    """The option ``--format`` of a command; ``what`` names the formats."""
    return typer.Option("--format", "-f", parser=one_of("format", known), help=what, autocompletion=lambda: list(known))


def color_option() -> Any:
    """The option ``--color`` of every command."""
    return typer.Option(parser=one_of("colour setting", Color), metavar="auto|always|never", help="When to colour.", autocompletion=lambda: list(Color))
