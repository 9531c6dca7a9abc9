"""Takes logs out of what carries them: containers' logs, the journal, service prefixes, quotes, curl -v, event streams.

A carrier breaks a text into lines of its own and may interleave several texts. Each text comes out whole again, and
each of its lines knows the line of the file that it started on. Imported when a text shows the mark of a carrier.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby
from typing import Any, NamedTuple

import orjson

#: A text may have a carrier only where this matches; most texts have none.
MARK = re.compile(
    r'^\{"log":|"MESSAGE"|^\d{4}-\d\d-\d\dT\S+ std(?:out|err) [PF]\b|^ *[\w.-]+ +\|(?: |$)|^\[[a-z]+/[^\]\n]+\](?: |$)|^\s*>|^< HTTP/',
    re.MULTILINE,
)
#: A text may hold an event stream only where this matches.
EVENT_MARK = re.compile(r"^data:.*[{\[]", re.MULTILINE)

_CRI = re.compile(r"(\d{4}-\d\d-\d\dT\S+) (stdout|stderr) ([PF])(?: (.*))?$", re.DOTALL)
_PREFIXES = {
    "compose": re.compile(r" *([\w.-]+) +\|(?: (.*))?$", re.DOTALL),
    "kubectl": re.compile(r"(\[[a-z]+/[^\]]+\])(?: (.*))?$", re.DOTALL),
    "quote": re.compile(r"\s*((?:>\s?)+)(.*)$", re.DOTALL),
}
_CURL = re.compile(r"(?:[<>](?: (?P<text>.*))?|\*(?: .*)?|[{}] \[\d+ bytes data\])\r?$", re.DOTALL)
_FIELD = re.compile(r"(data|event|id|retry|)(?::(?: ?(.*))?)?$", re.DOTALL)
_BLANK = " \t\r\0"
_RECORD = ("log-record", "json-string")


class Text(NamedTuple):
    """A text that was carried; ``lines`` holds, for each of its lines, the number of the file's line it started on."""

    text: str
    lines: list[int]
    wrappers: tuple[str, ...] = ()
    written: list[Any] | None = None
    #: Where it stands in the file's text as it is; -1 where it was put together anew.
    offset: int = -1
    #: What a service, a pod or a process is called whose text it is.
    name: str = ""

    def place(self, line: int) -> int:
        """The line of the file for a line of this text (both 1-based)."""
        return self.lines[min(line, len(self.lines)) - 1]

    def time(self, line: int) -> Any:
        """When the carrier says that a line of this text was written."""
        return self.written[min(line, len(self.written)) - 1] if self.written else None


class _Line(NamedTuple):
    """One line as its carrier reads it: which text it belongs to, what it adds to that, and when it was written."""

    kind: str
    text: str
    adds: str
    written: Any = None


def split(text: str, first_line: int) -> Iterator[list[Text]]:
    """Yield the texts of a text in order, those that one carrier interleaves together."""
    raw = text.split("\n")
    if "< HTTP/" in text and any(line.startswith("< HTTP/") for line in raw):
        yield [_without_curl_marks(raw, first_line)]
        return
    lines = [line_of(line) for line in raw]
    kinds = _kinds(raw, lines)
    position = offset = 0
    for kind, group in groupby(kinds):
        start, position = position, position + len(list(group))
        if kind:
            yield _carried(kind, lines, range(start, position), first_line)
        else:
            yield [Text("\n".join(raw[start:position]), list(range(first_line + start, first_line + position)), offset=offset)]
        offset += sum(len(line) + 1 for line in raw[start:position])


def _kinds(raw: list[str], lines: list[_Line | None]) -> list[str]:
    """The carrier of each line, empty for none. A line that only looks like a prefix carrier's has none beside it."""
    kinds: list[str] = []
    for line, each in zip(raw, lines, strict=True):
        blank = not line.strip(_BLANK)
        kinds.append(each.kind if each else kinds[-1] if blank and kinds else "")
    position = 0
    for kind, group in groupby(list(kinds)):
        start, position = position, position + len(list(group))
        if kind in _PREFIXES and sum(lines[i] is not None for i in range(start, position)) < 2:
            kinds[start:position] = [""] * (position - start)
    return kinds


