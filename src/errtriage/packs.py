"""Finds contract packs: the bundled ones, the user's, a project's, and those that are named. Reads them with bounds.

Imports nothing heavy, because completion asks for names at every TAB. Whether a pack can be used says ``proof``.
"""

from __future__ import annotations

import os
import re
import stat
from codecs import BOM_UTF8
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple

from errtriage.model import Failure
from errtriage.redact import clean

#: A project's folder with packs, beside its sources.
PROJECT_FOLDER = ".errtriage"
#: Names further folders, separated as in PATH.
VARIABLE = "ERRTRIAGE_PACKS"
#: Bounds of a pack, so that a hostile one cannot exhaust anything: bytes of a file, bytes of all but the examples, files.
LARGEST_FILE, LARGEST_PACK, MOST_FILES = 1 << 19, 1 << 22, 1000


class Location(NamedTuple):
    """A folder that is a pack or holds packs, and why it is looked at.

    ``kind`` is user, project, ERRTRIAGE_PACKS, --pack, or checked where it is only looked at.
    """

    kind: str
    folder: Path


class Pack(NamedTuple):
    """The files of a pack that is not bundled, by their names and as they were read: plain data that travels to workers.

    ``origin`` says in words where it is from.
    """

    folder: str
    origin: str
    files: tuple[tuple[str, bytes], ...]


@cache
def packs_folder() -> Path:
    """The folder with the bundled packs: beside the package in a wheel, at the top of a checkout."""
    here = Path(__file__).resolve().parent
    for folder in (here / "schemas", here.parents[1] / "schemas"):
        if folder.is_dir():
            return folder
    raise Failure("errtriage is installed without its contract packs (no folder `schemas`).", "Install it again.", 70)


def user_folder() -> Path:
    """The user's folder with packs, whether it is there or not."""
    from platformdirs import user_config_path

    try:
        return user_config_path("errtriage")
    except RuntimeError:  # nobody knows where home is
        return Path(os.devnull) / "errtriage"


def locations(named: Sequence[str] = ()) -> list[Location]:
    """Where packs are looked for beyond the bundled ones; a later one goes before an earlier one. ``named`` is ``--pack``."""
    found = [Location("user", user_folder())]
    with suppress(OSError):  # the working folder is gone, or nobody may look into it: then it belongs to no project
        found += [Location("project", folder) for folder in [project_folder(Path.cwd())] if folder]
    found += [Location(VARIABLE, Path(each)) for each in os.environ.get(VARIABLE, "").split(os.pathsep) if each]
    return found + [Location("--pack", Path(each)) for each in named]


def project_folder(folder: Path) -> Path | None:
    """The ``.errtriage`` folder of the project that a folder belongs to: the nearest upward, if its owner may be trusted.

    One that belongs to neither this user nor root nor the owner of ``folder`` was put there by somebody else, as anybody
    may do in a shared place such as /tmp.
    """
    for each in (folder, *folder.parents):
        found = each / PROJECT_FOLDER
        if found.is_dir():
            # Of a link it counts who made it, and not whose folder it leads to.
            if not hasattr(os, "getuid") or found.lstat().st_uid in (os.getuid(), 0, folder.stat().st_uid):
                return found
            return None
    return None


def folders(location: Location) -> list[Path]:
    """The packs of a location: the folder itself, or those in it. Empty where there are none."""
    if location.folder.name == "contract.json":
        return [location.folder.parent]
    try:
        if (location.folder / "contract.json").is_file():
            return [location.folder]
        return sorted(each.parent for each in location.folder.glob("*/contract.json"))
    except OSError:
        return []


