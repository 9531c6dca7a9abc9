"""Decision trees as Mermaid flowcharts and as DOT (Graphviz)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from errtriage.contracts import Contract
from errtriage.model import Step
from errtriage.wording import alternatives


def edges(contract: Contract) -> Iterator[tuple[str, str, str]]:
    """Every branch: the node that it leaves, its answer, and where it leads."""
    for name, node in contract.tree["nodes"].items():
        for branch in [*node["branches"], node["otherwise"]]:
            yield name, answer(branch), branch["to"]


def answer(branch: Mapping[str, Any]) -> str:
    """A branch's answer, with all its alternatives; what it would quote from a payload stands in angle brackets."""
    return " / ".join(re.sub(r"\{([a-z_]+)\}", r"<\1>", text) for text in alternatives(branch["answer"]))


def label(contract: Contract, name: str) -> str:
    """What stands in a box: a question, or what is to be done and what became of the call."""
    node = contract.tree["nodes"].get(name)
    if node is not None:
        return str(node["question"])
    leaf = contract.tree["leaves"][name]
    return f"{leaf['action']} ({leaf['outcome']})"


def mermaid(contract: Contract, trace: Iterable[Step] = ()) -> str:
    """A Mermaid flowchart; the path of a trace is drawn thick."""
    names = {name: f"n{i}" for i, name in enumerate([*contract.tree["nodes"], *contract.tree["leaves"]])}
    lines = ["flowchart TD"]
    for name, short in names.items():
        left, right = ("{", "}") if name in contract.tree["nodes"] else ("([", "])")
        lines.append(f'  {short}{left}"{_mermaid(label(contract, name))}"{right}')
    taken = {(step.node, step.branch) for step in trace}
    number = -1
    before = ""
    for name, answer, to in edges(contract):
        number = number + 1 if name == before else 0
        before = name
        arrow = "==>" if (name, number) in taken else "-->"
        lines.append(f'  {names[name]} {arrow}|"{_mermaid(answer)}"| {names[to]}')
    return "".join(f"{line}\n" for line in lines)


def _mermaid(text: str) -> str:
    """A text in which nothing is Mermaid's own: special characters are written as entities."""
    return "".join(f"#{ord(character)};" if character in '#"`<>{}[]()|;' else character for character in text)


def dot(contract: Contract) -> str:
    """A directed graph for Graphviz."""
    lines = [f"digraph {_dot(contract.name)} {{", "  node [fontname=sans];", "  edge [fontname=sans];"]
    lines += [f"  {_dot(name)} [shape=box, label={_dot(label(contract, name))}];" for name in contract.tree["nodes"]]
    lines += [f"  {_dot('leaf ' + name)} [shape=box, style=rounded, label={_dot(label(contract, name))}];" for name in contract.tree["leaves"]]
    for name, answer, to in edges(contract):
        target = to if to in contract.tree["nodes"] else f"leaf {to}"
        lines.append(f"  {_dot(name)} -> {_dot(target)} [label={_dot(answer)}];")
    return "".join(f"{line}\n" for line in [*lines, "}"])


def _dot(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
