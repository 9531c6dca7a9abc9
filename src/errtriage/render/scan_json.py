"""The report of a scan as one JSON document (``schemas/meta/scan.schema.json``)."""

from __future__ import annotations

from typing import Any

import orjson

from errtriage.survey import Survey

VERSION = 1


def render(survey: Survey) -> bytes:
    """The report, with its newline."""
    return orjson.dumps(document(survey), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def document(survey: Survey) -> dict[str, Any]:
    """The report as plain data."""
    return {
        "version": VERSION,
        "files": survey.files,
        "bytes": survey.bytes,
        "lines": survey.lines,
        "payloads": survey.payloads,
        "truncated": survey.truncated,
        "by_outcome": {str(outcome): count for outcome, count in survey.by_outcome.items()},
        "by_action": {str(action): count for action, count in survey.by_action.items()},
        "groups": [
            {
                **group.key._asdict(),
                "summary": group.summary,
                "count": group.total,
                "first_seen": group.first_seen,
                "last_seen": group.last_seen,
                "operations": dict(group.operations),
                "files": group.files,
                "ids": list(group.ids),
                "places": [{"file": file, "line": line} for file, line in group.places],
                "histogram": list(group.histogram),
            }
            for group in survey.groups
        ],
        "skipped": [{"file": file, "reason": reason} for file, reason in survey.skipped],
    }
