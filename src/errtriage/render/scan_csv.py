"""The groups of a scan as CSV (RFC 4180), one row each."""

from __future__ import annotations

import csv
from io import StringIO

from errtriage.survey import GroupShown, Survey

COLUMNS = ("contract", "shape", "outcome", "code", "action", "count", "first_seen", "last_seen", "files", "operations", "ids", "places", "summary")


def render(survey: Survey) -> str:
    """The groups, below a row of titles."""
    out = StringIO()
    writer = csv.writer(out)
    writer.writerow(COLUMNS)
    writer.writerows([_cell(value) for value in _row(group)] for group in survey.groups)
    return out.getvalue()


def _row(group: GroupShown) -> list[object]:
    operations = "; ".join(f"{name} {count}" for name, count in group.operations.items())
    places = "; ".join(f"{file}:{line}" for file, line in group.places)
    return [*group.key, group.total, group.first_seen, group.last_seen, group.files, operations, "; ".join(group.ids), places, group.summary]


def _cell(value: object) -> object:
    """A value that no spreadsheet takes for a formula: what a log says is text."""
    if value is None:
        return ""
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r") and not _is_number(value) else value


def _is_number(text: str) -> bool:
    return text.removeprefix("-").isdecimal()
