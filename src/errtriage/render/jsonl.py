"""Verdicts as JSON Lines, in the key order of the published schema (``schemas/meta/verdict.schema.json``)."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

import orjson

from errtriage.model import Verdict


def line(verdict: Verdict) -> bytes:
    """One verdict as one line, with its newline."""
    return orjson.dumps(document(verdict), option=orjson.OPT_APPEND_NEWLINE)


def document(verdict: Verdict) -> dict[str, Any]:
    """A verdict as plain data."""
    plain: dict[str, Any] = _plain(verdict)
    return plain


def _plain(value: Any) -> Any:
    # Not orjson's own reading of dataclasses: it would refuse integers beyond 64 bits.
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 63:
        return str(value)
    return value
