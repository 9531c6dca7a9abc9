"""The nouns of traffic: calls and answers with what makes them the same or different, and what an answer came to."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

from errtriage.model import Payload
from errtriage.moments import Time

#: What an id that nothing tells stands for, and that of an answer to something that was no call.
NO_ID: Any = None
NO_CALL: Any = ("no call", None)
#: What stands for credentials of which only is known that there were some.
MASKED = "masked"


class Origin(NamedTuple):
    """What the log says about where a message belongs: the session, the connection, the server, the carrier's text, and
    (where there is no session) what stands for the credentials.
    """

    session: str | None = None
    connection: str | None = None
    server: str | None = None
    stream: str | None = None
    credentials: str | None = None

    def fits(self, other: Origin) -> bool:
        """Whether nothing that both say contradicts."""
        return all(mine is None or theirs is None or mine == theirs for mine, theirs in zip(self, other, strict=True))


class Spot(NamedTuple):
    """Where and when a message was written; lines count from 1 at the start of the slice, later of the input.

    ``pointer`` leads to it in a capture that is one document.
    """

    line: int
    time: Time | None
    origin: Origin
    pointer: str = ""


class Call(NamedTuple):
    """A request. ``digest`` is the same for equal arguments without the idempotency key; empty where they are not known."""

    spot: Spot
    id: Any
    method: str
    tool: str | None = None
    digest: bytes = b""
    key: str | None = None
    #: The arguments that may name a record: names without case and separators, and values as text.
    pairs: tuple[tuple[str, str], ...] = ()
    #: What stands for the credentials that it carried, where those were seen.
    credentials: str | None = None
    #: What it was called with but for the key, as JSON, if that is not too long to be kept.
    arguments: str = ""
    #: Whether it goes on with what a person was asked for.
    resumed: bool = False
    #: Whether it was seen on the wire, where no message stands twice.
    wired: bool = False

    @property
    def signature(self) -> tuple[str, bytes] | None:
        """What is the same for the same call; None where it is not known what it is."""
        return (self.tool, self.digest) if self.tool is not None and self.digest else None

    @property
    def named(self) -> str:
        """What was called: the tool, else the method."""
        return self.tool or self.method


class Demand(NamedTuple):
    """What a contract demands after a verdict: the rule, whose entry it is, and its sentences."""

    rule: str
    contract: str
    number: int
    says: str
    instead: str


class Judgement(NamedTuple):
    """What an answer came to, as far as what follows hangs on it. Delays are in ms."""

    contract: str
    shape: str
    outcome: str
    action: str
    code: str | None
    #: Of the transport, and not of what a tool met elsewhere.
    http_status: int | None
    correlation_id: str | None
    demands: tuple[Demand, ...]
    delay_ms: int | None = None
    most_attempts: int | None = None
    growing: bool = False
    #: Whether the client itself ended its wait, so that the answer may still come.
    gave_up: bool = False
    summary: str = ""


class Answer(NamedTuple):
    """A response, or what else was the answer to a call; what is not judged yet waits for the name of its tool."""

    spot: Spot
    id: Any
    judged: tuple[Judgement, ...] = ()
    payloads: tuple[Payload, ...] = ()
    #: What the server calls itself, and the contracts that a success was recognised by.
    server: str | None = None
    contracts: tuple[str, ...] = ()
    #: What was decided, where the server had asked: by a person, or by the client itself.
    decided: str | None = None

    @property
    def is_error(self) -> bool:
        """Whether it is an error of JSON-RPC, judged or not."""
        return any(each.shape == "rpc-error" for each in self.judged) or any(each.shape == "rpc-error" for each in self.payloads)


class Withdrawal(NamedTuple):
    """A client takes a call back: it does not wait for the answer any longer."""

    spot: Spot
    id: Any
    reason: str = ""


class Word(NamedTuple):
    """A person said something. In a history ``digest`` is the same for the same words, the ``number``-th time there."""

    spot: Spot
    digest: bytes = b""
    number: int = 1


class Change(NamedTuple):
    """Something changed that no call was seen to change: what the server offers or, if ``access``, who may call it."""

    spot: Spot
    access: bool = False


Message = Call | Answer | Withdrawal | Word | Change


@lru_cache(4096)
def simple(name: str) -> str:
    """A name without case and separators, as names of ids are compared."""
    return name.replace("-", "").replace("_", "").lower()
