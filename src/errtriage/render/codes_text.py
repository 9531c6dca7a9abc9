"""The catalogue of codes for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TextIO

import orjson
from rich.text import Text

from errtriage.knowledge import Known, Reading
from errtriage.render.terminal import Terminal
from errtriage.render.words import ACTIONS, LABELS, OUTCOMES


def listing(codes: Sequence[Known], stream: TextIO, *, color: bool, width: int | None) -> None:
    """One line for each code, contract by contract."""
    terminal = Terminal(stream, color=color, width=width)
    widest = max((len(each.code) for each in codes), default=0)
    acts = max((len(" or ".join(each.actions)) for each in codes), default=0)
    contract = None
    for each in codes:
        if each.contract != contract:
            if contract is not None:
                terminal.line()
            contract = each.contract
            terminal.line(Text.assemble((contract, "bold"), (f"  {each.origin}", "dim") if each.origin else ""))
        actions = " or ".join(each.actions)
        terminal.line(
            Text.assemble(
                f"  {each.code:<{widest}}  ", (f"{actions:<{acts}}", "bold"), f"  {each.title}", ("" if each.documented else "  (not explained)", "dim")
            )
        )
    if not codes:
        terminal.line("No code fits.")


def explain(codes: Iterable[Known], stream: TextIO, *, color: bool, width: int | None) -> None:
    """Each code with everything known about it."""
    terminal = Terminal(stream, color=color, width=width)
    for number, each in enumerate(codes):
        if number:
            terminal.rule()
        terminal.line(Text.assemble((each.code, "bold"), (f"  {each.contract}", "dim"), (f" from {each.origin}", "dim") if each.origin else ""))
        terminal.prose(each.title, style="bold")
        retry = {True: "yes", False: "no", None: "the contract does not say"}[each.retryable]
        also = f" Also written {' or '.join(each.aliases)}." if each.aliases else ""
        terminal.prose(f"Group {each.group}: {each.group_title}. Retryable: {retry}.{also}")
        if not each.documented:
            terminal.prose("The service lists this code, and its documents do not explain it.")
        for reading in _distinct(each.readings):
            terminal.line()
            _reading(terminal, reading)
        terminal.line()
        terminal.prose(f"Source: {each.source}", style="dim")


def _distinct(readings: Iterable[Reading]) -> list[Reading]:
    """The readings that say different things."""
    found: dict[Any, Reading] = {}
    for reading in readings:
        verdict = reading.verdict
        found.setdefault((verdict.outcome, verdict.action, verdict.explanation, verdict.steps, verdict.never), reading)
    return list(found.values())


def _reading(terminal: Terminal, reading: Reading) -> None:
    verdict = reading.verdict
    label = Text(f" {OUTCOMES[verdict.outcome].upper()} ", LABELS[verdict.outcome])
    terminal.line(Text.assemble(label, "  ", (ACTIONS[verdict.action], "bold"), (f"  {reading.about}", "dim")))
    terminal.prose(verdict.explanation, indent=2)
    for i, step in enumerate(verdict.steps, 1):
        terminal.prose(step, indent=5, first=f"  {i}. ")
    for each in verdict.never:
        terminal.prose(each, indent=4, first="  ✗ ", mark="red", style="red")
    example = reading.example if isinstance(reading.example, str) else orjson.dumps(reading.example).decode()
    terminal.line(Text("  Example", "bold"))
    for line in example.splitlines():
        terminal.line(Text(f"  {line}", "dim"))
    if reading.given:
        terminal.line(Text(f"  given {', '.join(f'{name} {value}' for name, value in reading.given.items())}", "dim"))
