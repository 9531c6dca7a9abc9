"""What a scan found, ready to be shown: groups in the order in which a person should see them.

What must not be done wrong comes first (an uncertain write is to be read before anything else), then what needs a
person, then what the caller has to change, then what heals by itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from errtriage.merge import Merge
from errtriage.model import Action, Outcome, Verdict
from errtriage.moments import written
from errtriage.tally import Group, Key

#: Into how many parts the time of all groups is divided.
BINS = 40
#: Outcomes from the worst to the best: what counts "at or above" another.
SEVERITY = (
    Outcome.UNCERTAIN, Outcome.PARTIAL, Outcome.FAILURE, Outcome.UNRECOGNISED, Outcome.CANCELLED, Outcome.NEEDS_INPUT, Outcome.PENDING, Outcome.SUCCESS,
)  # fmt: skip
#: Actions in the order in which they are to be looked at.
_URGENCY = (
    Action.READ_FIRST, Action.REAUTHORIZE, Action.REPORT, Action.CONFIRM, Action.DECIDE, Action.FIX_ARGUMENTS, Action.CHOOSE_OTHER_OPERATION,
    Action.FOLLOW_HINT, Action.RETRY, Action.WAIT, Action.NONE,
)  # fmt: skip
_FIRST = (Outcome.UNCERTAIN, Outcome.PARTIAL)


class GroupShown(NamedTuple):
    """One group, with times as ISO 8601 and operations from the most frequent to the least."""

    key: Key
    summary: str
    #: The first verdict of the group, for all that is known of it.
    verdict: Verdict
    total: int
    first_seen: str | None
    last_seen: str | None
    operations: Mapping[str, int]
    files: int
    ids: Sequence[str]
    places: Sequence[tuple[str, int]]
    histogram: Sequence[int]


class Survey(NamedTuple):
    """The report of a scan. ``hidden`` is how many groups ``--top`` left out."""

    files: int
    bytes: int
    lines: int
    payloads: int
    truncated: int
    by_outcome: Mapping[str, int]
    by_action: Mapping[str, int]
    groups: Sequence[GroupShown]
    skipped: Sequence[tuple[str, str]]
    first_seen: str | None
    last_seen: str | None
    hidden: int = 0
    #: Whether only some records were asked for, by their time or by what they are.
    narrowed: bool = False
    #: Where contracts are from that are not bundled, by their names.
    packs: Mapping[str, str] = {}

    def worst(self) -> Outcome | None:
        """The worst outcome that occurred, or None where nothing was found."""
        return next((outcome for outcome in SEVERITY if self.by_outcome.get(outcome)), None)


def order(key: Key, count: int) -> tuple[int, int, int, tuple[str, ...]]:
    """Where a group stands among the others."""
    first = _FIRST.index(Outcome(key.outcome)) if key.outcome in _FIRST else len(_FIRST)
    return first, _URGENCY.index(Action(key.action)), -count, tuple(part or "" for part in key)


def of_merge(merge: Merge, top: int | None = None) -> Survey:
    """The report of everything that was merged; of the groups only the first ``top``."""
    tally = merge.tally
    ordered = sorted(tally.groups.items(), key=lambda item: order(item[0], item[1].count))
    moments = [when for group in tally.groups.values() for when in (group.first, group.last) if when is not None]
    first, last = min(moments, default=None), max(moments, default=None)

    def shown(key: Key, group: Group) -> GroupShown:
        if group.example is None:
            raise AssertionError("a group is made of verdicts")
        example = group.example[1]
        bins = group.histogram(first.microseconds, last.microseconds, BINS) if first and last else []
        return GroupShown(
            key=key,
            summary=example.summary,
            verdict=example,
            total=group.count,
            first_seen=written(group.first),
            last_seen=written(group.last),
            operations=dict(sorted(group.operations.items(), key=lambda item: (-item[1], item[0]))),
            files=len(group.files),
            ids=[identifier for _, identifier in group.ids],
            places=[(merge.files[spot.file], spot.line) for spot in group.spots],
            histogram=bins,
        )

    return Survey(
        files=tally.files,
        bytes=tally.bytes,
        lines=tally.lines,
        payloads=tally.payloads,
        truncated=tally.truncated,
        by_outcome={outcome: count for outcome in SEVERITY if (count := sum(group.count for key, group in ordered if key.outcome == outcome))},
        by_action={action: count for action in _URGENCY if (count := sum(group.count for key, group in ordered if key.action == action))},
        groups=[shown(key, group) for key, group in ordered[:top]],
        skipped=tally.skipped,
        first_seen=written(first),
        last_seen=written(last),
        hidden=max(0, len(ordered) - top) if top is not None else 0,
    )
