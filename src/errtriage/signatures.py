"""What a log record is decided by, without what makes each record another one: ids, times, addresses, prose.

Two records with the same signature get the same verdicts, so the second is only counted. A signature keeps every name,
and the values under the names that some condition of a pack or some wrapper asks for: of a text there whether it is a
word of the packs and which of their patterns it matches, of a number between which of theirs it lies. Values under any
other name cannot decide, and are not even looked at.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from typing import Any

from errtriage.contracts import Contract, Contracts, compiled, names_in
from errtriage.delays import LONGEST_MS, duration, seconds
from errtriage.pointers import pointer_parts

#: Names by which wrappers are recognised or what they know is told (see ``wrappers`` and ``facts``): values under the
#: first count as they are; of the others it counts whether they are there, and when a record was written.
_WRAPPERS = (
    "jsonrpc", "method", "type", "role", "isError", "is_error", "resultType", "result_type", "toolName", "tool_name", "stream", "$schema", "name", "id", "text",
)  # fmt: skip
_PRESENT = (
    "result", "error", "params", "content", "structuredContent", "structured_content", "_meta", "meta", "data", "message", "log", "entries", "MESSAGE",
    "time", "ts", "timestamp", "@timestamp", "t", "date",
)  # fmt: skip
#: Keywords for which a value counts as it is, beyond those that are followed here; and those that are not followed at all.
_WHOLE = frozenset(("minLength", "maxLength", "format", "contentEncoding", "contentMediaType", "multipleOf", "uniqueItems"))
_BLINDING = frozenset(("patternProperties",))
#: An anchor in a pattern: where a text begins and ends in a line is not known.
_ANCHOR = re.compile(r"(?<!\[)(?<!\\)\^|(?<!\\)\$|\\[AzZ]")
#: Facts that come from the catalogue, from the tool, or from fields whose values count as they are.
_EXACT_FACTS = frozenset(("code", "operation", "tool", "tool_class", "group"))
#: What conditions ask about the wrappers, which the names and brackets of a record tell already, or which no record has
#: that is signed.
_AROUND = frozenset(("within", "headers", "challenges"))
#: What \S does not match in the engine that decides: Python counts some control characters as white space too.
_SPACE = "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
#: Keywords of conditions that are followed here. A pack that is not bundled and asks with others is read record by record.
_FOLLOWED = frozenset((
    "$comment", "required", "properties", "const", "enum", "type", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "pattern", "not", "anyOf",
    "allOf", "oneOf", "minLength", "maxLength", "multipleOf", "title", "description",
))  # fmt: skip
#: Types of fields of which more than the value under the last name of the place decides.
_JOINED = frozenset(("array", "list", "keys", "object", "any"))
_DEEPEST = 20
_DIGIT = re.compile(r"[0-9]")
#: What stands for values of which only so much counts; no value of JSON is equal to them, and no digit is in them.
_BLANK, _TEXT, _NO_ID, _AN_ID = "\0blank", "\0text", "\0no id", "\0an id"
#: A word with a digit in it, such as an id, a time, a count; as a pattern for bytes too.
WORD_WITH_DIGIT = r"\b[A-Za-z_]*+[0-9]\w*"
_WORD_WITH_DIGIT = re.compile(WORD_WITH_DIGIT, re.ASCII)
_MOST_EXACT = 2.0**53
#: How many different objects, by their names, are remembered.
_MOST_PLANS = 10_000

EXACT, KNOWN, DELAY, ID, INSIDE = "exact", "known", "delay", "id", "inside"


class Signatures:
    """Makes the signatures of values, for the packs of a run."""

    def __init__(self, contracts: Contracts) -> None:
        self._words: set[str] = set()
        self._tools: set[str] = set()
        self._patterns: list[str] = []
        #: Those of packs that are not bundled, which only an engine may try whose time is linear.
        self._foreign: list[Any] = []
        self._numbers: set[float] = {0, LONGEST_MS}
        self._names: dict[str, str] = {}
        self._ids: set[str] = set()
        #: Members of which it decides whether they can be read as a delay.
        self._delays: set[str] = set()
        self._blind = False
        #: Members and facts about which a condition asks in a way in which only the value itself will do.
        self._whole: set[str] = set()
        #: Texts with digits in what was signed last, of which only is known what they are not.
        self._with_digits: list[str] = []
        #: For each set of names: which of its members are looked at, and how.
        self._plans: dict[tuple[str, ...], tuple[tuple[str, str], ...]] = {}
        for contract in contracts:
            self._learn_pack(contract)
        self._names |= dict.fromkeys((*_WRAPPERS, *self._whole), EXACT)
        self._names |= {name: DELAY for name in self._delays if self._names.get(name) is not EXACT}
        self._ids |= set(_PRESENT)
        self._word_templates = {without_digits(word) for word in self._words if _DIGIT.search(word)}
        self._bounds = sorted(self._numbers)
        # A text that matches none of them is asked once. What asks only whether there is anything is not among them.
        self._any_pattern = re.compile("|".join(f"(?:{pattern})" for pattern in self._patterns) or r"(?!)")
        self._bytes_patterns = re.compile(self._any_pattern.pattern.encode())
        self._compiled = [re.compile(pattern) for pattern in self._patterns]
        #: Whether a pattern may match that cannot be looked for in a line.
        self._anywhere = bool(self._foreign) or any(_ANCHOR.search(pattern) for pattern in self._patterns)

    def _learn_pack(self, contract: Contract) -> None:
        before = len(self._patterns)
        self._learn(contract.data["shapes"])
        self._learn(contract.tree)
        if contract.origin:
            self._blind |= not _is_followed(contract)
            self._foreign += [compiled({"pattern": pattern}) for pattern in self._patterns[before:]]
            del self._patterns[before:]
        conditions = [branch["when"] for node in contract.tree["nodes"].values() for branch in node["branches"]]
        asked = {name for condition in [*conditions, *(note["when"] for note in contract.tree["notes"])] for name in names_in(condition)}
        self._tools |= {*contract.data.get("tools", ()), *contract.data.get("classes", ())}
        self._ids |= set(contract.data.get("well_known_ids", {}).get("names", ()))
        for shape in contract.shapes:
            for place in shape.data["ids"]["correlation"]:
                self._ids |= set(_last_names(place))
            for name, field in shape.data["fields"].items():
                for last in (last for place in field["at"] for last in _last_names(place)):
                    if name in ("code", "operation") or name in self._whole:
                        self._names[last] = EXACT
                    elif name in asked:
                        self._names.setdefault(last, KNOWN)
                    if name in asked and {"seconds", "duration"} & {*field["type"]}:
                        self._delays.add(last)

    def _learn(self, data: Any, name: str = "") -> None:
        """Take the names, words, numbers and patterns of every condition in a pack's data; ``name`` is what they are about."""
        if isinstance(data, list):
            for item in data:
                self._learn(item, name)
        if not isinstance(data, dict):
            return
        consts = [data["const"]] if "const" in data else []
        consts += data["enum"] if isinstance(data.get("enum"), list) else []
        if name not in _EXACT_FACTS:  # values of those are kept as they are
            self._words |= {each for each in consts if isinstance(each, str)}
        numbers = [*consts, *(data.get(keyword) for keyword in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"))]
        self._numbers |= {each for each in numbers if isinstance(each, int | float) and not isinstance(each, bool)}
        pattern = data.get("pattern")
        if isinstance(pattern, str) and pattern != r"\S":
            self._patterns.append(pattern)
        if _WHOLE & data.keys():
            self._whole.add(name)
        self._blind |= bool(_BLINDING & data.keys())
        for member, value in data.items():
            if member == "properties" and isinstance(value, dict):
                self._names |= {each: self._names.get(each, KNOWN) for each in value}
                for each, condition in value.items():
                    if each not in _AROUND:
                        self._learn(condition, each)
            else:
                self._learn(value, name)

    def of(self, value: dict[str, Any], prefix: str, written: bytes) -> tuple[Any, ...] | None:
        """The signature of a record and the words before it; None where it holds texts that have to be read.

        ``written`` is the record as it stands in the log.
        """
        # Texts with these may hold more JSON, a response, or an error: what is in them has to be read.
        if self._blind or b"(" in written or b"HTTP/" in written or b"data:" in written:
            return None
        self._with_digits = []
        last = prefix.rsplit(maxsplit=1)[-1].removesuffix(":") if prefix else ""
        tokens: list[Any] = [last if last in self._tools else bool(prefix)]
        opened = [0, 0]
        if not self._object(value, tokens, opened, 0):
            return None
        # As many brackets as objects and arrays that were passed: none stands in a text, or where none was before.
        return tuple(tokens) if opened[0] == written.count(b"{") and opened[1] == written.count(b"[") else None

    def without_digits(self, signature: tuple[Any, ...], line: bytes) -> bool | None:
        """Whether a line that differs from this one only in words with digits comes to the same; ``signature`` was made last.

        False where a digit stands in what decides. None where it comes to the same as long as no pattern matches in it.
        """
        for token in signature:
            texts = [token] if isinstance(token, str) else token if isinstance(token, tuple) else ()
            # Whatever is no text here is a number, or what a text came to with a pattern.
            if any(not isinstance(text, str) or _DIGIT.search(text) for text in texts):
                return False
        if not self._with_digits:
            return True
        if self.has_pattern(line) or any(without_digits(text) in self._word_templates for text in self._with_digits):
            return False
        return None

    def has_pattern(self, line: bytes) -> bool:
        """Whether a pattern that decides matches somewhere in a line, or may match."""
        return self._anywhere or self._bytes_patterns.search(line) is not None

    def _object(self, value: dict[str, Any], tokens: list[Any], opened: list[int], depth: int) -> bool:
        """Add an object's tokens. Every failing record goes through here, so it looks at as little as it can."""
        opened[0] += 1
        names = tuple(value)
        tokens.append(names)
        plan = self._plans.get(names) or self._plan(names, value)
        for name, kind in plan:
            member = value[name]
            if type(member) is str:
                if kind is EXACT or member in self._words:
                    tokens.append(member)
                elif kind is ID:
                    tokens.append(_AN_ID if member.strip() else _NO_ID)
                elif kind is KNOWN:
                    tokens.append(self._like(member))
                elif kind is DELAY:
                    tokens.append(self._delay(member))
            elif member is True or member is False or member is None:
                tokens.append(member)  # numbers are told apart from them: they are never added as they are
            elif type(member) is dict:
                if depth > _DEEPEST or not self._object(member, tokens, opened, depth + 1):
                    return False
            elif not self._other(member, kind, tokens, opened, depth):
                return False
        return True

    def _plan(self, names: tuple[str, ...], value: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
        """Which members of an object with these names are looked at: those that may decide, and those that hold more."""
        plan = []
        for name in names:
            kind = self._names.get(name)
            if kind is None and (name in self._ids or name.replace("-", "").replace("_", "").lower() in self._ids):
                kind = ID
            if kind is not None or isinstance(value[name], dict | list):
                plan.append((name, kind or INSIDE))
        if len(self._plans) < _MOST_PLANS:
            # An empty plan would be made again each time.
            self._plans[names] = tuple(plan) or ((names[0], INSIDE),) if names else ()
        return tuple(plan)

    def _other(self, value: Any, kind: str, tokens: list[Any], opened: list[int], depth: int) -> bool:
        if isinstance(value, list):
            opened[1] += 1
            tokens.append("\0[" + chr(0x100 + min(len(value), 0xD000)))
            return depth <= _DEEPEST and all(self._other(item, kind, tokens, opened, depth + 1) for item in value)
        if isinstance(value, dict):
            return self._object(value, tokens, opened, depth + 1)
        if isinstance(value, str):
            if kind is not INSIDE:
                tokens.append(value if kind is EXACT or value in self._words else self._delay(value) if kind is DELAY else self._like(value))
        elif isinstance(value, float) and abs(value) > _MOST_EXACT:
            return False  # it may have been written with more digits than a float keeps
        elif value is True or value is False or value is None:
            tokens.append(value)
        elif kind is EXACT:
            tokens.append((type(value), value))
        elif kind is DELAY:
            tokens.append((type(value), self._delay(value)))
        elif kind is KNOWN:  # between which of the packs' numbers it lies, and whether it is whole
            tokens.append((type(value), value == int(value), bisect_left(self._bounds, value), bisect_right(self._bounds, value)))
        else:
            tokens.append(type(value))
        return True

    def _delay(self, value: Any) -> tuple[Any, ...]:
        """What of a delay decides: in which ways it can be read, and between which of the packs' numbers it lies then."""
        read = (seconds(value), duration(value))
        ways = [None if delay is None else (bisect_left(self._bounds, delay), bisect_right(self._bounds, delay)) for delay in read]
        return (*ways, self._like(value) if isinstance(value, str) else value)

    def _like(self, text: str) -> Any:
        """What of a text could decide: whether it says anything, and which patterns it matches."""
        if _DIGIT.search(text):
            self._with_digits.append(text)
        foreign = [pattern.is_valid(text) for pattern in self._foreign]
        if not any(foreign) and not self._any_pattern.search(text):
            return _TEXT if text.strip(_SPACE) else _BLANK
        return (*(bool(pattern.search(text)) for pattern in self._compiled), *foreign)


def _is_followed(contract: Contract) -> bool:
    """Whether all that decides in a pack is what is followed here. It was tried for the bundled ones; others may ask anything."""
    fields = [field for shape in contract.shapes for field in shape.data["fields"].values()]
    if any(_JOINED & {*field["type"]} or not all(map(_is_plain_place, field["at"])) for field in fields):
        return False
    names = {name for shape in contract.shapes for name in shape.data["fields"]} | {name for shape in contract.shapes for name in _members(shape.data["match"])}
    if names & (_AROUND | _EXACT_FACTS) - {"code", "operation"}:
        return False
    conditions = [branch["when"] for node in contract.tree["nodes"].values() for branch in node["branches"]]
    return all(map(_is_simple, [*conditions, *(shape.data["match"] for shape in contract.shapes)]))


def _is_plain_place(place: Any) -> bool:
    return isinstance(place, str) and not any(part.isdecimal() or part == "-" for part in pointer_parts(place[place.find("/") :] if "/" in place else ""))


def _members(condition: Any) -> set[str]:
    """The names of members that a condition on a value asks for, below the names of what is probed."""
    value = condition.get("properties", {}).get("value") if isinstance(condition, dict) else None
    return names_in(value)


def _is_simple(condition: Any) -> bool:
    """Whether a condition asks with the keywords that are followed, and compares with texts, numbers and the like."""
    if isinstance(condition, list):
        return all(map(_is_simple, condition))
    if not isinstance(condition, dict):
        return True
    if not condition.keys() <= _FOLLOWED or any(isinstance(each, dict | list) for each in (condition.get("const"), *condition.get("enum", ()))):
        return False
    below = [condition[keyword] for keyword in ("not", "anyOf", "allOf", "oneOf") if keyword in condition]
    # What the wrappers around are is told by the brackets and names of a record.
    return all(map(_is_simple, [*below, *(each for name, each in condition.get("properties", {}).items() if name != "within")]))


def without_digits(text: str) -> str:
    """A text in which every word with a digit is the same."""
    return _WORD_WITH_DIGIT.sub("#", text)


def _last_names(place: str | Mapping[str, Any]) -> list[str]:
    """The names of the members that a place leads to."""
    paths = [place] if isinstance(place, str) else [each or place.get("at") or place["in"] for each in place.get("each", ("",))]
    return [_last_name(path) for path in paths]


def _last_name(place: str) -> str:
    parts = pointer_parts(place[place.find("/") :]) if "/" in place else ()
    return parts[-1] if parts else ""
