"""Verdicts as JSON Lines, in the key order of the published schema (``schemas/meta/verdict.schema.json``)."""

from __future__ import annotations

from typing import Any

import orjson

from errtriage.model import Verdict


def line(verdict: Verdict) -> bytes:
    """One verdict as one line, with its newline."""
    return orjson.dumps(document(verdict), option=orjson.OPT_APPEND_NEWLINE)


def document(verdict: Verdict) -> dict[str, Any]:
    """A verdict as plain data."""
    plain: dict[str, Any] = _plain(verdict)
    # Where a step is in its tree is for drawing only.
    plain["trace"] = [{"question": step.question, "answer": step.answer} for step in verdict.trace]
    return plain


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        if names := getattr(value, "_fields", None):
            return {name: _plain(member) for name, member in zip(names, value, strict=True)}
        return [_plain(item) for item in value]
    # orjson writes no integers beyond 64 bits.
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 63:
        return str(value)
    return value