def read(folder: Path, kind: str) -> Pack:
    """Read a pack's files but its examples. Raises Failure for one that cannot be read or is past a bound."""
    names = [name for name in ("contract.json", "codes.json", "tree.json", "rules.json", "conduct.json") if (folder / name).exists()]
    names += [path.name for path in within_bound(folder, "*.schema.json")]
    files = tuple((name, read_file(folder / name, folder)) for name in names)
    if sum(len(data) for _, data in files) > LARGEST_PACK:
        raise Failure(f"{shown(folder)} is larger than {LARGEST_PACK >> 20} MiB.", "A pack is far smaller; is this the right folder?")
    return Pack(str(folder), f"{shown(folder)} ({kind})", files)


def within_bound(folder: Path, pattern: str) -> list[Path]:
    """The files of a folder that fit, in order. Raises Failure where there are too many."""
    paths = sorted(folder.glob(pattern))
    if len(paths) > MOST_FILES:
        raise Failure(f"{shown(folder)} has more than {MOST_FILES:,} files.", "A pack is far smaller; is this the right folder?")
    return paths


def read_file(path: Path, folder: Path | None = None) -> bytes:
    """The bytes of one file of a pack. Raises Failure where it is no file, cannot be read, is too large or is a link that
    leads out of the pack's ``folder``.
    """
    try:
        if folder is not None and not path.resolve().is_relative_to(folder.resolve()):
            raise Failure(f"{shown(path)} leads out of its pack.", "A pack is made of files of its own.")
        with open(path, "rb", opener=_without_waiting) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise Failure(f"{shown(path)} is no file.", "A pack is made of plain files.")
            data = file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise Failure(f"{shown(path)} cannot be read: {error.strerror}.") from None
    if len(data) > LARGEST_FILE:
        raise Failure(f"{shown(path)} is larger than {LARGEST_FILE >> 10} KiB.", "A pack's file is far smaller; split it or take examples out.")
    return data.removeprefix(BOM_UTF8)  # as editors on Windows write it


def _without_waiting(path: str, flags: int) -> int:
    """Open a file; a named pipe that nobody writes to must not make us wait."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def shown(path: Path) -> str:
    """A path as a person would write it: from the working folder or from home, where it lies there or in its project."""
    return clean(_short(path))


def _short(path: Path) -> str:
    try:
        here, home = Path.cwd(), Path.home()
    except (OSError, RuntimeError):  # the working folder is gone, or nobody knows where home is
        return str(path)
    if path.is_relative_to(here) and path != here:
        return str(path.relative_to(here))
    above = [each for each in path.parents if each.name == PROJECT_FOLDER and here.is_relative_to(each.parent)]
    if above:
        return os.path.relpath(path, here)
    return f"~/{path.relative_to(home)}" if path.is_relative_to(home) and path != home else str(path)


#: The schemas that the files of a pack name for editors.
_FOR_EDITORS = tuple(f"{name}.schema.json" for name in ("codes", "conduct", "contract", "example", "rules", "texts", "tree"))


def start(name: str, parent: Path) -> Path:
    """Write a new pack that works, and the schemas of its files for editors; return its folder.

    Raises Failure for a name that a contract cannot have, a folder that is there already, or one that cannot be written.
    """
    if not re.fullmatch(r"[a-z][a-z0-9-]{0,39}", name) or name in ("errtriage", "meta"):
        raise Failure(f"A contract cannot be called '{name}'.", "A name is made of small letters, digits and hyphens, and begins with a letter.")
    folder = parent / name
    if folder.exists():
        raise Failure(f"{shown(folder)} is there already.", "Choose another name, or another place with --into.")
    template = packs_folder() / "errtriage" / "start"
    try:
        for source in sorted(template.rglob("*.json")):
            _write(folder / source.relative_to(template), source.read_text(encoding="utf-8").replace("NAME", name))
        meta = parent / "meta"
        for schema in () if meta.is_symlink() else _FOR_EDITORS:
            if not (meta / schema).exists():  # what is there may be somebody's own
                _write(meta / schema, (packs_folder() / "meta" / schema).read_text(encoding="utf-8"))
    except OSError as error:
        raise Failure(f"{shown(folder)} cannot be written: {error.strerror}.") from None
    return folder


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
