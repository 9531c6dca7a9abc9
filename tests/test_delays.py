"""Delays: every form of Retry-After, and times as log records write them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from errtriage import triage
from errtriage.delays import in_words, moment, retry_after

DATE = "Tue, 21 Jul 2026 14:00:00 GMT"
LATER = "Tue, 21 Jul 2026 14:01:35 GMT"

FORMS: list[tuple[str, dict[str, str], Any, tuple[bool, int | None, str | None]]] = [
    ("seconds", {"retry-after": "17"}, None, (True, 17_000, None)),
    ("zero", {"retry-after": "0"}, None, (True, 0, None)),
    ("a fraction means what it says", {"retry-after": "1.5"}, None, (True, 1500, "fractional")),
    ("a sign is none of HTTP's", {"retry-after": "+5"}, None, (False, None, "unreadable")),
    ("digits of another script too", {"retry-after": "１２"}, None, (False, None, "unreadable")),
    ("very long, and whole seconds", {"retry-after": "99999999999"}, None, (True, 99_999_999_999_000, None)),
    ("negative counts as absent", {"retry-after": "-3"}, None, (False, None, "negative")),
    ("minus zero too", {"retry-after": "-0"}, None, (False, None, "negative")),
    ("words count as absent", {"retry-after": "soon"}, None, (False, None, "unreadable")),
    ("empty counts as absent", {"retry-after": ""}, None, (False, None, "unreadable")),
    ("beyond any sense", {"retry-after": "9" * 400}, None, (False, None, "unreadable")),
    ("a date beside the response's date", {"retry-after": LATER, "date": DATE}, None, (True, 95_000, None)),
    ("a date in the past is zero", {"retry-after": DATE, "date": LATER}, None, (True, 0, None)),
    ("a date and the time of the record", {"retry-after": LATER}, "2026-07-21T14:01:05Z", (True, 30_000, None)),
    ("the response's date outranks the record's", {"retry-after": LATER, "date": DATE}, "2026-07-21T14:01:05Z", (True, 95_000, None)),
    ("a date with nothing to compare", {"retry-after": LATER}, None, (True, None, None)),
    ("milliseconds", {"retry-after-ms": "250"}, None, (True, 250, None)),
    ("with both the longer counts", {"retry-after": "1", "retry-after-ms": "2500"}, None, (True, 2500, None)),
    ("with both the longer counts, the other way", {"retry-after": "3", "retry-after-ms": "2500"}, None, (True, 3000, None)),
    ("neither", {}, None, (False, None, None)),
]


@pytest.mark.parametrize(("headers", "received", "wants"), [form[1:] for form in FORMS], ids=[form[0] for form in FORMS])
def test_retry_after(headers: dict[str, str], received: Any, wants: tuple[bool, int | None, str | None]) -> None:
    wait = retry_after(headers, received)
    assert (wait.stated, wait.delay_ms, wait.fault) == wants


@given(st.text(max_size=40), st.text(max_size=40))
def test_any_header_is_read_without_an_exception(header: str, date: str) -> None:
    wait = retry_after({"retry-after": header, "date": date, "retry-after-ms": date})
    assert wait.delay_ms is None or wait.delay_ms >= 0


NOON = datetime(2026, 7, 21, 12, tzinfo=UTC)
TIMES = [
    "2026-07-21T12:00:00Z", "2026-07-21 12:00:00", "2026-07-21T14:00:00+02:00", "2026-07-21T12:00:00.000000000Z",
    1784635200, "1784635200", 1784635200.0, 1784635200000, 1784635200000000, 1784635200000000000,
]  # fmt: skip


@pytest.mark.parametrize("value", TIMES)
def test_the_time_of_a_record(value: Any) -> None:
    assert moment(value) == NOON


@pytest.mark.parametrize("value", [None, True, "yesterday", "", [], {}, -1, float("inf"), float("nan"), 10**400, "9" * 30])
def test_what_is_no_time(value: Any) -> None:
    assert moment(value) is None


def test_a_response_in_a_log_record_was_received_when_the_record_was_written() -> None:
    record = {"time": "2026-07-21T14:01:05Z", "response": f'HTTP/1.1 429 Too Many Requests\r\nRetry-After: {LATER}\r\n\r\n{{"error": "rate_limited"}}'}
    (verdict,) = triage(record)
    assert verdict.retry is not None
    assert verdict.retry.delay_ms == 30_000
    assert verdict.source.wrappers == ("log-record", "json-string", "http")


@pytest.mark.parametrize(
    ("milliseconds", "words"),
    [
        (0, "0 ms"),
        (1, "1 ms"),
        (999, "999 ms"),
        (1000, "1 s"),
        (1500, "1.5 s"),
        (17_000, "17 s"),
        (95_000, "95 s"),
        (120_000, "2 min"),
        (150_000, "2 min 30 s"),
        (7_200_000, "2 h"),
        (8_000_000, "2 h 14 min"),
        (86_399_000, "24 h"),
        (120_001, "2 min 1 s"),
    ],
)
def test_a_delay_in_words(milliseconds: int, words: str) -> None:
    assert in_words(milliseconds) == words
