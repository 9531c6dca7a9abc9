"""``errtriage tree``: a contract's decision tree, drawn from its data."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import Annotated

import typer

from errtriage.completion import complete_contract
from errtriage.console import Color, color_option, colored, format_option, guarded, pack_option, packs_in_use


class Format(StrEnum):
    """Output formats of tree."""

    TEXT = "text"
    MERMAID = "mermaid"
    DOT = "dot"


@guarded
def tree(
    contract: Annotated[
        list[str] | None, typer.Argument(metavar="[CONTRACT]...", help="The contracts; all of them by default.", autocompletion=complete_contract)
    ] = None,
    format: Annotated[Format, format_option(Format, "text, mermaid or dot.")] = Format.TEXT,
    pack: Annotated[list[str] | None, pack_option()] = None,
    color: Annotated[Color, color_option()] = Color.AUTO,
) -> int:
    """Draw the decision tree of a contract.

    It has every question, every answer, and what is to be done.

    Exit: 0 done, 2 there is no such contract.
    """
    from errtriage.contracts import with_packs

    packs = with_packs(packs_in_use(pack))
    chosen = [packs.get(name) for name in contract] if contract else list(packs)
    if format is Format.TEXT:
        from errtriage.render import tree_text

        tree_text.render(chosen, sys.stdout, color=colored(color))
    else:
        from errtriage.render import tree_graph

        drawn = tree_graph.mermaid if format is Format.MERMAID else tree_graph.dot
        print("\n".join(drawn(each) for each in chosen), end="")
    return 0
