"""When a record says that it was written: in a field of its own, else at the start of its line."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from errtriage.delays import moment
from errtriage.model import Context, Failure, Payload
from errtriage.tally import Moment
from errtriage.wrappers import TIMES

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MONTHS = {name: i for i, name in enumerate(("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"), 1)}
# What a carrier puts before a line: a service, a pod.
_CARRIER = re.compile(r" {0,40}[\w.-]{1,100} {1,40}\| |\[[a-z]+/[^\]\s]{1,200}\] ")
_ISO = re.compile(r"(?:<\d{1,3}>\d? ?|[\[(<\"'])?(\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(?: ?(?:Z|UTC|[+-]\d\d:?\d\d))?)")
_SYSLOG = re.compile(r"(?:<\d{1,3}>)?([A-Z][a-z]{2}) {1,2}(\d{1,2}) (\d\d):(\d\d):(\d\d)")
_COMMON = re.compile(r"[^\[\n]{0,200}\[(\d\d)/([A-Z][a-z]{2})/(\d{4}):(\d\d):(\d\d):(\d\d) ([+-]\d{4})\]")


# The fraction of a second in a time, and whether it has seconds at all.
_FRACTION = re.compile(r":\d\d[.,](\d{1,9})")
_SECONDS = re.compile(r"\d\d:\d\d:\d\d")


class Time(NamedTuple):
    """When something was written, in microseconds since 1970, and how finely that was written, in microseconds."""

    at: int
    grain: int
    zoned: bool = True


def time_of(context: Context, value: Any, modified: float) -> Time | None:
    """When a message was written: what the nearest says counts, be it a record around it or the words before it."""
    if isinstance(value, Mapping) and (found := _time_in(value)):
        return found
    for record in reversed(context.around[context.before :]):
        if found := _time_in(record):
            return found
    if context.prefix and (when := of_line(context.prefix, modified)):
        return Time(when.microseconds, _grain(context.prefix), when.zoned)
    for record in reversed(context.around[: context.before]):
        if found := _time_in(record):
            return found
    when = of_value(context.received) if context.received is not None else None
    return Time(when.microseconds, _grain(context.received), when.zoned) if when else None


def _time_in(record: Mapping[str, Any]) -> Time | None:
    """The time that a record states in a member of its own."""
    for name in TIMES:
        given = record.get(name)
        if given is not None and not isinstance(given, dict | list | bool) and (when := of_value(given)):
            return Time(when.microseconds, _grain(given), when.zoned)
    return None


def _grain(written: Any) -> int:
    """How finely a time is written, in microseconds: what its last digit stands for."""
    text = str(written)
    if match := _FRACTION.search(text):
        return int(10 ** max(0, 6 - len(match[1])))
    if isinstance(written, int | float) or text.replace(".", "", 1).isdecimal():
        whole, _, fraction = text.partition(".")
        # Seconds since 1970 have ten or eleven digits, ms three more, and so on.
        return max(1, int(10 ** (6 - 3 * max(0, (len(whole) - 9) // 3) - len(fraction))))
    return 1_000_000 if _SECONDS.search(text) else 60_000_000 if ":" in text else 86_400_000_000


def of_payload(payload: Payload, modified: float) -> Moment | None:
    """When the record around a payload was written, as far as it says so.

    ``modified`` is when the file was written (seconds since 1970): a time without a year is the last one before that.
    """
    value = stated(payload)
    if value is not None and (found := of_value(value)):
        return found
    return of_line(payload.context.prefix, modified) if payload.context.prefix else None


def stated(payload: Payload) -> Any:
    """What a record states as its time: in a field of the record around the payload, else of what holds it itself."""
    context = payload.context
    if context.received is not None:
        return context.received
    for holder in (context.rpc, payload.value):
        if isinstance(holder, Mapping):
            for name in TIMES:
                if holder.get(name) is not None and not isinstance(holder[name], dict | list | bool):
                    return holder[name]
    return None


def of_value(value: Any) -> Moment | None:
    """The time in a field: ISO 8601, or a number of seconds to nanoseconds since 1970."""
    if isinstance(value, str):
        return _iso(value.strip())
    stamp = moment(value)
    return _moment(stamp) if stamp else None


def way_to(value: Any, received: Any) -> tuple[str, ...] | None:
    """The names that lead through objects to the member of a record that said when it was written."""
    if isinstance(value, dict):
        for name, member in value.items():
            if member is received:
                return (name,)
            if isinstance(member, dict) and (way := way_to(member, received)):
                return (name, *way)
    return None


def of_line(line: str, modified: float) -> Moment | None:
    """The time at the start of a line: ISO 8601, syslog's, or the common log format's."""
    if carrier := _CARRIER.match(line):
        line = line[carrier.end() :]
    if match := _ISO.match(line):
        return _iso(match[1])
    if match := _SYSLOG.match(line):
        return _without_year(match, modified)
    if match := _COMMON.match(line):
        day, month, year, hour, minute, second, zone = match.groups()
        if month in _MONTHS:
            return _iso(f"{year}-{_MONTHS[month]:02}-{day}T{hour}:{minute}:{second}{zone[:3]}:{zone[3:]}")
    return None


def _iso(text: str) -> Moment | None:
    try:
        stamp = datetime.fromisoformat(text)
    except ValueError:
        # Container logs write nine digits of a second, and Python's own logs a comma before them; numbers are another form.
        stamp_or_none = moment(text.replace(",", ".").replace("UTC", "Z").replace(" Z", "Z").replace(" +", "+").replace(" -", "-"))
        if stamp_or_none is None:
            return None
        return _moment(stamp_or_none, zoned=text[:5].isdecimal() or bool(re.search(r"(?:Z|UTC|[+-]\d\d:?\d\d)\Z", text[10:])))
    return _moment(stamp) if stamp.tzinfo else _moment(stamp.replace(tzinfo=UTC), zoned=False)


def _moment(stamp: datetime, *, zoned: bool = True) -> Moment | None:
    try:
        since = stamp - _EPOCH
        stamp.astimezone(UTC)  # what is before the first year in UTC cannot be written
    except OverflowError:
        return None
    return Moment((since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds, zoned)


def _without_year(match: re.Match[str], modified: float) -> Moment | None:
    month, day, hour, minute, second = match.groups()
    written = datetime.fromtimestamp(modified, UTC)
    for year in (written.year, written.year - 1):
        try:
            stamp = datetime(year, _MONTHS[month], int(day), int(hour), int(minute), int(second), tzinfo=UTC)
        except (KeyError, ValueError):
            continue
        if (stamp - written).total_seconds() < 86_400:
            return _moment(stamp, zoned=False)
    return None


def written(when: Moment | None) -> str | None:
    """A time as ISO 8601: in UTC, or without a zone where the record named none."""
    if when is None:
        return None
    stamp = datetime.fromtimestamp(when.microseconds // 1_000_000, UTC).replace(microsecond=when.microseconds % 1_000_000)
    text = stamp.isoformat(timespec="milliseconds" if when.microseconds % 1_000_000 else "seconds")
    return text.replace("+00:00", "Z" if when.zoned else "")


def written_time(time: Time | None) -> str | None:
    """A time as ISO 8601, as ``written`` writes it."""
    return None if time is None else written(Moment(time.at, time.zoned))


def asked_for(option: str, given: str | None) -> int | None:
    """The time that an option names, in microseconds since 1970: ISO 8601, or so long before now (30m, 6h, 2d).

    Raises Failure where it is neither. A time without a zone is in UTC.
    """
    if given is None:
        return None
    if match := re.fullmatch(r"(\d{1,6})([smhdw])", given.strip()):
        seconds = int(match[1]) * {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}[match[2]]
        return int((datetime.now(UTC).timestamp() - seconds) * 1_000_000)
    found = _iso(given.strip()) if not given.strip().isdecimal() else None
    if found is None:
        raise Failure(f"{option} {given!r} is no time.", "Write it as 2031-05-02T08:00, or as so long before now: 30m, 6h, 2d.")
    return found.microseconds
