"""Every normative sentence of the services' two documents, in our own words, and the behaviour that honours it.

Each entry says where the sentence stands, what it asks for, an input, what was known beside it, and what the verdict
must hold: a value by its name, or a test on the text of a field.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import pytest

from errtriage import triage
from errtriage.model import Verdict

Check = Callable[[Verdict], Any]


class Sentence(NamedTuple):
    """One sentence of a document."""

    where: str
    says: str
    input: Any
    checks: Mapping[str, Any]
    given: Mapping[str, Any] = {}


def envelope(code: str = "NotFound", retryable: Any = False, **error: Any) -> dict[str, Any]:
    return {"v": "0.1", "ok": False, "operation": "ovstorage_write", "error": {"code": code, "message": f"{code}: lamp", "retryable": retryable, **error}}


def result(status: str = "failed", scenario: str = "conflict", code: str = "VERSION_CONFLICT", *, retryable: bool = False) -> dict[str, Any]:
    return {"status": status, "scenario": scenario, "operationId": "op-7", "error": {"code": code, "retryable": retryable, "correlationId": "op-7"}}


def tagged(tag: str, scenario: str = "loading", **more: Any) -> dict[str, Any]:
    return {"tag": tag, "scenario": scenario, "operationId": "op-7", **more}


def hinted(ms: int = 1500) -> dict[str, Any]:
    return {"structuredContent": tagged("accepted"), "_meta": {"coffeechats/retry": {"code": "PERMIT_BACKPRESSURE", "retryAfterMs": ms, "retryable": True}}}


def error_text(text: str) -> dict[str, Any]:
    return {"isError": True, "content": [{"type": "text", "text": text}]}


FIXED = error_text("Tool call failed.")
REFUSED = 'HTTP/1.1 429 Too Many Requests\r\nRetry-After: 21\r\n\r\n{"error": "rate_limited"}'


def has(*words: str) -> Callable[[Any], bool]:
    """Every word occurs in the text (or in the texts taken together)."""
    return lambda text: all(word.lower() in (text if isinstance(text, str) else " ".join(text)).lower() for word in words)


def lacks(*words: str) -> Callable[[Any], bool]:
    return lambda text: not any(word.lower() in (text if isinstance(text, str) else " ".join(text)).lower() for word in words)


OVSTORAGE = [
    Sentence("When to use", "an envelope with ok false is what this is about", envelope(), {"shape": "envelope", "outcome": "failure"}),
    Sentence(
        "1 error.code",
        "branch on the code and not on the message",
        envelope("AlreadyExists", message="NotFound: retry later"),
        {"action": "decide", "summary": has("another name"), "never": has("message")},
    ),
    *(
        Sentence("1 error.code", f"{code}: {meaning[0]}", envelope(code), {"explanation": has(*meaning)})
        for code, meaning in {
            "NotFound": ["nothing exists", "address"],
            "AlreadyExists": ["destination", "if_dest"],
            "PermissionDenied": ["do not allow", "resource"],
            "AuthRequired": ["authentication refreshed"],
            "CredentialExpired": ["authentication refreshed"],
            "NoRoute": ["no backend", "anonymous fallback"],
            "NotConfigured": ["anonymous fallback"],
            "Unsupported": ["does not offer"],
            "PreconditionFailed": ["if_match", "if_dest", "nothing was committed"],
            "ObjectModified": ["while the call was under way", "if_match"],
            "ResourceExhausted": ["max_bytes", "quota", "rate"],
            "InvalidArgument": ["arguments", "wrong"],
            "Transient": ["hiccup"],
            "BrokerUnavailable": ["could not be reached"],
            "DeadlineExceeded": ["in its time"],
            "Cancelled": ["stopped", "time-out"],
        }.items()
    ),
    *(
        Sentence("2 error.retryable", f"{code} is one of the six that may be retried", envelope(code, True), {"action": "retry", "findings": ()})
        for code in ("Transient", "BrokerUnavailable", "ResourceExhausted", "DeadlineExceeded", "CacheLockContention", "AuthorizationLeaseExpired")
    ),
    Sentence(
        "2 error.retryable",
        "true means that the same call with the same arguments may succeed",
        envelope("Transient", True),
        {"retry": lambda retry: retry.same_arguments is True},
    ),
    Sentence(
        "2 error.retryable",
        "only six codes may be retried today",
        envelope("PermissionDenied", True),
        {"action": "report", "findings": lambda found: [f.rule for f in found] == ["OV101"]},
    ),
    Sentence(
        "2 error.retryable",
        "exponential backoff, three to five attempts",
        envelope("Transient", True),
        {"retry": lambda retry: (retry.backoff_ms, retry.max_attempts) == ((1000, 2000, 4000), 5)},
    ),
    Sentence(
        "2 error.retryable",
        "still failing: surface it, do not loop",
        envelope("Transient", True),
        {"steps": has("last attempt", "person"), "never": has("without end")},
    ),
    Sentence(
        "2 error.retryable", "false: the same call is not retried", envelope("Locked"), {"action": "report", "retry": None, "never": has("retry the same call")}
    ),
    Sentence(
        "3 error.next_action",
        "when present it is the most actionable signal",
        envelope("NoRoute", next_action="Ask for the address roots."),
        {"action": "follow-hint", "summary": has("Ask for the address roots.")},
    ),
    Sentence("3 error.next_action", "when absent, the code decides", envelope("NotFound"), {"action": "decide"}),
    Sentence("4 error.message", "the message is for people", envelope("Locked"), {"message": "Locked: lamp"}),
    Sentence(
        "4 error.message",
        "signed-URL parameters and bearer tokens are redacted",
        envelope("Locked", message="at https://a.example/x?sig=c2VjcmV0 with Bearer c2VjcmV0"),
        {"message": lacks("c2VjcmV0")},
    ),
    Sentence("4 error.message", "the message stays sensitive off this host", envelope("Locked"), {"never": has("another host", "sensitive")}),
    Sentence(
        "4 error.message",
        "the message is not for branching",
        envelope("Locked", message="Transient, retry"),
        {"action": "report", "never": has("never branch on the message")},
    ),
    Sentence(
        "Decision tree",
        "retryable comes before next_action",
        envelope("Transient", True, next_action="Call again."),
        {"action": "retry", "steps": has("Call again.")},
    ),
    Sentence("Decision tree", "next_action comes before the code", envelope("PermissionDenied", next_action="Ask for the role."), {"action": "follow-hint"}),
    Sentence("Decision tree", "NotFound: the caller decides", envelope("NotFound"), {"action": "decide"}),
    Sentence("Decision tree", "AlreadyExists: the caller decides", envelope("AlreadyExists"), {"action": "decide"}),
    Sentence("Decision tree", "PermissionDenied: surface it", envelope("PermissionDenied"), {"action": "report"}),
    Sentence("Decision tree", "AuthRequired: surface it", envelope("AuthRequired"), {"action": "report"}),
    Sentence("Decision tree", "InvalidArgument: review the arguments", envelope("InvalidArgument"), {"action": "fix-arguments"}),
    Sentence(
        "Decision tree",
        "Unsupported: look at the capabilities, choose another operation",
        envelope("Unsupported"),
        {"action": "choose-other-operation", "steps": has("ovstorage_capabilities")},
    ),
    Sentence("Decision tree", "everything else: surface it", envelope("IntegrityFailure"), {"action": "report"}),
    Sentence(
        "MCP note",
        "isError of the tool result says the same as ok",
        {"isError": False, "structuredContent": envelope()},
        {"findings": lambda found: [f.rule for f in found] == ["OV104"]},
    ),
    Sentence("What NOT to do", "do not match on the message", envelope(), {"never": has("message's text")}),
    Sentence("What NOT to do", "do not retry what is not retryable", envelope("PermissionDenied"), {"never": has("never retry")}),
    Sentence("What NOT to do", "do not make up a next_action", envelope("Internal"), {"never": has("never make up a recovery step"), "action": "report"}),
    Sentence("See also", "ovstorage_doctor looks into configuration", envelope("NotConfigured"), {"steps": has("ovstorage_doctor")}),
]

COFFEE_CHATS = [
    Sentence(
        "Status 200",
        "tool failures come inside a successful response",
        {"jsonrpc": "2.0", "id": 1, "result": {"structuredContent": result()}},
        {"outcome": "failure"},
    ),
    Sentence("Status 200", "401 is a missing or rejected credential", "", {"action": "reauthorize"}, {"contract": "coffeechats", "status": 401}),
    Sentence(
        "Status 200",
        "413 is a body over 2 megabytes",
        "",
        {"action": "fix-arguments", "summary": has("2 megabytes")},
        {"contract": "coffeechats", "status": 413},
    ),
    Sentence("Status 200", "429 is a rate limit", "", {"action": "wait", "shape": "rate-limit"}, {"contract": "coffeechats", "status": 429}),
    Sentence("A protocol error", "a read's failure carries no code", FIXED, {"shape": "protocol-error", "code": None}),
    Sentence(
        "A protocol error",
        "the reason is withheld: none is named",
        FIXED,
        {
            "explanation": lacks("permission", "fault", "outage"),
            "summary": lacks("permission"),
            "steps": lacks("permission"),
            "never": lacks("permission"),
            "say": lacks("permission"),
        },
    ),
    Sentence(
        "A protocol error",
        "two failures say more: read the text first",
        error_text("No contact with this id. Call contacts.list."),
        {"action": "follow-hint", "summary": has("Call contacts.list.")},
        {"contract": "coffeechats"},
    ),
    Sentence(
        "A protocol error",
        "a record that was not found: call the matching list tool",
        error_text("No meeting with this id. Call meetings.list."),
        {"steps": has("list tool")},
        {"contract": "coffeechats"},
    ),
    Sentence(
        "A protocol error",
        "a posting: jobs.search, or ask the student",
        error_text("There is no posting with this id."),
        {"steps": has("jobs.search", "ask the student")},
        {"contract": "coffeechats"},
    ),
    Sentence(
        "A protocol error",
        "no transcript: stop asking for it",
        error_text("No transcript is available, since nobody recorded."),
        {"summary": has("stop asking"), "never": has("same transcript")},
        {"contract": "coffeechats"},
    ),
    Sentence("A protocol error", "the fixed text: report and stop", FIXED, {"action": "report", "steps": has("tell the person", "stop")}),
    Sentence("A failing result", "it is keyed on status and carries no tag", {"tag": "completed", **result()}, {"outcome": "unrecognised"}),
    *(
        Sentence("A failing result", f"{status} is a status", result(status, scenario, code), {"outcome": outcome})
        for status, scenario, code, outcome in [
            ("failed", "denied", "ACTION_DENIED", "failure"),
            ("cancelled", "cancelled", "OPERATION_CANCELLED", "cancelled"),
            ("uncertain", "uncertain", "OUTCOME_UNKNOWN", "uncertain"),
        ]
    ),
    *(
        Sentence("A failing result", f"{tag} is a tag", tagged(tag), {"outcome": outcome})
        for tag, outcome in [("requires_confirmation", "needs-input"), ("accepted", "pending"), ("completed", "success")]
    ),
    Sentence(
        "A failing result",
        "tag is read before status",
        tagged("completed"),
        {"trace": lambda trace: [step.question for step in trace][1:3] == ["Is there a `tag`?", "Which `tag` is it?"]},
    ),
    Sentence(
        "A failing result",
        "scenario informs and does not decide",
        result("failed", "uncertain", "ACTION_DENIED"),
        {"outcome": "failure", "explanation": has("uncertain", "decides nothing")},
    ),
    *(
        Sentence(
            "A failing result",
            f"{scenario} is no scenario of a failure",
            result("failed", scenario),
            {"findings": lambda found: "CC103" in [f.rule for f in found]},
        )
        for scenario in ("success", "loading")
    ),
    *(
        Sentence("A failing result", f"{scenario} is a scenario of a failure", result("failed", scenario), {"findings": ()})
        for scenario in ("conflict", "denied", "expired", "unavailable")
    ),
    Sentence(
        "A failing result",
        "branch on the code; the error codes page lists them",
        result("failed", "unavailable", "LAMP"),
        {"explanation": has("error codes page", "LAMP")},
    ),
    Sentence("A failing result", "quote the correlation id", result(), {"correlation_id": "op-7", "steps": has("quoting op-7")}),
    Sentence(
        "A failing result",
        "correlationId equals operationId today",
        {**result(), "operationId": "op-8"},
        {"findings": lambda found: [f.rule for f in found] == ["CC101"], "correlation_id": "op-7"},
    ),
    Sentence("A retry hint", "it is no failure", hinted(), {"outcome": "pending", "shape": "retry-hint"}),
    Sentence(
        "A retry hint",
        "it rides beside an accepted result only",
        {**hinted(), "structuredContent": tagged("completed")},
        {"outcome": "success", "findings": lambda found: "CC104" in [f.rule for f in found]},
    ),
    Sentence("A retry hint", "nothing has been written yet", hinted(), {"say": has("nothing has been written")}),
    Sentence(
        "A retry hint",
        "wait, then call again with the same key",
        hinted(1234),
        {"action": "wait", "retry": lambda retry: (retry.delay_ms, retry.same_idempotency_key, retry.same_arguments) == (1234, True, True)},
    ),
    Sentence(
        "What retryable is worth",
        "false on every failure but OUTCOME_UNKNOWN",
        result("failed", "denied", "ACTION_DENIED", retryable=True),
        {"action": "report", "findings": lambda found: [f.rule for f in found] == ["CC102"]},
    ),
    Sentence(
        "What retryable is worth",
        "OUTCOME_UNKNOWN may carry true",
        result("uncertain", "uncertain", "OUTCOME_UNKNOWN", retryable=True),
        {"action": "read-first", "retry": None, "findings": ()},
    ),
    Sentence(
        "What retryable is worth",
        "fixed at true in a hint",
        {**hinted(), "_meta": {"coffeechats/retry": {"code": "PERMIT_BACKPRESSURE", "retryAfterMs": 5, "retryable": False}}},
        {"findings": lambda found: [f.rule for f in found] == ["CC105"], "valid": False},
    ),
    Sentence("What retryable is worth", "never branch on it alone", result(), {"never": has("`retryable` alone")}),
    Sentence(
        "What retryable is worth",
        "the Action column of the error codes page has the action",
        result("failed", "denied", "ACTION_DENIED"),
        {"steps": has("error codes page")},
    ),
    *(
        Sentence(
            "How long to keep retrying",
            f"a hint's delay lies between 1 and 5000 ms, not {ms}",
            hinted(ms),
            {"findings": lambda found: [f.rule for f in found] == ["CC105"]},
        )
        for ms in (0, -1, 5001)
    ),
    *(
        Sentence("How long to keep retrying", f"a hint's delay lies between 1 and 5000 ms, as {ms} does", hinted(ms), {"findings": (), "valid": True})
        for ms in (1, 5000)
    ),
    Sentence(
        "How long to keep retrying",
        "honour the delay, few attempts, stop at the four final states",
        hinted(),
        {
            "steps": has("small number", "completed", "failed", "cancelled", "uncertain"),
            "retry": lambda retry: retry.max_attempts is None and retry.backoff_ms is None,
        },
    ),
    Sentence("How long to keep retrying", "120 calls a minute", hinted(), {"steps": has("120 calls a minute")}),
    *(
        Sentence(
            "Three codes",
            f"{code} has a cause that depends on the tool; its page prints it",
            result("failed", scenario, code),
            {"explanation": has("depends on the tool", "reference page")},
        )
        for code, scenario in (("ACTION_DENIED", "denied"), ("ACTION_EXPIRED", "expired"))
    ),
    Sentence(
        "Three codes",
        "VERSION_CONFLICT on a safe write",
        result(),
        {
            "explanation": lambda text: (
                has("stored value moved", "same idempotency key", "different input")(text) and lacks("booking page", "already decided")(text)
            )
        },
        {"tool": "safe-write"},
    ),
    Sentence(
        "Three codes",
        "VERSION_CONFLICT on a proposal",
        result(),
        {"explanation": lambda text: has("booking page moved", "same idempotency key")(text) and lacks("stored value moved", "already decided")(text)},
        {"tool": "proposal"},
    ),
    Sentence(
        "Three codes",
        "VERSION_CONFLICT on actions.cancel",
        result(),
        {
            "explanation": lambda text: (
                has("already decided", "already expired", "already being applied")(text) and lacks("stored value moved", "booking page")(text)
            ),
            "action": "report",
        },
        {"tool": "actions.cancel"},
    ),
    Sentence(
        "Three codes",
        "with the tool unknown every reading holds",
        result(),
        {"explanation": has("stored value moved", "booking page", "already decided"), "steps": has("--tool")},
    ),
    Sentence(
        "When a cancelled result is visible",
        "from a disconnect only for another connection",
        result("cancelled", "cancelled", "OPERATION_CANCELLED"),
        {"explanation": has("disconnect", "other than the one in use")},
    ),
    Sentence(
        "When a cancelled result is visible",
        "a refused call is the end of the connection",
        "",
        {"never": has("further calls on this connection")},
        {"contract": "coffeechats", "status": 401},
    ),
    Sentence(
        "When a cancelled result is visible",
        "from actions.cancel it is what was asked for",
        result("cancelled", "cancelled", "OPERATION_CANCELLED"),
        {"action": "none"},
        {"tool": "actions.cancel"},
    ),
    Sentence(
        "Five things, 1",
        "no new key after an uncertain outcome before reading",
        result("uncertain", "uncertain", "OUTCOME_UNKNOWN"),
        {"never": has("new idempotency key before reading"), "action": "read-first", "steps": has("Settle an uncertain result")},
    ),
    Sentence(
        "Five things, 2",
        "an undocumented shape is reported, not acted on",
        tagged("requires_user_action"),
        {"outcome": "unrecognised", "action": "report", "never": has("not documented"), "steps": has("reference page")},
    ),
    Sentence("Five things, 3", "no reason is read into the fixed text", FIXED, {"never": has("never read a reason")}),
    Sentence(
        "Five things, 4",
        "no calls on a disconnected connection; ask to authorize again",
        "",
        {"never": has("never make further calls"), "steps": has("authorize again")},
        {"contract": "coffeechats", "status": 401},
    ),
    Sentence("Five things, 5", "no raw code for a student", result(), {"never": has("raw code"), "say": lacks("VERSION_CONFLICT")}),
    Sentence("Rate limiting", "status 429 with Retry-After in seconds", REFUSED, {"action": "wait", "retry": lambda retry: retry.delay_ms == 21000}),
    Sentence("Rate limiting", "none of the published codes appears", REFUSED, {"code": None}),
    Sentence("Rate limiting", "the limiter's body", {"error": "rate_limited"}, {"shape": "rate-limit"}),
    Sentence(
        "Rate limiting",
        "Retry-After is promised",
        REFUSED.replace("Retry-After: 21\r\n", "RateLimit-Limit: 120\r\n"),
        {"findings": lambda found: [f.rule for f in found] == ["CC108"]},
    ),
    Sentence("Rate limiting", "polling on spends the budget and locks the agent out", REFUSED, {"never": has("budget", "own reads")}),
    Sentence("Rate limiting", "the limits page states the limits", REFUSED, {"steps": has("limits page")}),
]


@pytest.mark.parametrize("sentence", OVSTORAGE, ids=lambda sentence: re.sub(r"\W+", "-", f"{sentence.where}-{sentence.says}")[:70])
def test_ovstorage(sentence: Sentence) -> None:
    honours(sentence, "ovstorage")


@pytest.mark.parametrize("sentence", COFFEE_CHATS, ids=lambda sentence: re.sub(r"\W+", "-", f"{sentence.where}-{sentence.says}")[:70])
def test_coffee_chats(sentence: Sentence) -> None:
    honours(sentence, "coffeechats")


def honours(sentence: Sentence, contract: str) -> None:
    (verdict,) = triage(sentence.input, **sentence.given)
    assert verdict.contract == contract
    for name, check in sentence.checks.items():
        value = getattr(verdict, name)
        assert check(value) if callable(check) else value == check, (sentence.says, name, value)
