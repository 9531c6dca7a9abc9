"""A baseline: the findings that a team knows of, so that only new ones count.

Lines move while a log grows, so a finding is known by its file, rule, pointer and message, and by how often it occurs.
Files are named relative to the baseline's own folder: it holds wherever the command is called from.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Container, Iterable
from pathlib import Path
from typing import Any

import orjson

from errtriage.model import Failure
from errtriage.reports import FileReport, Located

VERSION = 1
_FIELDS = ("file", "rule", "pointer", "message")
_Key = tuple[str, ...]


class Baseline:
    """The known findings of a baseline file."""

    def __init__(self, known: Counter[_Key], folder: Path) -> None:
        self._left = known
        self._folder = folder

    def without_known(self, report: FileReport) -> FileReport:
        """The report without the findings that are known; each known one excuses one."""
        new: list[Located] = []
        for finding in report.findings:
            key = _key(finding, self._folder)
            if self._left[key] > 0:
                self._left[key] -= 1
            else:
                new.append(finding)
        return report._replace(findings=tuple(new))

    def gone(self, reports: Iterable[FileReport], rules: Container[str]) -> int:
        """How many known findings did not occur, of those that were looked for: in these files, and by these rules."""
        files = {_file(report.file, self._folder) for report in reports if report.failure is None}
        return sum(count for (file, rule, *_), count in self._left.items() if file in files and rule in rules)


def read(name: str) -> Baseline:
    """Read a baseline. Raises Failure where there is none, or where the file is something else."""
    path = Path(name)
    try:
        document = orjson.loads(path.read_bytes())
    except OSError as error:
        raise Failure(f"The baseline {name} cannot be read: {error.strerror}.", f"Make it with --write-baseline {name}.") from None
    except ValueError:
        document = None
    if not isinstance(document, dict) or document.get("version") != VERSION or not isinstance(document.get("findings"), list):
        raise Failure(f"{name} is no baseline of this version of errtriage.", f"Delete it, and make it anew with --write-baseline {name}.")
    known: Counter[_Key] = Counter()
    for each in document["findings"]:
        if not isinstance(each, dict) or not all(isinstance(each.get(field), str) for field in _FIELDS) or not _is_count(each.get("count")):
            raise Failure(f"An entry of the baseline {name} is damaged.", f"Delete it, and make it anew with --write-baseline {name}.")
        known[tuple(each[field] for field in _FIELDS)] += each["count"]
    return Baseline(known, path.resolve().parent)


def _is_count(value: Any) -> bool:
    return type(value) is int and value > 0


def check(name: str) -> None:
    """Raise Failure where a file of this name is something else than a baseline, so that nothing is overwritten."""
    if Path(name).exists() and Path(name).stat().st_size:
        try:
            read(name)
        except Failure:
            raise Failure(f"{name} is there already, and is no baseline.", "Name another file, or delete it first.") from None


def write(name: str, reports: Iterable[FileReport]) -> int:
    """Write the findings of reports as a baseline, and return how many. Raises Failure where that is not possible."""
    path = Path(name)
    found = Counter(_key(finding, path.resolve().parent) for report in reports for finding in report.findings)
    entries: list[dict[str, Any]] = [{**dict(zip(_FIELDS, key, strict=True)), "count": found[key]} for key in sorted(found)]
    try:
        path.write_text(json.dumps({"version": VERSION, "findings": entries}, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    except OSError as error:
        raise Failure(f"The baseline {name} cannot be written: {error.strerror}.") from None
    return found.total()


def _key(finding: Located, folder: Path) -> _Key:
    return _file(finding.file, folder), finding.rule, finding.pointer if not finding.identity else "", finding.identity or finding.message


def _file(name: str, folder: Path) -> str:
    """A file as it is named from a folder, whatever links lead there."""
    return name if name == "-" else os.path.relpath(os.path.realpath(name), folder).replace(os.sep, "/")
