"""The search before parsing: which places of a log are worth a look.

What a payload must contain stands in the packs: texts, and members whose value begins in some way. A member is looked
for in the ways in which JSON, Python and Node write it, each a literal, because literals are searched several times as
fast as patterns; what a literal leaves open is asked of each hit. A hit is no payload yet: what is around it is parsed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from errtriage.contracts import Contracts

#: Calls, whose answers do not name their tool.
_CALLS = ("tools/call", "tools\\/call")
#: What hides whatever is looked for: escapes of plain letters; the journal's byte arrays; lines that a container's runtime
#: has cut.
_OPAQUE = (
    "\\u004", "\\u005", "\\u006", "\\u007", '"MESSAGE":[', '"MESSAGE": [', '"MESSAGE" : [', " stdout P ", " stderr P ",
)  # fmt: skip
#: A line of Docker's json-file; where there is one, those that were cut are looked for.
_DOCKER = (b'","stream"', b'", "stream"')
_CUT = -1
_CUT_BY_DOCKER = re.compile(rb'(?:[^n]|[^\\]n)", ?"stream"')
#: What may stand behind a name where it is not written in the usual way, or where its quote is escaped.
_RARE = ('" ', '"\n', '"\r', '"\t', '":\n', '":\r', '":\t', '":  ', "' ", "':\n", ":\n", "\\", '":\\', '": \\', "':\\", "&quot", "”", "’")
#: One character between a name and its value, also where it is written as an escape.
_GAP = r"(?:[^a-zA-Z0-9_]|(?<=\\)(?:u00[0-9a-fA-F]{2}|[bfnrt])|(?<=&)(?:quot|#34)(?=;))"
#: How a text may end: with a quote, as JSON, Python, an escape, HTML or a typesetter writes it.
_ENDS = r"\"'\\&\xe2"
#: How many letters of excepted words become a pattern; more than that Hyperscan may refuse.
_MOST_EXCEPTED = 60
#: How Python writes what JSON writes otherwise.
_PYTHON = {"false": "False", "true": "True", "null": "None"}


class Marker(NamedTuple):
    """What must hold around a hit: a pattern that fits there, and words of which one must stand in the same record."""

    fits: re.Pattern[bytes] | None = None
    words: tuple[bytes, ...] = ()


def _literals(marker: Mapping[str, Any]) -> list[str]:
    """The literals of which one stands in every text that has the marker."""
    return [marker["text"]] if "text" in marker else [*_rare(marker), *_usual(marker)]


def _rare(marker: Mapping[str, Any]) -> list[str]:
    return [marker["member"] + rare for rare in _RARE]


def _usual(marker: Mapping[str, Any]) -> list[str]:
    """A member as JSON, Python and Node write it, up to the first character of its value."""
    name = marker["member"]
    found = []
    for begin in marker["begins"]:
        if begin.startswith('"'):
            found += [name + between for between in ('":"', '": "', "': '", "': \"", ": '", ': "', "='", '="')]
        else:
            python = _PYTHON.get(begin, begin)[0]
            found += [f'{name}":{begin[0]}', f'{name}": {begin[0]}', f"{name}': {python}", f"{name}: {begin[0]}", f"{name}={python}"]
    return found


def _unusual(marker: Mapping[str, Any]) -> str:
    """A pattern for what ``_usual`` finds, without the texts that the marker excepts."""
    return rf"""{marker["member"]}["']?[:=] ?["']{_other(marker["except"])}"""


def _other(words: list[str]) -> str:
    """A pattern for the begin of any text but these words."""
    starts = sorted({word[:1] for word in words if word})
    # Behind the last letter of a word whatever does not end the text makes it another one; before, whatever is no letter of it.
    none = "[^" + "".join(starts) + "]" if starts else f"[^{_ENDS}]"
    more = [start + _other([word[1:] for word in words if word.startswith(start)]) for start in starts]
    return f"(?:{'|'.join([none, *more])})"


def _fits(marker: Mapping[str, Any]) -> re.Pattern[bytes] | None:
    """What stands at the begin of a literal of the marker, if it is what is looked for."""
    if "text" in marker:
        return None
    others = "".join(rf"(?!{word}[{_ENDS}])" for word in marker.get("except", ()))
    begins = [re.escape(form) for begin in marker["begins"] if not begin.startswith('"') for form in sorted({begin, _PYTHON.get(begin, begin)})]
    # In the gap before a text the last character is its quote.
    alternatives = [rf"{_GAP}{{1,200}}?(?:{'|'.join(begins)})"] if begins else []
    if texts := [re.escape(begin[1:]) for begin in marker["begins"] if begin.startswith('"')]:
        alternatives.append(rf"{_GAP}{{1,200}}+(?:(?<=[\"'\x9c\x9d;])|(?<=u0022)|(?<=u0027)){others}(?:{'|'.join(texts)})")
    return re.compile(f"{marker['member']}(?:{'|'.join(alternatives)})".encode("latin-1"))


class Search:
    """Finds markers in bytes, with Hyperscan (2 GB a second for all of them) or, where there is none, with ``re``."""

    def __init__(self, contracts: Contracts, also: tuple[str, ...] = ()) -> None:
        self._markers: dict[str, list[Marker]] = {text: [Marker()] for text in (*_OPAQUE, *_CALLS, *also)}
        #: The numbers of what is looked for beside what the packs name, and of what hides whatever is looked for.
        self.opaque = frozenset((_CUT, *range(len(_OPAQUE))))
        self.also = frozenset(range(len(_OPAQUE), len(_OPAQUE) + len(_CALLS) + len(also)))
        patterns: dict[str, tuple[bytes, ...]] = {}
        hyperscan = _hyperscan()
        for contract in contracts:
            for shape in contract.shapes:
                for data in shape.data.get("markers", ()):
                    words = tuple(word.encode() for word in data.get("with", ()))
                    # A member whose usual value is none that is looked for would be found on every other line.
                    by_pattern = hyperscan and 0 < sum(map(len, data.get("except", ()))) <= _MOST_EXCEPTED
                    if by_pattern:
                        patterns[_unusual(data)] = words
                    for literal in _rare(data) if by_pattern else _literals(data):
                        self._add(literal, Marker(_fits(data), words))
        # What a pack names too marks a failure.
        self.opaque |= {number for number, markers in enumerate(self._markers.values()) if number in self.also and len(markers) > 1}
        literals = [literal.encode() for literal in self._markers]
        self._by_number = list(zip(map(len, literals), self._markers.values(), strict=True))
        self._by_pattern = list(patterns.values())
        self._scan = _hyperscan_search(hyperscan, literals, list(patterns)) if hyperscan else _patterns(literals)

    def _add(self, literal: str, marker: Marker) -> None:
        """Add a marker to those of a literal; where two ask the same, the words of either will do."""
        known = self._markers.setdefault(literal, [])
        for i, each in enumerate(known):
            if each.fits is marker.fits:
                known[i] = Marker(each.fits, each.words + marker.words if each.words and marker.words else ())
                return
        known.append(marker)

    def candidates(self, data: bytes | bytearray) -> list[tuple[int, int]]:
        """Where something was found, in order: the number of what, and the offset of its last byte."""
        found, docker = self._scan(data)
        if docker and (cut := [(_CUT, match.end() - 1) for match in _CUT_BY_DOCKER.finditer(data)]):
            found = sorted([*found, *cut], key=lambda each: each[1])
        return found

    def confirm(self, data: bytes | bytearray, number: int, at: int) -> tuple[bytes, ...] | None:
        """The words of which one must stand in the record around a candidate (none: it need not), or None for no hit."""
        if number == _CUT:
            return ()
        if number >= len(self._by_number):
            return self._by_pattern[number - len(self._by_number)]
        length, markers = self._by_number[number]
        words: tuple[bytes, ...] | None = None
        for fits, wanted in markers:
            if fits is None or fits.match(data, at - length + 1):
                if not wanted:
                    return ()
                words = wanted if words is None else words + wanted
        return words


#: Gives number and last offset of each literal and pattern found, and whether there are lines of Docker's.
_Scan = Callable[[Any], tuple[list[tuple[int, int]], bool]]


def _hyperscan() -> Any:
    try:
        import hyperscan
    except ImportError:  # there is no wheel for every platform
        return None
    return hyperscan


def _hyperscan_search(hyperscan: Any, literals: list[bytes], patterns: list[str]) -> _Scan:
    """One pass for all literals, and one for the patterns, which together would be slower than both."""
    docker = len(literals) + len(patterns)
    first = hyperscan.Database()
    numbers = [*range(len(literals)), *[docker] * len(_DOCKER)]
    flags = [0] * len(literals) + [hyperscan.HS_FLAG_SINGLEMATCH] * len(_DOCKER)
    first.compile(expressions=[*literals, *_DOCKER], ids=numbers, elements=len(numbers), flags=flags, literal=True)
    second = hyperscan.Database()
    numbers = list(range(len(literals), docker))
    if patterns:
        second.compile(expressions=[pattern.encode() for pattern in patterns], ids=numbers, elements=len(numbers), flags=0)

    def scan(data: Any) -> tuple[list[tuple[int, int]], bool]:
        found: list[tuple[int, int]] = []
        seen: list[int] = []
        add = found.append

        def hit(number: int, _from: int, to: int, _flags: int, _context: Any) -> None:
            if number == docker:
                seen.append(number)
            else:
                add((number, to - 1))

        first.scan(data, match_event_handler=hit)
        before = len(found)
        if patterns:
            second.scan(data, match_event_handler=hit)
        if len(found) > before:
            found.sort(key=_offset)
        return found, bool(seen)

    return scan


def _offset(candidate: tuple[int, int]) -> int:
    return candidate[1]


def _patterns(literals: list[bytes]) -> _Scan:
    numbers = {literal: number for number, literal in enumerate(literals)}
    # Where several literals begin at one place, the longest is found: it fits where the others do.
    pattern = re.compile(b"|".join(map(re.escape, sorted(literals, key=len, reverse=True))))

    def scan(data: Any) -> tuple[list[tuple[int, int]], bool]:
        return [(numbers[match[0]], match.end() - 1) for match in pattern.finditer(data)], any(mark in data for mark in _DOCKER)

    return scan
