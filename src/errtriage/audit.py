"""What the caller did after each verdict, against what the contracts forbid.

Messages come in their order; what is kept of them is what may still be answered or broken, so memory is bounded by open
calls and not by what was read. Which rule holds after which answer, its bounds and its words stand in the packs
(``conduct.json``); here are only the predicates: what is the same call, what lies in between, how much time passed.

Everything errs on the side of silence. What may have happened without a trace in the log excuses what followed.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple

from errtriage import delays
from errtriage.contracts import Conditions, own_conduct
from errtriage.inputs import is_url
from errtriage.moments import Time
from errtriage.redact import clean
from errtriage.reports import FileReport, LintReport, Located
from errtriage.traffic import MASKED, NO_ID, Answer, Call, Change, Demand, Judge, Judgement, Message, Origin, Part, Settings, Spot, Withdrawal, Word, simple
from errtriage.wording import Words, where
from errtriage.wrappers import TOOL_USE

#: How many calls of an input may be open, how many answers of a connection are remembered that forbid something, how many
#: of its reads, and how many connections of an input are followed at a time.
MOST_OPEN, MOST_STANDING, MOST_READS, MOST_CONNECTIONS = 10_000, 1_000, 256, 1_000
#: Times written more finely than this, in microseconds, are taken as they stand when two pauses are compared.
_FINE = 10_000
#: Requests that a server makes of its client, and those that are no use of what the server offers.
_OF_SERVERS = frozenset(("elicitation/create", "sampling/createMessage", "roots/list"))
_HANDSHAKES = frozenset(("initialize", "server/discover"))
#: After so long a pause, in microseconds, the same call is no further try but another time.
_LONG = 3_600_000_000
#: Outcomes that are counted as failures.
_FAILURES = frozenset(("failure", "partial", "uncertain", "cancelled", "unrecognised"))
#: How far the ids of one client may fall from one logged request to the next.
_FALL = 3


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
    contract: str
    what: str
    says: str
    source: str
    instead: str
    verdict: VerdictAt | None
    between_ms: int | None

    @property
    def message(self) -> str:
        """All of it in sentences, as formats show it that know only messages. The same wherever the lines moved."""
        return f"{self.what}. The contract: {self.says} ({self.source}). Instead: {self.instead}"


class Late(NamedTuple):
    """An answer that came after its client had given up: it says what really happened."""

    file: str
    session: str
    tool: str | None
    called: int
    gave_up: int
    answered: int
    outcome: str
    code: str | None


class Event(NamedTuple):
    """One line of a session's story. ``side`` is call, answer, late, withdrawn or word."""

    line: int
    time: Time | None
    side: str
    text: str
    judgement: Judgement | None = None
    breaches: tuple[Breach, ...] = ()


class Session:
    """What one session came to. It was obeyed what was not broken."""

    __slots__ = (
        "answers", "breaches", "broken", "calls", "contracts", "failures", "file", "label", "late", "lines", "servers", "times", "verdicts",
    )  # fmt: skip

    def __init__(self, label: str, file: str) -> None:
        self.label = label
        self.file = file
        self.calls = self.answers = self.failures = self.verdicts = self.broken = self.breaches = self.late = 0
        self.contracts: set[str] = set()
        self.servers: set[str] = set()
        self.lines = [0, 0]
        self.times: list[Time | None] = [None, None]

    @property
    def obeyed(self) -> int:
        """How many verdicts that forbid something were kept to."""
        return self.verdicts - self.broken

    def seen(self, spot: Spot) -> None:
        """Note that a message of the session stands there."""
        self.lines = [self.lines[0] or spot.line, spot.line]
        if spot.time is not None:
            self.times = [self.times[0] or spot.time, spot.time]


class _Standing:
    """An answer after which something is forbidden, as long as it is the last answer to that call."""

    def __init__(self, call: _Open, spot: Spot, judgement: Judgement, demands: Mapping[str, Demand], number: int) -> None:
        self.call = call
        self.spot = spot
        self.judgement = judgement
        self.demands = demands
        #: When it came, among the messages.
        self.number = number
        self.broken = False


class _Open:
    """A call, as long as it may be answered."""

    def __init__(self, call: Call, connection: _Connection, number: int) -> None:
        self.call = call
        self.connection = connection
        self.number = number
        #: How many times it was tried, and the pauses before each try, in microseconds.
        self.attempt = 1
        self.pauses: tuple[int, ...] = ()
        self.gave_up: Spot | None = None
        #: What it may read.
        self.read: _Read | None = None
        #: Whether an answer that named no call was taken for its, and whether the call may be one that was logged again.
        self.guessed = False
        self.echo = False
        #: Breaches that only the answer proves.
        self.held: list[tuple[Breach, _Standing]] = []

    @property
    def may_be_meant(self) -> bool:
        """Whether an answer that names no call may be of this one."""
        return self.gave_up is None and not self.guessed and not self.echo


