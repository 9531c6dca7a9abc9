"""The nouns of errtriage: what every command makes and every renderer takes.

Imports nothing else of the package. They are named tuples and not dataclasses because those take half a millisecond
each to define, which every start would pay.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NamedTuple

#: Under what a capture's own knowledge of an exchange stands beside what its request said (names that no log has): the text
#: that was asked, how long the answer took, and where in the capture it stands. Only what was seen on the wire has them.
ASKED, TOOK_MS, POINTER = "\0asked", "\0took_ms", "\0pointer"


class Outcome(StrEnum):
    """What became of the call, as far as the answer tells."""

    SUCCESS = "success"
    PENDING = "pending"
    NEEDS_INPUT = "needs-input"
    FAILURE = "failure"
    PARTIAL = "partial"
    UNCERTAIN = "uncertain"
    CANCELLED = "cancelled"
    UNRECOGNISED = "unrecognised"


class Action(StrEnum):
    """The one next step that a verdict names."""

    NONE = "none"
    RETRY = "retry"
    WAIT = "wait"
    FOLLOW_HINT = "follow-hint"
    FIX_ARGUMENTS = "fix-arguments"
    DECIDE = "decide"
    CHOOSE_OTHER_OPERATION = "choose-other-operation"
    READ_FIRST = "read-first"
    CONFIRM = "confirm"
    REAUTHORIZE = "reauthorize"
    REPORT = "report"


#: Exit codes of ``explain --exit-code``; an unrecognised outcome exits with UNRECOGNISED_EXIT instead.
ACTION_EXIT: Mapping[Action, int] = {
    Action.NONE: 0,
    **{action: 10 + i for i, action in enumerate(list(Action)[1:])},
}
UNRECOGNISED_EXIT = 20


class Failure(Exception):
    """An expected failure of ours: what is wrong, and what to do next, in one sentence each.

    ``exit_code`` is what the process ends with when nothing else went on (2: wrong usage or unreadable input).
    """

    def __init__(self, message: str, hint: str = "", exit_code: int = 2) -> None:
        super().__init__(f"{message} {hint}".strip())
        self.exit_code = exit_code


class Http(NamedTuple):
    """What the transport knew: status, reason phrase, headers by lower-case name, and the request's method."""

    status: int | None = None
    reason: str | None = None
    headers: Mapping[str, str] = {}
    method: str | None = None
    #: Whether the headers were really seen (only then can one be missing).
    headers_seen: bool = False
    #: The headers' names as they stand there, by lower-case name.
    names: Mapping[str, str] = {}

    @classmethod
    def known(cls, status: int | None, headers: Mapping[str, str] | None) -> Http | None:
        """What is known of a response from outside of the input; None where nothing is."""
        if status is None and not headers:
            return None
        headers = headers or {}
        lower = {name.lower(): value for name, value in headers.items()}
        return cls(status, None, lower, headers_seen=bool(headers), names={name.lower(): name for name in headers})

    @property
    def media_type(self) -> str | None:
        """The response's media type in lower case, without parameters."""
        value = self.headers.get("content-type")
        return value.partition(";")[0].strip().lower() if value else None


class ToolResult:
    """An MCP tool result as a wrapper, under its canonical names.

    ``mismatch`` says whether its structured content and its text block hold different payloads.
    """

    __slots__ = ("mismatch", "texts", "value")

    def __init__(self, value: dict[str, Any], texts: tuple[str, ...] = ()) -> None:
        self.value = value
        self.texts = texts
        self.mismatch = False

    @property
    def is_error(self) -> bool | None:
        """``isError`` where it is a boolean; absent means false (MCP, Tools); None where it holds something else."""
        flag = self.value.get("isError")
        if flag is None:
            return False
        return flag if isinstance(flag, bool) else None

    @property
    def resources(self) -> bool:
        """Whether an embedded resource holds a text, which can be read too."""
        blocks = self.value.get("content")
        resources = [block.get("resource") for block in blocks if isinstance(block, dict)] if isinstance(blocks, list) else []
        return any(isinstance(each, dict) and isinstance(each.get("text"), str) and bool(each["text"].strip()) for each in resources)

    @property
    def text(self) -> str | None:
        """All text blocks joined by newlines, or None where there is none."""
        return "\n".join(self.texts) if self.texts else None


