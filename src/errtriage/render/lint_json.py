"""Lint's report as one JSON document (``schemas/meta/lint.schema.json``)."""

from __future__ import annotations

from typing import Any

import orjson

from errtriage.reports import LintReport, Located

VERSION = 1


def render(report: LintReport) -> bytes:
    """The report, with its newline."""
    return orjson.dumps(document(report), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def document(report: LintReport) -> dict[str, Any]:
    """The report as plain data."""
    return {
        "version": VERSION,
        "files": report.files,
        "payloads": report.payloads,
        "by_level": report.by_level,
        "known": report.known,
        "findings": [plain(each) for each in report.findings],
        "unread": [{"file": file, "reason": reason} for file, reason in report.unread],
    }


def plain(finding: Located) -> dict[str, Any]:
    """A finding as plain data."""
    return {name: value for name, value in finding._asdict().items() if name not in ("excerpt", "related", "identity")}