class _Read:
    """A call that may have read something: when, what, and whether that went wrong."""

    def __init__(self, number: int, call: Call) -> None:
        self.number = number
        self.tool = call.tool
        self.pairs = call.pairs
        self.signature = _signature(call)
        self.failed = False


class _Latest:
    """When something was last done by a call, and by a call that is not the same: enough to ask of any call."""

    def __init__(self) -> None:
        self._same: tuple[Any, int] = (None, -1)
        self._other: tuple[Any, int] = (None, -1)

    def note(self, signature: Any, number: int) -> None:
        """A call with this signature did it now."""
        if signature != self._same[0]:
            self._other = self._same
        self._same = (signature, number)

    def by_other(self, signature: Any) -> int:
        """When a call with another signature last did it; -1 for never."""
        return self._same[1] if self._same[0] != signature else self._other[1]


class _Connection:
    """What is known of one connection."""

    def __init__(self, session: Session, origin: Origin, *, told: bool) -> None:
        self.session = session
        self.origin = origin
        self.told = told
        self.standing: OrderedDict[Any, _Standing] = OrderedDict()
        self.reads: deque[_Read] = deque(maxlen=MOST_READS)
        self.read_forgotten = -1
        self.calls = _Latest()
        self.changes = _Latest()
        self.spoken = -1
        #: The last changes, by the tools that made them.
        self.tools = _Latest()
        self.refused: _Standing | None = None
        #: Calls with breaches that only their answers prove.
        self.held: list[_Open] = []
        self.times: deque[Time] = deque()
        self.over = False
        #: The last id, whether every one was the same, and those that were used, as far as they are remembered.
        self.last_id = -1
        self.constant = True
        self.ids: OrderedDict[int, None] = OrderedDict()
        #: Whether messages of several connections may be mixed in it.
        self.mixed = False
        #: Whether several services answer in a log that tells no connections apart.
        self.shared = False
        self.renewed = 0


