"""The packs beyond the bundled ones that a run uses: found, read and proved, each over those before it of its name."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from errtriage.model import Failure
from errtriage.packs import VARIABLE, Location, Pack, folders, read, read_file, shown
from errtriage.proof import problems
from errtriage.safety import Problem

#: How much is said of one problem, in characters.
_LONGEST = 300


class Broken(NamedTuple):
    """A pack that cannot be used: where it is, by whose wish it was looked at, and what is wrong with it."""

    name: str
    folder: Path
    kind: str
    problems: Sequence[Problem]

    def __str__(self) -> str:
        first = self.problems[0]
        where = " ".join(filter(None, (first.file, first.pointer[:_LONGEST])))
        more = f" (and {len(self.problems) - 1} more)" if len(self.problems) > 1 else ""
        what = f"{where}: {first.message[:_LONGEST]}{more}" if where else first.message
        return f"The contract pack {shown(self.folder)} cannot be used: {what}{'' if what.endswith(('.', '?')) else '.'}"


class InUse(NamedTuple):
    """The packs beyond the bundled ones that a run uses, in the order in which they go over each other, and the broken ones."""

    packs: tuple[Pack, ...] = ()
    broken: tuple[Broken, ...] = ()
    #: Locations of packs that were named and hold none.
    empty: tuple[Location, ...] = ()


def in_use(places: Sequence[Location]) -> InUse:
    """Find, read and prove the packs of some locations, in their order."""
    packs: list[Pack] = []
    broken: list[Broken] = []
    empty: list[Location] = []
    for location in places:
        found = folders(location)
        if not found and location.kind in (VARIABLE, "--pack"):
            empty.append(location)
        for folder in found:
            try:
                pack = read(folder, location.kind)
                trouble = problems(pack, 20)
            except Failure as failure:
                trouble = [Problem("", "", str(failure).rstrip("."))]
            if trouble:
                broken.append(Broken(called(folder), folder, location.kind, trouble))
            else:
                packs.append(pack)
    return InUse(tuple(packs), tuple(broken), tuple(empty))


def called(folder: Path) -> str:
    """What a pack calls its contract, as far as that can be read; else the name of its folder."""
    try:
        value = json.loads(read_file(folder / "contract.json", folder))
    except (Failure, ValueError, RecursionError):
        return folder.name
    name = value.get("name") if isinstance(value, dict) else None
    return name if isinstance(name, str) else folder.name


def named(places: Sequence[str]) -> tuple[Pack, ...]:
    """The packs in folders that are named. Raises Failure where one cannot be used, or where there is none."""
    found = in_use([Location("--pack", Path(each)) for each in places])
    for location in found.empty:
        raise Failure(*no_pack(location))
    for broken in found.broken:
        raise Failure(str(broken), hint(broken))
    return found.packs


def no_pack(location: Location) -> tuple[str, str]:
    """Message and hint for a location without a pack."""
    return f"{location.folder} is no contract pack and holds none: a pack is a folder with contract.json.", "`errtriage contracts new NAME` starts one."


def hint(broken: Broken) -> str:
    """Where to read more about what is wrong with a pack."""
    return f"`errtriage contracts check {shown(broken.folder)}` says all."