class Place(NamedTuple):
    """Where a value was read in a text; ``line`` is 1-based and the place of its record.

    ``root`` is the JSON value around it, which starts ``start`` characters into its text (-1: not known, or not as it
    stands there). That text is the file's or, with ``around``, the string of that place. ``string`` is the string in
    ``root`` that is being decoded.
    """

    line: int = 1
    root: Any = None
    start: int = -1
    string: str | None = None
    around: Place | None = None


class Context(NamedTuple):
    """What the wrappers around a payload know, from the outside in."""

    wrappers: tuple[str, ...] = ()
    http: Http | None = None
    tool_result: ToolResult | None = None
    rpc: Mapping[str, Any] | None = None
    meta: Mapping[str, Any] | None = None
    #: The words before the JSON text on its line.
    prefix: str = ""
    #: When the innermost log record says it was written, as it stands there.
    received: Any = None
    #: Whether a log record (or another wrapper) of this JSON text was passed already.
    inside: bool = False
    #: Whether the value is the whole body of the HTTP response, and not something inside it.
    body: bool = False
    #: The HTTP verb that a log record around it names.
    method: str | None = None
    #: The log records that were passed, and what a capture says about the exchange; from the outside in.
    around: tuple[Mapping[str, Any], ...] = ()
    #: How many of those are around the words before the JSON text.
    before: int = 0
    #: Which of the texts that a carrier interleaves it stands in, by the carrier's name for it.
    stream: str = ""
    #: Whether something had to be mended to be read, and whether something was cut short.
    repaired: bool = False
    truncated: bool = False
    place: Place = Place()


class Payload(NamedTuple):
    """One payload as it was found: its value, the shape it was recognised as, and what was around it.

    ``inner`` is the result inside an answer that was recognised as a whole.
    """

    value: Any
    contract: str
    shape: str
    context: Context
    inner: Any = None
    tool: str | None = None
    #: With a contract forced: matched no shape of it, judged against the nearest one.
    unmatched: bool = False


class Step(NamedTuple):
    """One question of a decision tree and the answer that was given.

    ``node`` is the question's name in its tree, and ``branch`` the number of the answer there (the last is what holds
    otherwise); both are for drawing only. A question that stands in no tree has no node.
    """

    question: str
    answer: str
    node: str = ""
    branch: int = -1


class Violation(NamedTuple):
    """One root cause for which a payload does not satisfy its schema; the pointer is an RFC 6901 JSON Pointer."""

    pointer: str
    keyword: str
    message: str


class Finding(NamedTuple):
    """One lint rule that a payload breaks; the pointer leads into the payload, or into the wrapper the message names."""

    rule: str
    level: str
    pointer: str
    message: str


class Retry(NamedTuple):
    """What is known of the next call: None where the contract does not say. Delays are in milliseconds."""

    same_arguments: bool | None = None
    same_idempotency_key: bool | None = None
    delay_ms: int | None = None
    backoff_ms: tuple[int, ...] | None = None
    max_attempts: int | None = None


class Source(NamedTuple):
    """Where a payload was found and what was peeled off; ``file`` is ``-`` for standard input, ``line`` 1-based."""

    file: str
    line: int
    wrappers: tuple[str, ...]
    http_status: int | None
    rpc_id: str | int | float | None
    ids: Mapping[str, str]
    truncated: bool
    repaired: bool


class Verdict(NamedTuple):
    """What errtriage says about one payload; the fields are those of the published verdict schema, in its order."""

    contract: str
    shape: str
    outcome: Outcome
    code: str | None
    operation: str | None
    resource: str | None
    message: str | None
    retryable: bool | None
    action: Action
    summary: str
    explanation: str
    steps: tuple[str, ...]
    never: tuple[str, ...]
    say: str
    retry: Retry | None
    correlation_id: str | None
    trace: tuple[Step, ...]
    valid: bool
    violations: tuple[Violation, ...]
    findings: tuple[Finding, ...]
    source: Source

    @property
    def exit_code(self) -> int:
        """The exit code of ``explain --exit-code`` for this verdict."""
        return UNRECOGNISED_EXIT if self.outcome is Outcome.UNRECOGNISED else ACTION_EXIT[self.action]
