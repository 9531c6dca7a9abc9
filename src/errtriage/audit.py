"""What the caller did after each verdict, against what the contracts forbid.

Messages come in their order; what is kept of them is what may still be answered or broken, so memory is bounded by open
calls and not by what was read. Here calls meet their answers; what is forbidden then is the business of ``conduct``.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any, NamedTuple

from errtriage.conduct import Breach, Conduct
from errtriage.connections import MOST_STANDING, Connection, Open, Session, Standing
from errtriage.inputs import is_url
from errtriage.judge import Judge, Settings
from errtriage.messages import NO_ID, Answer, Call, Change, Judgement, Message, Origin, Spot, Withdrawal, Word, simple
from errtriage.moments import Time
from errtriage.redact import clean
from errtriage.reports import FileReport, LintReport, Located
from errtriage.traffic import Part
from errtriage.wording import where
from errtriage.wrappers import TOOL_USE

#: How many calls of an input may be open, and how many connections of an input are followed at a time.
MOST_OPEN, MOST_CONNECTIONS = 10_000, 1_000
#: Requests that a server makes of its client, and those that are no use of what the server offers.
_OF_SERVERS = frozenset(("elicitation/create", "sampling/createMessage", "roots/list"))
_HANDSHAKES = frozenset(("initialize", "server/discover"))
#: Outcomes that are counted as failures.
_FAILURES = frozenset(("failure", "partial", "uncertain", "cancelled", "unrecognised"))
#: How far the ids of one client may fall from one logged request to the next.
_FALL = 3


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
    session: Session
    judgement: Judgement | None = None
    breaches: tuple[Breach, ...] = ()
    #: What is the same for the same call; None where that is not known.
    called: Any = None


class Audit:
    """Takes the messages of inputs in order, and keeps what was broken, what came late, and the sessions."""

    def __init__(self, settings: Settings, rules: frozenset[str], session: str | None = None) -> None:
        self._judge = Judge(settings)
        #: The contract that every answer is judged by, if one was given: every connection speaks it.
        self._forced: set[str] = {settings.contract} if settings.contract else set()
        self.asked_for = session
        self._general = {contract.name for contract in self._judge.contracts if contract.is_protocol}
        self._conduct = Conduct(self._judge.contracts, rules, self._judge.triage.show, redact=settings.redact)
        self.breaches: list[Breach] = []
        self.late: list[Late] = []
        self.sessions: list[Session] = []
        self.story: list[Event] = []
        #: Inputs in which connections could not be told apart.
        self.mixed: list[str] = []
        #: How many answers could be of several calls.
        self.unassigned = 0
        self.troubles: list[tuple[str, str]] = []
        self.skipped: list[tuple[str, str]] = []
        self.files: list[str] = []
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
        """An input in which there was nothing to read needs no note."""

    def skip(self, reason: str) -> None:
        """Note why the input, or the rest of it, could not be read."""
        self.skipped.append((self.files[-1], reason))

    def finish(self) -> None:
        """The last input is over."""
        self._end_input()

    @property
    def unapplied(self) -> Mapping[tuple[str, str], int]:
        """Rules that need what a log does not say, with what that is: how often they could not be applied."""
        return self._conduct.unapplied

    def add(self, part: Part) -> None:
        """Take the next part of the input."""
        if part.failure:
            self.skip(part.failure)
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
        self._open: dict[Any, list[Open]] = {}
        self._order: OrderedDict[int, Open] = OrderedDict()
        #: What servers asked their clients, by ids of their own.
        self._asked: OrderedDict[Any, list[Spot]] = OrderedDict()
        #: How many answers are still to come that could be of several calls, by their ids.
        self._unclear: OrderedDict[Any, int] = OrderedDict()
        #: Whether JSON-RPC calls were seen: then a model's messages only tell of them again.
        self._wired = self._modelled = False
        self._said: OrderedDict[bytes, int] = OrderedDict()
        self._connections: OrderedDict[Origin, Connection] = OrderedDict()
        self._sessions: dict[Any, Session] = {}
        self._used: OrderedDict[Any, None] = OrderedDict()

    def _end_input(self) -> None:
        """What is held back for an answer that did not come is true without it."""
        for connection in self._connections.values():
            for opened in connection.held:
                self._tell_held(opened)
        self._connections.clear()
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

    def _connection(self, origin: Origin) -> Connection:
        """The connection that a request belongs to."""
        found = self._connections.get(origin)
        if found is None:
            found = self._connections[origin] = self._connect(origin, 0)
            if len(self._connections) > MOST_CONNECTIONS:
                self._connections.popitem(last=False)
        self._connections.move_to_end(origin)
        return found

    def _connect(self, origin: Origin, renewed: int) -> Connection:
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
        connection = Connection(known, origin, told=self.asked_for is not None and known.label.startswith(self.asked_for))
        connection.renewed = renewed
        return connection

    def _renewed(self, connection: Connection) -> Connection:
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
        mark = (id(connection.session), call.id, call.method, call.signature, call.key)
        if not call.wired and self._is_known(mark):
            self._again(connection, call)
            return
        self._new_call(Open(call, self._in_order(connection, call), self._number))

    def _again(self, connection: Connection, call: Call) -> None:
        """A message that was met before. Where it is another one all the same, it excuses what it may, and its answer counts."""
        opened = Open(call, connection, self._number)
        opened.echo = True
        self._note_step(opened)
        if not any(each.connection is connection for each in self._open.get(call.id, ())):
            self._keep(opened)

    def _new_call(self, opened: Open) -> None:
        """Hold a call against what was answered before it, and keep it until it is answered."""
        connection, call = opened.connection, opened.call
        connection.session.seen(call.spot)
        breaches: list[Breach] = []
        if call.method == "tools/call":
            connection.session.calls += 1
            self._learn(connection, call)
            if not connection.mixed:
                breaches += self._conduct.against_standing(opened, self.files[-1])
                breaches += self._conduct.against_budgets(opened, self.files[-1])
        for breach in breaches:
            self._found(connection, breach)
        if call.method not in _HANDSHAKES and (held := self._conduct.after_refusal(opened, self.files[-1])):
            opened.held.append(held)
            connection.held.append(opened)
            if len(connection.held) > MOST_STANDING:
                self._tell_held(connection.held.popleft())
        self._note_step(opened)
        if connection.told and call.method not in _HANDSHAKES:
            text = _shown(call, self._conduct.arguments(call), self._judge.triage.show)
            self._tell(connection, Event(call.spot.line, call.spot.time, "call", text, connection.session, None, tuple(breaches), (call.signature, call.key)))
        self._keep(opened)

    def _keep(self, opened: Open) -> None:
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

    def _in_order(self, connection: Connection, call: Call) -> Connection:
        """The connection of a call by its id: those of a client grow. Where they begin anew, so does the connection; where
        they are used again or fall otherwise, several connections are mixed.
        """
        kind, number = call.id
        if kind != "int" or connection.origin.session is not None:
            connection.apart &= kind == "int" or not connection.renewed or connection.origin.session is not None
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
        if connection.mixed:
            self._mix(connection)
        return connection

    def _mix(self, connection: Connection) -> None:
        """Note that messages of several connections are mixed in what looks like one."""
        connection.mixed = True
        if self.files[-1] not in self.mixed:
            self.mixed.append(self.files[-1])

    def _learn(self, connection: Connection, call: Call) -> None:
        connection.session.contracts |= self._conduct.tools.get(call.tool or "", set())
        services = sum("tools" in contract.data for contract in self._judge.contracts if contract.name in connection.session.contracts)
        connection.apart &= services < 2 or any(connection.origin)

    def _note_step(self, opened: Open) -> None:
        """Note what a call may come to for those that were answered before it."""
        opened.connection.note(opened, self._number, changes=self._conduct.may_change(opened.call))
        if self._conduct.may_read(opened.call):
            opened.connection.note_read(opened, self._number)

    def _matching(self, answer: Answer) -> Open | None:
        """The call that an answer is of; None where there is none, or where several could be meant."""
        if answer.id is NO_ID:
            candidates = list(islice((each for each in self._order.values() if each.may_be_meant and each.call.spot.origin.fits(answer.spot.origin)), 2))
            if len(candidates) == 2 and candidates[0].connection is candidates[1].connection and _is_refusal(answer):
                return candidates[0]  # whichever was meant, the connection was
            if len(candidates) != 1:
                self.unassigned += len(candidates) > 1
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
                self._mix(each.connection)
            self._unclear[answer.id] = len(candidates)
            if len(self._unclear) > MOST_OPEN:
                self._unclear.popitem(last=False)
        if not candidates and self._unclear.get(answer.id):
            self._unclear[answer.id] -= 1
        if len(candidates) > 1 or (not candidates and answer.id in self._unclear):
            self.unassigned += 1
        return candidates[0] if len(candidates) == 1 else None

    def _forget(self, opened: Open) -> None:
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
            connection.standing.pop(call.signature, None)
        elif answer.id is not NO_ID:
            self._forget(opened)
        else:  # it was the only call that could be meant; its own answer may still come
            opened.guessed = True
        if not counted:
            connection.session.answers += 1
            connection.session.failures += judgement is not None and judgement.outcome in _FAILURES
        if connection.told and not opened.echo and call.method not in _HANDSHAKES:
            self._tell(connection, Event(answer.spot.line, answer.spot.time, "answer", call.named, connection.session, self._advised(connection, judgement)))
        self._settle(opened, answer, judgement)

    def _answers_server(self, answer: Answer) -> bool:
        """Whether an answer is the client's to what its server asked; where it may be either's, it is neither's."""
        asked = [spot for spot in self._asked.get(answer.id, ()) if spot.origin.fits(answer.spot.origin)]
        mine = [each for each in self._open.get(answer.id, ()) if each.call.spot.origin.fits(answer.spot.origin)]
        unclear = bool(mine) and answer.decided is None
        if not asked or (unclear and not answer.is_error):
            return False
        self._asked[answer.id].remove(asked[0])
        if unclear:
            for each in mine:
                self._forget(each)
        elif answer.decided == "accept":
            self._word(Word(answer.spot))
        return True

    def _note_answer(self, connection: Connection, opened: Open, answer: Answer, judged: tuple[Judgement, ...]) -> None:
        """Note what an answer says about its connection, and that its call took effect only now."""
        connection.session.contracts |= {each.contract for each in judged} | {*answer.contracts}
        if answer.server:
            connection.session.servers.add(answer.server)
            name = simple(answer.server).replace(" ", "")
            connection.session.contracts |= {contract for contract in self._judge.contracts.names() if simple(contract) in name}
        connection.note(opened, self._number, changes=self._conduct.may_change(opened.call))
        if self._connections.get(connection.origin) not in (connection, None):
            self._mix(self._connections[connection.origin])  # the one before it goes on beside it
        if opened.read is not None:
            opened.read.number = self._number
            # Where nothing is stored, that was read.
            opened.read.failed = any(each.outcome != "success" and each.action not in ("none", "decide") for each in judged)

    def _settle(self, opened: Open, answer: Answer, judgement: Judgement | None) -> None:
        """Keep what is forbidden after an answer, or forget what was."""
        connection = opened.connection
        demands = self._conduct.demands(connection, judgement) if judgement is not None else {}
        refused = "AU105" in demands
        if refused:
            self._tell_held(opened)
        elif judgement is None or (judgement.shape != "rpc-error" and (judgement.http_status or 200) < 400):
            connection.let_in()  # the service itself has answered
        before = connection.standing.get(opened.call.signature)
        if judgement is None or not demands:
            # What the transport said of a call holds on where its SDK only tells of it in words of its own.
            if not (opened.guessed and judgement is not None and judgement.shape == "rpc-error"):
                connection.standing.pop(opened.call.signature, None)
            return
        if opened.echo and before is not None and before.judgement.code == judgement.code:
            return  # an answer that was logged twice
        standing = Standing(opened, answer.spot, judgement, demands, self._number)
        connection.session.verdicts += not opened.echo and not connection.mixed and not (demands.keys() == {"AU105"} and not connection.apart)
        if refused:
            connection.refused = standing
        connection.stand(standing)

    def _note_late(self, opened: Open, answer: Answer, judgement: Judgement | None) -> None:
        connection, call = opened.connection, opened.call
        connection.session.late += 1
        gave_up = opened.gave_up.line if opened.gave_up else 0
        outcome = judgement.outcome if judgement else "success"
        code = judgement.code if judgement else None
        late = Late(self.files[-1], connection.session.label, call.named, call.spot.line, gave_up, answer.spot.line, outcome, code)
        self.late.append(late)
        self._tell(connection, Event(answer.spot.line, answer.spot.time, "late", call.named, connection.session, judgement))

    def _withdrawal(self, withdrawal: Withdrawal) -> None:
        candidates = [each for each in self._open.get(withdrawal.id, ()) if each.call.spot.origin.fits(withdrawal.spot.origin)]
        if len(candidates) != 1:
            return
        opened = candidates[0]
        opened.gave_up = withdrawal.spot
        opened.connection.session.seen(withdrawal.spot)
        text = f"{opened.call.named} {withdrawal.reason}".strip()
        self._tell(opened.connection, Event(withdrawal.spot.line, withdrawal.spot.time, "withdrawn", text, opened.connection.session))

    def _change(self, change: Change) -> None:
        """Something changed without a call, or access was granted anew."""
        for connection in self._connections.values():
            if change.access:
                connection.let_in()
            elif connection.origin.fits(change.spot.origin):
                connection.calls.note(None, self._number)
                connection.changes.note(None, self._number)

    def _word(self, word: Word) -> None:
        """A person had a say in every connection that the word may be about. Their words stand again in later messages."""
        if word.digest:
            if word.number <= self._said.get(word.digest, 0):
                return
            self._said[word.digest] = word.number
            if len(self._said) > MOST_OPEN:
                self._said.popitem(last=False)
        for connection in self._connections.values():
            if connection.origin.fits(word.spot.origin):
                connection.spoken = self._number
                self._tell(connection, Event(word.spot.line, word.spot.time, "word", "", connection.session))

    def _found(self, connection: Connection, breach: Breach) -> None:
        self.breaches.append(breach)
        connection.session.breaches += 1

    def _tell_held(self, opened: Open) -> None:
        """What was held back for its answer is true."""
        for breach, standing in opened.held:
            connection = opened.connection
            standing.break_it()
            self._found(connection, breach)
            self._tell(connection, Event(breach.line, breach.time, "refused", opened.call.named, connection.session, None, (breach,)))
        opened.held.clear()

    def _tell(self, connection: Connection, event: Event) -> None:
        if connection.told:
            self.story.append(event)

    def _advised(self, connection: Connection, judgement: Judgement | None) -> Judgement | None:
        """A judgement with the advice of the service that is known to answer, where a general contract recognised the answer."""
        if judgement is None or judgement.contract in connection.session.contracts - self._general:
            return judgement
        own = next((each for each in self._conduct.demands(connection, judgement).values() if each.contract not in {judgement.contract, *self._general}), None)
        return judgement._replace(summary=own.instead[:1].upper() + own.instead[1:]) if own else judgement