def line_of(line: str) -> _Line | None:
    """A line as its carrier reads it, or None where it has none."""
    line = line.strip("\r\0")
    if line.startswith("{"):
        return _record(line) if '"log"' in line or '"MESSAGE"' in line else None
    if match := _CRI.match(line):
        return _Line("cri", match[2], (match[4] or "") + ("\n" if match[3] == "F" else ""), match[1])
    for kind, pattern in _PREFIXES.items():
        if match := pattern.match(line):
            return _Line(kind, match[1].strip() if kind != "quote" else "", (match[2] or "") + "\n")
    return None


def named(line: str) -> str:
    """What the service or the pod is called that a line begins with; empty where it names none."""
    match = _PREFIXES["compose"].match(line) or _PREFIXES["kubectl"].match(line)
    return match[1].strip() if match else ""


def _record(line: str) -> _Line | None:
    """A record of Docker's json-file or of the journal's JSON export."""
    try:
        record = orjson.loads(line)
    except ValueError:
        return None
    if isinstance(record.get("log"), str) and "stream" in record:
        return _Line("docker", str(record["stream"]), record["log"], record.get("time"))
    if "MESSAGE" in record and any(name.startswith("_") for name in record):
        source = record.get("_PID", record.get("SYSLOG_IDENTIFIER"))
        return _Line("journal", str(source), message(record["MESSAGE"]) + "\n", record.get("__REALTIME_TIMESTAMP"))
    return None


def message(value: Any) -> str:
    """The journal's MESSAGE as text: a string, an array of bytes where it is not printable, null where it is too long."""
    if isinstance(value, list) and all(type(byte) is int and 0 <= byte < 256 for byte in value):
        return bytes(value).decode("utf-8", "replace")
    return value if isinstance(value, str) else ""


def _carried(kind: str, lines: list[_Line | None], numbers: range, first_line: int) -> list[Text]:
    """The texts that one carrier interleaves, each joined again."""
    parts: dict[str, list[str]] = {}
    places: dict[str, list[int]] = {}
    times: dict[str, list[Any]] = {}
    for i in numbers:
        line = lines[i]
        if line is None:
            continue
        text = parts.setdefault(line.text, [])
        # A line of the text begins where the one before has ended; pieces of one line are joined.
        begun = line.adds.removesuffix("\n").count("\n") + (not text or text[-1].endswith("\n"))
        places.setdefault(line.text, []).extend([first_line + i] * begun)
        times.setdefault(line.text, []).extend([line.written] * begun)
        if line.adds:
            text.append(line.adds)
    wrappers = _RECORD if kind in ("docker", "journal") else ()
    # Standard output and standard error are two texts of one program.
    named = kind in ("compose", "kubectl", "journal")
    return [Text("".join(text), places[name], wrappers, times[name], name=name if named else "") for name, text in parts.items() if text]


def _without_curl_marks(raw: list[str], first_line: int) -> Text:
    """What ``curl -v`` shows of an exchange, without its marks and its own remarks."""
    kept = []
    numbers = []
    for number, line in enumerate(raw, first_line):
        match = _CURL.match(line)
        if match and match["text"] is None and not line.startswith(("<", ">")):
            continue
        kept.append((match["text"] or "") if match else line)
        numbers.append(number)
    return Text("\n".join(kept), numbers or [first_line])


def events(text: str, first_line: int) -> Iterator[Text]:
    """Yield the events of a server-sent event stream (WHATWG HTML, 9.2), and what stands around them."""
    raw = text.split("\n")
    fields = [_FIELD.match(line.rstrip("\r")) for line in raw]
    after = 0
    for streamed, group in groupby(range(len(raw)), key=lambda i: fields[i] is not None):
        numbers = list(group)
        offset, after = after, after + sum(len(raw[i]) + 1 for i in numbers)
        if not streamed or not any(raw[i].startswith("data:") for i in numbers):
            yield Text("\n".join(raw[i] for i in numbers), [first_line + i for i in numbers], offset=offset)
            continue
        for blank, event in groupby(numbers, key=lambda i: not raw[i].strip("\r")):
            own = list(event)
            data = [match[2] or "" for i in own if (match := fields[i]) and match[1] == "data"]
            if not blank and data:
                yield Text("\n".join(data), [first_line + own[0]] * len(data), ("sse",))
