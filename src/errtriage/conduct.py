"""The rules of audit: what a call breaks of what the answers before it forbid, and of what its connection may do.

Which rule holds after which answer, its bounds and its words stand in the packs (``conduct.json``). Here are only the
predicates, and they err on the side of silence: what may have happened without a trace in the log excuses what followed.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from hashlib import blake2b
from typing import Any, NamedTuple

import orjson

from errtriage import delays
from errtriage.connections import Connection, Open, Standing, gap_between, is_before, may_be_about
from errtriage.contracts import Conditions, Contracts, own_conduct
from errtriage.messages import MASKED, Call, Demand, Judgement, simple
from errtriage.moments import Time
from errtriage.wording import Words

#: Times written more finely than this, in microseconds, are taken as they stand when two pauses are compared.
_FINE = 10_000
#: Why a rule may not be applied.
_NO_TIMES, _NOT_APART = "the log states no times", "the log does not tell connections apart"
#: Members whose values are secrets, whatever they are.
_SECRET = re.compile(
    r"authori[sz]ation|cookie|passw|passphrase|^pass$|^pwd$|secret|token|api_?-?key|credential|^otp$|^pin$|assertion|private_?-?key",
    re.IGNORECASE,
)
#: How much of a call's arguments is shown, in characters.
_SHOWN = 120
#: Outcomes after which something may have been done.
_OPEN_ENDED = frozenset(("uncertain", "partial"))


class VerdictAt(NamedTuple):
    """The answer that forbade something: where it stands, and what it was."""

    line: int
    pointer: str
    time: Time | None
    contract: str
    outcome: str
    code: str | None
    action: str
    correlation_id: str | None


class Breach(NamedTuple):
    """A step that a contract forbids: the call, the verdict before it (none where the rule is about calls alone).

    ``between_ms`` is the time between the two in ms, as the log has it.
    """

    rule: str
    level: str
    file: str
    line: int
    #: Leads to the call in a capture that is one document.
    pointer: str
    time: Time | None
    session: str
    tool: str | None
    #: What it was called with, ready to be shown and cut to a bounded length.
    arguments: str
    contract: str
    what: str
    says: str
    source: str
    instead: str
    verdict: VerdictAt | None
    between_ms: int | None
    #: The same for the same call in another capture, whatever its keys and times were.
    identity: str = ""

    @property
    def message(self) -> str:
        """All of it in sentences, as formats show it that know only messages. The same wherever the lines moved."""
        return f"{self.what}. The contract: {self.says} ({self.source}). Instead: {self.instead}"


def _identity(call: Call, demand: Demand, known: Mapping[str, Any]) -> str:
    """What is the same for the same step in another capture, whatever its keys and times were."""
    if demand.rule == "AU107":
        return f"too many calls ({demand.contract})"
    arguments = call.digest or blake2b(call.arguments.encode(), digest_size=12).digest()
    why = ", past the bound" if "attempt" in known else ""
    return f"{call.named} after {known.get('verdict')} ({demand.contract}), arguments {arguments.hex()[:12]}{why}"


def _hidden(value: Any) -> Any:
    """A value without what its members' names say is secret."""
    if isinstance(value, list):
        return [_hidden(item) for item in value]
    if not isinstance(value, dict):
        return value
    named = any(isinstance(value.get(name), str) and _SECRET.search(value[name]) for name in ("name", "key"))
    return {name: "REDACTED" if _SECRET.search(name) or (named and name == "value") else _hidden(member) for name, member in value.items()}