class Audit:
    """Takes the messages of inputs in order, and keeps what was broken, what came late, and the sessions."""

    def __init__(self, settings: Settings, rules: frozenset[str], session: str | None = None) -> None:
        self._judge = Judge(settings)
        self._rules = rules
        #: The contract that every answer is judged by, if one was given: every connection speaks it.
        self._forced: set[str] = {settings.contract} if settings.contract else set()
        self.asked_for = session
        self._own = own_conduct()
        self._known_rules = {rule["id"]: rule for rule in self._own["rules"]}
        self._pause = self._own["pause_ms"] * 1000
        self._conditions = Conditions()
        self._entries: dict[str, Any] = {contract.name: contract for contract in self._judge.contracts}
        self._budgets = [
            (contract, number, entry) for contract in self._judge.contracts for number, entry in enumerate(contract.conduct["rules"]) if "within_ms" in entry
        ]
        self._kinds: dict[str, str] = {
            tool: f"{contract.name} {kind}" for contract in self._judge.contracts for tool, kind in contract.conduct.get("kinds", {}).items()
        }
        self._reads = {
            tool for contract in self._judge.contracts for tool, kind in contract.data.get("tools", {}).items() if kind in contract.conduct.get("reads", ())
        }
        self._tools: dict[str, set[str]] = {}
        for contract in self._judge.contracts:
            for tool in contract.data.get("tools", ()):
                self._tools.setdefault(tool, set()).add(contract.name)
        self.breaches: list[Breach] = []
        self.late: list[Late] = []
        self.sessions: list[Session] = []
        self.story: list[Event] = []
        #: For each rule that needs times: how often it could not be applied for want of them.
        self.untimed: dict[str, int] = {}
        #: Inputs in which connections could not be told apart.
        self.mixed: list[str] = []
        self.troubles: list[tuple[str, str]] = []
        self.skipped: list[tuple[str, str]] = []
        self.files: list[str] = []
        self._read_files: set[int] = set()
        self.bytes = self.lines = 0
        self._labels = 0
        self._begin()

    # What the queue of slices tells.

    def open(self, name: str) -> None:
        """Begin with an input."""
        self._end_input()
        self.files.append(self._judge.triage.show(name) if is_url(name) else clean(name))
        self._begin()

    def read(self) -> None:
        """Count the input as one that was read, at least in part."""
        self._read_files.add(len(self.files))

    def skip(self, reason: str) -> None:
        """Note why the input, or the rest of it, could not be read."""
        self.skipped.append((self.files[-1], reason))

    def finish(self) -> None:
        """The last input is over."""
        self._end_input()

    @property
    def read_files(self) -> int:
        """How many inputs were read, at least in part."""
        return len(self._read_files)

    def add(self, part: Part) -> None:
        """Take the next part of the input."""
        if part.failure:
            self.skip(part.failure)
        else:
            self.read()
        before = self._line
        for message in part.messages:
            self._take(message._replace(spot=message.spot._replace(line=message.spot.line + before)))
        self._line += part.lines
        self.lines += part.lines
        self.bytes += part.bytes
        self.troubles += [(self.files[-1], trouble) for trouble in part.troubles]

    # One input.

    def _begin(self) -> None:
        self._line = 0
        self._number = 0
        self._open: dict[Any, list[_Open]] = {}
        self._order: OrderedDict[int, _Open] = OrderedDict()
        #: What servers asked their clients, by ids of their own.
        self._asked: OrderedDict[Any, list[Spot]] = OrderedDict()
        #: Whether JSON-RPC calls were seen: then a model's messages only tell of them again.
        self._wired = self._modelled = False
        self._said: dict[bytes, int] = {}
        self._connections: OrderedDict[Origin, _Connection] = OrderedDict()
        self._sessions: dict[Any, Session] = {}
        self._used: OrderedDict[Any, None] = OrderedDict()

    def _end_input(self) -> None:
        """What is held back for an answer that did not come is true without it."""
        for call in self._order.values():
            self._tell_held(call)
        self._order.clear()

    def _take(self, message: Message) -> None:
        self._number += 1
        if isinstance(message, Call):
            self._call(message)
        elif isinstance(message, Answer):
            self._answer(message)
        elif isinstance(message, Withdrawal):
            self._withdrawal(message)
        elif isinstance(message, Change):
            self._change(message)
        else:
            self._word(message)

    def _connection(self, origin: Origin) -> _Connection:
        """The connection that a request belongs to."""
        found = self._connections.get(origin)
        if found is None:
            found = self._connections[origin] = self._connect(origin, 0)
            if len(self._connections) > MOST_CONNECTIONS:
                self._connections.popitem(last=False)
        self._connections.move_to_end(origin)
        return found

    def _connect(self, origin: Origin, renewed: int) -> _Connection:
        known = self._sessions.get((origin, renewed))
        if known is None:
            label = next(filter(None, (origin.session, origin.connection, origin.server, origin.stream)), None)
            if label is None:
                self._labels += 1
                label = f"s{self._labels}"
            else:
                label = self._judge.triage.show(label) + (f".{renewed + 1}" if renewed else "")
            known = self._sessions[origin, renewed] = Session(label, self.files[-1])
            self.sessions.append(known)
            known.contracts |= self._forced
        connection = _Connection(known, origin, told=self.asked_for is not None and known.label == self.asked_for)
        connection.renewed = renewed
        return connection

    def _renewed(self, connection: _Connection) -> _Connection:
        """The connection that begins where a client introduces itself once more, unless its session says that it goes on."""
        origin = connection.origin
        if origin.session is not None or not connection.session.lines[1]:
            return connection
        fresh = self._connections[origin] = self._connect(origin, connection.renewed + 1)
        fresh.spoken = connection.spoken
        # A client that introduces itself while another waits to be let in is another one.
        fresh.mixed = connection.mixed or any(each.connection is connection and each.call.method in _HANDSHAKES for each in self._order.values())
        return fresh

    # Messages.

    def _call(self, call: Call) -> None:
        if call.method in _OF_SERVERS:
            self._asked.setdefault(call.id, []).append(call.spot)
            if len(self._asked) > MOST_OPEN:
                self._asked.popitem(last=False)
            return
        if call.method == "ping" or not self._counts(call):
            return
        connection = self._connection(call.spot.origin)
        if call.method in _HANDSHAKES:
            connection = self._renewed(connection)
        # Ids are not used twice (MCP, Requests): a message that stands there again was logged again.
        mark = (id(connection.session), call.id, call.method, _signature(call), call.key)
        if not call.wired and self._is_known(mark):
            self._again(connection, call)
            return
        self._new_call(_Open(call, self._in_order(connection, call), self._number))

    def _again(self, connection: _Connection, call: Call) -> None:
        """A message that was met before. Where it is another one all the same, it excuses what it may, and its answer counts."""
        opened = _Open(call, connection, self._number)
        opened.echo = True
        self._note_step(connection, opened)
        if not any(each.connection is connection for each in self._open.get(call.id, ())):
            self._keep(opened)

    def _new_call(self, opened: _Open) -> None:
        """Hold a call against what was answered before it, and keep it until it is answered."""
        connection, call = opened.connection, opened.call
        connection.session.seen(call.spot)
        breaches: list[Breach] = []
        if call.method == "tools/call":
            connection.session.calls += 1
            self._learn(connection, call)
            if not connection.mixed:
                breaches += self._against_standing(opened)
                breaches += self._against_budgets(connection, call)
        if call.method not in _HANDSHAKES:
            self._after_refusal(opened)
        self._note_step(connection, opened)
        if connection.told and call.method not in _HANDSHAKES:
            self._tell(call.spot, "call", _shown(call, self._judge.triage.show), breaches=tuple(breaches))
        self._keep(opened)

    def _keep(self, opened: _Open) -> None:
        """Keep a call until it is answered."""
        self._open.setdefault(opened.call.id, []).append(opened)
        self._order[self._number] = opened
        if len(self._order) > MOST_OPEN:
            _, oldest = self._order.popitem(last=False)
            self._tell_held(oldest)
            self._forget(oldest)

    def _counts(self, call: Call) -> bool:
        """Whether a call counts: those of a model do where there are no others, which they would tell of again."""
        if call.id[0] == TOOL_USE:
            self._modelled |= not self._wired
            return not self._wired
        if not self._wired and call.method == "tools/call":
            self._wired = True
            if self._modelled:
                self._connections.clear()
        return True

    def _is_known(self, mark: Any) -> bool:
        """Whether this was met before, as far as it is remembered; it is from now on."""
        known = mark in self._used
        self._used[mark] = None
        self._used.move_to_end(mark)
        if len(self._used) > MOST_OPEN:
            self._used.popitem(last=False)
        return known

    def _in_order(self, connection: _Connection, call: Call) -> _Connection:
        """The connection of a call by its id: those of a client grow. Where they begin anew, so does the connection; where
        they are used again or fall otherwise, several connections are mixed.
        """
        kind, number = call.id
        if kind != "int" or connection.origin.session is not None:
            connection.mixed |= kind == "str" and connection.renewed > 0
            return connection
        if connection.last_id >= 0 and not (connection.constant and number == connection.last_id):
            connection.constant = False
            used = number in connection.ids
            if used and number <= 1 and not connection.renewed:
                connection = self._renewed(connection)
            elif used or number < connection.last_id - (0 if connection.renewed else _FALL):
                connection.mixed = True
        connection.last_id = number
        connection.ids[number] = None
        if len(connection.ids) > MOST_STANDING:
            connection.ids.popitem(last=False)
        if connection.mixed and self.files[-1] not in self.mixed:
            self.mixed.append(self.files[-1])
        return connection

    def _learn(self, connection: _Connection, call: Call) -> None:
        connection.session.contracts |= self._tools.get(call.tool or "", set())
        services = sum("tools" in self._entries[name].data for name in connection.session.contracts)
        connection.shared = services > 1 and not any(connection.origin)

    def _note_step(self, connection: _Connection, opened: _Open) -> None:
        """Note what a call may come to for those that were answered before it."""
        call = opened.call
        signature = _signature(call)
        connection.calls.note(signature, self._number)
        if self._may_change(call):
            connection.changes.note(signature, self._number)
            connection.tools.note(call.tool, self._number)
        if self._may_read(call):
            if len(connection.reads) == MOST_READS:
                connection.read_forgotten = max(connection.read_forgotten, connection.reads[0].number)
            opened.read = _Read(self._number, call)
            connection.reads.append(opened.read)

    def _may_change(self, call: Call) -> bool:
        return call.method == "tools/call" and call.tool not in self._reads

    def _may_read(self, call: Call) -> bool:
        if call.method == "tools/call":
            return call.tool in self._reads or (call.tool not in self._tools and call.key is None)
        return call.method.startswith("resources/")

    def _matching(self, answer: Answer) -> _Open | None:
        """The call that an answer is of; None where there is none, or where several could be meant."""
        if answer.id is NO_ID:
            candidates = list(islice((each for each in self._order.values() if each.may_be_meant and each.call.spot.origin.fits(answer.spot.origin)), 2))
            if len(candidates) != 1:
                return None
            # That a wait was ended may be told of once more, after an answer that says of which call.
            told = any(judgement.gave_up for judgement in answer.judged) and any(each.gave_up for each in self._order.values())
            return None if told else candidates[0]
        candidates = [each for each in self._open.get(answer.id, ()) if each.call.spot.origin.fits(answer.spot.origin)]
        exact = [each for each in candidates if each.call.spot.origin == answer.spot.origin]
        candidates = exact if len(candidates) > 1 and len(exact) == 1 else candidates
        if len(candidates) > 1:
            for each in candidates:  # which of them was answered nobody can tell
                self._forget(each)
        return candidates[0] if len(candidates) == 1 else None

    def _forget(self, opened: _Open) -> None:
        self._order.pop(opened.number, None)
        same = self._open.get(opened.call.id, [])
        if opened in same:
            same.remove(opened)
        if not same:
            self._open.pop(opened.call.id, None)

    def _answer(self, answer: Answer) -> None:
        if self._answers_server(answer):
            return
        opened = self._matching(answer)
        if opened is None:
            return
        connection, call = opened.connection, opened.call
        connection.session.seen(answer.spot)
        judged = answer.judged or tuple(self._judge.judge(payload._replace(tool=call.tool)) for payload in answer.payloads)
        judgement = next((each for each in judged if each.demands), judged[0] if judged else None)
        self._note_answer(connection, opened, answer, judged)
        if opened.gave_up is not None:
            self._forget(opened)
            self._note_late(opened, answer, judgement)
            return
        counted = opened.guessed or opened.echo
        if judgement is not None and judgement.gave_up:
            opened.gave_up = answer.spot
            self._tell_held(opened)
            connection.standing.pop(_signature(call), None)
        elif answer.id is not NO_ID:
            self._forget(opened)
        else:  # it was the only call that could be meant; its own answer may still come
            opened.guessed = True
        if not counted:
            connection.session.answers += 1
            connection.session.failures += judgement is not None and judgement.outcome in _FAILURES
        if connection.told and not opened.echo:
            self._tell(answer.spot, "answer", call.tool or call.method, judgement)
        self._settle(opened, answer, judgement)

    def _answers_server(self, answer: Answer) -> bool:
        """Whether an answer is the client's to what its server asked; where it may be either's, it is neither's."""
        asked = [spot for spot in self._asked.get(answer.id, ()) if spot.origin.fits(answer.spot.origin)]
        mine = [each for each in self._open.get(answer.id, ()) if each.call.spot.origin.fits(answer.spot.origin)]
        unclear = bool(mine) and answer.decided is None
        if not asked or (unclear and all(each.shape != "rpc-error" for each in answer.judged) and not _is_error(answer)):
            return False
        self._asked[answer.id].remove(asked[0])
        if unclear:
            for each in mine:
                self._forget(each)
        elif answer.decided == "accept":
            self._word(Word(answer.spot))
        return True

    def _note_answer(self, connection: _Connection, opened: _Open, answer: Answer, judged: tuple[Judgement, ...]) -> None:
        """Note what an answer says about its connection, and that its call took effect only now."""
        connection.session.contracts |= {each.contract for each in judged} | {*answer.contracts}
        if answer.server:
            connection.session.servers.add(answer.server)
            name = simple(answer.server).replace(" ", "")
            connection.session.contracts |= {contract for contract in self._entries if simple(contract) in name}
        call = opened.call
        signature = _signature(call)
        connection.calls.note(signature, self._number)
        if self._may_change(call):
            connection.changes.note(signature, self._number)
            connection.tools.note(call.tool, self._number)
        if self._connections.get(connection.origin) not in (connection, None):
            self._connections[connection.origin].mixed = True  # the one before it goes on beside it
        if opened.read is not None:
            opened.read.number = self._number
            # Where nothing is stored, that was read.
            opened.read.failed = any(each.outcome != "success" and each.action not in ("none", "decide") for each in judged)

    def _settle(self, opened: _Open, answer: Answer, judgement: Judgement | None) -> None:
        """Keep what is forbidden after an answer, or forget what was."""
        connection, call = opened.connection, opened.call
        signature = _signature(call)
        demands = self._demands(connection, judgement) if judgement is not None else {}
        refused = "AU105" in demands
        if refused:
            self._tell_held(opened)
        else:
            self._let_in(connection)
        if judgement is None or not demands:
            connection.standing.pop(signature, None)
            return
        standing = _Standing(opened, answer.spot, judgement, demands, self._number)
        connection.session.verdicts += not opened.echo
        if refused:
            connection.refused = standing
        if signature is not None:
            connection.standing[signature] = standing
            connection.standing.move_to_end(signature)
            if len(connection.standing) > MOST_STANDING:
                connection.standing.popitem(last=False)

    def _let_in(self, connection: _Connection) -> None:
        """Whoever is answered has access: nothing is held against the calls before it."""
        for each in connection.held:
            each.held.clear()
        connection.held.clear()
        connection.refused = None

    def _demands(self, connection: _Connection, judgement: Judgement) -> dict[str, Demand]:
        """What holds after a verdict, by rule: of the contracts that the connection is known to speak, the most specific."""
        found: dict[str, Demand] = {}
        for demand in judgement.demands:
            speaks = demand.contract in connection.session.contracts or self._entries[demand.contract].is_protocol
            if speaks and demand.rule in self._rules:
                found.setdefault(demand.rule, demand)
        return found

    def _note_late(self, opened: _Open, answer: Answer, judgement: Judgement | None) -> None:
        connection, call = opened.connection, opened.call
        connection.session.late += 1
        gave_up = opened.gave_up.line if opened.gave_up else 0
        outcome = judgement.outcome if judgement else "success"
        code = judgement.code if judgement else None
        late = Late(self.files[-1], connection.session.label, call.tool or call.method, call.spot.line, gave_up, answer.spot.line, outcome, code)
        self.late.append(late)
        if connection.told:
            self._tell(answer.spot, "late", call.tool or call.method, judgement)

    def _withdrawal(self, withdrawal: Withdrawal) -> None:
        candidates = [each for each in self._open.get(withdrawal.id, ()) if each.call.spot.origin.fits(withdrawal.spot.origin)]
        if len(candidates) != 1:
            return
        opened = candidates[0]
        opened.gave_up = withdrawal.spot
        opened.connection.session.seen(withdrawal.spot)
        if opened.connection.told:
            text = f"{opened.call.tool or opened.call.method} {withdrawal.reason}".strip()
            self._tell(withdrawal.spot, "withdrawn", text)

    def _change(self, change: Change) -> None:
        """Something changed without a call, or access was granted anew."""
        for connection in self._connections.values():
            if change.access:
                self._let_in(connection)
            elif connection.origin.fits(change.spot.origin):
                connection.calls.note(None, self._number)
                connection.changes.note(None, self._number)

    def _word(self, word: Word) -> None:
        """A person had a say in every connection that the word may be about. Their words stand again in later messages."""
        if word.digest:
            if word.number <= self._said.get(word.digest, 0):
                return
            self._said[word.digest] = word.number
        for connection in self._connections.values():
            if connection.origin.fits(word.spot.origin):
                connection.spoken = self._number
                if connection.told:
                    self._tell(word.spot, "word", "")

    def _tell(self, spot: Spot, side: str, text: str, judgement: Judgement | None = None, breaches: tuple[Breach, ...] = ()) -> None:
        self.story.append(Event(spot.line, spot.time, side, text, judgement, breaches))

    # Rules.

    def _against_standing(self, opened: _Open) -> Iterator[Breach]:
        """What a call breaks of what the last answer to the same call forbids."""
        connection, call = opened.connection, opened.call
        standing = connection.standing.get(_signature(call)) if _signature(call) is not None else None
        if standing is None or call.resumed or _is_before(call, standing):
            return
        told = False
        for rule, check in _CHECKS.items():
            demand = standing.demands.get(rule)
            if demand is None or (told and rule == "AU101"):
                continue
            facts = check(self, opened, standing)
            if facts is not None:
                told = True
                yield self._breach(opened, standing, demand, facts)

    def _breach(self, opened: _Open, standing: _Standing | None, demand: Demand, facts: Mapping[str, Any]) -> Breach:
        connection, call = opened.connection, opened.call
        verdict = None
        between = None
        known: dict[str, Any] = {"tool": call.tool or call.method, **facts}
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
            if not standing.broken:
                standing.broken = True
                connection.session.broken += not standing.call.echo
            gap = _gap(standing.spot.time, call.spot.time)
            if gap is not None:
                between = gap // 1000
                known["gap"] = delays.in_words(between)
            known["verdict"] = judgement.code or (f"HTTP {judgement.http_status}" if judgement.http_status else judgement.outcome)
        words = Words(known, self._judge.triage.show, lambda condition: self._conditions.hold(condition, known))
        contract = self._entries[demand.contract]
        entry = contract.conduct["rules"][demand.number]
        rule = self._known_rules[demand.rule]
        breach = Breach(
            demand.rule,
            rule["level"],
            self.files[-1],
            call.spot.line,
            call.spot.pointer,
            call.spot.time,
            connection.session.label,
            call.tool,
            demand.contract,
            words.say(rule["message"]) or rule["what"],
            demand.says,
            contract.data["sources"][entry["source"]],
            demand.instead,
            verdict,
            between,
        )
        if demand.rule != "AU105":
            self._found(connection, breach)
        return breach

    def _found(self, connection: _Connection, breach: Breach) -> None:
        self.breaches.append(breach)
        connection.session.breaches += 1

    def _spoken_since(self, connection: _Connection, standing: _Standing) -> bool:
        return connection.spoken > standing.number

    def _paused(self, opened: _Open, standing: _Standing, least: int = 0) -> bool:
        """Whether so much time passed that something may have happened which no log shows."""
        gap = _gap(standing.spot.time, opened.call.spot.time)
        return gap is not None and gap > max(self._pause, least)

    def _read_since(self, connection: _Connection, standing: _Standing) -> bool:
        """Whether the record of a call was read since its answer, or may have been."""
        if connection.read_forgotten > standing.number:
            return True
        call = standing.call.call
        reads = (read for read in connection.reads if read.number > standing.number and not read.failed and read.signature != _signature(call))
        kind = self._kinds.get(call.tool or "")
        return any(may_be_about(read.pairs, call.pairs) for read in reads if kind is None or self._kinds.get(read.tool or "") in (None, kind))

    def _same_call_again(self, opened: _Open, standing: _Standing) -> dict[str, Any] | None:
        """AU101: nothing lies in between that the verdict asked for, or that may be it."""
        connection, call = opened.connection, opened.call
        unless = self._entry(standing.demands["AU101"]).get("unless", ())
        signature = _signature(call)
        excuses: dict[str, Callable[[], bool]] = {
            "call": lambda: connection.calls.by_other(signature) > standing.number,
            "change": lambda: connection.changes.by_other(signature) > standing.number,
            "read": lambda: self._read_since(connection, standing),
            "new-key": lambda: call.key != standing.call.call.key,
        }
        if self._spoken_since(connection, standing) or self._paused(opened, standing) or any(excuses[each]() for each in unless):
            return None
        return {}

    def _too_soon(self, opened: _Open, standing: _Standing) -> dict[str, Any] | None:
        """AU102: certainly sooner than the delay, also if both times were cut to what is written of them."""
        delay = standing.judgement.delay_ms
        if delay is None:
            return None
        # An answer whose time nobody wrote down was there after its call.
        then, now = standing.spot.time or standing.call.call.spot.time, opened.call.spot.time
        gap = _gap(then, now)
        if gap is None or now is None or (standing.spot.time is None and gap + now.grain > delay * 1000):
            self._untimed("AU102")
            return None
        return {"delay": delays.in_words(delay)} if gap + now.grain <= delay * 1000 else None

    def _new_key_unread(self, opened: _Open, standing: _Standing) -> dict[str, Any] | None:
        """AU103: the same change under a new key, and nothing may have read its record since."""
        key, before = opened.call.key, standing.call.call.key
        if key is None or key == before or not self._may_change(opened.call):
            return None
        if self._read_since(opened.connection, standing) or self._spoken_since(opened.connection, standing):
            return None
        return {"key": key, **({"first_key": before} if before else {})}

    def _too_often(self, opened: _Open, standing: _Standing) -> dict[str, Any] | None:
        """AU104: one attempt more than the bound, or a pause that did not grow."""
        connection = opened.connection
        before = standing.call
        gap = _gap(standing.spot.time, opened.call.spot.time)
        least = 4 * before.pauses[-1] if before.pauses else 0
        if self._spoken_since(connection, standing) or self._paused(opened, standing, least):
            return None  # a person may have asked for it: the count begins anew
        opened.attempt = before.attempt + 1
        opened.pauses = (*before.pauses[:1], *before.pauses[1:][-1:], gap) if gap is not None else ()
        most = standing.judgement.most_attempts
        if most is not None and opened.attempt > most:
            return {"attempt": opened.attempt, "most": most}
        if not standing.judgement.growing:
            return None
        if gap is None:
            self._untimed("AU104")
            return None
        grain = max(each.time.grain for each in (standing.spot, opened.call.spot) if each.time is not None)
        if _not_growing(opened.pauses, grain):
            return {"pause": delays.in_words(gap // 1000), "last_pause": delays.in_words(opened.pauses[-2] // 1000)}
        return None

    def _other_key(self, opened: _Open, standing: _Standing) -> dict[str, Any] | None:
        """AU106: the call that a hint asked for, but not under the key of the first."""
        key, before = opened.call.key, standing.call.call.key
        connection = opened.connection
        if before is None or key == before or self._paused(opened, standing) or self._spoken_since(connection, standing):
            return None  # nothing says that it answers the hint
        if self._read_since(connection, standing) or connection.tools.by_other(opened.call.tool) > standing.number:
            return None
        return {"first_key": before, **({"key": key} if key is not None else {})}

    def _further_try(self, opened: _Open, standing: _Standing) -> dict[str, Any] | None:
        """AU108: the same call within the hour after an answer that says nothing, without a person's word in between."""
        if self._spoken_since(opened.connection, standing) or self._paused(opened, standing, _LONG):
            return None
        return {}

    def _after_refusal(self, opened: _Open) -> None:
        """AU105: a call on a connection whose credentials were refused; it is told when its answer does not show that they hold."""
        connection, call = opened.connection, opened.call
        standing = connection.refused
        if standing is None or connection.mixed or connection.shared or self._spoken_since(connection, standing) or _is_before(call, standing):
            return
        if call.credentials == MASKED or call.credentials != standing.call.call.credentials:
            return  # others, or whether others nobody can tell
        demand = standing.demands["AU105"]
        opened.held.append((self._breach_of_refusal(opened, standing, demand), standing))
        connection.held.append(opened)

    def _breach_of_refusal(self, opened: _Open, standing: _Standing, demand: Demand) -> Breach:
        broken, session = standing.broken, opened.connection.session
        breach = self._breach(opened, standing, demand, {})
        if not broken:  # it is not yet certain
            standing.broken = False
            session.broken -= 1
        return breach

    def _tell_held(self, opened: _Open) -> None:
        """What was held back for its answer is true."""
        for breach, standing in opened.held:
            connection = opened.connection
            if not standing.broken:
                standing.broken = True
                connection.session.broken += 1
            self._found(connection, breach)
            if connection.told:
                self._tell(opened.call.spot._replace(line=breach.line), "refused", opened.call.tool or opened.call.method, breaches=(breach,))
        opened.held.clear()

    def _against_budgets(self, connection: _Connection, call: Call) -> Iterator[Breach]:
        """AU107: more calls than a contract allows for a time, told once for each time that it happens."""
        for contract, number, entry in self._budgets:
            if entry["rule"] not in self._rules or contract.name not in connection.session.contracts or connection.shared:
                continue
            time = call.spot.time
            if time is None:
                if connection.session.calls > entry["most"]:
                    self._untimed(entry["rule"])
                continue
            if connection.times and time.at < connection.times[-1].at:
                connection.times.clear()
            connection.times.append(time)
            if len(connection.times) <= entry["most"]:
                continue
            first = connection.times.popleft()
            over = time.at - first.at + time.grain <= entry["within_ms"] * 1000
            if over and not connection.over:
                demand = Demand(entry["rule"], contract.name, number, entry["says"], entry["instead"])
                facts = {"calls": entry["most"] + 1, "within": delays.in_words((time.at - first.at) // 1000)}
                yield self._breach(_Open(call, connection, self._number), None, demand, facts)
            connection.over = over

    def _entry(self, demand: Demand) -> Mapping[str, Any]:
        entry: Mapping[str, Any] = self._entries[demand.contract].conduct["rules"][demand.number]
        return entry

    def _untimed(self, rule: str) -> None:
        self.untimed[rule] = self.untimed.get(rule, 0) + 1


#: The rules about the same call again, in the order in which they are asked: AU101 only where none before it speaks.
_CHECKS: Mapping[str, Callable[[Audit, _Open, _Standing], dict[str, Any] | None]] = {
    "AU102": Audit._too_soon,  # noqa: SLF001 - methods of this module's class
    "AU103": Audit._new_key_unread,  # noqa: SLF001
    "AU104": Audit._too_often,  # noqa: SLF001
    "AU106": Audit._other_key,  # noqa: SLF001
    "AU108": Audit._further_try,  # noqa: SLF001
    "AU101": Audit._same_call_again,  # noqa: SLF001
}


def _is_error(answer: Answer) -> bool:
    """Whether an answer that is not judged yet is an error of JSON-RPC."""
    return any(payload.shape == "rpc-error" for payload in answer.payloads)


def _shown(call: Call, show: Callable[[str], str]) -> str:
    """A call as the story tells it."""
    return f"{call.tool or call.method} {call.shown}".rstrip() + (f" under the key {show(call.key)}" if call.key is not None else "")


def _signature(call: Call) -> Any:
    """What is the same for the same call; None where it is not known what it is."""
    return (call.tool, call.digest) if call.tool is not None and call.digest else None


def _gap(then: Time | None, now: Time | None) -> int | None:
    """The time between two messages in microseconds, as it is written; None where the log does not say."""
    if then is None or now is None or then.zoned != now.zoned or now.at < then.at:
        return None
    return now.at - then.at


def _is_before(call: Call, standing: _Standing) -> bool:
    """Whether a call was made before the answer was there, whatever the order in which they were written down."""
    now, then = call.spot.time, standing.spot.time
    return now is not None and then is not None and now.zoned == then.zoned and now.at < then.at


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


#: How names of arguments end that name a record.
_NAMING = ("id", "ids", "uri", "url", "address", "path", "key", "ref", "name", "slug", "email", "number", "src", "dest", "prefix")


def may_be_about(read: tuple[tuple[str, str], ...], pairs: tuple[tuple[str, str], ...]) -> bool:
    """Whether a read may be one of the record that other arguments name.

    It is not where none of its values is one of theirs or leads to one, though both name something under the same name.
    """
    values = {value for _, value in pairs}
    if any(value in values or _leads(value, values) for _, value in read):
        return True
    return not any(name.endswith(_NAMING) for name in {name for name, _ in read} & {name for name, _ in pairs})


def _leads(value: str, values: set[str]) -> bool:
    """Whether a value is a folder of one of the others, or in one of them, or the last part of one, or ends with one."""
    return any(_is_part(value, other) or _is_part(other, value) for other in values if value and other)


def _is_part(part: str, whole: str) -> bool:
    return whole.startswith(part.rstrip("/") + "/") or whole.endswith(("/" + part, ":" + part))


class AuditReport(NamedTuple):
    """What an audit came to: the findings as every format shows them, and what only text and JSON show.

    ``breaches`` are what the findings say, in their order; those that a baseline excused are in neither.
    """

    lint: LintReport
    breaches: tuple[Breach, ...]
    sessions: tuple[Session, ...]
    late: tuple[Late, ...]
    #: For each rule that needs times: how often it was not applied because the log states none.
    untimed: Mapping[str, int]
    #: Inputs of which it is not known which of several connections a call belongs to.
    mixed: tuple[str, ...]
    lines: int
    bytes: int
    #: The session that was asked for, and its messages.
    session: str | None = None
    story: tuple[Event, ...] = ()


def located(breach: Breach) -> Located:
    """A breach as a finding at the line of the offending call."""
    related = None
    if breach.verdict is not None:
        related = (breach.verdict.line, f"the verdict: {breach.verdict.contract}, {breach.verdict.code or breach.verdict.outcome}")
    return Located(breach.rule, breach.level, breach.file, breach.line, None, None, None, breach.pointer, breach.message, related=related)


def file_reports(audit: Audit) -> list[FileReport]:
    """The findings input by input, in the order of their lines."""
    found: dict[str, list[Located]] = {name: [] for name in audit.files}
    for breach in sorted(audit.breaches, key=lambda each: each.line):
        found[breach.file].append(located(breach))
    calls = Counter(dict.fromkeys(found, 0))
    for session in audit.sessions:
        calls[session.file] += session.calls
    failures = dict(audit.skipped)
    troubles: dict[str, list[str]] = {}
    for name, trouble in audit.troubles:
        troubles.setdefault(name, []).append(trouble)
    reports = []
    for name, findings in found.items():
        failure = f"{where(name)} could not be read: {failures[name]}." if name in failures else None
        reports.append(FileReport(name, calls[name], tuple(findings), tuple(dict.fromkeys(troubles.get(name, ()))), failure))
    return reports
