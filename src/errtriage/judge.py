"""Says what an answer came to, and what the contracts demand after it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, NamedTuple

import orjson

from errtriage.contracts import Contract, Shape, names_in, with_packs
from errtriage.messages import Demand, Judgement
from errtriage.model import Payload
from errtriage.packs import Pack
from errtriage.verdicts import Judged, Triage


class Settings(NamedTuple):
    """How traffic is read, as plain data that travels to workers."""

    contract: str | None = None
    redact: bool = True
    #: Whether calls and verdicts are to be told, and not only counted.
    story: bool = False
    #: The packs beyond the bundled ones.
    packs: tuple[Pack, ...] = ()


class Judge:
    """Says what an answer came to, and what the contracts demand after it."""

    def __init__(self, settings: Settings) -> None:
        self.contracts = with_packs(settings.packs)
        forced = self.contracts.get(settings.contract) if settings.contract else None
        self.triage = Triage(self.contracts, forced=forced, redact=settings.redact)
        self._story = settings.story
        self._entries = [(contract, number, entry) for contract in self.contracts for number, entry in enumerate(contract.conduct["rules"]) if "when" in entry]
        self._gave_up = [(contract, contract.conduct["gave_up"]["when"]) for contract in self.contracts if "gave_up" in contract.conduct]

    def judge(self, payload: Payload) -> Judgement:
        """The judgement of one payload."""
        judged = self.triage.judge(payload)
        facts = {**judged.facts, "outcome": str(judged.outcome), "action": judged.leaf["action"]}
        retry = judged.retry
        if retry is not None and retry.delay_ms is not None:
            facts["delay_ms"] = retry.delay_ms
        identifier = self.triage.correlation(payload)
        code = facts.get("code")
        return Judgement(
            contract=judged.contract.name,
            shape=judged.shape.name,
            outcome=facts["outcome"],
            action=facts["action"],
            code=self.triage.show(code) if isinstance(code, str) else None,
            http_status=payload.context.http.status if payload.context.http else None,
            correlation_id=identifier,
            demands=tuple(self._demands(judged, facts, identifier, wired=payload.context.http is not None)),
            delay_ms=retry.delay_ms if retry else None,
            most_attempts=retry.max_attempts if retry else None,
            growing=bool(retry and retry.backoff_ms),
            gave_up=any(contract.name == judged.contract.name and contract.conditions.hold(when, facts) for contract, when in self._gave_up),
            summary=self.triage.decide(payload).summary if self._story else "",
        )

    def _demands(self, judged: Judged, facts: Mapping[str, Any], identifier: str | None, *, wired: bool) -> Iterator[Demand]:
        words = None
        for contract, number, entry in self._entries:
            # What a tool met elsewhere is no answer of the transport.
            if not wired if entry.get("about") == "http" else contract.name != judged.contract.name:
                continue
            if (judged.unread and judged.unread & names_in(entry["when"])) or not contract.conditions.hold(entry["when"], facts):
                continue
            words = words or self.triage.words(judged, identifier)
            yield Demand(entry["rule"], contract.name, number, words.say(entry["says"]) or "", words.say(entry["instead"]) or "")

    def recognised(self, result: Any) -> tuple[str, ...]:
        """The contracts with a budget for calls that a result is of, though nothing failed in it."""
        found = []
        for contract in self._budgeted:
            for value in _values(result):
                if any(shape.matches({"value": value}) for shape in _shapes_of_objects(contract)):
                    found.append(contract.name)
                    break
        return tuple(found)

    def may_be_recognised(self, written: bytes) -> bool:
        """Whether a record has the members that some shape of those contracts must have."""
        return any(all(name in written for name in names) for names in self._members)

    @cached_property
    def _members(self) -> list[list[bytes]]:
        return [[name.encode() for name in shape.members] for contract in self._budgeted for shape in _shapes_of_objects(contract)]

    @cached_property
    def _budgeted(self) -> list[Contract]:
        return [contract for contract in self.contracts if any("within_ms" in entry for entry in contract.conduct["rules"])]


def _shapes_of_objects(contract: Contract) -> list[Shape]:
    """The shapes that an object has by its members, which tell whose it is also where nothing failed."""
    return [shape for shape in contract.shapes if "object" in shape.data["on"] and shape.members]


def _values(result: Any) -> Iterator[dict[str, Any]]:
    """The objects that a tool result carries, as far as they can be had without a search."""
    if not isinstance(result, dict):
        return
    if isinstance(result.get("structuredContent"), dict):
        yield result["structuredContent"]
    content = result.get("content")
    for block in content[:1] if isinstance(content, list) else ():
        text = block.get("text") if isinstance(block, dict) else None
        if isinstance(text, str) and text.startswith("{"):
            try:
                value = orjson.loads(text)
            except ValueError:
                continue
            if isinstance(value, dict):
                yield value
