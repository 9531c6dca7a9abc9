"""Makes sentences from a pack's texts and a payload's facts.

A text is a sentence with ``{fact}`` in it, a list of alternatives, or a sentence under a condition. A sentence whose
fact is not known is left out, so a pack can never make errtriage say more than the payload does. Facts are cleaned
and redacted when a sentence asks for them, and nothing in them is interpreted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import orjson

_FACT = re.compile(r"\{([a-z_]+)\}")
#: The longest quotation of a fact inside a sentence, in characters.
_LONGEST = 1000

#: What texts may name beside the facts: the id as a part of a sentence, the delay in words, and (in rules) what was found.
READY = frozenset(("id_clause", "id_clause_quote", "delay", "found"))

Holds = Callable[[Mapping[str, Any]], bool]


def alternatives(text: Any) -> list[str]:
    """Every sentence that a text may come to, with its facts' names in it."""
    if isinstance(text, str):
        return [text]
    return alternatives(text["text"]) if isinstance(text, Mapping) else [said for each in text for said in alternatives(each)]


def facts_in(text: Any) -> set[str]:
    """The facts that a text names, in all of its alternatives."""
    return {name for each in alternatives(text) for name in _FACT.findall(each)}


def counted(number: int, what: str) -> str:
    """How many of something there are."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def where(name: str) -> str:
    """An input as people call it; ``-`` is standard input."""
    return "standard input" if name == "-" else name


def one_line(value: Any) -> str:
    """A fact on one line, booleans and null as in JSON."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return " ".join(str(value).split())


def shortened(text: str) -> str:
    """A fact as it stands in a sentence, of bounded length. It is redacted before: half a secret is not recognised."""
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


class Words:
    """The texts of one verdict: its facts, shown by ``show`` when a text names them, and the test for a text's condition."""

    def __init__(self, facts: Mapping[str, Any], show: Callable[[str], str], holds: Holds) -> None:
        self._facts = facts
        self._show = show
        self._holds = holds
        self._shown: dict[str, str] = {}

    def add(self, **texts: str) -> None:
        """Add texts that are ready to be shown, beside the facts."""
        self._shown.update(texts)

    def set_found(self, value: Any) -> None:
        """Let texts name ``found``, what a finding points at, as JSON writes it; objects and arrays have no such name."""
        self._shown.pop("found", None)
        if isinstance(value, str):
            value = self._show(value)
        if isinstance(value, str | int | float) or value is None:
            self._shown["found"] = shortened(orjson.dumps(value).decode() if isinstance(value, str) else one_line("null" if value is None else value))

    def _known(self, name: str) -> bool:
        return name in self._shown or name in self._facts

    def _fact(self, name: str) -> str:
        if name not in self._shown:
            self._shown[name] = shortened(self._show(one_line(self._facts[name])))
        return self._shown[name]

    def say(self, text: Any) -> str | None:
        """One text as a sentence, or None where it does not apply or a fact of it is not known."""
        if isinstance(text, str):
            if not all(self._known(name) for name in _FACT.findall(text)):
                return None
            return _FACT.sub(lambda match: self._fact(match[1]), text)
        if isinstance(text, Mapping):
            return self.say(text["text"]) if self._holds(text["when"]) else None
        return next((said for alternative in text if (said := self.say(alternative)) is not None), None)

    def with_gaps(self, text: Any) -> str:
        """A text whose facts are not all known, with … in their place; of alternatives the last."""
        return _FACT.sub(lambda match: self._fact(match[1]) if self._known(match[1]) else "…", alternatives(text)[-1])

    def all(self, texts: Iterable[Any]) -> list[str]:
        """Every text that applies, each once."""
        return list(dict.fromkeys(said for text in texts if (said := self.say(text)) is not None))