def _is_refusal(answer: Answer) -> bool:
    """Whether an answer is about its connection, and not about one call."""
    return any(demand.rule == "AU105" for judgement in answer.judged for demand in judgement.demands)


def _shown(call: Call, arguments: str, show: Callable[[str], str]) -> str:
    """A call as the story tells it."""
    return f"{call.named} {arguments if arguments != '{}' else ''}".rstrip() + (f" under the key {show(call.key)}" if call.key is not None else "")


class AuditReport(NamedTuple):
    """What an audit came to: the findings as every format shows them, and what only text and JSON show.

    ``breaches`` are what the findings say, in their order; those that a baseline excused are in neither.
    """

    lint: LintReport
    breaches: tuple[Breach, ...]
    sessions: tuple[Session, ...]
    late: tuple[Late, ...]
    #: Rules that need what a log does not say, with what that is: how often they were not applied.
    unapplied: Mapping[tuple[str, str], int]
    #: Inputs of which it is not known which of several connections a call belongs to.
    mixed: tuple[str, ...]
    #: How many answers could be of several calls.
    unassigned: int
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
    return Located(
        breach.rule, breach.level, breach.file, breach.line, None, None, None, breach.pointer, breach.message, related=related, identity=breach.identity
    )


def file_reports(audit: Audit) -> tuple[list[FileReport], dict[int, Breach]]:
    """The findings input by input, in the order of their lines; and the breaches that they are, by the identity of each."""
    found: dict[str, list[Located]] = {name: [] for name in audit.files}
    breaches: dict[int, Breach] = {}
    for breach in sorted(audit.breaches, key=lambda each: each.line):
        finding = located(breach)
        found[breach.file].append(finding)
        breaches[id(finding)] = breach
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
    return reports, breaches