class Conduct:
    """Holds calls against the rules that count; ``show`` makes what packs do not say themselves ready to be shown."""

    def __init__(self, contracts: Contracts, rules: frozenset[str], show: Callable[[str], str], *, redact: bool) -> None:
        own = own_conduct()
        self._contracts = {contract.name: contract for contract in contracts}
        self._rules = rules
        self._show = show
        self._redact = redact
        self._described = {rule["id"]: rule for rule in own["rules"]}
        #: After how long something may have happened that no log shows, and the same call is another time, in microseconds.
        self._pause, self._long = own["pause_ms"] * 1000, own["another_time_ms"] * 1000
        self._conditions = Conditions()
        self._budgets = [(contract, number, entry) for contract in contracts for number, entry in enumerate(contract.conduct["rules"]) if "within_ms" in entry]
        self._kinds = {tool: f"{contract.name} {kind}" for contract in contracts for tool, kind in contract.conduct.get("kinds", {}).items()}
        self._records = frozenset(simple(name) for contract in contracts for name in contract.conduct.get("records", ()))
        self._reading = {tool for contract in contracts for tool, kind in contract.data.get("tools", {}).items() if kind in contract.conduct.get("reads", ())}
        #: The contracts that know a tool.
        self.tools: dict[str, set[str]] = {}
        for contract in contracts:
            for tool in contract.data.get("tools", ()):
                self.tools.setdefault(tool, set()).add(contract.name)
        #: Rules that need what a log does not say, with what that is: how often they could not be applied.
        self.unapplied: dict[tuple[str, str], int] = {}

    def arguments(self, call: Call) -> str:
        """What a call was made with, without its key and secrets and of bounded length. It is redacted before it is cut."""
        if not call.arguments.startswith("{"):
            return call.arguments
        text = orjson.dumps(_hidden(orjson.loads(call.arguments))).decode() if self._redact else call.arguments
        text = self._show(text)
        return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"

    def may_change(self, call: Call) -> bool:
        """Whether a call may change something: a tool's that is not known to read only."""
        return call.method == "tools/call" and call.tool not in self._reading

    def may_read(self, call: Call) -> bool:
        """Whether a call may read something: a tool's that is known to, or that nobody knows and that carries no key."""
        if call.method == "tools/call":
            return call.tool in self._reading or (call.tool not in self.tools and call.key is None)
        return call.method.startswith("resources/")

    def demands(self, connection: Connection, judgement: Judgement) -> dict[str, Demand]:
        """What holds after a verdict, by rule: of the contracts that the connection is known to speak, the most specific."""
        found: dict[str, Demand] = {}
        for demand in judgement.demands:
            speaks = demand.contract in connection.session.contracts or self._contracts[demand.contract].is_protocol
            if speaks and demand.rule in self._rules:
                found.setdefault(demand.rule, demand)
        return found

    def against_standing(self, opened: Open, file: str) -> Iterator[Breach]:
        """What a call breaks of what the last answer to the same call forbids."""
        connection, call = opened.connection, opened.call
        standing = connection.standing.get(call.signature) if call.signature is not None else None
        if standing is None or call.resumed or is_before(call, standing):
            return
        told = False
        for rule, check in _CHECKS.items():
            demand = standing.demands.get(rule)
            if demand is None or (told and rule == "AU101"):
                continue
            facts = check(self, opened, standing)
            if facts is not None:
                told = True
                standing.break_it()
                yield self._breach(opened, standing, demand, facts, file)

    def _breach(self, opened: Open, standing: Standing | None, demand: Demand, facts: Mapping[str, Any], file: str) -> Breach:
        connection, call = opened.connection, opened.call
        verdict = None
        between = None
        known: dict[str, Any] = {"tool": call.named, **facts}
        if standing is not None:
            judgement = standing.judgement
            verdict = VerdictAt(
                standing.spot.line,
                standing.spot.pointer,
                standing.spot.time,
                judgement.contract,
                judgement.outcome,
                judgement.code,
                judgement.action,
                judgement.correlation_id,
            )
            gap = gap_between(standing.spot.time, call.spot.time)
            if gap is not None:
                between = gap // 1000
                known["gap"] = delays.in_words(between)
            known["outcome"] = judgement.outcome
            known["verdict"] = judgement.code or (f"HTTP {judgement.http_status}" if judgement.http_status else judgement.outcome)
        words = Words(known, self._show, lambda condition: self._conditions.hold(condition, known))
        contract = self._contracts[demand.contract]
        entry = contract.conduct["rules"][demand.number]
        rule = self._described[demand.rule]
        return Breach(
            demand.rule,
            rule["level"],
            file,
            call.spot.line,
            call.spot.pointer,
            call.spot.time,
            connection.session.label,
            call.tool,
            self.arguments(call),
            demand.contract,
            words.say(rule["message"]) or rule["what"],
            demand.says,
            contract.data["sources"][entry["source"]],
            demand.instead,
            verdict,
            between,
            _identity(call, demand, known),
        )

    def _paused(self, opened: Open, standing: Standing, least: int = 0) -> bool:
        """Whether so much time passed that something may have happened which no log shows."""
        gap = gap_between(standing.spot.time, opened.call.spot.time)
        return gap is not None and gap > max(self._pause, least)

    def _read_since(self, connection: Connection, standing: Standing) -> bool:
        """Whether the record of a call was read since its answer, or may have been."""
        if connection.read_forgotten > standing.number:
            return True
        call = standing.call.call
        reads = (read for read in connection.reads if read.number > standing.number and not read.failed and read.signature != call.signature)
        kind = self._kinds.get(call.tool or "")
        return any(may_be_about(read.pairs, call.pairs, self._records) for read in reads if kind is None or self._kinds.get(read.tool or "") in (None, kind))

    def _same_call_again(self, opened: Open, standing: Standing) -> dict[str, Any] | None:
        """AU101: nothing lies in between that the verdict asked for, or that may be it."""
        connection, call = opened.connection, opened.call
        unless = self._entry(standing.demands["AU101"]).get("unless", ())
        signature = call.signature
        excuses: dict[str, Callable[[], bool]] = {
            "call": lambda: connection.calls.by_other(signature) > standing.number,
            "change": lambda: connection.changes.by_other(signature) > standing.number,
            "read": lambda: self._read_since(connection, standing),
            "new-key": lambda: call.key != standing.call.call.key,
        }
        # Time heals what failed, and tells nothing about what may have been done.
        healed = standing.judgement.outcome not in _OPEN_ENDED and self._paused(opened, standing)
        if connection.spoken_since(standing) or healed or any(excuses[each]() for each in unless):
            return None
        return {}

    def _too_soon(self, opened: Open, standing: Standing) -> dict[str, Any] | None:
        """AU102: certainly sooner than the delay, also if both times were cut to what is written of them."""
        delay = standing.judgement.delay_ms
        if delay is None:
            return None
        # An answer whose time nobody wrote down was there after its call.
        then, now = standing.spot.time or standing.call.call.spot.time, opened.call.spot.time
        gap = gap_between(then, now)
        if gap is None or now is None or (standing.spot.time is None and gap + now.grain > delay * 1000):
            self._unapplied("AU102")
            return None
        return {"delay": delays.in_words(delay)} if gap + now.grain <= delay * 1000 else None

    def _new_key_unread(self, opened: Open, standing: Standing) -> dict[str, Any] | None:
        """AU103: the same change under a new key, and nothing may have read its record since."""
        key, before = opened.call.key, standing.call.call.key
        if key is None or key == before or not self.may_change(opened.call):
            return None
        if self._read_since(opened.connection, standing) or opened.connection.spoken_since(standing):
            return None
        return {"key": key, **({"first_key": before} if before else {})}

    def _too_often(self, opened: Open, standing: Standing) -> dict[str, Any] | None:
        """AU104: one attempt more than the bound, or a pause that did not grow."""
        connection = opened.connection
        before = standing.call
        gap = gap_between(standing.spot.time, opened.call.spot.time)
        least = 4 * before.pauses[-1] if before.pauses else 0
        if connection.spoken_since(standing) or self._paused(opened, standing, least):
            return None  # a person may have asked for it: the count begins anew
        opened.attempt = before.attempt + 1
        opened.pauses = (*before.pauses[:1], *before.pauses[1:][-1:], gap) if gap is not None else ()
        most = standing.judgement.most_attempts
        if most is not None and opened.attempt > most:
            return {"attempt": opened.attempt, "most": most}
        if not standing.judgement.growing:
            return None
        if gap is None:
            self._unapplied("AU104")
            return None
        grain = max(each.time.grain for each in (standing.spot, opened.call.spot) if each.time is not None)
        if _not_growing(opened.pauses, grain):
            return {"pause": delays.in_words(gap // 1000), "last_pause": delays.in_words(opened.pauses[-2] // 1000)}
        return None

    def _other_key(self, opened: Open, standing: Standing) -> dict[str, Any] | None:
        """AU106: the call that a hint asked for, but not under the key of the first."""
        key, before = opened.call.key, standing.call.call.key
        connection = opened.connection
        if before is None or key == before or self._paused(opened, standing) or connection.spoken_since(standing):
            return None  # nothing says that it answers the hint
        if self._read_since(connection, standing) or connection.tools.by_other(opened.call.tool) > standing.number:
            return None
        return {"first_key": before, **({"key": key} if key is not None else {})}

    def _further_try(self, opened: Open, standing: Standing) -> dict[str, Any] | None:
        """AU108: the same call within the hour after an answer that says nothing, without a person's word in between."""
        if opened.connection.spoken_since(standing) or self._paused(opened, standing, self._long):
            return None
        return {}

    def after_refusal(self, opened: Open, file: str) -> tuple[Breach, Standing] | None:
        """AU105: a call on a connection whose credentials were refused; true unless its answer shows that they hold."""
        connection, call = opened.connection, opened.call
        standing = connection.refused
        if standing is None or connection.mixed or connection.spoken_since(standing) or is_before(call, standing):
            return None
        if not connection.apart:
            self._unapplied("AU105", _NOT_APART)
            return None
        if call.credentials == MASKED or call.credentials != standing.call.call.credentials:
            return None  # others, or whether others nobody can tell
        return self._breach(opened, standing, standing.demands["AU105"], {}, file), standing

    def against_budgets(self, opened: Open, file: str) -> Iterator[Breach]:
        """AU107: more calls than a contract allows for a time, told once for each time that it happens."""
        connection = opened.connection
        for contract, number, entry in self._budgets:
            if entry["rule"] not in self._rules or contract.name not in connection.session.contracts:
                continue
            if not connection.apart:
                if connection.session.calls > entry["most"]:
                    self._unapplied(entry["rule"], _NOT_APART)
                continue
            if opened.call.spot.time is None:
                if connection.session.calls > entry["most"]:
                    self._unapplied(entry["rule"])
                continue
            took = self._over_budget(connection, opened.call.spot.time, (contract.name, number), entry)
            if took is not None:
                demand = Demand(entry["rule"], contract.name, number, entry["says"], entry["instead"])
                yield self._breach(opened, None, demand, {"calls": entry["most"] + 1, "within": delays.in_words(took // 1000)}, file)

    def _over_budget(self, connection: Connection, time: Time, budget: Any, entry: Mapping[str, Any]) -> int | None:
        """The time in microseconds in which one call too many was made, if that begins with this one."""
        times = connection.times.setdefault(budget, deque())
        if times and time.at < times[-1].at:
            times.clear()
        times.append(time)
        if len(times) <= entry["most"]:
            return None
        took = time.at - times.popleft().at
        over, before = took + time.grain <= entry["within_ms"] * 1000, budget in connection.over
        (connection.over.add if over else connection.over.discard)(budget)
        return took if over and not before else None

    def _entry(self, demand: Demand) -> Mapping[str, Any]:
        entry: Mapping[str, Any] = self._contracts[demand.contract].conduct["rules"][demand.number]
        return entry

    def _unapplied(self, rule: str, reason: str = _NO_TIMES) -> None:
        self.unapplied[rule, reason] = self.unapplied.get((rule, reason), 0) + 1


#: The rules about the same call again, in the order in which they are asked: AU101 only where none before it speaks.
_CHECKS: Mapping[str, Callable[[Conduct, Open, Standing], dict[str, Any] | None]] = {
    "AU102": Conduct._too_soon,  # noqa: SLF001 - methods of this module's class
    "AU103": Conduct._new_key_unread,  # noqa: SLF001
    "AU104": Conduct._too_often,  # noqa: SLF001
    "AU106": Conduct._other_key,  # noqa: SLF001
    "AU108": Conduct._further_try,  # noqa: SLF001
    "AU101": Conduct._same_call_again,  # noqa: SLF001
}


def _not_growing(pauses: tuple[int, ...], grain: int) -> bool:
    """Whether pauses certainly do not grow, of which the first and the last two are given: the last is no longer than the
    one before, nor than the first (one that only stays as long as it may be has grown). Of coarse ones three are compared.
    """
    if len(pauses) < 2 or pauses[-1] > pauses[0]:
        return False
    last, before = pauses[-1], pauses[-2]
    if grain <= _FINE:
        return last <= before
    if last + grain <= before - grain:
        return True
    return len(pauses) == 3 and pauses[0] >= 2 * grain and max(pauses[1:]) <= pauses[0]
