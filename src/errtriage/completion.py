"""What TAB offers: names of contracts, codes, rules and tools, read from the packs' files alone.

Nothing is proved or compiled here, and only the standard library is imported, so that an answer takes no longer than
the command line itself. What cannot be read is not offered.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from errtriage.model import Action, Failure, Outcome
from errtriage.packs import folders, locations, packs_folder, read_file


def _packs() -> dict[str, Path]:
    """The folders of all packs by the names of their contracts."""
    found = {path.parent.name: path.parent for path in sorted(packs_folder().glob("*/contract.json"))}
    for location in locations():
        for folder in folders(location):
            name = _read(folder / "contract.json").get("name")
            if isinstance(name, str) and re.fullmatch(r"[a-z][a-z0-9-]*", name):
                found[name] = folder
    return found


def _read(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(read_file(path))
    except (Failure, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _texts(entries: Any, name: str) -> Iterator[str]:
    """The texts under a name in a list of objects, whatever else it may hold."""
    for entry in entries if isinstance(entries, list) else []:
        value = entry.get(name) if isinstance(entry, dict) else None
        if isinstance(value, str) and value.isprintable():
            yield value


def _beginning(incomplete: str, offered: Iterable[str]) -> list[str]:
    return [each for each in dict.fromkeys(offered) if each.startswith(incomplete)]


def complete_contract(incomplete: str) -> list[str]:
    """Names of contracts."""
    return _beginning(incomplete, _packs())


def _codes() -> list[tuple[str, str]]:
    return [(name, code) for name, folder in _packs().items() for code in _texts(_read(folder / "codes.json").get("codes"), "code")]


def complete_code(incomplete: str) -> list[str]:
    """Codes, alone and behind their contract's name."""
    codes = _codes()
    return _beginning(incomplete, [*(code for _, code in codes), *(f"{name}/{code}" for name, code in codes)])


def complete_only(incomplete: str) -> list[str]:
    """Actions, outcomes and codes."""
    return _beginning(incomplete, [*Action, *Outcome, *(code for _, code in _codes())])


def complete_rule(incomplete: str) -> list[str]:
    """Ids of the rules of lint and audit."""
    own = packs_folder() / "errtriage"
    files = [*(folder / "rules.json" for folder in _packs().values()), own / "rules.json", own / "conduct.json"]
    ids = (rule for file in files for rule in _texts(_read(file).get("rules"), "id"))
    # Ids are taken in small letters too, and what is offered must begin as what was typed.
    return _beginning(incomplete, (rule.lower() for rule in ids) if incomplete.islower() else ids)


def complete_tool(incomplete: str) -> list[str]:
    """Tools, and classes of tools."""
    packs = [_read(folder / "contract.json") for folder in _packs().values()]
    return _beginning(
        incomplete, (name for kind in ("tools", "classes") for pack in packs if isinstance(pack.get(kind), dict) for name in pack[kind] if name.isprintable())
    )
