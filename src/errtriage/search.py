"""Finds JSON and literals inside any text, in time linear in its length.

Literals (Python's repr, Node's util.inspect, cut JSON) are looked for only near a word that marks a failure; see
``literals``. Imported when an input is not one JSON document, so that the plain case does not pay for its patterns.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import orjson

from errtriage import literals
from errtriage.cuts import is_cut
from errtriage.jsontext import LONG_DIGITS, TooDeep, paired, read

# Where a JSON text may start: an object with a first name or an array that can hold a payload; an object whose quotes
# are escaped; a line that is one JSON string.
_JSON = r'(?P<open>\{(?=\s*+")|\[(?=\s*+[\[{"\']))|(?P<escaped>\{(?=\s*+\\+"))|^[ \t]*+(?P<line>")'
# Where a literal may start: an object with a bare or otherwise quoted name, a constructor with named arguments, and a
# tool result as pydantic prints it.
_LITERAL = r"|(?P<literal>\{(?=\s*+(?:['“‘]|[A-Za-z_$][\w$]*+\s*+:))|\b[A-Z]\w*+\((?=\w++=))|(?<![\w.])(?P<names>(?:meta|_meta|content)=(?=None|\[|\{))"
# A bracket at the end of its line, whose value goes on behind the prefix of the next.
_HANGING = r"|(?P<hanging>[{\[](?=[ \t]*+\r?\n[^\s]))"
_START = re.compile(_JSON + _HANGING, re.MULTILINE)
_ANY_START = re.compile(_JSON + _LITERAL + _HANGING, re.MULTILINE)
_DIGIT = re.compile(r"\d")
#: How long a prefix may be, in characters, and how many lines a value behind prefixes may have.
_LONGEST_PREFIX, _MOST_LINES = 200, 5000
#: What marks a wrapper or an error of MCP. Without one of these or of the packs' own words nearby, no literal and no cut
#: text is worth reading.
WORDS = ("isError", "is_error", "structuredContent", "structured_content", "jsonrpc", "resultType", "result_type", "correlationId", "retryable")
#: How far behind the start of a literal such a word may stand, in characters.
_NEAR = 256 << 10
#: A record in a log that is longer than this, in characters, is not read (a document that is the whole input is).
MAX_RECORD = 64 << 20
#: How many characters before an escaped object its opening quote is looked for.
_LOOK_BACK = 4096
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]++|\\.)*+"')
_TOKEN = re.compile(
    r'[ \t\r\n]*+(?:(?P<open>[{\[])|(?P<close>[}\]])|(?P<colon>:)|(?P<comma>,)|(?P<string>"(?:[^"\\\x00-\x1f]++|\\.)*+")'
    r"|(?P<scalar>-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true\b|false\b|null\b|NaN\b|-?Infinity\b))"
)


_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}

# Which tokens fit what is expected next.
_FITS = {
    "open": ("value", "value or close"),
    "scalar": ("value", "value or close"),
    "string": ("value", "value or close", "name", "name or close"),
    "colon": ("colon",),
    "comma": ("comma or close",),
    "close": ("name or close", "value or close", "comma or close"),
}


class _Open(NamedTuple):
    """A bracket that is not closed yet, and the spans of what is complete in it."""

    bracket: str
    at: int
    children: list[tuple[int, int]]


class Found(NamedTuple):
    """One value in a text: where it starts and ends (character offsets), and whether it was mended or cut."""

    start: int
    end: int
    value: Any
    repaired: bool = False
    truncated: bool = False
    #: Why it was not read: a bound that it is past.
    trouble: str | None = None


def scan(text: str, words: tuple[str, ...] = ()) -> Iterator[Found]:
    """Yield the outermost objects and arrays in ``text``, and JSON strings that fill a line, in order.

    Words around them do not matter. Where a text that looks like JSON goes wrong, the complete values inside it are
    yielded; where it was cut short and holds a word of a failure, what was read of it. ``words`` are those of the packs, as
    patterns.
    """
    if not any(bracket in text for bracket in "{[("):
        return
    scanner = _Scanner(text, _pattern(words))
    starts = _ANY_START if scanner.near(0, len(text)) else _START
    position = 0
    while match := starts.search(text, position):
        kind = match.lastgroup or ""
        values, position = scanner.at(kind, match.start(kind))
        yield from values


@lru_cache(16)
def _pattern(words: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join((*WORDS, *words)))


class _Scanner:
    """Tries what may start a value, and remembers what was tried in vain, so that it is tried once."""

    def __init__(self, text: str, words: re.Pattern[str]) -> None:
        self.text = text
        self._words = words
        self._word = -1  # where the next word stands that makes a literal worth reading
        self._tried = -1  # the end of the last line whose rest was no single value
        self._unclosed = -1  # the last quote that turned out to have no end

    def near(self, start: int, within: int = _NEAR) -> bool:
        """Whether such a word stands behind ``start``; starts only grow, so that each word is found once."""
        if self._word < start:
            found = self._words.search(self.text, start)
            self._word = found.start() if found else len(self.text) + _NEAR
        return self._word - start < within

    def at(self, kind: str, start: int) -> tuple[list[Found], int]:
        """The values that start at ``start``, and where to look further."""
        if kind in ("line", "escaped"):
            return self._quoted(kind, start)
        if kind == "open":
            return self._json(start)
        if kind != "names" and (found := _behind_prefixes(self.text, start)):
            return [found], found.end
        if kind == "hanging":
            return [], start + 1
        return self._literal(start, [], start + 1, names=kind == "names") if self.near(start) else ([], start + 1)

    def _json(self, start: int) -> tuple[list[Found], int]:
        if start > self._tried:
            self._tried = _line_end(self.text, start)
            if found := _rest_of_line(self.text, start, self._tried):
                return [found], found.end
        spans, position = outline(self.text, start)
        values = [found for begin, end in spans for found in _value(self.text, begin, end)]
        complete = len(values) == 1 and (values[0].start, values[0].end) == (start, position)
        if complete or not self.near(start):
            return values, position
        # No complete JSON: what a literal's reader gets furthest with counts.
        return self._literal(start, values, position)

    def _literal(self, start: int, values: list[Found], position: int, *, names: bool = False) -> tuple[list[Found], int]:
        """Read a literal at ``start``; ``values`` and ``position`` are what plain JSON came to there."""
        try:
            found = literals.read(self.text, start, names=names)
        except literals.Broken as broken:
            if broken.at <= position + 2:  # two characters may have been given back, see outline
                return values, position
            return [Found(start, broken.at, value, truncated=is_cut(value)) for value in broken.complete], broken.at
        if found.cut and not self._words.search(self.text, start, found.end):
            return values, position
        return [Found(start, found.end, found.value, found.repaired, found.cut or found.unseen)], max(found.end, start + 1)

    def _quoted(self, kind: str, start: int) -> tuple[list[Found], int]:
        """A JSON string that holds more JSON, or an object whose quotes are escaped and whose own quotes are gone."""
        quote = start if kind == "line" else _quote_before(self.text, start)
        string = _STRING.match(self.text, quote) if quote >= 0 and quote != self._unclosed else None
        if quote >= 0 and not string:
            self._unclosed = quote
        if string and string.end() > start and (kind == "escaped" or _fills_line(self.text, string)):
            return list(_value(self.text, quote, string.end())), string.end()
        if kind == "line":
            return [], start + 1
        end = _line_end(self.text, start)
        return [Found(start, end, unescaped(self.text[start:end]))], end


def _behind_prefixes(text: str, start: int) -> Found | None:
    """A value over several lines, each behind a prefix like the first line's (a time, a service), of the same length."""
    begin = text.rfind("\n", max(0, start - _LONGEST_PREFIX), start) + 1
    prefix = _DIGIT.sub("0", text[begin:start])
    first = _line_end(text, start)
    if not prefix.strip() or text[start + 1 : first].strip() or _DIGIT.sub("0", text[first + 1 : first + 1 + len(prefix)]) != prefix:
        return None
    parts = [text[start:first]]
    end = first
    while len(parts) < _MOST_LINES and _DIGIT.sub("0", text[end + 1 : end + 1 + len(prefix)]) == prefix:
        next_end = _line_end(text, end + 1)
        parts.append(text[end + 1 + len(prefix) : next_end])
        end = next_end
        if parts[-1][:1] in ("}", "]"):  # the bracket that closes stands where the prefix ends
            break
    joined = "\n".join(parts)
    spans, position = outline(joined, 0)
    if spans == [(0, position)]:
        return next(_value(joined, 0, position), Found(0, 0, None))._replace(start=start, end=end)
    try:
        literal = literals.read(joined, 0)
    except literals.Broken:
        return None
    return Found(start, end, literal.value, literal.repaired, literal.cut or literal.unseen) if not literal.cut else None


