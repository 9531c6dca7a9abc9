"""What is remembered of a client's traffic: sessions, connections, calls that may be answered, answers that forbid something.

All of it is bounded: what is forgotten is what was longest not touched, and forgetting only makes audit say less.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Mapping
from typing import Any

from errtriage.messages import Call, Demand, Judgement, Origin, Spot
from errtriage.moments import Time

#: How many answers of a connection are remembered that forbid something, and how many of its reads.
MOST_STANDING, MOST_READS = 1_000, 256


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


class Standing:
    """An answer after which something is forbidden, as long as it is the last answer to that call."""

    def __init__(self, call: Open, spot: Spot, judgement: Judgement, demands: Mapping[str, Demand], number: int) -> None:
        self.call = call
        self.spot = spot
        self.judgement = judgement
        self.demands = demands
        #: When it came, among the messages.
        self.number = number
        self._broken = False

    def break_it(self) -> None:
        """Count it as one that was not kept to, once."""
        if not self._broken:
            self._broken = True
            self.call.connection.session.broken += not self.call.echo


class Open:
    """A call, as long as it may be answered."""

    def __init__(self, call: Call, connection: Connection, number: int) -> None:
        self.call = call
        self.connection = connection
        self.number = number
        #: How many times it was tried, and the pauses before each try, in microseconds.
        self.attempt = 1
        self.pauses: tuple[int, ...] = ()
        self.gave_up: Spot | None = None
        #: What it may read.
        self.read: Read | None = None
        #: Whether an answer that named no call was taken for its, and whether the call may be one that was logged again.
        self.guessed = False
        self.echo = False
        #: Breaches that only the answer proves.
        self.held: list[tuple[Any, Standing]] = []

    @property
    def may_be_meant(self) -> bool:
        """Whether an answer that names no call may be of this one."""
        return self.gave_up is None and not self.guessed and not self.echo


class Read:
    """A call that may have read something: when, what, and whether that went wrong."""

    def __init__(self, number: int, call: Call) -> None:
        self.number = number
        self.tool = call.tool
        self.pairs = call.pairs
        self.signature = call.signature
        self.failed = False


class Latest:
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


class Connection:
    """What is known of one connection."""

    def __init__(self, session: Session, origin: Origin, *, told: bool) -> None:
        self.session = session
        self.origin = origin
        self.told = told
        self.standing: OrderedDict[Any, Standing] = OrderedDict()
        self.reads: deque[Read] = deque(maxlen=MOST_READS)
        self.read_forgotten = -1
        self.calls = Latest()
        self.changes = Latest()
        self.spoken = -1
        #: The last changes, by the tools that made them.
        self.tools = Latest()
        self.refused: Standing | None = None
        #: Calls with breaches that only their answers prove.
        self.held: deque[Open] = deque()
        #: By budget: the times of the last calls, and whether there were too many.
        self.times: dict[Any, deque[Time]] = {}
        self.over: set[Any] = set()
        #: The last id, whether every one was the same, and those that were used, as far as they are remembered.
        self.last_id = -1
        self.constant = True
        self.ids: OrderedDict[int, None] = OrderedDict()
        #: Whether messages of several connections may be mixed in it.
        self.mixed = False
        #: Whether it is certain that all in it is of one connection.
        self.apart = True
        self.renewed = 0

    def note(self, opened: Open, number: int, *, changes: bool) -> None:
        """Note what a call may come to for those that were answered before it."""
        signature = opened.call.signature
        self.calls.note(signature, number)
        if changes:
            self.changes.note(signature, number)
            self.tools.note(opened.call.tool, number)

    def note_read(self, opened: Open, number: int) -> None:
        """Note that a call may read something."""
        if len(self.reads) == MOST_READS:
            self.read_forgotten = max(self.read_forgotten, self.reads[0].number)
        opened.read = Read(number, opened.call)
        self.reads.append(opened.read)

    def stand(self, standing: Standing) -> None:
        """Keep an answer that forbids something, in the place of the last to the same call."""
        signature = standing.call.call.signature
        if signature is not None:
            self.standing[signature] = standing
            self.standing.move_to_end(signature)
            if len(self.standing) > MOST_STANDING:
                self.standing.popitem(last=False)

    def let_in(self) -> None:
        """Whoever is answered has access: nothing is held against the calls before it."""
        for each in self.held:
            each.held.clear()
        self.held.clear()
        self.refused = None

    def spoken_since(self, standing: Standing) -> bool:
        """Whether a person had a say since an answer."""
        return self.spoken > standing.number


def gap_between(then: Time | None, now: Time | None) -> int | None:
    """The time between two messages in microseconds, as it is written; None where the log does not say."""
    if then is None or now is None or then.zoned != now.zoned or now.at < then.at:
        return None
    return now.at - then.at


def is_before(call: Call, standing: Standing) -> bool:
    """Whether a call was made before the answer was there, whatever the order in which they were written down."""
    now, then = call.spot.time, standing.spot.time
    return now is not None and then is not None and now.zoned == then.zoned and now.at < then.at


#: How names of arguments end that name a record.
_NAMING = ("id", "ids", "uri", "url", "address", "path", "key", "ref", "name", "slug", "email", "number", "src", "dest", "prefix")


def may_be_about(read: tuple[tuple[str, str], ...], pairs: tuple[tuple[str, str], ...], records: frozenset[str] = frozenset()) -> bool:
    """Whether a read may be one of the record that other arguments name.

    It is not where none of its values is one of theirs or leads to one, though both name something under the same name: one
    that ends as names of ids and addresses do, or that a pack names (``records``).
    """
    values = {value for _, value in pairs}
    if any(value in values or _leads(value, values) for _, value in read):
        return True
    shared = {name for name, _ in read} & {name for name, _ in pairs}
    return not (shared & records or any(name.endswith(_NAMING) for name in shared))


def _leads(value: str, values: set[str]) -> bool:
    """Whether a value is a folder of one of the others, or in one of them, or the last part of one, or ends with one."""
    return any(_is_part(value, other) or _is_part(other, value) for other in values if value and other)


def _is_part(part: str, whole: str) -> bool:
    return whole.startswith(part.rstrip("/") + "/") or whole.endswith(("/" + part, ":" + part))
