"""``errtriage rules``: the rules of lint and audit, all in a list or each with why it is there and what breaks it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any

import typer

from errtriage.completion import complete_rule
from errtriage.console import Color, color_option, colored, format_option, guarded, pack_option, packs_in_use, width


class Format(StrEnum):
    """Output formats of rules."""

    TEXT = "text"
    JSON = "json"


@guarded
def rules(
    rule: Annotated[list[str] | None, typer.Argument(metavar="[RULE]...", help="Ids or prefixes to explain.", autocompletion=complete_rule)] = None,
    format: Annotated[Format, format_option(Format, "text or json.")] = Format.TEXT,
    pack: Annotated[list[str] | None, pack_option()] = None,
    color: Annotated[Color, color_option()] = Color.AUTO,
) -> int:
    """List the rules of lint and audit, or explain some of them.

    Exit: 0 done, 2 there is no such rule.
    """
    from errtriage.contracts import with_packs
    from errtriage.rules import catalogue, conduct_catalogue, selected
    from errtriage.settings import listed

    contracts = with_packs(packs_in_use(pack))
    known = [*catalogue(contracts), *conduct_catalogue(contracts)]
    chosen = selected(listed(rule or ()), (), [each["id"] for each in known])
    shown = [each for each in known if each["id"] in chosen]
    if format is Format.JSON:
        import orjson

        sys.stdout.buffer.write(orjson.dumps([_plain(each) for each in shown], option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
        return 0
    from errtriage.render import rules_text

    if rule:
        rules_text.explain(shown, sys.stdout, color=colored(color), width=width())
    else:
        rules_text.listing(shown, sys.stdout, color=colored(color), width=width())
    return 0


def _plain(rule: Mapping[str, Any]) -> dict[str, Any]:
    return {name: rule[name] for name in ("id", "level", "contract", "what", "why", "source", "bad", "good")}
