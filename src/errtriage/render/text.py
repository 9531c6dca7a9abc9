"""Verdicts for a terminal: what to do first, the id to quote alone on its own line."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TextIO

from rich.text import Text

from errtriage.contracts import Contracts
from errtriage.model import Verdict
from errtriage.redact import clean
from errtriage.render.terminal import Terminal
from errtriage.render.words import ACTIONS, LABELS, OUTCOMES, identity, origin

#: The longest message of a service that is shown, in characters; JSON output has all of it.
_LONGEST_MESSAGE = 400


class TextRenderer:
    """Writes verdicts to a stream; ``width`` is the terminal's, or None for a pipe, where nothing is wrapped.

    ``trace`` says whether the tree is drawn with the path that was taken (True), the path is listed (None), or neither.
    """

    def __init__(self, stream: TextIO, *, color: bool, width: int | None, trace: bool | None, contracts: Contracts) -> None:
        self._terminal = Terminal(stream, color=color, width=width)
        self._trace = trace
        self._contracts = contracts
        self._written = 0

    def write(self, verdict: Verdict) -> None:
        """Write one verdict; the second and later ones are set off by a line."""
        if self._written:
            self._terminal.rule()
        self._written += 1
        self._headline(verdict)
        self._terminal.prose(verdict.summary, style="bold")
        self._terminal.line()
        self._section("What happened", [verdict.explanation])
        if verdict.message and verdict.message not in verdict.summary:
            self._terminal.prose(f"The service’s words: “{_short(verdict.message)}”", indent=2)
        self._list("What to do", verdict.steps)
        self._list("Never", [_without_never(item) for item in verdict.never], mark="✗", style="red")
        self._section("Tell the user", [verdict.say])
        self._problems(verdict)
        self._path(verdict)
        self._terminal.prose(clean(origin(verdict, self._contracts.origins)), indent=2, style="dim")
        self._id(verdict.correlation_id)

    def _headline(self, verdict: Verdict) -> None:
        label = Text(f" {OUTCOMES[verdict.outcome].upper()} ", LABELS[verdict.outcome])
        self._terminal.line(Text.assemble(label, "  ", (ACTIONS[verdict.action], "bold")))
        self._terminal.prose(identity(verdict), style="dim")

    def _problems(self, verdict: Verdict) -> None:
        problems = [f"{each.pointer or '(the whole payload)'}: {each.message}" for each in verdict.violations]
        problems += [f"{each.rule} {each.level} at {each.pointer or '(the whole payload)'}: {each.message}" for each in verdict.findings]
        self._list("Against its contract", problems, mark="!")

    def _path(self, verdict: Verdict) -> None:
        if self._trace and all(step.branch >= 0 for step in verdict.trace):
            from errtriage.render.tree_text import draw_path

            self._terminal.line(Text("How it was decided", "bold"))
            draw_path(self._terminal, self._contracts.get(verdict.contract), verdict.trace, "  ")
        elif self._trace is not False:
            self._list("How it was decided", [f"{step.question} {step.answer}" for step in verdict.trace], mark="›", body="dim")

    def _section(self, title: str, paragraphs: Iterable[str]) -> None:
        paragraphs = [paragraph for paragraph in paragraphs if paragraph]
        if paragraphs:
            self._terminal.line(Text(title, "bold"))
            for paragraph in paragraphs:
                self._terminal.prose(paragraph, indent=2)

    def _list(self, title: str, items: Iterable[str], *, mark: str = "", style: str = "", body: str = "") -> None:
        items = list(items)
        if not items:
            return
        self._terminal.line(Text(title, f"bold {style}".strip()))
        for number, item in enumerate(items, 1):
            first = f"  {mark or f'{number}.'} "
            self._terminal.prose(item, indent=len(first), first=first, mark=style or body, style=body)

    def _id(self, correlation: str | None) -> None:
        if correlation is None:
            return
        self._terminal.line(Text("Quote this id", "bold"))
        self._terminal.line(Text(correlation))


def _without_never(prohibition: str) -> str:
    """Under the title Never the word need not stand in each line again."""
    rest = prohibition.removeprefix("Never ")
    return rest[:1].upper() + rest[1:] if rest != prohibition else prohibition


def _short(message: str) -> str:
    text = " ".join(message.split())
    return text if len(text) <= _LONGEST_MESSAGE else text[: _LONGEST_MESSAGE - 1] + "…"
