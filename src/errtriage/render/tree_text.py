"""Decision trees for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TextIO

from rich.text import Text

from errtriage.contracts import Contract
from errtriage.model import Action, Outcome
from errtriage.render.terminal import Terminal
from errtriage.render.tree_graph import answer
from errtriage.render.words import ACTIONS, OUTCOMES


def render(contracts: Iterable[Contract], stream: TextIO, *, color: bool) -> None:
    """Each contract's tree; what is reached a second time is drawn once."""
    terminal = Terminal(stream, color=color, width=None)
    for number, contract in enumerate(contracts):
        if number:
            terminal.line()
        terminal.line(Text(contract.name, "bold"))
        _draw(terminal, contract.tree, contract.tree["root"], "", set())


def _draw(terminal: Terminal, tree: Mapping[str, Any], name: str, indent: str, drawn: set[str]) -> None:
    """A node's question, and below it each answer with where it leads."""
    node = tree["nodes"][name]
    drawn.add(name)
    terminal.line(Text.assemble(indent, (node["question"], "bold")))
    branches = [*node["branches"], node["otherwise"]]
    for i, branch in enumerate(branches):
        last = i == len(branches) - 1
        lead, below = ("└─ ", "   ") if last else ("├─ ", "│  ")
        target = branch["to"]
        leaf = tree["leaves"].get(target)
        if leaf is not None:
            action, outcome = ACTIONS[Action(leaf["action"])], OUTCOMES[Outcome(leaf["outcome"])].lower()
            terminal.line(Text.assemble(indent, lead, answer(branch), " → ", (action, "bold"), (f" ({outcome})", "dim")))
        elif target in drawn:
            terminal.line(Text.assemble(indent, lead, answer(branch), " → ", (f"see “{tree['nodes'][target]['question']}” above", "dim")))
        else:
            terminal.line(Text.assemble(indent, lead, answer(branch)))
            _draw(terminal, tree, target, indent + below, drawn)
