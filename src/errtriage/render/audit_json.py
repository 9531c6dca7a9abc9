"""Audit's report as one JSON document (``schemas/meta/audit.schema.json``)."""

from __future__ import annotations

from typing import Any

import orjson

from errtriage.audit import AuditReport, Event
from errtriage.conduct import Breach
from errtriage.connections import Session
from errtriage.moments import Time, written_time
from errtriage.render import lint_json


def render(report: AuditReport) -> bytes:
    """The report, with its newline."""
    return orjson.dumps(document(report), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def document(report: AuditReport) -> dict[str, Any]:
    """The report as plain data: lint's, with the parts of each finding, the sessions, and what came late."""
    lint = lint_json.document(report.lint)
    document = {
        "version": lint["version"],
        "files": lint["files"],
        "lines": report.lines,
        "bytes": report.bytes,
        "calls": lint["payloads"],
        "by_level": lint["by_level"],
        "known": lint["known"],
        "findings": [{**plain, **_breach(breach)} for plain, breach in zip(lint["findings"], report.breaches, strict=True)],
        "sessions": [_session(each) for each in report.sessions],
        "late_answers": [each._asdict() for each in report.late],
        "not_applied": [{"rule": rule, "reason": reason, "calls": count} for (rule, reason), count in report.unapplied.items()],
        "mixed": list(report.mixed),
        "unassigned": report.unassigned,
        "unread": lint["unread"],
    }
    if report.session is not None:
        document["story"] = [_event(each) for each in report.story]
    return document


def _breach(breach: Breach) -> dict[str, Any]:
    verdict = breach.verdict
    return {
        "session": breach.session,
        "contract": breach.contract,
        "tool": breach.tool,
        "arguments": breach.arguments,
        "time": _time(breach.time),
        "verdict": None if verdict is None else {**verdict._asdict(), "time": _time(verdict.time)},
        "between_ms": breach.between_ms,
        "what": breach.what,
        "says": breach.says,
        "source": breach.source,
        "instead": breach.instead,
    }


def _session(session: Session) -> dict[str, Any]:
    return {
        "session": session.label,
        "file": session.file,
        "contracts": sorted(session.contracts),
        "servers": sorted(session.servers),
        "calls": session.calls,
        "answers": session.answers,
        "failures": session.failures,
        "verdicts": session.verdicts,
        "obeyed": session.obeyed,
        "broken": session.broken,
        "findings": session.breaches,
        "late_answers": session.late,
        "first_line": session.lines[0],
        "last_line": session.lines[1],
        "first_seen": _time(session.times[0]),
        "last_seen": _time(session.times[1]),
    }


def _event(event: Event) -> dict[str, Any]:
    judgement = event.judgement
    return {
        "file": event.session.file,
        "session": event.session.label,
        "line": event.line,
        "time": _time(event.time),
        "event": event.side,
        "text": event.text,
        "outcome": judgement.outcome if judgement else None,
        "code": judgement.code if judgement else None,
        "action": judgement.action if judgement else None,
        "correlation_id": judgement.correlation_id if judgement else None,
        "summary": judgement.summary if judgement else None,
        "rules": [breach.rule for breach in event.breaches],
    }


def _time(time: Time | None) -> str | None:
    return written_time(time)
