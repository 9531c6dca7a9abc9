"""``errtriage contracts``: the contract packs: which there are and from where, what is in one, starting one, checking one."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from errtriage.completion import complete_contract
from errtriage.console import Color, color_option, colored, format_option, guarded, pack_option, packs_in_use, say, width
from errtriage.model import Failure
from errtriage.redact import clean

if TYPE_CHECKING:
    from errtriage.contracts import Contract
    from errtriage.coverage import Covered
    from errtriage.packs import Pack


class Format(StrEnum):
    """Output formats of contracts."""

    TEXT = "text"
    JSON = "json"


app = typer.Typer(
    help="List, show, start and check contract packs.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

_FormatOption = Annotated[Format, format_option(Format, "text or json.")]


@app.command("list")
@guarded
def list_(
    format: _FormatOption = Format.TEXT,
    pack: Annotated[list[str] | None, pack_option()] = None,
    color: Annotated[Color, color_option()] = Color.AUTO,
) -> int:
    """List the contracts, and where each comes from.

    They are in the order in which they are tried.

    Exit: 0 done, 2 a pack that --pack names cannot be used.
    """
    from errtriage.contracts import with_packs

    contracts = list(with_packs(packs_in_use(pack)))
    if format is Format.JSON:
        _json([_plain(each) for each in contracts])
        return 0
    from errtriage.render import contracts_text

    contracts_text.listing(contracts, sys.stdout, color=colored(color), width=width())
    return 0


@app.command()
@guarded
def show(
    contract: Annotated[str, typer.Argument(metavar="NAME", help="The contract.", autocompletion=complete_contract)],
    format: _FormatOption = Format.TEXT,
    pack: Annotated[list[str] | None, pack_option()] = None,
    color: Annotated[Color, color_option()] = Color.AUTO,
) -> int:
    """Show what is in a contract.

    Its shapes and where their fields are, codes, tools, rules and sources.

    Exit: 0 done, 2 there is no such contract.
    """
    from errtriage.contracts import with_packs

    found = with_packs(packs_in_use(pack, contract)).get(contract)
    if format is Format.JSON:
        _json({**_plain(found), "contract": found.data})
        return 0
    from errtriage.render import contracts_text

    contracts_text.explain(found, sys.stdout, color=colored(color), width=width())
    return 0


@app.command()
@guarded
def path(
    contract: Annotated[str | None, typer.Argument(metavar="[NAME]", help="A contract.", autocompletion=complete_contract)] = None,
    pack: Annotated[list[str] | None, pack_option()] = None,
) -> int:
    """Print where packs are looked for, or one contract's folder.

    Of two packs of one name, that of the later place is used.

    Exit: 0 done, 2 there is no such contract.
    """
    from errtriage.packs import folders, locations, packs_folder, project_folder

    if contract is not None:
        from errtriage.contracts import with_packs

        print(clean(str(with_packs(packs_in_use(pack, contract)).get(contract).folder)))
        return 0
    print(f"bundled  {packs_folder()}")
    for location in locations(pack or ()):
        count = len(folders(location))
        there = f"{count} pack{'' if count == 1 else 's'}" if location.folder.is_dir() else "not there"
        print(f"{location.kind}  {clean(str(location.folder))}  ({there})")
    if project_folder(Path.cwd()) is None:
        print("project  (no folder .errtriage here or upward that this user may trust)")
    return 0


@app.command()
@guarded
def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What the contract is called: small letters, digits, hyphens.")],
    into: Annotated[str, typer.Option("--into", metavar="DIR", help="The folder that holds the packs.")] = ".errtriage",
) -> int:
    """Start a contract pack: a working one with comments.

    Change it into the contract of your service.

    Exit: 0 done, 2 wrong usage or a folder that is there already.
    """
    from errtriage.packs import packs_folder, shown, start

    folder = shown(start(name, Path(into)))
    if (packs_folder() / name / "contract.json").is_file():
        say(f"{name} is the name of a bundled contract; this pack stands in its place from now on.")
    print(f"{folder} is a working pack. Change it into the contract of your service:")
    for file, what in _FILES:
        print(f"  {file:<20} {what}")
    print(f"`errtriage contracts check {folder}` says what is wrong or missing.")
    return 0


_FILES = (
    ("contract.json", "how answers are recognised, and where their fields are"),
    ("failure.schema.json", "what a well-formed answer is"),
    ("codes.json", "every code, with what it means"),
    ("tree.json", "what is to be done, question by question"),
    ("rules.json", "what a valid answer may still do wrong"),
    ("conduct.json", "what a caller must not do after an answer"),
    ("examples/", "answers, each with the verdict that must come of it"),
)


@app.command()
@guarded
def check(
    packs: Annotated[
        list[str] | None, typer.Argument(metavar="[DIR]...", help="Packs, folders of packs, or names of contracts; else all that are not bundled.")
    ] = None,
    format: _FormatOption = Format.TEXT,
    color: Annotated[Color, color_option()] = Color.AUTO,
) -> int:
    """Check contract packs.

    Files, references, tree and schemas, and that the examples go every way and have every code.

    Exit: 0 nothing is wrong, 1 something is, 2 wrong usage.
    """
    from errtriage.coverage import check as prove

    checked = [(pack, prove(pack)) for pack in _chosen(packs or ())]
    if not checked:
        raise Failure("There is no pack to check but the bundled ones.", "Name a folder, or start one with `errtriage contracts new NAME`.")
    if format is Format.JSON:
        _json([_covered(pack, covered) for pack, covered in checked])
    else:
        from errtriage.render import contracts_text

        contracts_text.checked(checked, sys.stdout, color=colored(color), width=width())
    return int(any(covered.problems for _, covered in checked))


def _chosen(named: Sequence[str]) -> list[Pack]:
    """The packs to check: those that are named, by folder or by contract, or all that are not bundled."""
    from errtriage.packs import Location, folders, locations, read

    if not named:
        return [read(folder, location.kind) for location in locations() for folder in folders(location)]
    found = []
    for each in named:
        location = Location("checked", Path(each))
        inside = folders(location) or _of_contract(each)
        if not inside:
            raise Failure(
                f"{each} is no contract pack and holds none.", "A pack is a folder with contract.json; `errtriage contracts list` names what there is."
            )
        found += [read(folder, location.kind) for folder in inside]
    return found


def _of_contract(name: str) -> list[Path]:
    from errtriage.contracts import bundled
    from errtriage.overlay import called
    from errtriage.packs import folders, locations

    own = [folder for location in locations() for folder in folders(location) if called(folder) == name]
    return own[-1:] or [each.folder for each in bundled() if each.name == name]


def _covered(pack: Pack, covered: Covered) -> dict[str, Any]:
    problems = [each._asdict() for each in covered.problems]
    return {"folder": clean(pack.folder), **covered._replace(problems=[])._asdict(), "problems": problems}


def _plain(contract: Contract) -> dict[str, Any]:
    """A contract as plain data."""
    data = contract.data
    return {
        "name": contract.name,
        "title": data["title"],
        "version": data["version"],
        "rank": data["rank"],
        "origin": contract.origin or "bundled",
        "folder": clean(str(contract.folder)),
        "shapes": [shape.name for shape in contract.shapes],
        "codes": len(contract.catalogue.entries),
        "rules": [rule["id"] for rule in contract.rules],
        "conduct": list(dict.fromkeys(entry["rule"] for entry in contract.conduct["rules"])),
    }


def _json(value: Any) -> None:
    import orjson

    sys.stdout.buffer.write(orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
