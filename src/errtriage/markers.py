"""The search before parsing: which places of a log are worth a look.

What a payload must contain stands in the packs: texts, and members whose value begins in some way. A member is looked
for in the ways in which JSON, Python and Node write it, each a literal, because literals are searched several times as
fast as patterns; what a literal leaves open is asked of each hit. A hit is no payload yet: what is around it is parsed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple

from errtriage.contracts import Contracts

#: What is looked for whatever the packs say: calls, whose answers do not name their tool; escapes of plain letters; the
#: journal's byte arrays; lines that a container's runtime has cut.
_ALWAYS = (
    "tools/call", "tools\\/call", "\\u004", "\\u005", "\\u006", "\\u007", '"MESSAGE":[', '"MESSAGE": [', '"MESSAGE" : [', " stdout P ", " stderr P ",
)  # fmt: skip
#: A line of Docker's json-file; where there is one, those that were cut are looked for.
_DOCKER = b'","stream"'
_CUT = -1
_CUT_BY_DOCKER = re.compile(rb'(?:[^n]|[^\\]n)","stream"')
#: What may stand behind a name where it is not written in the usual way, or where its quote is escaped.
_RARE = ('" ', '":\n', '":\r', '":\t', '":  ', "' ", "':\n", ":\n", "\\", "&quot", "”", "’")
#: How Python writes what JSON writes otherwise.
_PYTHON = {"false": "False", "true": "True", "null": "None"}


class Marker(NamedTuple):
    """What must hold around a hit: a pattern that fits there, and words of which one must stand in the same record."""

    fits: re.Pattern[bytes] | None = None
    words: tuple[bytes, ...] = ()


def _literals(marker: Mapping[str, Any]) -> list[str]:
    """The literals of which one stands in every text that has the marker."""
    if "text" in marker:
        return [marker["text"]]
    name = marker["member"]
    found = [name + rare for rare in _RARE]
    for begin in marker["begins"]:
        if begin == '"':
            found += [name + between for between in ('":"', '": "', "': '", "': \"", ": '", ': "', "='", '="')]
        else:
            python = _PYTHON.get(begin, begin)[0]
            found += [f'{name}":{begin[0]}', f'{name}": {begin[0]}', f"{name}': {python}", f"{name}: {begin[0]}", f"{name}={python}"]
    return found


def _fits(marker: Mapping[str, Any]) -> re.Pattern[bytes] | None:
    """What stands at the begin of a literal of the marker, if it is what is looked for."""
    if "text" in marker:
        return None
    others = "".join(rf"(?!{word}(?![a-zA-Z0-9_]))" for word in marker.get("except", ()))
    begins = [re.escape(form) for begin in marker["begins"] if begin != '"' for form in {begin, _PYTHON.get(begin, begin)}]
    # In the gap before a text the last character is its quote.
    alternatives = [rf"[^a-zA-Z0-9_]{{1,200}}?(?:{'|'.join(begins)})"] if begins else []
    if '"' in marker["begins"]:
        alternatives.append(rf"[^a-zA-Z0-9_]{{1,200}}+(?<=[\"'\x9c\x9d;]){others}")
    return re.compile(f"{marker['member']}(?:{'|'.join(alternatives)})".encode("latin-1"))


class Search:
    """Finds markers in bytes, with Hyperscan (2 GB a second for all of them) or, where there is none, with ``re``."""

    def __init__(self, contracts: Contracts) -> None:
        self._markers: dict[str, list[Marker]] = {text: [Marker()] for text in _ALWAYS}
        for contract in contracts:
            for shape in contract.shapes:
                for marker in shape.data.get("markers", ()):
                    words = tuple(word.encode() for word in marker.get("with", ()))
                    for literal in _literals(marker):
                        self._add(literal, Marker(_fits(marker), words))
        literals = [literal.encode() for literal in self._markers]
        self._by_number = list(zip(map(len, literals), self._markers.values(), strict=True))
        self._scan = _hyperscan(literals) or _patterns(literals)

    def _add(self, literal: str, marker: Marker) -> None:
        """Add a marker to those of a literal; where two ask the same, the words of either will do."""
        known = self._markers.setdefault(literal, [])
        for i, each in enumerate(known):
            if each.fits is marker.fits:
                known[i] = Marker(each.fits, each.words + marker.words if each.words and marker.words else ())
                return
        known.append(marker)

    def candidates(self, data: bytes | bytearray) -> list[tuple[int, int]]:
        """Where a literal was found, in order: its number, and the offset of its last byte."""
        found, docker = self._scan(data)
        if docker and (cut := [(_CUT, match.end() - 1) for match in _CUT_BY_DOCKER.finditer(data)]):
            found = sorted([*found, *cut], key=lambda each: each[1])
        return found

    def confirm(self, data: bytes | bytearray, number: int, at: int) -> tuple[bytes, ...] | None:
        """The words of which one must stand in the record around a candidate (none: it need not), or None for no hit."""
        if number == _CUT:
            return ()
        length, markers = self._by_number[number]
        words: tuple[bytes, ...] | None = None
        for fits, wanted in markers:
            if fits is None or fits.match(data, at - length + 1):
                if not wanted:
                    return ()
                words = wanted if words is None else words + wanted
        return words


_Scan = Callable[[Any], tuple[list[tuple[int, int]], bool]]


def _hyperscan(literals: list[bytes]) -> _Scan | None:
    """A search that gives number and last offset of each literal found, and whether there are lines of Docker's."""
    try:
        import hyperscan
    except ImportError:  # there is no wheel for every platform
        return None
    database = hyperscan.Database()
    expressions = [*literals, _DOCKER]
    flags = [0] * len(literals) + [hyperscan.HS_FLAG_SINGLEMATCH]
    database.compile(expressions=expressions, ids=list(range(len(expressions))), elements=len(expressions), flags=flags, literal=True)
    last = len(literals)

    def scan(data: Any) -> tuple[list[tuple[int, int]], bool]:
        found: list[tuple[int, int]] = []
        add = found.append

        def hit(number: int, _from: int, to: int, _flags: int, _context: Any) -> None:
            add((number, to - 1))

        database.scan(data, match_event_handler=hit)
        docker = any(number == last for number, _ in found)
        return ([each for each in found if each[0] != last] if docker else found), docker

    return scan


def _patterns(literals: list[bytes]) -> _Scan:
    numbers = {literal: number for number, literal in enumerate(literals)}
    # Where several literals begin at one place, the longest is found: it fits where the others do.
    pattern = re.compile(b"|".join(map(re.escape, sorted(literals, key=len, reverse=True))))

    def scan(data: Any) -> tuple[list[tuple[int, int]], bool]:
        return [(numbers[match[0]], match.end() - 1) for match in pattern.finditer(data)], _DOCKER in data

    return scan


@cache
def search_for(contracts: Contracts) -> Search:
    """The search for everything that some packs describe."""
    return Search(contracts)
