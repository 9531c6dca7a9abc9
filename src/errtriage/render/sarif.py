"""Findings as SARIF 2.1.0 (OASIS), which code hosts show as annotations."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import quote

import orjson

from errtriage import __version__
from errtriage.reports import LintReport, Located

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def render(report: LintReport) -> bytes:
    """The report as one SARIF log, with its newline."""
    return orjson.dumps(document(report), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def document(report: LintReport) -> dict[str, Any]:
    """The report as plain data."""
    numbers = {rule: i for i, rule in enumerate(report.rules)}
    run = {
        "tool": {"driver": {"name": "errtriage", "semanticVersion": __version__, "rules": [_rule(each) for each in report.rules.values()]}},
        "automationDetails": {"id": f"errtriage/{report.command}/"},
        "columnKind": "unicodeCodePoints",
        "invocations": [
            {
                "executionSuccessful": not report.unread,
                "toolExecutionNotifications": [
                    {"level": "error", "message": {"text": reason}, "locations": [{"physicalLocation": {"artifactLocation": {"uri": _uri(file)}}}]}
                    for file, reason in report.unread
                ],
            }
        ],
        "results": [_result(each, numbers) for each in report.findings],
    }
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(rule: Mapping[str, Any]) -> dict[str, Any]:
    bad, good = (each if isinstance(each, str) else orjson.dumps(each).decode() for each in (rule["bad"], rule["good"]))
    return {
        "id": rule["id"],
        "shortDescription": {"text": rule["what"]},
        "fullDescription": {"text": rule["why"]},
        "help": {
            "text": f"{rule['why']}\n\nBreaks it:\n{bad}\n\nKeeps it:\n{good}",
            "markdown": f"{rule['why']}\n\nBreaks it:\n\n```\n{bad}\n```\n\nKeeps it:\n\n```\n{good}\n```\n",
        },
        "defaultConfiguration": {"level": rule["level"]},
    }


def _result(finding: Located, numbers: Mapping[str, int]) -> dict[str, Any]:
    region = {"startLine": finding.line, "startColumn": finding.column, "endLine": finding.end_line, "endColumn": finding.end_column}
    location: dict[str, Any] = {
        "physicalLocation": {
            "artifactLocation": {"uri": _uri(finding.file)},
            "region": {name: value for name, value in region.items() if value is not None},
        }
    }
    if finding.pointer:
        location["logicalLocations"] = [{"fullyQualifiedName": finding.pointer, "kind": "member"}]
    known_by = orjson.dumps([finding.file, finding.rule, *([finding.identity] if finding.identity else [finding.pointer, finding.message])])
    result: dict[str, Any] = {
        "ruleId": finding.rule,
        "ruleIndex": numbers[finding.rule],
        "level": finding.level,
        "message": {"text": f"{finding.message} (at {finding.pointer})" if finding.pointer else finding.message},
        "locations": [location],
        "partialFingerprints": {"errtriage/v1": sha256(known_by).hexdigest()},
    }
    if finding.related:
        line, text = finding.related
        place = {"artifactLocation": {"uri": _uri(finding.file)}, "region": {"startLine": line}}
        result["relatedLocations"] = [{"physicalLocation": place, "message": {"text": text}}]
    return result


def _uri(file: str) -> str:
    """A file as a reference relative to the working directory, where it lies in it; standard input has no address."""
    if file == "-":
        return "stdin"
    path = Path(file)
    if path.is_absolute():
        if not path.is_relative_to(Path.cwd()):
            return path.as_uri()
        path = path.relative_to(Path.cwd())
    return quote(path.as_posix(), errors="replace")
