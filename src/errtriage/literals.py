"""Reads literals that are not quite JSON: Python's repr, Node's util.inspect, pasted and cut JSON. Nothing is evaluated.

One reader for all of them, since logs mix them: ``ast`` knows neither a cut text nor ``TextContent(type='text')`` without
its class, and the JavaScript readers on the registry know neither joined strings nor ``[Object]``. Values that the text
does not show (``[Object]``) are marked as unseen, ``undefined`` is None, ``... 3 more items`` are left out; nothing is
made up.

A text may be cut short. Then the containers that were open are CutDict and CutList, a string that has no end is CutStr,
and a number or word that touches the cut is left out, because it may have gone on.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from errtriage.cuts import UNSEEN, CutDict, CutList, CutStr
from errtriage.jsontext import paired

#: Containers nested deeper than this are not read (a bound against hostile input).
MAX_DEPTH = 100


class Literal(NamedTuple):
    """A value, where it ends, whether it had to be mended, whether it was cut, and whether something was not printed."""

    value: Any
    end: int
    repaired: bool
    cut: bool
    unseen: bool = False


class Broken(ValueError):
    """The text at ``at`` fits no literal; ``complete`` are the containers that were read until there."""

    def __init__(self, at: int, complete: list[Any]) -> None:
        super().__init__(f"no literal at character {at}")
        self.at = at
        self.complete = complete


_SPACE = re.compile(r"[\s\ufeff]*")
_WORD = re.compile(r"[A-Za-z_$][\w$]*(?:\.[A-Za-z_$<][\w$<>]*)*")
_NUMBER = re.compile(r"[-+]?(?:0[xX][0-9a-fA-F]+|Infinity\b|(?:\d[\d_]*)(?:\.\d*)?(?:[eE][-+]?\d+)?)n?")
_SYMBOL = re.compile(r"\[[\w() .]+\]")
# What Node shows of an array with its hidden members.
_HIDDEN_MEMBER = re.compile(r"\[[\w() .]+\]:")
_BETWEEN = re.compile(r"[ \t]*")
_NAME = re.compile(r"([A-Za-z_]\w*)=(?!=)")
# What stands for a value that was not printed.
_OPAQUE = re.compile(
    r"\[(?:Object|Array|Function|AsyncFunction|class|Circular|Getter|Setter|Symbol|Date|Getter/Setter)\b[^\]\n]*\]"
    r"|<(?!ref)[A-Za-z][^>\n]*>|\{\.\.\.\}|\[\.\.\.\]"
)
_MORE = re.compile(r"\.\.\. ?(?:\d+ more (?:items?|properties|characters?))?")
_REFERENCE = re.compile(r"<ref \*\d+>\s*")
_CLASS = re.compile(r"(?:[A-Za-z_$][\w$.]*(?:\(\d+\))?|\[[A-Z][\w$ :]*\])\s+(?=[{\[])")
#: What a logger writes where it cut a text.
_CUT_MARK = re.compile(r"\s*(?:…|\.\.\.(?!\.)|\[?\(?<?\+?\d* ?(?:truncated|bytes omitted|more characters)\b)")

_WORDS: dict[str, Any] = {
    "true": True, "True": True, "false": False, "False": False, "null": None, "None": None, "undefined": None,
    "NaN": None, "nan": None, "inf": None, "Infinity": None,
}  # fmt: skip
_MENDED_WORDS = frozenset({"NaN", "nan", "inf", "Infinity"})

_CLOSERS = {"{": "}", "[": "]", "(": ")"}
_QUOTES = {'"': '"', "'": "'", "`": "`", "“": "”", "‘": "’"}
_PLAIN = {quote: re.compile(rf"[^{re.escape(closer)}\\{'' if quote == '`' else chr(10)}]*") for quote, closer in _QUOTES.items()}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "0": "\0", "a": "\a"}
_HEX = re.compile(r"x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|u\{([0-9a-fA-F]{1,6})\}|U([0-9a-fA-F]{8})")
_AFTER_NUMBER = " \t\r\n,}])"
_CUT_SIGN = re.compile(r"[-+](?=\s*\Z|\r?\n)")
_CUT_EXPONENT = re.compile(r"[eE][-+]?\Z")
# A backslash at the end of its line has lost what it escaped.
_CUT_ESCAPE = re.compile(r"\\(?:[xuU]\{?[0-9a-fA-F]{0,7})?(?=\r?\n|\Z)")


class _Cut(Exception):
    """The text ended, or was cut, inside of a value."""


class _Open:
    """A container that is being read, and the name of the member that is being read in it."""

    __slots__ = ("name", "value")

    def __init__(self, value: dict[str, Any] | list[Any]) -> None:
        self.value = value
        self.name: str | None = None


_NOTHING: Any = object()


class _Reader:
    def __init__(self, text: str, start: int) -> None:
        self.text = text
        self.at = start
        self.repaired = False
        self.json = False
        self.unseen = False
        self.open: list[_Open] = []
        self.unfinished: Any = _NOTHING

    # Small steps

    def space(self) -> str:
        self.at = _SPACE.match(self.text, self.at).end()  # type: ignore[union-attr]
        return self.text[self.at] if self.at < len(self.text) else ""

    def skip(self, pattern: re.Pattern[str]) -> bool:
        match = pattern.match(self.text, self.at)
        if match:
            self.at = match.end()
        return bool(match)

    def fail(self) -> ValueError | _Cut:
        """The error for what stands here: the text was cut, or it is no literal."""
        if self.at >= len(self.text) or _CUT_MARK.match(self.text, self.at) or self.begins_line():
            return _Cut()
        return ValueError()

    def begins_line(self) -> bool:
        """Whether what stands here is the first on its line: then the line before may have been cut."""
        at = self.at - 1
        while at >= 0 and self.text[at] in " \t\r":
            at -= 1
        return at >= 0 and self.text[at] == "\n"

    # Values

    def value(self) -> Any:
        character = self.space()
        if self.skip(_REFERENCE):
            character = self.space()
        if character in _QUOTES and character:
            return self.finished(self.string())
        if self.skip(_OPAQUE):
            self.unseen = True
            return UNSEEN
        if (prefix := _CLASS.match(self.text, self.at)) and self.text[self.at : prefix.end()].strip() not in _WORDS:
            self.at = prefix.end()
            character = self.text[self.at]
        if character and character in "{[(":
            return self.container(character)
        if _CUT_SIGN.match(self.text, self.at):
            raise _Cut
        if number := _NUMBER.match(self.text, self.at):
            return self.number(number)
        if word := _WORD.match(self.text, self.at):
            return self.word(word)
        raise self.fail()

    def finished(self, text: str) -> str:
        """A string that has its end; one that has not is kept as what the cut left."""
        if isinstance(text, CutStr):
            self.unfinished = text
            raise _Cut
        return text

    def container(self, bracket: str) -> Any:
        if len(self.open) >= MAX_DEPTH:
            raise ValueError
        self.at += 1
        value: dict[str, Any] | list[Any] = {} if bracket == "{" else []
        self.open.append(_Open(value))
        closer = _CLOSERS[bracket]
        while (character := self.space()) != closer:
            if not character:
                raise _Cut
            if not self.skip(_MORE):
                if isinstance(value, dict):
                    self.member(value)
                elif self.skip(_HIDDEN_MEMBER):
                    self.value()
                else:
                    value.append(self.value())
            if self.space() == ",":
                self.at += 1
            elif self.space() != closer:
                raise self.fail()
        self.at += 1
        return self.open.pop().value

    def member(self, value: dict[str, Any]) -> None:
        name = self.name()
        character = self.space()
        if character in (":", "="):
            self.at += 2 if self.text.startswith("=>", self.at) else 1
        else:
            raise self.fail()
        self.put(value, name)

    def put(self, value: dict[str, Any], name: str) -> None:
        self.open[-1].name = name
        value[name] = self.value()
        self.open[-1].name = None

    def name(self) -> str:
        character = self.space()
        if character in _QUOTES:
            self.json |= character == '"'
            name = self.string()
            if isinstance(name, CutStr):
                raise _Cut
            return name
        if self.json:  # names are quoted in JSON; another line begins here
            raise self.fail()
        match = _WORD.match(self.text, self.at) or _NUMBER.match(self.text, self.at) or _SYMBOL.match(self.text, self.at)
        if not match or match.end() == self.at:
            raise self.fail()
        self.at = match.end()
        if self.at >= len(self.text):
            raise _Cut
        return match[0]

    def number(self, match: re.Match[str]) -> int | float | str | None:
        if self.cut_behind(match.end()) or _CUT_EXPONENT.match(self.text, match.end()):
            raise _Cut
        if self.text[match.end()] not in _AFTER_NUMBER:
            raise self.fail()
        self.at = match.end()
        digits = match[0].rstrip("n").replace("_", "")
        if "Infinity" in digits:
            self.repaired = True
            return None
        if "x" in digits.lower():
            return int(digits, 16)
        try:
            return int(digits)
        except ValueError:
            return float(digits) if len(digits) < 400 else digits

    def cut_behind(self, end: int) -> bool:
        """Whether a number or a word that ends here may have gone on: the text ends, or its line does and nothing closes."""
        after = _SPACE.match(self.text, end)
        assert after
        following = self.text[after.end() : after.end() + 1]
        return not following or bool(_CUT_MARK.match(self.text, end)) or ("\n" in after[0] and following not in ",}])+")

    def word(self, match: re.Match[str]) -> Any:
        word = match[0]
        after = self.text[match.end() : match.end() + 1]
        if word in ("b", "r", "u", "f", "rb", "br") and after in ("'", '"'):
            self.at = match.end()
            return self.finished(self.string())
        if word in _WORDS:
            self.at = match.end()
            self.repaired |= word in _MENDED_WORDS
            return _WORDS[word]
        if after == "(":
            self.at = match.end()
            return self.call()
        raise _Cut if self.cut_behind(match.end()) else self.fail()

    def call(self) -> Any:
        """A constructor: its named arguments as an object, else its only argument, else nothing that could be read."""
        if len(self.open) >= MAX_DEPTH:
            raise ValueError
        self.at += 1
        named: dict[str, Any] = {}
        self.open.append(_Open(named))
        plain: list[Any] = []
        while (character := self.space()) != ")":
            if not character:
                raise _Cut
            if name := _NAME.match(self.text, self.at):
                self.at = name.end()
                self.put(named, name[1])
            else:
                plain.append(self.value())
            if self.space() == ",":
                self.at += 1
            elif self.space() != ")":
                raise self.fail()
        self.at += 1
        self.open.pop()
        return named or (plain[0] if len(plain) == 1 else None)

    def names(self) -> dict[str, Any]:
        """``name=value name=value``, as pydantic prints a model."""
        value: dict[str, Any] = {}
        self.open.append(_Open(value))
        while name := _NAME.match(self.text, self.at):
            self.at = name.end()
            self.put(value, name[1])
            self.skip(_BETWEEN)
        self.open.pop()
        return value

    # Strings

    def string(self) -> str:
        """A string, with those that are joined to it by ``+`` or by standing beside it."""
        parts = [self.piece()]
        while not isinstance(parts[-1], CutStr):
            here = self.at
            character = self.space()
            if character == "+":
                self.at += 1
                character = self.space()
                if not character:
                    return CutStr("".join(parts))
            if character not in ("'", '"', "`") or (self.at == here and character):
                self.at = here
                return "".join(parts)
            parts.append(self.piece())
        return CutStr("".join(parts))

    def piece(self) -> str:
        quote = self.text[self.at]
        closer = _QUOTES[quote]
        self.repaired |= quote in "“‘"
        if quote in "'\"" and self.text.startswith(quote * 3, self.at):
            return self.long(quote * 3)
        parts: list[str] = []
        position = self.at + 1
        while True:
            plain = _PLAIN[quote].match(self.text, position)
            assert plain
            parts.append(plain[0])
            position = plain.end()
            character = self.text[position : position + 1]
            if character == closer:
                self.at = position + 1
                return self.whole(parts)
            if character != "\\" or _CUT_ESCAPE.match(self.text, position):
                # A string ends with its line: a log line was cut in it.
                self.at = position
                return CutStr(self.whole(parts))
            position = self.escape(position + 1, parts)

    def long(self, quotes: str) -> str:
        end = self.text.find(quotes, self.at + 3)
        text = self.text[self.at + 3 : end if end >= 0 else len(self.text)]
        self.at = end + 3 if end >= 0 else len(self.text)
        return text if end >= 0 else CutStr(text)

    def escape(self, position: int, parts: list[str]) -> int:
        if match := _HEX.match(self.text, position):
            code = int(next(group for group in match.groups() if group), 16)
            parts.append(chr(code) if code < 0x110000 else "\ufffd")
            return match.end()
        character = self.text[position]
        parts.append(_ESCAPES.get(character, character))
        return position + 1

    def whole(self, parts: list[str]) -> str:
        text = paired("".join(parts))
        self.repaired |= "\ufffd" in text and not any("\ufffd" in part for part in parts)
        return text


def read(text: str, start: int, *, names: bool = False) -> Literal:
    """Read the literal that begins at ``start``: a container, a constructor or, with ``names``, a row of name=value.

    Raises Broken where the text is none.
    """
    reader = _Reader(text, start)
    try:
        value = reader.names() if names else reader.value()
    except _Cut:
        return Literal(_left(reader), reader.at, reader.repaired, cut=True)
    except (ValueError, OverflowError):
        members = [each for outer in reader.open for each in (outer.value.values() if isinstance(outer.value, dict) else outer.value)]
        raise Broken(reader.at, [each for each in members if isinstance(each, dict | list)]) from None
    # With JSON's quotes it is JSON that the strict reader refused: a comma too many, a control character, a zero in front.
    return Literal(value, reader.at, reader.repaired or reader.json, cut=False, unseen=reader.unseen)


def _left(reader: _Reader) -> Any:
    """What the cut left: the containers that were open, each marked as cut, with what was read of the next inside."""
    value = reader.unfinished
    for outer in reversed(reader.open):
        if isinstance(outer.value, dict):
            members = outer.value if value is _NOTHING or outer.name is None else {**outer.value, outer.name: value}
            value = CutDict(members)
        else:
            value = CutList(outer.value if value is _NOTHING else [*outer.value, value])
    return None if value is _NOTHING else value
