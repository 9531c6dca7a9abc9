"""Lint rules for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TextIO

import orjson
from rich.text import Text

from errtriage.render.lint_text import LEVEL_STYLES
from errtriage.render.terminal import Terminal


def listing(rules: Iterable[Mapping[str, Any]], stream: TextIO, *, color: bool, width: int | None) -> None:
    """One line for each rule."""
    terminal = Terminal(stream, color=color, width=width)
    for rule in rules:
        terminal.line(
            Text.assemble((rule["id"], "bold"), "  ", (f"{rule['level']:<7}", LEVEL_STYLES[rule["level"]]), f"  {rule['what']}", (_from(rule), "dim"))
        )


def explain(rules: Iterable[Mapping[str, Any]], stream: TextIO, *, color: bool, width: int | None) -> None:
    """Each rule with why it is there, what breaks it, what keeps it, and its source."""
    terminal = Terminal(stream, color=color, width=width)
    for number, rule in enumerate(rules):
        if number:
            terminal.rule()
        terminal.line(Text.assemble((rule["id"], "bold"), "  ", (rule["level"], LEVEL_STYLES[rule["level"]]), (f"  {rule['contract']}{_from(rule)}", "dim")))
        terminal.prose(rule["what"], style="bold")
        terminal.line()
        terminal.prose(rule["why"])
        for title, example in (("Breaks it", rule["bad"]), ("Keeps it", rule["good"])):
            terminal.line(Text(title, "bold"))
            for line in _traffic(example) if rule["contract"] == "audit" else _written(example):
                terminal.line(f"  {line}")
        terminal.prose(f"Source: {rule['source']}", style="dim")


def _from(rule: Mapping[str, Any]) -> str:
    return f" from {rule['origin']}" if rule["origin"] else ""


def _written(example: Any) -> list[str]:
    """An example as it may stand in a file."""
    if isinstance(example, str):
        return example.splitlines()
    return orjson.dumps(example, option=orjson.OPT_INDENT_2).decode().splitlines()


def _traffic(example: Any) -> list[str]:
    """An example of traffic as a log: a line for each record."""
    return example.splitlines() if isinstance(example, str) else [orjson.dumps(record).decode() for record in example]
