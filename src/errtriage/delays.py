"""Arithmetic of delays: Retry-After in its forms, times in log records, and how a delay is said in words.

Source: RFC 9110, section 10.2.3 (Retry-After) and 5.6.7 (dates). Delays are in milliseconds.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

_NUMBER = re.compile(r"-?(?:\d+(?:\.\d*)?|\.\d+)", re.ASCII)
#: A delay longer than this (some 30,000 years) is taken for a mistake of the sender.
LONGEST_MS = 10**15


class RetryAfter(NamedTuple):
    """What the headers say about coming back: ``stated`` (readable and not negative), the delay in ms where it can
    be told, the header as it stands there, and what is wrong with it."""

    stated: bool = False
    delay_ms: int | None = None
    header: str | None = None
    fault: str | None = None


def retry_after(headers: Mapping[str, str], received: Any = None) -> RetryAfter:
    """Read Retry-After and Retry-After-Ms; with both, the longer counts.

    A date is relative to the response's own Date, else to ``received`` (the time of the capture or log record),
    else there is no delay to state; a date in the past is 0.
    """
    header = headers.get("retry-after")
    stated, delay, fault = _read(header, headers.get("date"), received) if header is not None else (False, None, None)
    exact = headers.get("retry-after-ms", "").strip()
    if _NUMBER.fullmatch(exact) and 0 <= float(exact) <= LONGEST_MS:
        stated, delay = True, max(round(float(exact)), delay or 0)
    return RetryAfter(stated, delay, header, fault)


def _read(header: str, date: str | None, received: Any) -> tuple[bool, int | None, str | None]:
    text = header.strip()
    if _NUMBER.fullmatch(text):
        milliseconds = float(text) * 1000
        if milliseconds < 0 or text.startswith("-"):
            return False, None, "negative"
        if milliseconds > LONGEST_MS:
            return False, None, "unreadable"
        return True, round(milliseconds), None if text.isdigit() else "fractional"
    until = _http_date(text)
    if until is None:
        return False, None, "unreadable"
    start = (_http_date(date) if date else None) or moment(received)
    if start is None:
        return True, None, None
    return True, max(0, round((until - start).total_seconds() * 1000)), None


def seconds(value: Any) -> int | None:
    """A number of seconds, or a text that is one, in ms; None where it is neither, negative, or past all reason."""
    if isinstance(value, str) and len(value) < 25 and _NUMBER.fullmatch(value.strip()):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= LONGEST_MS / 1000:
        return None
    return round(value * 1000)


def duration(value: Any) -> int | None:
    """A duration as protobuf writes it in JSON (seconds with an s behind), in ms; None where it is none, or negative."""
    return seconds(value[:-1]) if isinstance(value, str) and value.endswith("s") else None


def _http_date(text: str) -> datetime | None:
    from email.utils import parsedate_to_datetime

    try:
        value = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return value if value.tzinfo else value.replace(tzinfo=UTC)


def moment(value: Any) -> datetime | None:
    """The time that a log record states: ISO 8601, or a number of seconds, ms, microseconds or ns since 1970."""
    if isinstance(value, str) and len(value) < 25 and _NUMBER.fullmatch(value):
        value = float(value) if "." in value else int(value)
    try:
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 10**20:
            while value > 100_000_000_000:  # seconds reach that in the year 5138
                value /= 1000
            return datetime.fromtimestamp(value, UTC)
        if isinstance(value, str):
            # Python reads six digits of a second; container logs write nine.
            stamp = datetime.fromisoformat(re.sub(r"(\.\d{6})\d+", r"\1", value.strip()))
            return stamp if stamp.tzinfo else stamp.replace(tzinfo=UTC)
    except (ValueError, OverflowError, OSError):
        pass
    return None


def in_words(milliseconds: int) -> str:
    """A delay for people, in the unit that reads best: exact, or rounded up, so that nobody comes back too soon."""
    if milliseconds < 1000:
        return f"{milliseconds} ms"
    if milliseconds < 120_000:
        return f"{milliseconds / 1000:g} s"
    minutes, rest = divmod(-(-milliseconds // 1000), 60)
    if minutes < 120:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(minutes + (rest > 0), 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"
