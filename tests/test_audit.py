"""What a client must not do after an answer, and what looks like it and is not."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from conftest import CORPUS, SCHEMAS, Run
from conversations import (
    COMPLETED,
    FIXED_TEXT,
    UNCERTAIN,
    Record,
    answer,
    at,
    call,
    error,
    failed,
    hint,
    log,
    note,
    notice,
    plain,
    request,
    response,
    result,
    stored,
    with_arrows,
)

from errtriage.audit import Audit
from errtriage.conduct import Breach
from errtriage.contracts import bundled, own_conduct
from errtriage.coverage import audited
from errtriage.judge import Settings
from errtriage.regions import Slice
from errtriage.slices import Queue
from errtriage.traffic import read_slice

RULES = frozenset(rule["id"] for rule in own_conduct()["rules"])
READ, WRITE, STAT = "ovstorage_read", "ovstorage_write", "ovstorage_stat"
PLAN = {"address": "s3://b/plan.txt"}


def audit_of(text: str, **settings: Any) -> Audit:
    """The audit of one input."""
    given = Settings(**settings)
    data = text.encode()
    audit = Audit(given, RULES)
    audit.open("-")
    audit.add(read_slice((given, Slice("-", 0, len(data), 0.0, data))))
    audit.finish()
    return audit


def breaches(records: list[Record], **members: Any) -> list[Breach]:
    """What is broken in some traffic."""
    return audit_of(log(records, **members)).breaches


def retries(*pauses: int, tool: str = READ, **arguments: Any) -> list[Record]:
    """Attempts with such pauses between answer and next attempt, in ms; each takes 100 ms and heals nothing."""
    records, now = [], 0
    for number, pause in enumerate((0, *pauses)):
        now += pause
        records += [call(now, number, tool, **(arguments or PLAN)), answer(now + 100, number, failed("Transient", retryable=True))]
        now += 100
    return records


def twice(first: Record, *between: Record, later: int = 2000, **arguments: Any) -> list[Record]:
    """A read with its answer, what lies in between, and the read again."""
    return [call(0, 1, READ, **PLAN), answer(100, 1, first), *between, call(later, 90, READ, **(arguments or PLAN))]


# Sequences that break a rule: the rules, in the order of the calls.
BROKEN: dict[str, tuple[list[Record], list[str]]] = {
    "a denied read again": (twice(failed("PermissionDenied")), ["AU101"]),
    "arguments in another order are equal": (
        [call(0, 1, WRITE, address="s3://b/a", data="x"), answer(9, 1, failed("Locked", WRITE)), call(99, 2, WRITE, data="x", address="s3://b/a")],
        ["AU101"],
    ),
    "wrong arguments again": (twice(failed("InvalidArgument")), ["AU101"]),
    "wrong arguments again, though something else was read": (
        twice(failed("InvalidArgument"), call(200, 2, STAT, address="s3://b/x"), answer(300, 2, stored(STAT))),
        ["AU101"],
    ),
    "nothing there, asked again": (twice(failed("NotFound")), ["AU101"]),
    "nothing there, asked again after a look at another address": (
        twice(failed("NotFound"), call(200, 2, STAT, address="s3://b/other"), answer(300, 2, stored(STAT))),
        ["AU101"],
    ),
    "a hint that was not followed": (twice(failed("NoRoute", next_action="Add a connection, then restart the host.")), ["AU101"]),
    "an operation that is not on offer again": (twice(failed("Unsupported")), ["AU101"]),
    "a retryable flag that the contract rules out": (twice(failed("Locked", retryable=True)), ["AU101"]),
    "half a move again": (
        [
            call(0, 1, "ovstorage_move", src="s3://b/a", dest="s3://b/c"),
            answer(99, 1, failed("CommitAmbiguous", "ovstorage_move")),
            call(999, 2, "ovstorage_move", src="s3://b/a", dest="s3://b/c"),
        ],
        ["AU101"],
    ),
    "each time again": ([*twice(failed("PermissionDenied")), answer(2100, 90, failed("PermissionDenied")), call(2500, 91, READ, **PLAN)], ["AU101", "AU101"]),
    "half a move again, much later": (
        [
            call(0, 1, "ovstorage_move", src="s3://b/a", dest="s3://b/c"),
            answer(99, 1, failed("PartialCompletion", "ovstorage_move")),
            call(9_999_999, 2, "ovstorage_move", src="s3://b/a", dest="s3://b/c"),
        ],
        ["AU101"],
    ),
    "exactly a minute later": (twice(failed("PermissionDenied"), later=60_100), ["AU101"]),
    "without arguments, which is as with none": (
        [
            request(0, 1, "tools/call", {"name": "ovstorage_doctor"}),
            answer(9, 1, failed("Internal", "ovstorage_doctor")),
            call(99, 2, "ovstorage_doctor"),
        ],
        ["AU101"],
    ),
    "a failed change under the same key": ([note(0, 1), answer(99, 1, result("failed", "denied", "ACTION_DENIED")), note(999, 2)], ["AU101"]),
    "an unknown outcome that is not retryable, the same key": (
        [note(0, 1), answer(99, 1, result("uncertain", "uncertain", "OUTCOME_UNKNOWN")), note(999, 2)],
        ["AU101"],
    ),
    "a denied change under another key": ([note(0, 1), answer(99, 1, result("failed", "denied", "ACTION_DENIED")), note(999, 2, "k-2")], ["AU101"]),
    "on after a 401, whatever else went wrong": (
        [
            call(0, 1, "jobs.search", q="art"),
            response(99, "401 Unauthorized"),
            error(150, 1, -32603, "HTTP 401"),
            call(999, 2, "jobs.search", q="design"),
            error(1099, 2, -32603, "no"),
            call(1999, 3, "jobs.search", q="music"),
        ],
        ["AU105", "AU105"],
    ),
    "two calls side by side, both refused, and on": (
        [
            call(0, 1, "jobs.search", q="art"),
            call(10, 2, "jobs.search", q="design"),
            response(99, "401 Unauthorized"),
            response(110, "401 Unauthorized"),
            call(999, 3, "jobs.search", q="music"),
        ],
        ["AU105"],
    ),
    "before Retry-After, of which the SDK told in its own words": (
        [
            call(0, 1, "jobs.search", q="art"),
            response(100, "429 Too Many Requests", "Retry-After: 5"),
            error(200, 1, -32603, "HTTP 429"),
            call(999, 2, "jobs.search", q="art"),
        ],
        ["AU102"],
    ),
    "what was cancelled, again": ([note(0, 1), answer(99, 1, result("cancelled", "cancelled", "OPERATION_CANCELLED")), note(999, 2)], ["AU101"]),
    "bad parameters again": ([call(0, 1, "weather", town=7), error(99, 1, -32602), call(999, 2, "weather", town=7)], ["AU101"]),
    "before the hint's delay": ([note(0, 1), answer(100, 1, hint(1000)), note(1099, 2)], ["AU102"]),
    "before Retry-After": (
        [call(0, 1, "jobs.search", q="art"), response(100, "429 Too Many Requests", "Retry-After: 2"), call(2099, 2, "jobs.search", q="art")],
        ["AU102"],
    ),
    "a new key after an unknown outcome": ([note(0, 1), answer(99, 1, UNCERTAIN), note(9999, 2, "k-2")], ["AU103"]),
    "a new key, hours later": ([note(0, 1), answer(99, 1, UNCERTAIN), note(9_999_999, 2, "k-2")], ["AU103"]),
    "a new key after a read of another record": (
        [note(0, 1), answer(99, 1, UNCERTAIN), call(200, 2, "contacts.get", contactId="c-2"), answer(300, 2, {"content": []}), note(999, 3, "k-2")],
        ["AU103"],
    ),
    "a new key after a read that failed": (
        [note(0, 1), answer(99, 1, UNCERTAIN), call(200, 2, "contacts.get", contactId="c-1"), answer(300, 2, FIXED_TEXT), note(999, 3, "k-2")],
        ["AU103"],
    ),
    "a new key after a read before": (
        [call(0, 1, "contacts.get", contactId="c-1"), answer(50, 1, {"content": []}), note(60, 2), answer(99, 2, UNCERTAIN), note(999, 3, "k-2")],
        ["AU103"],
    ),
    "a new key after a read of another kind of record": (
        [note(0, 1), answer(99, 1, UNCERTAIN), call(200, 2, "jobs.search", q="art"), answer(300, 2, {"content": []}), note(999, 3, "k-2")],
        ["AU103"],
    ),
    "a new key after a change of another record": (
        [note(0, 1), answer(99, 1, UNCERTAIN), note(200, 2, "k-5", "c-2"), answer(300, 2, COMPLETED), note(999, 3, "k-2")],
        ["AU103"],
    ),
    "the sixth attempt": (retries(1000, 2000, 4000, 8000, 16_000), ["AU104"]),
    "pauses that do not grow": (retries(1000, 1000), ["AU104"]),
    "pauses that shrink": (retries(1000, 2000, 500), ["AU104"]),
    "no pauses at all": (retries(0, 0), ["AU104"]),
    "on after a 401": ([call(0, 1, "jobs.search", q="art"), response(99, "401 Unauthorized"), call(999, 2, "jobs.search", q="design")], ["AU105"]),
    "on and on after a 401": (
        [
            call(0, 1, "jobs.search", q="art"),
            response(99, "401 Unauthorized"),
            call(999, 2, "jobs.search", q="design"),
            response(1099, "401 Unauthorized"),
            request(1999, 3, "tools/list", {}),
        ],
        ["AU105", "AU105"],
    ),
    "on after an error with the code 401": (
        [call(0, 1, "lookup", q="art"), error(99, 1, 401, "Unauthorized"), call(999, 2, "lookup", q="design")],
        ["AU105"],
    ),
    "another key after a hint": ([note(0, 1), answer(99, 1, hint(500)), note(2000, 2, "k-2")], ["AU106"]),
    "no key after a hint": ([note(0, 1), answer(99, 1, hint(500)), note(2000, 2, None)], ["AU106"]),
    "another key, and too soon": ([note(0, 1), answer(99, 1, hint(500)), note(200, 2, "k-2")], ["AU102", "AU106"]),
    "121 calls within a minute": ([call(499 * n, n, "jobs.search", q=f"page {n}") for n in range(121)], ["AU107"]),
    "twice too many calls are one burst": ([call(100 * n, n, "jobs.search", q=f"page {n}") for n in range(300)], ["AU107"]),
    "again after the fixed text": ([call(0, 1, "meetings.get", id="m-1"), answer(99, 1, FIXED_TEXT), call(9999, 2, "meetings.get", id="m-1")], ["AU108"]),
    "again after the fixed text, much later and after other calls": (
        [
            call(0, 1, "meetings.get", id="m-1"),
            answer(99, 1, FIXED_TEXT),
            call(200, 2, "jobs.search", q="art"),
            answer(300, 2, {"content": []}),
            call(3_600_099, 3, "meetings.get", id="m-1"),
        ],
        ["AU108"],
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_forbidden_is_found(name: str) -> None:
    records, rules = BROKEN[name]
    assert [each.rule for each in breaches(records)] == rules


# What looks like it, and is not.
KEPT: dict[str, list[Record]] = {
    "another address": twice(failed("PermissionDenied"), address="s3://b/other.txt"),
    "corrected arguments": twice(failed("InvalidArgument"), address="s3://b/plan.txt", max_bytes=10),
    "a number that is another": [
        call(0, 1, READ, **PLAN, max_bytes=10),
        answer(9, 1, failed("InvalidArgument")),
        call(99, 2, READ, **PLAN, max_bytes=20),
    ],
    "written, then read again": twice(failed("NotFound"), call(200, 2, WRITE, **PLAN, data="x"), answer(300, 2, stored(WRITE))),
    "looked around, then read again": twice(failed("NotFound"), call(200, 2, "ovstorage_list", prefix="s3://b/"), answer(300, 2, stored("ovstorage_list"))),
    "the hint may be what was called": twice(
        failed("NoRoute", next_action="Look at the connections."), call(200, 2, "ovstorage_connections_list"), answer(300, 2, stored("ovstorage_connections_list"))
    ),
    "an unknown tool may be what was asked for": twice(failed("PermissionDenied"), call(200, 2, "grant_access", who="me"), answer(300, 2, {"content": []})),
    "sent before the answer was there": [
        call(0, 1, READ, **PLAN), call(50, 2, READ, **PLAN), answer(100, 1, failed("PermissionDenied")), answer(110, 2, failed("PermissionDenied")),
    ],
    "more than a minute later": twice(failed("PermissionDenied"), later=60_101),
    "a person allowed it": twice(
        failed("PermissionDenied"),
        request(200, 7, "elicitation/create", {"message": "Try again?", "requestedSchema": {"type": "object", "properties": {}}}),
        answer(900, 7, {"action": "accept", "content": {}}),
    ),
    "a person said so": twice(failed("PermissionDenied"), {"time": at(500), "role": "user", "content": "I have granted it, try again."}),
    "another session": [
        {"session": "a", **call(0, 1, READ, **PLAN)}, {"session": "a", **answer(100, 1, failed("PermissionDenied"))}, {"session": "b", **call(900, 1, READ, **PLAN)},
    ],
    "after a success in between": [
        *twice(failed("Transient", retryable=True)), answer(2100, 90, stored()), call(2200, 91, READ, **PLAN), answer(2300, 91, failed("PermissionDenied")),
    ],
    "one message logged twice": [*twice(failed("PermissionDenied"))[:2], call(110, 1, READ, **PLAN)],
    "a failed change under a new key, which the error codes page may ask for": [
        note(0, 1), answer(99, 1, result("failed", "expired", "ACTION_EXPIRED")), note(999, 2, "k-2"),
    ],
    "a failed change, read, and again": [
        note(0, 1), answer(99, 1, result("failed", "conflict", "VERSION_CONFLICT")), call(200, 2, "contacts.get", contactId="c-1"),
        answer(300, 2, {"content": []}), note(999, 3),
    ],
    "a withdrawal that was cancelled as asked, again": [
        call(0, 1, "actions.cancel", id="a"), answer(99, 1, result("cancelled", "cancelled", "OPERATION_CANCELLED")), call(999, 2, "actions.cancel", id="a"),
    ],
    "an error of which MCP says nothing": [call(0, 1, "weather", town="Bonn"), error(99, 1, -32603), call(999, 2, "weather", town="Bonn")],
    "a tool's own error, whose text may ask for it": [
        call(0, 1, "weather", town="Bonn"), answer(99, 1, {"isError": True, "content": [{"type": "text", "text": "Busy, try again."}]}),
        call(999, 2, "weather", town="Bonn"),
    ],
    "exactly at the hint's delay": [note(0, 1), answer(100, 1, hint(1000)), note(1100, 2)],
    "another change before the hint's delay": [note(0, 1), answer(100, 1, hint(1000)), note(200, 2, "k-2", "c-2")],
    "exactly at Retry-After": [
        call(0, 1, "jobs.search", q="art"), response(100, "429 Too Many Requests", "Retry-After: 2"), call(2100, 2, "jobs.search", q="art"),
    ],
    "a hint without a delay that counts": [note(0, 1), answer(100, 1, hint(0)), note(101, 2)],
    "an unknown outcome that says that it is retryable, the same key": [note(0, 1), answer(99, 1, UNCERTAIN), note(999, 2)],
    "an unknown outcome, read, then a new key": [
        note(0, 1), answer(99, 1, UNCERTAIN), call(200, 2, "contacts.get", contactId="c-1"), answer(300, 2, {"content": []}), note(999, 3, "k-2"),
    ],
    "read by a tool that nobody knows, without a name in common": [
        note(0, 1), answer(99, 1, UNCERTAIN), call(200, 2, "notes.recent", limit=5), answer(300, 2, {"content": []}), note(999, 3, "k-2"),
    ],
    "read as a resource": [
        note(0, 1), answer(99, 1, UNCERTAIN), request(200, 2, "resources/read", {"uri": "contact://c-1"}), answer(300, 2, {"contents": []}), note(999, 3, "k-2"),
    ],
    "a read that nothing answers": [note(0, 1), answer(99, 1, UNCERTAIN), call(200, 2, "contacts.get", contactId="c-1"), note(999, 3, "k-2")],
    "an unknown outcome, another record": [note(0, 1), answer(99, 1, UNCERTAIN), note(999, 2, "k-2", "c-2")],
    "an unknown outcome that the same key settled": [note(0, 1), answer(99, 1, UNCERTAIN), note(999, 2), answer(1099, 2, COMPLETED), note(9999, 3, "k-2")],
    "nothing stored, and written again": [
        call(0, 1, WRITE, **PLAN, data="x"), answer(99, 1, failed("CommitAmbiguous", WRITE)), call(200, 2, STAT, **PLAN), answer(300, 2, failed("NotFound", STAT)),
        call(999, 3, WRITE, **PLAN, data="x"),
    ],
    "five attempts with growing pauses": retries(1000, 2000, 4000, 8000),
    "five attempts, then a person": [
        *retries(1000, 2000, 4000, 8000), request(16_000, 70, "elicitation/create", {"message": "Once more?"}), answer(17_000, 70, {"action": "accept"}),
        call(18_000, 71, READ, **PLAN),
    ],
    "retries of other calls": [*retries(1000), *[{**each, "time": at(9000 + i)} for i, each in enumerate(retries(1000, tool=STAT))]],
    "nothing after a 401": [call(0, 1, "jobs.search", q="art"), response(99, "401 Unauthorized")],
    "a new connection after a 401": [
        call(0, 1, "jobs.search", q="art"), response(99, "401 Unauthorized"), request(999, 0, "initialize", {}), answer(1099, 0, {"serverInfo": {"name": "x"}}),
        call(1999, 1, "jobs.search", q="design"),
    ],
    "let in again after a 401": [
        call(0, 1, "jobs.search", q="art"), response(99, "401 Unauthorized"), call(999, 2, "jobs.search", q="art"), answer(1099, 2, {"content": []}),
    ],
    "the same key after a hint": [note(0, 1), answer(99, 1, hint(500)), note(2000, 2)],
    "120 calls within a minute": [call(500 * n, n, "jobs.search", q=f"page {n}") for n in range(120)],
    "121 calls in exactly a minute": [call(500 * n, n, "jobs.search", q=f"page {n}") for n in range(121)],
    "121 calls to a service without such a budget": [call(100 * n, n, STAT, address=f"s3://b/{n}") for n in range(121)],
    "121 calls in two sessions": [{"session": f"s-{n % 2}", **call(400 * n, n, "jobs.search", q=f"page {n}")} for n in range(121)],
    "another call after the fixed text": [call(0, 1, "meetings.get", id="m-1"), answer(99, 1, FIXED_TEXT), call(999, 2, "meetings.get", id="m-2")],
    "the fixed text, and a person's word": [
        call(0, 1, "meetings.get", id="m-1"), answer(99, 1, FIXED_TEXT), {"time": at(500), "role": "user", "content": "Please try again."},
        call(999, 2, "meetings.get", id="m-1"),
    ],
    "an excuse that looks like a message logged before": [
        call(0, 1, "contacts.get", contactId="c-1"), answer(50, 1, {"content": []}), note(100, 2), answer(199, 2, UNCERTAIN),
        call(300, 1, "contacts.get", contactId="c-1"), answer(350, 1, {"content": []}), note(999, 3, "k-2"),
    ],
    "what the tools are has changed": [
        call(0, 1, "weather", town="Bonn"), error(99, 1, -32602, "Unknown tool"), notice(200, "notifications/tools/list_changed"), call(999, 2, "weather", town="Bonn"),
    ],
    "written down after the answer, and sent before": [
        call(0, 1, "meetings.get", id="m-1"), answer(200, 1, FIXED_TEXT), call(100, 2, "meetings.get", id="m-1"),
    ],
    "masked arguments may have differed": [
        call(0, 1, "meetings.get", id="***"), answer(99, 1, FIXED_TEXT), call(999, 2, "meetings.get", id="***"),
    ],
    "a client's own error to what its server asked": [
        call(0, 1, "weather", town="Bonn"), request(10, 1, "sampling/createMessage", {"messages": []}), error(20, 1, -32601), answer(50, 1, {"content": []}),
        call(999, 2, "weather", town="Bonn"),
    ],
    "an error told of once more, while another call waits": [
        call(0, 1, "foo", a=1), error(50, 1, -32602, "bad"), call(99, 2, "bar", a=1), {"time": at(110), "msg": "MCP error -32602: bad"}, answer(200, 2, {"content": []}),
        call(300, 3, "bar", a=1),
    ],
    "a refusal that a tool met elsewhere": [
        call(0, 1, "fetch", url="https://a.example"),
        answer(99, 1, {"content": [{"type": "text", "text": '{"type": "about:blank", "title": "Unauthorized", "status": 401, "detail": "no"}'}]}),
        call(999, 2, "fetch", url="https://b.example"), answer(1099, 2, FIXED_TEXT),
    ],
    "a hint, and the change was withdrawn": [
        note(0, 1), answer(99, 1, hint(500)), call(200, 2, "actions.cancel", operationId="op-7"),
        answer(300, 2, result("cancelled", "cancelled", "OPERATION_CANCELLED")), note(2000, 3, "k-2"),
    ],
    "a hint, and much later": [note(0, 1), answer(99, 1, hint(500)), note(36_000_000, 2, "k-2")],
    "the fixed text, hours later": [call(0, 1, "meetings.get", id="m-1"), answer(99, 1, FIXED_TEXT), call(3_600_100, 2, "meetings.get", id="m-1")],
    "a read of the record by a name with its kind": [
        note(0, 1), answer(99, 1, UNCERTAIN), call(200, 2, "contacts.get", contactId="contacts/c-1"), answer(300, 2, {"content": []}), note(999, 3, "k-2"),
    ],
    "a read of several records": [
        note(0, 1), answer(99, 1, UNCERTAIN), call(200, 2, "contacts.list", contactIds=["c-0", "c-1"]), answer(300, 2, {"content": []}), note(999, 3, "k-2"),
    ],
    "pauses that have grown as far as they may": retries(1000, 2000, 2000),
    "121 calls of which some are another service's": [
        call(100 * n, n, *(("jobs.search",) if n % 5 else ("ovstorage_stat",)), q=f"page {n}") for n in range(300)
    ],
    "121 calls on one day, as far as the times say": [{**call(0, n, "jobs.search", q=f"page {n}"), "time": "2031-05-02"} for n in range(130)],
    "notifications and pings": [request(0, 1, "ping", {}), notice(5, "notifications/initialized"), answer(9, 1, {}), request(20, 2, "ping", {})],
    "an answer that nobody asked for": [answer(0, 5, failed("PermissionDenied")), call(99, 6, READ, **PLAN)],
}  # fmt: skip


@pytest.mark.parametrize("name", KEPT)
def test_what_only_looks_forbidden_is_not_found(name: str) -> None:
    assert breaches(KEPT[name]) == []


def test_every_rule_is_broken_and_kept_by_some_sequence() -> None:
    assert {rule for _, rules in BROKEN.values() for rule in rules} == RULES


@pytest.mark.parametrize("entry", [pytest.param((pack.name, i), id=f"{pack.name}-{i}") for pack in bundled() for i in range(len(pack.conduct["rules"]))])
def test_an_entry_of_a_pack_is_broken_by_its_bad_traffic_alone(entry: tuple[str, int]) -> None:
    name, number = entry
    data = bundled().get(name).conduct["rules"][number]
    assert {(each.rule, each.contract) for each in audited(data["bad"])} == {(data["rule"], name)}
    assert audited(data["good"]) == []


# Where traffic stands, and what the log says about it.


def test_a_finding_says_where_when_what_and_what_instead() -> None:
    (breach,) = breaches(BROKEN["a new key after an unknown outcome"][0])
    assert (breach.line, breach.tool, breach.contract, breach.between_ms) == (3, "contacts.notes.update", "coffeechats", 9900)
    assert breach.verdict is not None
    assert (breach.verdict.line, breach.verdict.code, breach.verdict.correlation_id) == (2, "OUTCOME_UNKNOWN", "op-7")
    assert breach.what == (
        "`contacts.notes.update` made the same change again under the new key k-2 (before: k-1) 9.9 s after its outcome was left unknown, "
        "and its record was not read in between"
    )
    assert breach.source.startswith("Coffee Chats, ")
    assert breach.instead.startswith("read the record first")


SHAPES: dict[str, Callable[[list[Record]], str]] = {
    "plain": plain,
    "with arrows": with_arrows,
    "records": log,
    "escaped": lambda records: "".join(json.dumps({"ts": record["time"], "msg": "wire " + json.dumps(record["message"])}) + "\n" for record in records),
    "pretty": lambda records: "\n".join(json.dumps(record, indent=2) for record in records) + "\n",
    "array": json.dumps,
    "compose": lambda records: "".join(f"agent-1  | {line}\n" for line in with_arrows(records).splitlines()),
    "docker": lambda records: "".join(
        json.dumps({"log": line + "\n", "stream": "stdout", "time": record["time"]}) + "\n"
        for record, line in zip(records, plain(records).splitlines(), strict=True)
    ),
    "events": lambda records: "".join(f"event: message\ndata: {json.dumps(record['message'])}\n\n" for record in records),
    "colours": lambda records: "".join(f"\x1b[2m{record['time']}\x1b[0m \x1b[36m{json.dumps(record['message'])}\x1b[0m\n" for record in records),
    "python": lambda records: "".join(f"{record['time']} DEBUG {record['message']!r}\n" for record in records),
    "a host's log": lambda records: "".join(
        f"{record['time']} [chats] [info] Message from {'client' if 'method' in record['message'] else 'server'}: {json.dumps(record['message'])}\n"
        for record in records
    ),
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", ["a denied read again", "a new key after an unknown outcome", "again after the fixed text"])
def test_traffic_is_read_wherever_payloads_are(shape: str, name: str) -> None:
    records, rules = BROKEN[name]
    assert [each.rule for each in audit_of(SHAPES[shape](records)).breaches] == rules


def test_a_har_capture_tells_when_an_answer_was_there_and_with_which_credentials() -> None:
    def exchange(ms: int, took: int, asked: Record, status: int, body: Any, *, headers: dict[str, str] | None = None, credentials: str = "Bearer a") -> Record:
        listed = [{"name": "Authorization", "value": credentials}, {"name": "Mcp-Session-Id", "value": "s-77"}]
        request_ = {"method": "POST", "url": "https://chats.example/mcp?x=1", "headers": listed, "postData": {"text": json.dumps(asked["message"])}}
        text = "" if body is None else json.dumps({"jsonrpc": "2.0", "id": asked["message"]["id"], "result": body})
        answered = {"status": status, "headers": [{"name": name, "value": value} for name, value in (headers or {}).items()], "content": {"text": text}}
        return {"startedDateTime": at(ms), "time": took, "request": request_, "response": answered}

    def capture(*entries: Record) -> str:
        return json.dumps({"log": {"version": "1.2", "entries": entries}})

    def search(number: int) -> Record:
        return call(0, number, "jobs.search", q="art")

    limit = {"Retry-After": "2"}
    soon = capture(exchange(0, 500, search(1), 429, None, headers=limit), exchange(2400, 10, search(2), 200, {"content": []}))
    assert [(each.rule, each.session, each.between_ms) for each in audit_of(soon).breaches] == [("AU102", "s-77", 1900)]
    kept = capture(exchange(0, 500, search(1), 429, None, headers=limit), exchange(2500, 10, search(2), 200, {"content": []}))
    assert audit_of(kept).breaches == []
    refused = capture(exchange(0, 5, search(1), 401, None), exchange(900, 5, search(2), 401, None))
    assert [each.rule for each in audit_of(refused).breaches] == ["AU105"]
    renewed = capture(exchange(0, 5, search(1), 401, None), exchange(900, 5, search(2), 401, None, credentials="Bearer b"))
    assert audit_of(renewed).breaches == []
    same = capture(exchange(0, 5, search(1), 403, None), exchange(900, 5, search(1), 403, None))
    assert [each.rule for each in audit_of(same).breaches] == ["AU101"]  # on the wire the same id is another try


def test_the_services_of_a_composition_are_told_apart_by_whose_line_it_is() -> None:
    denied, fine = answer(0, 1, failed("PermissionDenied")), answer(0, 1, stored())
    first, second = call(0, 1, READ, **PLAN), call(0, 2, READ, **PLAN)

    def lines(*told: tuple[str, Record]) -> str:
        return "".join(f"{name}  | {with_arrows([record])}" for name, record in told)

    kept = lines(("a-1", first), ("b-1", first), ("a-1", denied), ("b-1", fine), ("b-1", second))
    assert audit_of(kept).breaches == []
    (breach,) = audit_of(kept + lines(("a-1", second))).breaches
    assert (breach.rule, breach.line, breach.session) == ("AU101", 6, "a-1")


@pytest.mark.parametrize(("asked", "answered"), [("INFO ", "ERROR"), ("client", "server")])
def test_a_level_or_a_side_before_a_bar_is_no_service(asked: str, answered: str) -> None:
    records, rules = BROKEN["a denied read again"]
    for shape in (plain, with_arrows):
        text = "".join(f"{asked if 'method' in record['message'] else answered} | {shape([record])}" for record in records)
        assert [each.rule for each in audit_of(text).breaches] == rules


def test_raw_http_tells_sessions_by_their_heads() -> None:
    def asked(name: str, record: Record, mark: str = "") -> str:
        head = f"POST /mcp HTTP/1.1\nHost: chats.example\nMcp-Session-Id: {name}\nContent-Type: application/json\n\n{json.dumps(record['message'])}\n\n"
        return "".join(f"{mark}{line}" for line in head.splitlines(keepends=True))

    def answered(name: str, record: Record) -> str:
        body = json.dumps(record["message"])
        return f"HTTP/1.1 200 OK\nMcp-Session-Id: {name}\nContent-Type: application/json\nContent-Length: {len(body)}\n\n{body}\n"

    denied, fine = answer(0, 1, failed("PermissionDenied")), answer(0, 1, stored())
    first, second = call(0, 1, READ, **PLAN), call(0, 2, READ, **PLAN)
    one = asked("a", first) + answered("a", denied) + asked("b", first) + answered("b", fine) + asked("b", second)
    assert audit_of(one).breaches == []
    (breach,) = audit_of(one + asked("a", second)).breaches
    assert (breach.rule, breach.session) == ("AU101", "a")


def test_a_raw_response_between_messages_does_not_swallow_what_follows() -> None:
    """Without a stated length the next line looks like the body of the response; but a request answers nobody."""
    calls = [call(number, number, "jobs.search", q=f"page {number}") for number in (1, 2)]
    refused = "HTTP/1.1 401 Unauthorized\nWWW-Authenticate: Bearer\n\n"
    for shape in (plain, with_arrows, log):
        first, second = shape(calls).splitlines()
        (breach,) = audit_of(f"{first}\n{refused}{second}\n").breaches
        assert (breach.rule, breach.line, breach.verdict and breach.verdict.line) == ("AU105", 5, 2)


def test_a_status_line_behind_a_loggers_words_is_a_response_where_its_headers_follow() -> None:
    """With the time and the session of those words; a line that only speaks of one is none."""
    head = "Retry-After: 30\nContent-Length: 0\n\n"
    first, second = with_arrows([call(0, 1, "jobs.search", q="art"), call(2000, 2, "jobs.search", q="art")]).splitlines()
    (breach,) = audit_of(f"{first}\n{at(100)} INFO mcp HTTP/1.1 429 Too Many Requests\n{head}{second}\n").breaches
    assert (breach.rule, breach.line, breach.verdict and breach.verdict.line, breach.between_ms) == ("AU102", 6, 2, 1900)
    (breach,) = audit_of(f"{first}\nINFO:mcp: HTTP/1.1 401 Unauthorized\nWWW-Authenticate: Bearer\n\nDEBUG:mcp:{second}\n").breaches
    assert (breach.rule, breach.line) == ("AU105", 5)  # a logger's name with a colon is no header
    for words in ('INFO HTTP Request: POST https://x.example/mcp "HTTP/1.1 429 Too Many Requests"', "INFO the server said HTTP/1.1 429 Too Many Requests"):
        assert audit_of(f"{first}\n{at(100)} {words}\n{second}\n").breaches == []


def test_with_a_contract_given_every_answer_is_judged_by_it() -> None:
    text = log([call(0, 1, "lookup", id="x"), answer(9, 1, {"isError": True}), *(call(n, n, "lookup", id=f"{n}") for n in range(100, 230))])
    assert audit_of(text).breaches == []
    assert [each.rule for each in audit_of(text, contract="coffeechats").breaches] == ["AU107"]


def test_in_a_capture_messages_count_by_their_times_and_answers_by_what_was_asked() -> None:
    """Calls that ran side by side, a stream that was refused, and where in the capture a finding is."""

    def entry(ms: int, took: int, number: int | None, status: int, body: Any = None, name: str = "a") -> Record:
        asked = json.dumps(call(0, number, "meetings.get", id=name)["message"]) if number is not None else ""
        text = "" if body is None else json.dumps({"jsonrpc": "2.0", "id": number, "result": body})
        sent: Record = {"method": "POST" if asked else "GET", "url": "https://chats.example/mcp", "headers": [], "postData": {"text": asked}}
        return {"startedDateTime": at(ms), "time": took, "request": sent, "response": {"status": status, "content": {"text": text}}}

    def of(*entries: Record) -> list[tuple[str, str, str | None]]:
        found = audit_of(json.dumps({"log": {"entries": entries}})).breaches
        return [(each.rule, each.pointer, each.verdict.pointer if each.verdict else None) for each in found]

    assert of(entry(0, 900, 1, 200, FIXED_TEXT), entry(100, 900, 2, 200, FIXED_TEXT)) == []
    assert of(entry(0, 900, 1, 401), entry(100, 900, 2, 401, name="b")) == []
    assert of(entry(0, 900, 1, 200, {"content": []}), entry(100, 5, None, 403), entry(2000, 9, 2, 200, {"content": []})) == []
    later = [entry(0, 100, 1, 200, FIXED_TEXT), entry(5, 20, None, 200), entry(900, 100, 2, 200, FIXED_TEXT)]
    assert of(*later) == [("AU108", "/log/entries/2", "/log/entries/0")]


def test_access_that_was_granted_anew_is_seen() -> None:
    def asked(number: int, credentials: str = "Bearer ***") -> str:
        body = json.dumps(call(0, number, "jobs.search", q=f"{number}")["message"])
        return f"POST /mcp HTTP/1.1\nHost: chats.example\nAuthorization: {credentials}\nContent-Type: application/json\n\n{body}\n\n"

    refused = "HTTP/1.1 401 Unauthorized\nContent-Length: 0\n\n"
    token = "POST /token HTTP/1.1\nHost: login.example\n\ngrant_type=refresh_token&refresh_token=x\n\nHTTP/1.1 200 OK\nContent-Length: 2\n\n{}\n\n"
    same = "Bearer abc"
    assert [each.rule for each in audit_of(asked(1, same) + refused + asked(2, same) + refused).breaches] == ["AU105"]
    assert audit_of(asked(1, same) + refused + asked(2, "Bearer new") + refused).breaches == []
    assert audit_of(asked(1) + refused + asked(2) + refused).breaches == []  # masked: which they were nobody can tell
    assert audit_of(asked(1, same) + refused + token + asked(2, same) + refused).breaches == []


def test_what_a_model_calls_is_traffic_though_its_messages_hold_those_before() -> None:
    def used(number: int) -> Record:
        return {"role": "assistant", "content": [{"type": "tool_use", "id": f"toolu_{number}", "name": "mcp__chats__meetings.get", "input": {"id": "m-1"}}]}

    def answered(number: int) -> Record:
        return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": f"toolu_{number}", "is_error": True, "content": "Tool call failed."}]}

    asked = {"role": "user", "content": "When do we meet?"}
    once = [asked, used(1), answered(1)]
    text = log([{"messages": [asked]}, {"messages": once}, {"messages": [*once, {"role": "assistant", "content": "It failed."}]}])
    assert audit_of(text).breaches == []
    again = log([{"messages": [asked]}, {"messages": once}, {"messages": [*once, used(2), answered(2)]}])
    found = audit_of(again)
    assert [(each.rule, each.line) for each in found.breaches] == [("AU108", 3)]
    assert [session.calls for session in found.sessions] == [2]
    told = log([{"messages": once}, {"messages": [*once, {"role": "user", "content": "Try once more."}, used(2)]}])
    assert audit_of(told).breaches == []
    # A word in the same message as the result, and a word that was said before.
    beside = {"role": "user", "content": [*answered(1)["content"], {"type": "text", "text": "Once more."}]}
    assert audit_of(log([asked, used(1), beside, used(2)])).breaches == []
    said = {"role": "user", "content": "Try it."}
    assert audit_of(log([{"messages": [said, used(1), answered(1)]}, {"messages": [said, used(1), answered(1), said, used(2)]}])).breaches == []
    # What a host calls for the model is not called twice.
    wire = [call(0, 1, "meetings.get", id="m-1"), answer(99, 1, FIXED_TEXT)]
    assert audit_of(log([*wire, {"messages": [asked, used(1), answered(1)]}])).breaches == []


def test_other_makes_of_models_call_tools_too() -> None:
    def called(number: int) -> Record:
        function = {"name": READ, "arguments": json.dumps(PLAN)}
        return {"role": "assistant", "tool_calls": [{"id": f"call_{number}", "type": "function", "function": function}]}

    def answered(number: int) -> Record:
        return {"role": "tool", "tool_call_id": f"call_{number}", "content": failed("PermissionDenied")["content"][0]["text"]}

    assert [each.rule for each in audit_of(log([called(1), answered(1), called(2), answered(2)])).breaches] == ["AU101"]


def test_servers_behind_a_models_prefix_are_others() -> None:
    def used(number: int, server: str) -> Record:
        return {"role": "assistant", "content": [{"type": "tool_use", "id": f"toolu_{number}", "name": f"mcp__{server}__{READ}", "input": PLAN}]}

    def answered(number: int) -> Record:
        return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": failed("NotFound")["content"]}]}

    assert audit_of(log([used(1, "live"), answered(1), used(2, "test"), answered(2)])).breaches == []
    assert [each.session for each in audit_of(log([used(1, "live"), answered(1), used(2, "live"), answered(2)])).breaches] == ["live"]


def test_messages_of_one_record_have_no_time_of_their_own() -> None:
    """The time of a record with a history says when that was written, and nothing about the pauses in it."""
    kept = [note(0, 1), answer(100, 1, hint(1000)), note(1200, 2), answer(1300, 2, COMPLETED)]
    messages = [record["message"] for record in kept]
    audit = audit_of(log([{"time": at(9000), "event": "session.end", "messages": messages}]))
    assert (audit.breaches, audit.unapplied) == ([], {("AU102", "the log states no times"): 1})
    own = audit_of(log([{"time": at(9000), "event": "session.end", "messages": kept}]))
    assert (own.breaches, own.unapplied) == ([], {})
    carried = "".join(json.dumps({"log": f"{line}\n", "stream": "stdout", "time": at(9000)}) + "\n" for line in with_arrows(kept).splitlines())
    assert (audit_of(carried).breaches, audit_of(carried).unapplied) == ([], {})


def test_a_time_between_records_that_state_none_is_certain_where_the_call_was_already_too_late() -> None:
    limit = "HTTP/1.1 429 Too Many Requests\nRetry-After: 30\nContent-Length: 0\n\n"
    for later, rules in ((2000, ["AU102"]), (31_000, [])):
        first, second = with_arrows([call(0, 1, "jobs.search", q="art"), call(later, 2, "jobs.search", q="art")]).splitlines()
        audit = audit_of(f"{first}\n{limit}{second}\n")
        assert ([each.rule for each in audit.breaches], bool(audit.unapplied)) == (rules, not rules)


@pytest.mark.parametrize(
    ("delay", "seconds", "found"), [(5000, 3, True), (5000, 4, True), (5000, 5, False), (1500, 1, False), (1500, 0, True), (1000, 0, True)]
)
def test_coarse_times_count_only_where_they_are_certain(delay: int, seconds: int, *, found: bool) -> None:
    records = [note(0, 1), answer(0, 1, hint(delay)), note(seconds * 1000, 2)]
    coarse = [{**record, "time": record["time"].replace(".000Z", "Z")} for record in records]
    assert [each.rule for each in breaches(coarse)] == ["AU102"] * found


@pytest.mark.parametrize(("pauses", "found"), [((2, 2, 2), 1), ((2, 2), 0), ((1, 1, 1), 0), ((1, 2, 4), 0), ((4, 1), 1)])
def test_coarse_pauses_are_compared_over_three(pauses: tuple[int, ...], found: int) -> None:
    records = [{**record, "time": record["time"][:-5] + "Z"} for record in retries(*(pause * 1000 for pause in pauses))]
    assert len(breaches(records)) == found


@pytest.mark.parametrize(
    ("name", "rule"), [("before the hint's delay", "AU102"), ("pauses that do not grow", "AU104"), ("121 calls within a minute", "AU107")]
)  # fmt: skip
def test_without_times_it_is_said_which_rules_were_not_applied(name: str, rule: str) -> None:
    audit = audit_of(plain(BROKEN[name][0]))
    assert audit.breaches == []
    assert [name for name, _ in audit.unapplied] == [rule]


def test_the_bound_of_attempts_needs_no_times() -> None:
    assert [each.rule for each in audit_of(plain(BROKEN["the sixth attempt"][0])).breaches] == ["AU104"]


def test_a_clock_that_goes_back_proves_nothing() -> None:
    assert breaches([note(9000, 1), answer(9100, 1, hint(1000)), note(8000, 2)]) == []


# Sessions.


def test_sessions_are_kept_apart_by_what_the_log_says() -> None:
    """Two sessions with the same ids at the same time, told apart in each of the ways; apart they keep everything."""
    one = [call(0, 1, READ, **PLAN), answer(100, 1, failed("PermissionDenied"))]
    other = [call(50, 1, READ, **PLAN), answer(200, 1, stored()), call(300, 2, READ, **PLAN)]
    for names in ({"sessionId"}, {"session_id"}, {"mcp-session-id"}, {"connection"}, {"server"}, {"server_name"}):
        (name,) = names
        lines = sorted([{name: "a", **each} for each in one] + [{name: "b", **each} for each in other], key=lambda each: str(each["time"]))
        audit = audit_of(log(lines))
        assert audit.breaches == [], name
        assert [(session.label, session.calls, session.answers, session.failures) for session in audit.sessions] == [("a", 1, 1, 1), ("b", 2, 1, 0)], name
    told = "".join(f"{each['time']} session={name} {json.dumps(each['message'])}\n" for name, part in (("a", one), ("b", other)) for each in part)
    assert [session.label for session in audit_of(told).sessions] == ["a", "b"]


def test_of_calls_with_one_id_nobody_can_tell_which_was_answered() -> None:
    """It is said how many answers were left out for that, so that nobody takes silence for a clean record."""
    mixed = [
        call(0, 1, READ, **PLAN),
        call(10, 1, STAT, **PLAN),
        answer(99, 1, failed("PermissionDenied")),
        call(300, 2, READ, **PLAN),
        call(400, 3, STAT, **PLAN),
    ]
    audit = audit_of(log([*mixed, answer(500, 1, stored(STAT))]))
    assert (audit.breaches, audit.mixed, audit.unassigned) == ([], ["-"], 2)


def test_where_connections_are_mixed_rules_about_connections_are_not_applied() -> None:
    """A host starts two servers, and its log does not name them."""
    begin = [request(0, 0, "initialize", {}), request(5, 0, "initialize", {}), answer(20, 0, {"serverInfo": {"name": "a"}})]
    audit = audit_of(log([*begin, call(50, 1, "jobs.search", q="art"), response(99, "401 Unauthorized"), call(300, 2, READ, **PLAN)]))
    assert audit.breaches == []
    assert audit.mixed == ["-"]


def test_clients_that_nothing_tells_apart_are_not_blamed_for_one_another() -> None:
    """Two handshakes and ids that run beside each other, or ids that are used again for something else."""
    for method in ("initialize", "server/discover"):
        begin = [each for _ in range(2) for each in (request(0, 0, method, {}), answer(5, 0, {"serverInfo": {"name": "x"}}))]
        rest = [call(50, 3, READ, **PLAN), answer(60, 3, failed("PermissionDenied")), call(70, 2, READ, **PLAN), answer(80, 2, failed("PermissionDenied"))]
        # The first call after the second handshake begins a session; an id that falls shows that there are two.
        assert breaches([*begin, call(40, 1, STAT, **PLAN), answer(45, 1, stored(STAT)), *rest]) == [], method
    used = [
        call(0, 5, STAT, **PLAN),
        answer(9, 5, stored(STAT)),
        call(20, 6, READ, **PLAN),
        answer(29, 6, failed("PermissionDenied")),
        call(40, 5, READ, **PLAN),
    ]
    audit = audit_of(log(used))
    assert (audit.breaches, audit.mixed) == ([], ["-"])


def test_a_logger_and_a_header_name_no_session() -> None:
    denied = [call(0, 1, READ, **PLAN), answer(99, 1, failed("PermissionDenied")), call(999, 2, READ, **PLAN)]
    for before, behind in (
        ("mcp.client.session: Sending", "mcp.client.session: Received"),
        ("connection: out", "connection: in"),
        ("server: ==>", "server: <=="),
    ):
        text = "".join(f"{each['time']} DEBUG {before if 'method' in each['message'] else behind} {json.dumps(each['message'])}\n" for each in denied)
        assert [each.session for each in audit_of(text).breaches] == ["s1"], before
    kept = [{"connection": "keep-alive", **each} for each in denied[:2]] + [{"connection": "close", **denied[2]}]
    assert [each.session for each in breaches(kept)] == ["s1"]


def test_an_approval_belongs_to_its_session() -> None:
    """Answers with the same id in another session take nothing away from it."""
    asked = request(200, 7, "elicitation/create", {"message": "Again?"})
    one = [call(0, 1, READ, **PLAN), answer(100, 1, failed("PermissionDenied")), asked]
    lines = [{"session": "a", **each} for each in one] + [{"session": "b", **call(250, 7, STAT, **PLAN)}, {"session": "b", **answer(260, 7, stored(STAT))}]
    assert breaches([*lines, {"session": "a", **answer(900, 7, {"action": "accept"})}, {"session": "a", **call(950, 2, READ, **PLAN)}]) == []
    assert len(breaches([*lines, {"session": "b", **answer(900, 7, {"action": "accept"})}, {"session": "a", **call(950, 2, READ, **PLAN)}])) == 1


def test_of_two_keys_in_one_call_the_first_name_counts(run: Run) -> None:
    def change(ms: int, number: int, key: str, other: str) -> Record:
        return call(ms, number, "contacts.notes.update", contactId="c-1", idempotency_key=other, idempotencyKey=key)

    text = log([change(0, 1, "k-1", "z-1"), answer(9, 1, UNCERTAIN), change(99, 2, "k-1", "z-2")])
    for seed in ("0", "1", "2", "3"):
        assert run("audit", "-", stdin=text, env={"PYTHONHASHSEED": seed}).returncode == 0


def test_what_cannot_be_written_is_no_time_and_no_bug(run: Run) -> None:
    deep: Any = 1
    for _ in range(250):
        deep = [deep]
    text = log([{**note(0, 1), "time": "0001-01-01T00:00:00+23:59"}, answer(9, 1, hint(10)), call(99, 2, "deep", value=deep)])
    for more in ((), ("--session", "s1")):
        assert run("audit", *more, "-", stdin=text).returncode == 0


def test_a_server_that_asks_is_no_client_that_calls() -> None:
    """Ids of a server's own requests are its own: the same number may be a call of the client."""
    records = [
        call(0, 3, READ, **PLAN),
        request(10, 3, "sampling/createMessage", {"messages": []}),
        answer(50, 3, {"role": "assistant", "content": {"type": "text", "text": "?"}, "model": "m"}),
        answer(99, 3, failed("PermissionDenied")),
        call(900, 4, READ, **PLAN),
    ]
    audit = audit_of(log(records))
    assert [session.calls for session in audit.sessions] == [2]


