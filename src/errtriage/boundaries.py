"""Where a text may be cut without cutting a record: decided from the lines around a place alone, so that any slice of a
log finds the same records as the whole.

A line is settled when it begins at its margin, all its brackets and quotes are closed, and nothing in it says that more
follows. Between two settled lines no value, event or response goes on, as far as anything that writes JSON, Python or
Node literals over several lines is known to indent, to end lines with commas, or to repeat its prefix.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Callable
from functools import lru_cache

from errtriage import carriers

#: So many bytes of lines that could be one record are read together; a document that is the whole input may be longer.
MOST, LONGEST = 16 << 20, 256 << 20
#: How many settled lines there must be on either side where a carrier may interleave several texts.
_RUN = 4
_HEAD = 1024
#: How many lines before a place are looked at for the status line of a response.
_MOST_HEADERS = 100

_MARGIN = re.compile(r"[\s}\]),;>]|HTTP/\d|< |\* |data:|event:")
_CLOSING = re.compile(r"[}\])]+\s*\Z")
_HANGING = re.compile(r"[{\[(]\s*\Z")
_OPENING = re.compile(r"\{(?=\s*(?:\"|\Z))|\[(?=\s*(?:[\"{\[]|\Z))")
#: The first line of a request, to which headers and an answer belong.
_REQUEST = re.compile(r"(?:> )?[A-Z]{3,10} \S+ HTTP/\d")
_OPEN_END = re.compile(r"[,\[{(:=+\\]\s*\Z")
_HEADER = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,100}:(?:\s|\Z)")
_CARRIED = re.compile(r'\{"log":|\{.*"MESSAGE"|\d{4}-\d\d-\d\dT\S+ std(?:out|err) [PF]\b| *[\w.-]+ +\|(?: |\Z)|\[[a-z]+/[^\]]+\](?: |\Z)')


class Lines:
    """The lines of a text by their starts."""

    def __init__(self, text: bytes | bytearray, *, first: bool = False) -> None:
        self._text = text
        self.size = len(text)
        #: Whether the text is the begin of an input, and may be all of a document.
        self.is_document = first and is_document(text[:_HEAD])

    def start(self, at: int) -> int:
        """Where the line around an offset starts."""
        return self._text.rfind(b"\n", 0, at) + 1

    def next(self, start: int) -> int:
        """Where the line after the one at ``start`` starts (the length of the text after the last)."""
        end = self._text.find(b"\n", start)
        return end + 1 if end >= 0 else self.size

    def line(self, start: int) -> str:
        """The line at ``start`` without its end; bytes stand as characters of the same number."""
        return bytes(self._text[start : self.next(start)]).rstrip(b"\r\n").decode("latin-1")

    def before(self, start: int) -> int:
        """Where the line before the one at ``start`` starts."""
        return self._text.rfind(b"\n", 0, start - 1) + 1

    def is_boundary(self, start: int) -> bool:
        """Whether a record may begin with the line at ``start``, and none goes on into it."""
        if start in (0, self.size):
            return True
        before = self.before(start)
        here, last = self.line(start), self.line(before)
        if not begins(here) or not ends(last) or self._in_head(before):
            return False
        return not (_is_carried(here) or _is_carried(last)) or (self._run(start, self.next, begins) and self._run(before, self.before, ends))

    def _run(self, start: int, step: Callable[[int], int], settled_: Callable[[str], bool]) -> bool:
        """Whether some lines in one direction are settled too, as far as there are lines."""
        for _ in range(_RUN):
            following = step(start)
            if following in (start, self.size) or start == 0:
                return True
            start = following
            if not settled_(self.line(start)):
                return False
        return True

    def _in_head(self, start: int) -> bool:
        """Whether the line at ``start`` is a header of a raw response."""
        for _ in range(_MOST_HEADERS):
            if start == 0 or not _HEADER.match(self.line(start)):
                return False
            start = self.before(start)
            if self.line(start).lstrip("< ").startswith("HTTP/") or _REQUEST.match(self.line(start)):
                return True
        return False

    def region(self, at: int) -> tuple[int, int]:
        """The lines around an offset, from the boundary before it to the one behind it."""
        start = self.start(at)
        end = self.next(start)
        most = LONGEST if self.is_document else MOST
        while start > 0 and at - start < most and not self.is_boundary(start):
            start = self.before(start)
        most = LONGEST if self.is_document and start == 0 else MOST
        while end < self.size and end - at < most and not self.is_boundary(end):
            end = self.next(end)
        return start, end


def is_document(head: bytes | bytearray) -> bool:
    """Whether an input may be one JSON document, by its first bytes."""
    return head.removeprefix(BOM_UTF8).lstrip()[:1] in (b"{", b"[")


@lru_cache(4096)
def begins(line: str) -> bool:
    """Whether a record may begin with a line."""
    if settled(line) or (_OPENING.match(line) and not _is_carried(line)):
        return True
    # Words before a bracket at the end of the line, as a program prints a value with its name.
    return bool(_HANGING.search(line)) and not _MARGIN.match(line) and not _is_carried(line) and _closed(_HANGING.sub("", line))


@lru_cache(4096)
def ends(line: str) -> bool:
    """Whether a record may end with a line."""
    return (settled(line) and not _REQUEST.match(line)) or bool(_CLOSING.match(line))


def settled(line: str) -> bool:
    """Whether nothing goes on into a line or out of it."""
    if "\x1b" in line or "\0" in line:
        line = _without_codes(line)
    if _CARRIED.match(line):
        carried = carriers.line_of(line)
        if carried is not None:
            return carried.adds.endswith("\n") and settled(carried.adds.rstrip("\r\n"))
    return bool(line) and not _MARGIN.match(line) and not _OPEN_END.search(line) and _closed(line)


def _is_carried(line: str) -> bool:
    return bool(_CARRIED.match(line))


def _closed(line: str) -> bool:
    """Whether every bracket and quote of a line is closed in it."""
    pairs = all(line.count(left) == line.count(right) for left, right in ("{}", "[]", "()"))
    return pairs and (line.count('"') - line.count('\\"')) % 2 == 0


def _without_codes(line: str) -> str:
    from errtriage.redact import terminal_codes

    return terminal_codes().sub("", line)
