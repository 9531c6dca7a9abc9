"""From the paths that a user names to files: folders are walked, globs expanded, standard input kept as ``-``.

A folder gives the files that may hold captures or logs by their names; what is hidden and what .gitignore excludes is
left out. A file that is named itself is always taken.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from errtriage.inputs import STDIN, is_url

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

#: What a walked folder is searched for; rotated logs end in a number.
SUFFIXES = (".json", ".jsonl", ".ndjson", ".har", ".http", ".log", ".txt")
#: What is said of a folder or a glob in which there is nothing to read.
NOTHING_THERE = f"no file to read; in a folder, names end in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]} (hidden and ignored ones are left out)."
_TAKEN = re.compile(rf"(?i)(?:{'|'.join(map(re.escape, SUFFIXES))})(?:\.\d+)?(?:\.(?:gz|bz2|xz|zst))?\Z")
_GLOB = re.compile(r"[*?\[]")


class Listing(NamedTuple):
    """The files to read, in the order in which they were named, each once; and what could not be taken, with the reason."""

    files: list[str]
    missing: list[tuple[str, str]]
    #: Folders and globs in which there was nothing to read.
    empty: list[str]


def expand(names: list[str]) -> Listing:
    """The files behind the given paths, folders and globs. What is inside a folder comes in the order of its names."""
    listing = Listing([], [], [])
    seen: set[tuple[int, int]] = set()
    for name in names:
        found = _behind(name, listing)
        if found is None:
            continue
        if not found:
            listing.empty.append(name)
        for file in found:
            if (key := _identity(file)) not in seen:
                seen.add(key)
                listing.files.append(file)
    return listing


def _identity(file: str) -> tuple[int, int]:
    """What is the same for two names of one file."""
    try:
        status = os.stat(file)  # noqa: PTH116 - for thousands of small files a Path costs as much as reading them
    except OSError:  # standard input, or gone since
        return hash(file), -1
    return status.st_dev, status.st_ino


def _behind(name: str, listing: Listing) -> list[str] | None:
    """The files behind one name; None (and a word in the listing) where there is nothing of that name."""
    if name == STDIN:
        return [name]
    if is_url(name):
        return _remote(name, listing)
    try:
        return list(_walk(name)) if stat.S_ISDIR(os.stat(name).st_mode) else [name]  # noqa: PTH116 - as above
    except (FileNotFoundError, NotADirectoryError):
        if _GLOB.search(name) and (files := _matching(name)) is not None:
            return files
        reason = "nothing matches it" if _GLOB.search(name) else "there is no such file or folder"
    except OSError as error:
        reason = str(error.strerror)
    except ValueError:  # a NUL character
        reason = "it is no name of a file"
    listing.missing.append((name, reason))
    return None


def _remote(url: str, listing: Listing) -> list[str] | None:
    """The inputs behind a URL."""
    from errtriage import remote

    try:
        found = remote.expand(url, _TAKEN)
    except OSError as error:
        listing.missing.append((url, str(error.strerror)))
        return None
    if found is None:
        listing.missing.append((url, "nothing matches it" if "*" in url else "there is no such object"))
    return found


def _matching(pattern: str) -> list[str] | None:
    """The files that a glob matches, and those in the folders that it matches; None where it matches nothing."""
    from glob import glob

    matches = sorted(glob(pattern, recursive=True))  # noqa: PTH207 - Path.glob wants a folder to start from
    files: list[str] = []
    for match in matches:
        files += list(_walk(match)) if Path(match).is_dir() else [match]
    return files if matches else None


def _walk(top: str) -> Iterator[str]:
    """The files of a folder and of those below it that may hold captures, without hidden and excluded ones."""
    ignored = _Ignored(top)
    for folder, folders, files in os.walk(top):
        ignored.enter(folder)
        folders[:] = sorted(name for name in folders if not name.startswith(".") and not ignored.covers(folder, f"{name}/"))
        for name in sorted(files):
            file = str(Path(folder) / name)
            if not name.startswith(".") and _TAKEN.search(name) and not ignored.covers(folder, name) and Path(file).is_file():
                yield file


class _Ignored:
    """What .gitignore files exclude: those of the folder, below it, and above it up to the top of its repository."""

    def __init__(self, top: str) -> None:
        #: The rules of each folder, the ones that count first first.
        self._specs: dict[str, list[GitIgnoreSpec]] = {}
        above = [Path(top).resolve()]
        while not (above[-1] / ".git").exists() and above[-1].parent != above[-1]:
            above.append(above[-1].parent)
        if (above[-1] / ".git").exists():
            for folder in above:
                self._add(folder, folder / ".gitignore")
            self._add(above[-1], above[-1] / ".git" / "info" / "exclude")
        if self.covers(str(above[0].parent), f"{above[0].name}/"):
            self._specs.clear()  # the folder is excluded, but it was named

    def enter(self, folder: str) -> None:
        """Take the rules of a folder that is walked."""
        path = Path(folder).resolve()
        if str(path) not in self._specs:
            self._add(path, path / ".gitignore")

    def _add(self, folder: Path, file: Path) -> None:
        try:
            lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            return
        from pathspec import GitIgnoreSpec

        rules = [line for line in lines if _is_rule(line)]
        self._specs.setdefault(str(folder), []).append(GitIgnoreSpec.from_lines(rules))

    def covers(self, folder: str, name: str) -> bool:
        """Whether something in a folder is excluded (a folder's name ends in a slash); the nearest rules count."""
        if not self._specs:
            return False
        path = Path(folder).resolve()
        inside = name
        while True:
            for spec in self._specs.get(str(path), ()):
                if (included := spec.check_file(inside).include) is not None:
                    return included
            if path.parent == path:
                return False
            inside = f"{path.name}/{inside}"
            path = path.parent


def _is_rule(line: str) -> bool:
    """Whether a line of a .gitignore file says something; git passes over what does not, and so do we."""
    from pathspec import GitIgnoreSpec

    try:
        GitIgnoreSpec.from_lines([line])
    except (ValueError, re.error):
        return False
    return True