def test_a_summary_counts_what_was_obeyed_and_broken() -> None:
    records = [*twice(failed("PermissionDenied")), answer(2100, 90, failed("NotFound")), call(2200, 91, STAT, **PLAN), answer(2300, 91, stored(STAT))]
    (session,) = audit_of(log(records, session="s-1")).sessions
    assert (session.calls, session.answers, session.failures, session.verdicts, session.obeyed, session.broken) == (3, 3, 2, 2, 1, 1)
    assert session.contracts == {"ovstorage"}


# Late answers.


def test_an_answer_after_the_client_gave_up_is_what_really_happened() -> None:
    records = [
        note(0, 1),
        notice(900, "notifications/cancelled", requestId=1, reason="it took too long"),
        note(1000, 2, "k-1"),
        answer(1500, 1, COMPLETED),
        answer(1600, 2, COMPLETED),
    ]
    audit = audit_of(log(records))
    (late,) = audit.late
    assert (late.tool, late.called, late.gave_up, late.answered, late.outcome) == ("contacts.notes.update", 1, 2, 4, "success")
    assert audit.breaches == []


def test_an_answer_after_the_sdk_timed_out_is_late_too() -> None:
    for gave_up in (error(900, 1, -32001, "Request timed out"), {"time": at(900), "msg": "MCP error -32001: Request timed out"}):
        (late,) = audit_of(log([note(0, 1), gave_up, answer(1500, 1, UNCERTAIN)])).late
        assert (late.called, late.gave_up, late.answered, late.outcome, late.code) == (1, 2, 3, "uncertain", "OUTCOME_UNKNOWN")


