"""The command line: the commands by name, each imported when it is called. Nothing imports this module."""

from __future__ import annotations

import gc
import os
import sys

# Start-up makes many objects and no garbage; looking for some would take a tenth of it.
gc.set_threshold(100_000, 20, 20)

from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from errtriage import __version__

#: The commands in the order of their help, each with its line there (the first of its docstring, which a test holds, so
#: that a list of them imports none). Each is a module of ``errtriage.commands`` with a function of its name, or with an
#: ``app`` that has commands of its own.
COMMANDS = {
    "explain": "Explain every payload found in files or standard input.",
    "lint": "Check captured responses against their contracts.",
    "scan": "Say what failed in logs, how often, since when, and what to do.",
    "audit": "Say which steps of a client its contracts forbid.",
    "codes": "List the codes, or print everything known about some of them.",
    "tree": "Draw the decision tree of a contract.",
    "rules": "List the rules of lint and audit, or explain some of them.",
    "contracts": "List, show, start and check contract packs.",
}


class Commands(TyperGroup):
    """Imports a command when it is called, so that one command more costs the others nothing at start-up."""

    def __init__(self, **attrs: Any) -> None:
        # The names are there, so that a misspelt one is answered with the nearest.
        super().__init__(**{**attrs, "commands": dict.fromkeys(COMMANDS)})

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run; what completion needs is only got where it is asked for."""
        if "_ERRTRIAGE_COMPLETE" in os.environ or any(each.startswith(("--show-completion", "--install-completion")) for each in sys.argv[1:]):
            from errtriage.shells import mend

            mend()
        return super().main(*args, **kwargs)

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - as the base class has it
        """The commands in the order of their help."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002 - as the base class has it
        """The command of this name as lists show it, or None; ``resolve_command`` is where one is called."""
        return TyperCommand(cmd_name, help=COMMANDS[cmd_name]) if cmd_name in COMMANDS else None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that is called, with what is left of the arguments."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, load(name) if command is not None and name else command, rest


def load(name: str) -> Any:
    """Import a command."""
    module = import_module(f"errtriage.commands.{name}")
    app = getattr(module, "app", None)
    if app is None:
        settings = {"help_option_names": ["-h", "--help"], **getattr(module, "SETTINGS", {})}
        app = typer.Typer(add_completion=False, rich_markup_mode=None, context_settings=settings)
        app.command(name)(getattr(module, name))
    return typer.main.get_command(app)


app = typer.Typer(
    cls=Commands,
    help="Turns a failing answer into the next right step: what happened, what to do, what never to do, and the id to quote.",
    rich_markup_mode=None,  # plain help: the same on a terminal, in a pipe and in CI
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)


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
