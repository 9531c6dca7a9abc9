"""``errtriage codes``: the catalogue of codes, or all there is to know about some of them."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from errtriage.completion import complete_code, complete_contract
from errtriage.console import Color, color_option, colored, format_option, guarded, one_of, pack_option, packs_in_use, width
from errtriage.model import Action, Failure

if TYPE_CHECKING:
    from errtriage.contracts import Contract
    from errtriage.knowledge import Known


class Format(StrEnum):
    """Output formats of codes."""

    TEXT = "text"
    JSON = "json"


#: Some codes are negative numbers, and no options.
SETTINGS = {"ignore_unknown_options": True}


@guarded
def codes(
    code: Annotated[
        list[str] | None, typer.Argument(metavar="[CODE]...", help="A code, or CONTRACT/CODE; a prefix with * at its end.", autocompletion=complete_code)
    ] = None,
    contract: Annotated[str | None, typer.Option(metavar="NAME", help="Only the codes of this contract.", autocompletion=complete_contract)] = None,
    action: Annotated[
        Action | None,
        typer.Option(parser=one_of("action", Action), metavar="ACTION", help="Only codes about which this is to be done.", autocompletion=lambda: list(Action)),
    ] = None,
    format: Annotated[Format, format_option(Format, "text or json.")] = Format.TEXT,
    pack: Annotated[list[str] | None, pack_option()] = None,
    color: Annotated[Color, color_option()] = Color.AUTO,
) -> int:
    """List the codes, or print everything known about some of them.

    Exit: 0 done, 1 no contract has such a code, 2 wrong usage.
    """
    from errtriage.contracts import with_packs
    from errtriage.knowledge import contracts_with, everything, matching
    from errtriage.verdicts import Triage

    code = code or []
    if option := next((each for each in code if each.startswith("--")), None):
        raise Failure(f"There is no option {option}.", "See `errtriage codes --help`.")
    packs = with_packs(packs_in_use(pack, contract))
    asked = code or ["*"]
    chosen_packs = [packs.get(contract)] if contract else list(packs)
    known = everything(contracts_with(chosen_packs, asked), Triage(packs))
    for each in asked:
        if not matching(known, each):
            raise _unknown(each, chosen_packs)
    chosen = {(found.contract, found.code): found for each in asked for found in matching(known, each)}
    shown = [each for each in chosen.values() if action is None or action in each.actions]
    _write(shown, format, color, full=bool(code) and not all(each.endswith("*") for each in code))
    return 0


def _unknown(asked: str, contracts: list[Contract]) -> Failure:
    """What to say of a code that no contract has: near names, and that nothing is known."""
    from errtriage.contracts import unknown_name

    names = sorted({entry.data["code"] for contract in contracts for entry in contract.catalogue.entries if "code" in entry.data})
    _, hint = unknown_name("code", asked.rpartition("/")[2], names)
    near = hint.partition("Known:")[0].strip()
    rest = "`errtriage codes` lists all; what a code means that none has, the contract does not say."
    return Failure(f"No contract has the code '{asked}'.", f"{near} {rest}".strip(), 1)


def _write(shown: list[Known], format: Format, color: Color, *, full: bool) -> None:
    if format is Format.JSON:
        import orjson

        sys.stdout.buffer.write(orjson.dumps([_plain(each) for each in shown], option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
        return
    from errtriage.render import codes_text

    if full:
        codes_text.explain(shown, sys.stdout, color=colored(color), width=width())
    else:
        codes_text.listing(shown, sys.stdout, color=colored(color), width=width())


def _plain(known: Known) -> dict[str, Any]:
    """A code as plain data, with the verdict about each of its examples."""
    from errtriage.render.jsonl import document

    readings = [{"about": each.about, "given": dict(each.given), "example": each.example, "verdict": document(each.verdict)} for each in known.readings]
    return {**known._asdict(), "actions": known.actions, "readings": readings}