def unescaped(text: str) -> str:
    """A text whose quotes are escaped, without one level of escapes (an escaped string that lost its own quotes)."""
    return paired(_ESCAPE.sub(lambda match: chr(int(match[1], 16)) if match[1] else _ESCAPED.get(match[2], match[2]), text))


def _value(text: str, begin: int, end: int) -> Iterator[Found]:
    if end - begin > MAX_RECORD:
        yield Found(begin, end, None, trouble=f"a record is longer than {MAX_RECORD >> 20} MiB, and is not read")
        return
    try:
        value, repaired = read(text[begin:end])
    except TooDeep as error:
        yield Found(begin, end, None, trouble=str(error))
        return
    except ValueError:
        return
    yield Found(begin, end, value, repaired)


def _line_end(text: str, start: int) -> int:
    end = text.find("\n", start)
    return end if end >= 0 else len(text)


def _rest_of_line(text: str, start: int, end: int) -> Found | None:
    """The usual case: from the bracket to the end of its line stands one JSON value."""
    line = text[start:end].rstrip()
    if not line.endswith(("}", "]")) or LONG_DIGITS.search(line):
        return None
    try:
        return Found(start, start + len(line), orjson.loads(line))
    except (ValueError, RecursionError):
        return None


def _fills_line(text: str, string: re.Match[str]) -> bool:
    rest = text[string.end() : _line_end(text, string.end())]
    return not rest.strip() and ("{" in string[0] or "[" in string[0])


