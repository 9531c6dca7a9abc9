"""Where values stand in the JSON text that they were read from, so that a finding can be shown in its file.

Values know nothing of their text. What is wanted is found in the value by identity, then followed through the text:
one pass for all that is wanted of one text, however much of it there is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from json.decoder import JSONDecodeError, scanstring  # type: ignore[attr-defined]
from typing import Any, NamedTuple

from errtriage.model import Place

_SPACE = re.compile(r"[ \t\r\n]*")
_SCALAR = re.compile(r"[^\s,:\[\]{}\"]+")
# What stands for one character of a decoded string, or for as many as it has.
_WRITTEN = re.compile(r'\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.|(?P<plain>[^"\\]{1,4096})', re.DOTALL)
_BRACKET = re.compile(r'"(?:[^"\\]|\\.)*+"|[{}\[\]]', re.DOTALL)


class Span(NamedTuple):
    """Where a value starts and ends in its text, in characters."""

    start: int
    end: int


class Wanted(NamedTuple):
    """A member that is looked for: below the object or array ``target`` of the text, under ``parts``.

    Where the target is no part of the text, because it was decoded from a string of it, that ``string`` is meant.
    """

    target: Any
    parts: Sequence[str] = ()
    string: str | None = None


class _Node:
    """A place on the way to something wanted."""

    __slots__ = ("children", "wanted")

    def __init__(self) -> None:
        self.children: dict[str, _Node] = {}
        self.wanted: list[int] = []


class _Astray(Exception):
    """The text is not plain JSON here."""


def locate(text: str, wanted: Sequence[tuple[Place, Wanted]]) -> list[Span | None]:
    """Where each wanted member stands in ``text``, through as many strings as it was decoded from.

    Of a way that ends early, the last member that is there counts; in a text that is no plain JSON (a literal, a cut
    text), its first character. None where nothing is wanted, or where the text does not stand there as it is.
    """
    spans = _in_own_text(text, wanted)
    around = [place.around for place, _ in wanted]
    while inside := [(i, place) for i, place in enumerate(around) if place is not None]:
        strings = _in_own_text(text, [(place, Wanted(None, (), place.string)) for _, place in inside])
        together: dict[int, list[tuple[int, Place, Span | None]]] = {}
        for (i, place), string in zip(inside, strings, strict=True):
            together.setdefault(id(place.string), []).append((i, place, string))
            around[i] = place.around
        for group in together.values():
            _, place, string = group[0]
            for (i, *_), span in zip(group, _through(_own_text(text, place), string, [spans[i] for i, *_ in group]), strict=True):
                spans[i] = span
    return spans


def holding(place: Place, target: Any) -> Place:
    """The innermost place whose JSON has ``target`` as a part; the outermost is not searched, for it may be a large capture."""
    while place.around is not None and (target is None or not _paths(place.root, {id(target)})):
        place = place.around
    return place


def outermost(place: Place) -> Place:
    """The place in the text itself that a place lies in."""
    while place.around is not None:
        place = place.around
    return place


def _own_text(text: str, place: Place) -> str:
    return text if place.around is None else place.around.string or ""


def _in_own_text(text: str, wanted: Sequence[tuple[Place, Wanted]]) -> list[Span | None]:
    """The spans in the text that each place is about; what is wanted of one text is looked for in one pass."""
    together: dict[tuple[int, int], list[int]] = {}
    for i, (place, _) in enumerate(wanted):
        together.setdefault((id(place.root), place.start), []).append(i)
    spans: list[Span | None] = [None] * len(wanted)
    for group in together.values():
        place = wanted[group[0]][0]
        if place.start >= 0:
            for i, span in zip(group, _spans(_own_text(text, place), place.root, place.start, [wanted[i][1] for i in group]), strict=True):
                # What cannot be followed (a literal, a cut text) at least begins somewhere.
                spans[i] = span or (Span(place.start, place.start + 1) if wanted[i][1].target is not None else None)
    return spans


def _through(text: str, string: Span | None, inner: Sequence[Span | None]) -> list[Span | None]:
    """Spans in a decoded string as spans in the text, in which the string is written with its escapes; in one pass."""
    if string is None or text[string.start] != '"':
        return [string] * len(inner)
    written: dict[int, int] = {}
    start, decoded = string.start + 1, 0
    for target in sorted({offset for span in inner if span is not None for offset in span}):
        while decoded < target and (part := _WRITTEN.match(text, start)):
            plain = part.lastgroup == "plain"
            step = min(part.end() - start, target - decoded) if plain else 1
            decoded += step
            start = start + step if plain else part.end()
        written[target] = start
    return [string if span is None else Span(written[span.start], written[span.end]) for span in inner]


def _spans(text: str, root: Any, start: int, wanted: Sequence[Wanted]) -> list[Span | None]:
    """The spans in one text, whose JSON ``root`` starts at ``start``."""
    spans: list[Span | None] = [None] * len(wanted)
    sought = [value for each in wanted for value in (each.target, each.string) if value is not None]
    paths = _paths(root, {id(value) for value in sought})
    top = _Node()
    for i, each in enumerate(wanted):
        path = paths.get(id(each.target))
        path = [*path, *_there(each.target, each.parts)] if path is not None else paths.get(id(each.string))
        if path is not None:
            node = top
            for part in path:
                node = node.children.setdefault(part, _Node())
            node.wanted.append(i)
    if not paths:
        return spans
    with suppress(_Astray, JSONDecodeError, IndexError, RecursionError):  # what was passed before is located
        _value(text, _after_space(text, start), top, spans)
    return spans


def _paths(root: Any, targets: set[int]) -> dict[int, list[str]]:
    """The way from ``root`` to each target that is a part of it."""
    found: dict[int, list[str]] = {}
    open_: list[tuple[Any, Any]] = [(root, None)]
    while open_ and len(found) < len(targets):
        value, way = open_.pop()
        if id(value) in targets and id(value) not in found:
            found[id(value)] = _unwound(way)
        if isinstance(value, dict):
            open_ += [(member, (name, way)) for name, member in value.items() if isinstance(member, dict | list | str)]
        elif isinstance(value, list):
            open_ += [(item, (str(i), way)) for i, item in enumerate(value) if isinstance(item, dict | list | str)]
    return found


def _unwound(way: Any) -> list[str]:
    parts = []
    while way is not None:
        part, way = way
        parts.append(part)
    return parts[::-1]


def _there(value: Any, parts: Sequence[str]) -> list[str]:
    """As many of the parts as lead to something."""
    there = []
    for part in parts:
        if isinstance(value, Mapping) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isdecimal() and len(part) < 10 and int(part) < len(value):
            value = value[int(part)]
        else:
            break
        there.append(part)
    return there


def _value(text: str, at: int, node: _Node, spans: list[Span | None]) -> int:
    """Pass one value, note what is wanted of it, and return where it ends."""
    if not node.children:
        end = _passed(text, at)
    elif text[at] == "{":
        end = _object(text, at, node, spans)
    elif text[at] == "[":
        end = _array(text, at, node, spans)
    else:
        raise _Astray
    for i in node.wanted:
        spans[i] = Span(at, end)
    return end


def _object(text: str, at: int, node: _Node, spans: list[Span | None]) -> int:
    at = _after_space(text, at + 1)
    while text[at] == '"':
        name, at = scanstring(text, at + 1, False)
        at = _after_space(text, at)
        if text[at] != ":":
            raise _Astray
        at = _after_space(text, at + 1)
        # Of a name that occurs twice the last counts, as it does in the value.
        child = node.children.get(name)
        at = _after_space(text, _value(text, at, child, spans) if child else _passed(text, at))
        if text[at] != ",":
            break
        at = _after_space(text, at + 1)
    if text[at] != "}":
        raise _Astray
    return at + 1


def _array(text: str, at: int, node: _Node, spans: list[Span | None]) -> int:
    at = _after_space(text, at + 1)
    i = 0
    while text[at] != "]":
        child = node.children.get(str(i))
        at = _after_space(text, _value(text, at, child, spans) if child else _passed(text, at))
        i += 1
        if text[at] == ",":
            at = _after_space(text, at + 1)
        elif text[at] != "]":
            raise _Astray
    return at + 1


def _after_space(text: str, at: int) -> int:
    return _SPACE.match(text, at).end()  # type: ignore[union-attr]


def _passed(text: str, at: int) -> int:
    """Where the value at ``at`` ends, however deep its brackets nest."""
    if text[at] == '"':
        return int(scanstring(text, at + 1, False)[1])
    if text[at] not in "{[":
        scalar = _SCALAR.match(text, at)
        if scalar is None:
            raise _Astray
        return scalar.end()
    depth = 0
    for bracket in _BRACKET.finditer(text, at):
        depth += {"{": 1, "[": 1, "}": -1, "]": -1}.get(bracket[0], 0)
        if depth == 0:
            return bracket.end()
    raise _Astray
