"""A project's settings: ``errtriage.toml``, or ``[tool.errtriage]`` in pyproject.toml, found upward from a folder."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from errtriage.contracts import unknown_name
from errtriage.model import Failure

_LISTS = ("select", "ignore")
_TEXTS = ("fail-on", "contract")


class Project(NamedTuple):
    """What a project sets for lint; ``file`` is where it stands, or None where there is none."""

    file: str | None = None
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    fail_on: str | None = None
    contract: str | None = None


def find(folder: Path) -> Project:
    """The settings of the project that a folder belongs to: the nearest file upward that has some.

    Raises Failure where the file cannot be read, is no TOML, or sets what there is not.
    """
    for each in (folder, *folder.parents):
        own = each / "errtriage.toml"
        if own.is_file():
            table = _read(own)
            return _project(own, _inner(table) if table.keys() == {"tool"} else table)
        shared = each / "pyproject.toml"
        if shared.is_file():
            found = _inner(_read(shared))
            if found is not None:
                return _project(shared, found)
    return Project()


def _inner(table: Mapping[str, Any]) -> Any:
    """What stands under ``tool.errtriage``; None where nothing does."""
    tool = table.get("tool")
    return tool.get("errtriage") if isinstance(tool, Mapping) else None


def _read(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise Failure(f"{file} cannot be read: {error.strerror}.") from None
    except ValueError as error:  # no TOML, or no UTF-8
        raise Failure(f"{file} is no TOML: {error}.", "Correct it and try again.") from None


def _project(file: Path, table: Any) -> Project:
    if not isinstance(table, Mapping):
        raise Failure(f"In {file}, tool.errtriage is no table.", "Write it as [tool.errtriage].")
    known = [*_LISTS, *_TEXTS]
    for name, value in table.items():
        if name not in known:
            message, hint = unknown_name("setting", name, known)
            raise Failure(f"In {file}: {message}", hint)
        if name in _LISTS and not (isinstance(value, list) and all(isinstance(each, str) for each in value)):
            raise Failure(f'In {file}, {name} must be a list of texts, such as {name} = ["OV105"].')
        if name in _TEXTS and not isinstance(value, str):
            raise Failure(f'In {file}, {name} must be a text, such as {name} = "{_EXAMPLES[name]}".')
    return Project(str(file), listed(table.get("select", ())), listed(table.get("ignore", ())), table.get("fail-on"), table.get("contract"))


def listed(given: Iterable[str]) -> tuple[str, ...]:
    """Names that may stand in one text, with commas."""
    return tuple(part.strip() for each in given for part in each.split(",") if part.strip())


_EXAMPLES = {"fail-on": "warning", "contract": "ovstorage"}