def _quote_before(text: str, start: int) -> int:
    """The nearest quote before ``start`` on its line that may open the string around it, or -1."""
    floor = max(0, start - _LOOK_BACK)
    line = text.rfind("\n", floor, start) + 1
    return text.rfind('"', max(line, floor), start)


def outline(text: str, start: int, *, parts: bool = False) -> tuple[list[tuple[int, int]], int]:
    """Follow the JSON grammar from the bracket at ``start``, without building values.

    Returns the spans of the outermost complete objects and arrays, and where to look further. Where the text is one
    complete value, that is its span (with ``parts``, the spans of the objects, arrays and strings directly in it) and its end.
    Each character is looked at once, however deep the brackets nest.
    """
    opened: list[_Open] = []
    position = start
    expects = "value"
    while (token := _TOKEN.match(text, position)) and (kind := token.lastgroup) and expects in _FITS[kind]:
        at = token.start(kind)
        if kind == "open":
            opened.append(_Open(text[at], at, []))
            expects = "name or close" if text[at] == "{" else "value or close"
        elif kind == "close":
            if opened[-1].bracket != ("{" if text[at] == "}" else "["):
                break
            closed = opened.pop()
            span = (closed.at, token.end())
            if not opened:
                return closed.children if parts else [span], token.end()
            opened[-1].children.append(span)
            expects = "comma or close"
        elif kind == "colon":
            expects = "value"
        elif kind == "comma":
            expects = "name" if opened[-1].bracket == "{" else "value"
        else:
            if parts and kind == "string" and len(opened) == 1 and expects != "name or close":
                opened[-1].children.append((at, token.end()))
            expects = "colon" if expects in ("name", "name or close") else "comma or close"
        position = token.end()
    if text[position - 2 : position] in ('{"', '["') and position - 2 > start:
        # A string that ends so has swallowed the begin of JSON whose quotes are not escaped.
        position -= 2
    return [span for each in opened for span in each.children], max(position, start + 1)
