"""The command line: the commands by name, each imported when it is called. Nothing imports this module."""

from __future__ import annotations

import gc

# Start-up makes many objects and no garbage; looking for some would take a tenth of it.
gc.set_threshold(100_000, 20, 20)

from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from errtriage import __version__

#: The commands in the order of their help, each a module of ``errtriage.commands`` with a function of its name.
COMMANDS = ("explain", "lint", "scan", "codes", "tree", "rules")


class Commands(TyperGroup):
    """Imports a command when it is called, so that one command more costs the others nothing at start-up."""

    def __init__(self, **attrs: Any) -> None:
        # The names are there, so that a misspelt one is answered with the nearest.
        super().__init__(**{**attrs, "commands": dict.fromkeys(COMMANDS)})

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - as the base class has it
        """The commands in the order of their help."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002 - as the base class has it
        """The command of this name, or None."""
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"errtriage.commands.{cmd_name}")
        # Some codes are negative numbers, and no options.
        settings = {"help_option_names": ["-h", "--help"], "ignore_unknown_options": cmd_name == "codes"}
        alone = typer.Typer(add_completion=False, rich_markup_mode=None, context_settings=settings)
        alone.command(cmd_name)(getattr(module, cmd_name))
        return typer.main.get_command(alone)


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