def test_what_the_client_never_saw_binds_it_to_nothing() -> None:
    records = [note(0, 1), notice(900, "notifications/cancelled", requestId=1), answer(1500, 1, UNCERTAIN), note(2000, 2, "k-2")]
    assert breaches(records) == []


# Any cut, any executor, bounded.


@pytest.mark.parametrize("size", [1, 300, 5000, 1 << 20])
def test_any_slice_size_finds_the_same(tmp_path: Any, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    from errtriage import slices

    monkeypatch.setattr(slices, "_FIRST", size)
    monkeypatch.setattr(slices, "_BACK", 64)
    text = "".join(log(records, session=name) for name, (records, _) in BROKEN.items())
    path = tmp_path / "agents.log"
    path.write_text(text)
    whole = audit_of(text)
    settings = Settings()
    cut = Audit(settings, RULES)
    queue = Queue(cut, settings, [str(path)], size)
    for job in queue.jobs():
        part = read_slice(job)
        queue.next_slice()
        cut.add(part)
    queue.finish()
    cut.finish()
    assert [each._replace(file="-") for each in cut.breaches] == whole.breaches
    found = sorted(whole.breaches, key=lambda each: each.line)  # those about a 401 wait for an answer
    assert [each.rule for each in found] == [rule for _, rules in BROKEN.values() for rule in rules]


def test_memory_is_bounded_by_what_is_open(monkeypatch: pytest.MonkeyPatch) -> None:
    from errtriage import audit as auditing
    from errtriage import connections

    monkeypatch.setattr(auditing, "MOST_OPEN", 10)
    monkeypatch.setattr(connections, "MOST_STANDING", 10)
    unanswered = [call(n, n, READ, address=f"s3://b/{n}") for n in range(100)]
    answered = [each for n in range(100) for each in (call(n, n, READ, address=f"s3://b/{n}"), answer(n, n, failed("PermissionDenied")))]
    audit = audit_of(log(unanswered))
    assert len(audit._order) <= 10
    audit = Audit(Settings(), RULES)
    audit.open("-")
    audit.add(read_slice((Settings(), Slice("-", 0, 1 << 20, 0.0, log(answered).encode()))))
    (connection,) = audit._connections.values()
    assert len(connection.standing) <= 10


# The command.


def test_the_report_is_as_in_the_corpus(run: Run, pytestconfig: pytest.Config) -> None:
    folder = CORPUS / "audit"
    for name, args in {
        "agents.txt": (),
        "agents.80.txt": ("COLUMNS=80",),
        "agents.json": ("--format", "json"),
        "agents.sarif": ("--format", "sarif"),
        "agents.github": ("--format", "github"),
        "agents.story.txt": ("--session", "agent-7"),
        "agents.story.json": ("--session", "agent-7", "--format", "json"),
    }.items():
        columns = {"COLUMNS": "80"} if "COLUMNS=80" in args else {}
        done = run("audit", *(arg for arg in args if "=" not in arg), "agents.log", cwd=folder, env=columns)
        assert (done.returncode, done.stderr) == (1, b"")
        if pytestconfig.getoption("regenerate"):
            (folder / name).write_bytes(done.stdout)
        assert done.stdout == (folder / name).read_bytes(), name


@pytest.mark.parametrize("name", ["agents.json", "agents.story.json"])
def test_json_satisfies_its_published_schema(name: str) -> None:
    import jsonschema

    schema = json.loads((SCHEMAS / "meta" / "audit.schema.json").read_text())
    jsonschema.Draft202012Validator(schema).validate(json.loads((CORPUS / "audit" / name).read_text()))


BAD, GOOD = log(BROKEN["a denied read again"][0]), log(KEPT["another address"])


def test_exit_codes_are_those_of_lint(run: Run, tmp_path: Any) -> None:
    (tmp_path / "bad.log").write_text(BAD)
    (tmp_path / "good.log").write_text(GOOD)
    assert run("audit", "good.log", cwd=tmp_path).returncode == 0
    assert run("audit", "bad.log", cwd=tmp_path).returncode == 1
    assert run("audit", "-", stdin=BAD).returncode == 1
    assert run("audit", "bad.log", "--ignore", "AU101", cwd=tmp_path).returncode == 0
    assert run("audit", "bad.log", "--select", "AU103", cwd=tmp_path).returncode == 0
    both = run("audit", "good.log", "missing.log", cwd=tmp_path)
    assert both.returncode == 2
    assert b"missing.log cannot be read" in both.stderr
    assert run("audit", cwd=tmp_path).returncode == 2
    none = run("audit", "--session", "s9", "bad.log", cwd=tmp_path)
    assert (none.returncode, none.stderr.decode()) == (2, "errtriage: There is no session 's9'. Sessions: s1.\n")
    assert run("audit", "--select", "OV101", "bad.log", cwd=tmp_path).returncode == 2
    nothing = run("audit", "-", stdin="all is well")
    assert (nothing.returncode, nothing.stderr.decode()) == (0, "errtriage: standard input: no call of a client was found in it.\n")


def test_a_baseline_and_the_project_settings_count(run: Run, tmp_path: Any) -> None:
    (tmp_path / "bad.log").write_text(BAD)
    assert run("audit", "bad.log", "--write-baseline", "known.json", cwd=tmp_path).returncode == 0
    done = run("audit", "bad.log", "--baseline", "known.json", cwd=tmp_path)
    assert (done.returncode, b"1 more in the baseline" in done.stdout) == (0, True)
    (tmp_path / "errtriage.toml").write_text('ignore = ["AU101", "OV105"]\n')
    assert run("audit", "bad.log", cwd=tmp_path).returncode == 0
    assert run("lint", "-", stdin="{}", cwd=tmp_path).returncode == 0
    # Rules of lint that are selected are no choice among those of audit.
    (tmp_path / "errtriage.toml").write_text('select = ["OV"]\n')
    assert run("audit", "bad.log", cwd=tmp_path).returncode == 1


def test_a_baseline_knows_a_finding_in_another_capture(run: Run, tmp_path: Any) -> None:
    """Keys and times are others in each run; the tool, the code and the arguments are not."""

    def written(late: int, *keys: str) -> str:
        return log([note(late, 1, keys[0]), answer(late + 99, 1, UNCERTAIN), note(late + 999 + late, 2, keys[1])])

    (tmp_path / "a.log").write_text(written(0, "k-1", "k-2"))
    assert run("audit", "a.log", "--write-baseline", "known.json", cwd=tmp_path).returncode == 0
    (tmp_path / "a.log").write_text(written(50, "x-1", "x-2"))
    assert run("audit", "a.log", "--baseline", "known.json", cwd=tmp_path).returncode == 0
    (tmp_path / "a.log").write_text(log(BROKEN["a denied read again"][0]))
    assert run("audit", "a.log", "--baseline", "known.json", cwd=tmp_path).returncode == 1


def test_what_a_baseline_excuses_is_gone_and_the_rest_is_there(run: Run, tmp_path: Any) -> None:
    """Of several findings alike as many are excused as are known; another reason is another finding."""
    (tmp_path / "a.log").write_text(log(retries(1000, 1000)))
    assert run("audit", "a.log", "--write-baseline", "known.json", cwd=tmp_path).returncode == 0
    (tmp_path / "a.log").write_text(log(retries(1000, 2000, 4000, 8000, 16_000)))
    assert run("audit", "a.log", "--baseline", "known.json", cwd=tmp_path).returncode == 1
    same = [each for n in range(3) for each in (call(1000 * n, n, READ, **PLAN), answer(1000 * n + 99, n, failed("PermissionDenied")))]
    more = [each for n in range(5) for each in (call(1000 * n, n, READ, **PLAN), answer(1000 * n + 99, n, failed("PermissionDenied")))]
    for records, count in ((same, None), (more, 2)):
        (tmp_path / "a.log").write_text(json.dumps(records))
        if count is None:
            assert run("audit", "a.log", "--write-baseline", "known.json", cwd=tmp_path).returncode == 0
            continue
        shown = json.loads(run("audit", "a.log", "--baseline", "known.json", "--format", "json", cwd=tmp_path).stdout)
        assert (len(shown["findings"]), shown["known"]) == (count, 2)


def test_the_story_of_a_session_in_two_files_is_told_file_by_file(run: Run, tmp_path: Any) -> None:
    for name in ("a.log", "b.log"):
        (tmp_path / name).write_text(log(BROKEN["a denied read again"][0], session="agent"))
    told = run("audit", "--session", "agent", "a.log", "b.log", cwd=tmp_path).stdout.decode()
    assert [line.split(" · ")[1] for line in told.splitlines() if line.startswith("session ")] == ["a.log", "b.log"]
    shown = json.loads(run("audit", "--session", "agent", "--format", "json", "a.log", "b.log", cwd=tmp_path).stdout)
    assert [each["file"] for each in shown["story"]] == ["a.log"] * 3 + ["b.log"] * 3


def test_different_calls_are_not_told_as_the_same(run: Run, tmp_path: Any) -> None:
    """Calls that differ only behind what is shown of them, and calls of several tools after a 401."""
    long = "x" * 150
    each_twice = [
        each
        for n in range(6)
        for each in (
            call(3 * n, 2 * n, READ, address=f"{long}{n}"),
            answer(3 * n + 1, 2 * n, failed("PermissionDenied")),
            call(3 * n + 2, 2 * n + 1, READ, address=f"{long}{n}"),
        )
    ]
    (tmp_path / "a.log").write_text(log(each_twice))
    shown = run("audit", "a.log", cwd=tmp_path).stdout.decode()
    assert (shown.count("AU101  ovstorage_read"), "The same again" in shown) == (6, False)
    refused = [call(0, 1, "jobs.search", q="art"), response(9, "401 Unauthorized"), call(99, 2, "jobs.search", q="x"), note(199, 3)]
    (tmp_path / "b.log").write_text(log(refused))
    assert "The same again in line 4 (contacts.notes.update)." in run("audit", "b.log", cwd=tmp_path).stdout.decode()


def test_an_answer_logged_twice_is_one_verdict() -> None:
    denied = [call(0, 1, READ, **PLAN), answer(9, 1, failed("PermissionDenied"))]
    audit = audit_of(log([*denied, *denied, call(99, 2, READ, **PLAN), answer(109, 2, stored())]))
    (session,) = audit.sessions
    assert ([each.rule for each in audit.breaches], session.calls, session.verdicts, session.obeyed, session.broken) == (["AU101"], 2, 1, 0, 1)


def test_a_restart_with_ids_of_any_kind_is_audited() -> None:
    begin = [
        request(0, "a", "initialize", {}),
        answer(1, "a", {}),
        call(2, "b", STAT, **PLAN),
        answer(3, "b", stored(STAT)),
        request(10, "a2", "initialize", {}),
    ]
    rest = [answer(11, "a2", {}), call(20, "b2", READ, **PLAN), answer(29, "b2", failed("PermissionDenied")), call(99, "c2", READ, **PLAN)]
    assert [each.rule for each in breaches([*begin, *rest])] == ["AU101"]
    many = audit_of(log([*begin, answer(11, "a2", {}), *(call(100 + n, f"m{n}", "jobs.search", q=f"{n}") for n in range(130))]))
    assert (many.breaches, list(many.unapplied)) == ([], [("AU107", "the log does not tell connections apart")])


@pytest.mark.parametrize(
    "arguments",
    [
        {"headers": {"Authorization": "SECRET", "Cookie": "sid=SECRET"}}, {"credentials": {"pass": "SECRET"}}, {"tokens": ["SECRET", "SECRET"]},
        {"env": [{"name": "API_TOKEN", "value": "SECRET"}]}, {"password": {"value": "SECRET}more", "x": "SECRET"}},
    ],
)  # fmt: skip
def test_what_is_shown_of_arguments_holds_no_secrets(run: Run, arguments: dict[str, Any]) -> None:
    text = log([call(0, 1, READ, **arguments), answer(9, 1, failed("PermissionDenied")), call(99, 2, READ, **arguments)])
    for more in ((), ("--format", "json"), ("--session", "s1")):
        assert b"SECRET" not in run("audit", *more, "-", stdin=text).stdout
    assert b"SECRET" in run("audit", "--no-redact", "-", stdin=text).stdout


def test_a_session_may_be_named_by_the_begin_of_its_id(run: Run, tmp_path: Any) -> None:
    text = log(BROKEN["a denied read again"][0], session="5b0a9c1e-1") + log(KEPT["another address"], session="5b0a9d00-2")
    (tmp_path / "agents.log").write_text(text)
    told = run("audit", "--session", "5b0a9c", "agents.log", cwd=tmp_path)
    assert (told.returncode, told.stdout.startswith(b"session 5b0a9c1e-1 ")) == (1, True)
    assert b"5b0a9d00-2" not in told.stdout
    both = run("audit", "--session", "5b0a9", "agents.log", cwd=tmp_path)
    assert (both.returncode, both.stderr.decode()) == (
        2,
        "errtriage: Several sessions begin with '5b0a9'. Sessions: 5b0a9c1e-1, 5b0a9d00-2.\n",
    )


def test_much_of_the_same_is_told_once_and_counted(run: Run, tmp_path: Any) -> None:
    """A loop: one finding with the lines of the others, a list before it of what was broken, and a story of a few lines."""
    loop = [each for n in range(40) for each in (call(1000 * n, n, "meetings.get", id="m-1"), answer(1000 * n + 99, n, FIXED_TEXT))]
    (tmp_path / "loop.log").write_text(log(loop))
    shown = run("audit", "loop.log", cwd=tmp_path).stdout.decode()
    assert shown.startswith("39 AU108  a protocol error's fixed text followed by a further try of the same call\n\nloop.log\n")
    assert "The same again in lines 5, 7, 9, 11, 13, 15, 17, 19 and 30 more." in shown
    assert shown.count("AU108  meetings.get") == 1
    story = run("audit", "--session", "s1", "loop.log", cwd=tmp_path).stdout.decode()
    assert "… the same call and answer 36 times more, up to line 80" in story
    assert story.count("→ meetings.get") == 4  # the first, in which nothing is broken, and three


def test_a_capture_that_is_one_document_has_the_lines_of_its_entries() -> None:
    def entry(ms: int, number: int) -> Record:
        sent = {"method": "POST", "url": "https://chats.example/mcp", "postData": {"text": json.dumps(call(0, number, "meetings.get", id="m")["message"])}}
        body = json.dumps({"jsonrpc": "2.0", "id": number, "result": FIXED_TEXT})
        return {"startedDateTime": at(ms), "time": 9, "request": sent, "response": {"status": 200, "content": {"text": body}}}

    text = json.dumps({"log": {"entries": [entry(0, 1), entry(900, 2)]}}, indent=1)
    (breach,) = audit_of(text).breaches
    begins = [number for number, line in enumerate(text.split("\n"), 1) if line == "   {"]
    assert (breach.line, breach.verdict and breach.verdict.line) == (begins[1], begins[0])


def test_several_inputs_are_each_read_by_themselves(run: Run, tmp_path: Any) -> None:
    first, second = BAD.splitlines(keepends=True)[:2], BAD.splitlines(keepends=True)[2:]
    (tmp_path / "a.log").write_text("".join(first))
    (tmp_path / "b.log").write_text("".join(second))
    assert run("audit", "a.log", "b.log", cwd=tmp_path).returncode == 0
    (tmp_path / "c.log").write_text(BAD)
    shown = json.loads(run("audit", "--format", "json", ".", cwd=tmp_path).stdout)
    assert [(each["file"], each["line"]) for each in shown["findings"]] == [("c.log", 3)]
    assert [each["session"] for each in shown["sessions"]] == ["s1", "s2", "s3"]


def test_any_number_of_workers_prints_the_same(run: Run, tmp_path: Any) -> None:
    for number in range(3):
        (tmp_path / f"{number}.log").write_text("".join(log(records, session=name) for name, (records, _) in BROKEN.items()))
    one, four = (run("audit", "--format", "json", "--workers", count, ".", cwd=tmp_path) for count in ("1", "4"))
    assert one.stdout == four.stdout
    assert len(json.loads(one.stdout)["findings"]) == 3 * sum(len(rules) for _, rules in BROKEN.values())


SECRET = {"token": "abcdefghijklmnop"}
HOSTILE = "\x1b[31mred\x1b[0m [bold]x[/bold] Bearer abcdefghijklmnop123456"


@pytest.mark.parametrize("format", ["text", "json", "sarif", "junit", "github"])
def test_hostile_text_is_harmless_in_every_format(run: Run, format: str) -> None:
    records = [
        call(0, 1, "contacts.notes.update", contactId="c-1", idempotencyKey=f"one {HOSTILE}"),
        answer(9, 1, UNCERTAIN),
        call(99, 2, "contacts.notes.update", contactId="c-1", idempotencyKey=f"two {HOSTILE}"),
        call(199, 3, f"tool {HOSTILE}", **SECRET),
        answer(209, 3, FIXED_TEXT),
        call(299, 4, f"tool {HOSTILE}", **SECRET),
    ]
    text = log(records, session=f"s {HOSTILE}")
    for more in ((), ("--session", "s red [bold]x[/bold] Bearer REDACTED")):
        done = run("audit", "--format", format, *more, "-", stdin=text)
        assert done.returncode == 1, done.stderr
        assert b"\x1b" not in done.stdout
        assert b"abcdefghijklmnop" not in done.stdout
        assert b"AU103" in done.stdout
        assert b"AU108" in done.stdout
