"""Contract packs for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from rich.text import Text

from errtriage import facts
from errtriage.contracts import Contract
from errtriage.packs import Pack, shown
from errtriage.render.terminal import Terminal
from errtriage.wording import alternatives, counted

if TYPE_CHECKING:
    from errtriage.coverage import Covered


def listing(contracts: Sequence[Contract], stream: TextIO, *, color: bool, width: int | None) -> None:
    """One line for each contract."""
    terminal = Terminal(stream, color=color, width=width)
    widest = max(len(each.name) for each in contracts)
    titles = max(len(each.data["title"]) for each in contracts)
    for each in contracts:
        origin = (f"  {each.origin}", "bold") if each.origin else ("  bundled", "dim")
        terminal.line(Text.assemble((f"{each.name:<{widest}}", "bold"), f"  {each.data['title']:<{titles}}", origin))


def explain(contract: Contract, stream: TextIO, *, color: bool, width: int | None) -> None:
    """Everything that is in a contract."""
    terminal = Terminal(stream, color=color, width=width)
    data = contract.data
    terminal.line(Text.assemble((contract.name, "bold"), f"  {data['title']}, version {data['version']}"))
    terminal.line(Text(f"{contract.origin or 'bundled'}: {contract.folder}", "dim"))
    terminal.line(Text("Shapes", "bold"))
    for shape in contract.shapes:
        terminal.line(Text.assemble("  ", (shape.name, "bold"), f"  {shape.data['title']}"))
        for name, field in shape.data["fields"].items():
            places = " or ".join(map(_place, field["at"]))
            terminal.line(Text.assemble("    ", name, (f"  {places}", "dim")))
        if shape.data["ids"]["correlation"]:
            ids = " or ".join(map(_place, shape.data["ids"]["correlation"]))
            terminal.line(Text.assemble("    the id to quote", (f"  {ids}", "dim")))
    _words(terminal, "Facts of every shape, beside its fields", sorted(facts.GENERAL))
    codes = [entry.data.get("code") or f"{entry.data['from']} to {entry.data['to']}" for entry in contract.catalogue.entries]
    _words(terminal, f"Codes ({len(codes)}; `errtriage codes --contract {contract.name}` explains them)", codes)
    _words(terminal, "Tools", [f"{tool} ({kind})" for tool, kind in data.get("tools", {}).items()])
    if contract.rules:
        terminal.line(Text("Rules", "bold"))
        for rule in contract.rules:
            terminal.prose(f"{rule['id']}  {rule['what']}", indent=2)
    if contract.conduct["rules"]:
        terminal.line(Text("What a caller must not do (`errtriage audit`)", "bold"))
        for entry in contract.conduct["rules"]:
            terminal.prose(f"{entry['rule']}  {alternatives(entry['says'])[0]}", indent=2)
    terminal.line(Text("Sources", "bold"))
    for source in data["sources"].values():
        terminal.prose(source, indent=4, first="  - ")


def _place(place: str | Mapping[str, Any]) -> str:
    return (place or "the whole payload") if isinstance(place, str) else f"{place['in']}/…{place.get('at', '')}"


def _words(terminal: Terminal, title: str, words: Sequence[str]) -> None:
    if words:
        terminal.line(Text(title, "bold"))
        terminal.prose(", ".join(words), indent=2)


def checked(packs: Iterable[tuple[Pack, Covered]], stream: TextIO, *, color: bool, width: int | None) -> None:
    """What is wrong with each pack, or how much of it was proved."""
    terminal = Terminal(stream, color=color, width=width)
    for pack, covered in packs:
        where = shown(Path(pack.folder))
        if not covered.problems:
            proved = f"{counted(covered.examples, 'example')} go all {covered.branches} ways and have all {counted(covered.codes, 'code')}"
            terminal.line(Text.assemble((where, "bold"), ": ", ("nothing is wrong", "bold green"), f"; {proved}."))
            continue
        terminal.line(Text.assemble((where, "bold"), ": ", (counted(len(covered.problems), "problem"), "bold red")))
        for problem in covered.problems:
            terminal.line(Text.assemble("  ", (problem.file, "bold"), (f" {problem.pointer}", "bold") if problem.pointer else ""))
            terminal.prose(f"{problem.message}.", indent=4)
            if problem.hint:
                terminal.prose(problem.hint, indent=4, style="dim")
