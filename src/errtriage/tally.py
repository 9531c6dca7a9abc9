"""Counts of verdicts: what adds up, in any grouping of its parts, as long as they are merged in order.

Times are counted in buckets of a power of two seconds, wide enough that a group keeps a bounded number of them; how wide
follows from the times alone, so it is the same however they were grouped before.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from errtriage.model import Verdict

#: How many ids and places a group keeps, and how many buckets of time.
KEPT, _MOST_BUCKETS = 3, 4096
#: How many different operations a group counts by name.
_MOST_OPERATIONS = 1000
#: How many groups there are; codes beyond are counted together.
_MOST_GROUPS = 10_000
#: Under what the operations beyond are counted.
OTHERS = "(others)"


class Key(NamedTuple):
    """What verdicts are grouped by."""

    contract: str
    shape: str
    outcome: str
    code: str | None
    action: str


class Moment(NamedTuple):
    """A time of a record, in microseconds since 1970; ``zoned`` says whether it told its time zone."""

    microseconds: int
    zoned: bool = True


class Spot(NamedTuple):
    """Where something stands among everything that is read: which file, which line, and which on that line."""

    file: int
    line: int
    number: int

    def moved(self, file: int, first_line: int) -> Spot:
        """The same spot, in a part whose lines count from ``first_line`` of a file."""
        return Spot(file, self.line + first_line - 1, self.number)


class Group:
    """What is known of the verdicts with one key. What it keeps are the first ones by their spots, in whatever order they came."""

    __slots__ = ("_buckets", "_shift", "count", "example", "files", "first", "ids", "last", "operations", "spots")

    def __init__(self) -> None:
        self.count = 0
        self.first: Moment | None = None
        self.last: Moment | None = None
        self.operations: Counter[str] = Counter()
        #: The first places; the first different ids; the first verdict.
        self.spots: list[Spot] = []
        self.ids: list[tuple[Spot, str]] = []
        self.example: tuple[Spot, Verdict] | None = None
        self.files: set[int] = set()
        self._buckets: dict[int, int] = {}
        self._shift = 0

    def add(self, when: Moment | None, operation: str | None, spot: Spot) -> None:
        """Count one verdict."""
        self.files.add(spot.file)
        if len(self.spots) < KEPT or spot < self.spots[-1]:
            self.spots = sorted([*self.spots, spot])[:KEPT]
        self.again(when, operation)

    def again(self, when: Moment | None, operation: str | None) -> None:
        """Count a verdict that comes after those whose spots are kept, in a file that is counted."""
        self.count += 1
        if operation is not None:
            if operation in self.operations:
                self.operations[operation] += 1
            else:
                self._operations(operation, 1)
        if when is not None:
            if self.first is None or self.last is None:
                self.first = self.last = when
            elif when < self.first:
                self.first = when
            elif when > self.last:
                self.last = when
            bucket = when[0] // 1_000_000 >> self._shift
            buckets = self._buckets
            buckets[bucket] = buckets.get(bucket, 0) + 1
            if len(buckets) > _MOST_BUCKETS:
                self._widen(self._shift)

    def wants(self, *, identifier: bool) -> bool:
        """Whether something of a later verdict would be kept: its place, or its id, if it has one."""
        return len(self.spots) < KEPT or (identifier and len(self.ids) < KEPT)

    def add_id(self, spot: Spot, identifier: str) -> None:
        """Keep an id, if it is one of the first different ones."""
        earliest: dict[str, Spot] = {}
        for at, each in sorted([*self.ids, (spot, identifier)]):
            earliest.setdefault(each, at)
        self.ids = [(at, each) for each, at in earliest.items()][:KEPT]

    def _operations(self, name: str, count: int) -> None:
        known = name in self.operations or len(self.operations) < _MOST_OPERATIONS
        self.operations[name if known else OTHERS] += count

    def _span(self, first: Moment, last: Moment) -> None:
        self.first = first if self.first is None else min(self.first, first)
        self.last = last if self.last is None else max(self.last, last)

    def _widen(self, shift: int) -> None:
        while self._shift < shift or len(self._buckets) > _MOST_BUCKETS:
            wider: dict[int, int] = {}
            for bucket, count in self._buckets.items():
                wider[bucket >> 1] = wider.get(bucket >> 1, 0) + count
            self._buckets, self._shift = wider, self._shift + 1

    def merge(self, other: Group, file: int, first_line: int) -> None:
        """Add another part of the same group, whose lines count from ``first_line`` of a file."""
        self.count += other.count
        self.files.add(file)
        for name, count in other.operations.items():
            self._operations(name, count)
        self.spots = sorted([*self.spots, *(spot.moved(file, first_line) for spot in other.spots)])[:KEPT]
        for spot, identifier in other.ids:
            self.add_id(spot.moved(file, first_line), identifier)
        if other.example is not None:
            spot = other.example[0].moved(file, first_line)
            if self.example is None or spot < self.example[0]:
                self.example = (spot, other.example[1])
        if other.first is not None and other.last is not None:
            self._span(other.first, other.last)
        shift = max(self._shift, other._shift)
        self._widen(shift)
        for bucket, count in other._buckets.items():
            wide = bucket >> (shift - other._shift)
            self._buckets[wide] = self._buckets.get(wide, 0) + count
        self._widen(shift)

    def histogram(self, first: int, last: int, bins: int) -> list[int]:
        """The counts in ``bins`` equal parts of the time from ``first`` to ``last`` (both in microseconds)."""
        counts = [0] * bins
        width = max(1, last - first + 1)
        for bucket, count in self._buckets.items():
            at = max(first, (bucket << self._shift) * 1_000_000)
            counts[min(bins - 1, max(0, at - first) * bins // width)] += count
        return counts


class Tally:
    """Groups by their keys, and what was read."""

    def __init__(self) -> None:
        self.groups: dict[Key, Group] = {}
        self.files = self.bytes = self.lines = self.payloads = self.truncated = 0
        #: What could not be read, with the reason.
        self.skipped: list[tuple[str, str]] = []

    def group(self, key: Key) -> Group:
        """The group of a key, made when it is new."""
        group = self.groups.get(key)
        if group is None and len(self.groups) >= _MOST_GROUPS:
            key = key._replace(code=OTHERS)
            group = self.groups.get(key)
        if group is None:
            group = self.groups[key] = Group()
        return group

    def merge(self, other: Tally, file: int, first_line: int) -> None:
        """Add another part, whose lines count from ``first_line`` of a file."""
        self.bytes += other.bytes
        self.lines += other.lines
        self.payloads += other.payloads
        self.truncated += other.truncated
        for key, group in other.groups.items():
            self.group(key).merge(group, file, first_line)
