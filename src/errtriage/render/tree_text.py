"""Decision trees for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TextIO

from rich.text import Text

from errtriage.contracts import Contract
from errtriage.model import Action, Outcome, Step
from errtriage.render.terminal import Terminal
from errtriage.render.tree_graph import answer
from errtriage.render.words import ACTIONS, OUTCOMES


def render(contracts: Iterable[Contract], stream: TextIO, *, color: bool) -> None:
    """Each contract's tree; what is reached a second time is drawn once."""
    terminal = Terminal(stream, color=color, width=None)
    for number, contract in enumerate(contracts):
        if number:
            terminal.line()
        terminal.line(Text.assemble((contract.name, "bold"), (f"  {contract.origin}", "dim") if contract.origin else ""))
        _draw(terminal, contract.tree, contract.tree["root"], "", set())


def draw_path(terminal: Terminal, contract: Contract, trace: Iterable[Step], indent: str) -> None:
    """The tree along the path that was taken: every answer that there was, and a mark on those that were given."""
    _draw(terminal, contract.tree, contract.tree["root"], indent, set(), {step.node: step for step in trace})


def _draw(  # noqa: PLR0913, PLR0917 - it calls itself with all it knows
    terminal: Terminal, tree: Mapping[str, Any], name: str, indent: str, drawn: set[str], taken: Mapping[str, Step] | None = None
) -> None:
    """A node's question, and below it each answer with where it leads; with ``taken`` only along that path."""
    node = tree["nodes"][name]
    drawn.add(name)
    terminal.line(Text.assemble(indent, (node["question"], "bold")))
    branches = [*node["branches"], node["otherwise"]]
    for i, branch in enumerate(branches):
        last = i == len(branches) - 1
        lead, below = ("└─ ", "   ") if last else ("├─ ", "│  ")
        said, style = answer(branch), ""
        if taken is not None:
            step = taken[name]
            if step.branch == i:
                lead, said, style = lead[0] + "▶ ", step.answer, "bold"
            else:
                style = "dim"
        target = branch["to"]
        leaf = tree["leaves"].get(target)
        line = Text.assemble(indent, lead, (said, style))
        if leaf is not None:
            action, outcome = ACTIONS[Action(leaf["action"])], OUTCOMES[Outcome(leaf["outcome"])].lower()
            line.append_text(Text.assemble(" → ", (action, style or "bold"), (f" ({outcome})", "dim")))
        elif style == "dim":
            line.append(" …", "dim")
        elif target in drawn:
            line.append_text(Text.assemble(" → ", (f"see “{tree['nodes'][target]['question']}” above", "dim")))
        terminal.line(line)
        if leaf is None and style != "dim" and target not in drawn:
            _draw(terminal, tree, target, indent + below, drawn, taken)
