"""Verdicts for a terminal: what to do first, the id to quote alone on its own line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TextIO

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from errtriage.model import Outcome, Verdict
from errtriage.redact import clean
from errtriage.render.words import ACTIONS, OUTCOMES, identity, origin

#: Lines of prose are not longer than this, however wide the terminal is.
_WIDEST = 100
#: The longest message of a service that is shown, in characters; JSON output has all of it.
_LONGEST_MESSAGE = 400

# Labels in reverse colours read on light and dark backgrounds alike.
_LABELS: Mapping[Outcome, str] = {
    Outcome.SUCCESS: "bold black on green",
    Outcome.PENDING: "bold black on cyan",
    Outcome.NEEDS_INPUT: "bold black on cyan",
    Outcome.FAILURE: "bold white on red",
    Outcome.PARTIAL: "bold black on yellow",
    Outcome.UNCERTAIN: "bold black on yellow",
    Outcome.CANCELLED: "bold black on white",
    Outcome.UNRECOGNISED: "bold white on magenta",
}


class _Console(Console):
    """Rich ends the program with exit code 1 when the reader of a pipe goes away; that is for the command to decide."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


class TextRenderer:
    """Writes verdicts to a stream; ``width`` is the terminal's, or None for a pipe, where nothing is wrapped."""

    def __init__(self, stream: TextIO, *, color: bool, width: int | None, trace: bool) -> None:
        self._console = _Console(
            file=stream, force_terminal=color, color_system="standard" if color else None, width=10_000,
            highlight=False, markup=False, emoji=False, legacy_windows=False,
            _environ={},  # what the environment asks for is decided before
        )  # fmt: skip
        self._width = min(width, _WIDEST) if width else None
        self._trace = trace
        self._written = 0

    def write(self, verdict: Verdict) -> None:
        """Write one verdict; the second and later ones are set off by a line."""
        if self._written:
            self._print(Text("─" * (self._width or 80), "dim"))
        self._written += 1
        self._headline(verdict)
        self._prose(verdict.summary, style="bold")
        self._print(Text())
        self._section("What happened", [verdict.explanation])
        if verdict.message and verdict.message not in verdict.summary:
            self._prose(f"The service’s words: “{_short(verdict.message)}”", indent=2)
        self._list("What to do", verdict.steps)
        self._list("Never", [_without_never(item) for item in verdict.never], mark="✗", style="red")
        self._section("Tell the user", [verdict.say])
        self._problems(verdict)
        if self._trace:
            self._list("How it was decided", [f"{step.question} {step.answer}" for step in verdict.trace], mark="›", body="dim")
        self._prose(clean(origin(verdict)), indent=2, style="dim")
        self._id(verdict.correlation_id)

    def _headline(self, verdict: Verdict) -> None:
        label = Text(f" {OUTCOMES[verdict.outcome].upper()} ", _LABELS[verdict.outcome])
        self._print(Text.assemble(label, "  ", (ACTIONS[verdict.action], "bold")))
        self._prose(identity(verdict), style="dim")

    def _problems(self, verdict: Verdict) -> None:
        problems = [f"{each.pointer or '(the whole payload)'}: {each.message}" for each in verdict.violations]
        problems += [f"{each.rule} {each.level} at {each.pointer or '(the whole payload)'}: {each.message}" for each in verdict.findings]
        self._list("Against its contract", problems, mark="!")

    def _section(self, title: str, paragraphs: Iterable[str]) -> None:
        paragraphs = [paragraph for paragraph in paragraphs if paragraph]
        if paragraphs:
            self._print(Text(title, "bold"))
            for paragraph in paragraphs:
                self._prose(paragraph, indent=2)

    def _list(self, title: str, items: Iterable[str], *, mark: str = "", style: str = "", body: str = "") -> None:
        items = list(items)
        if not items:
            return
        self._print(Text(title, f"bold {style}".strip()))
        for number, item in enumerate(items, 1):
            first = f"  {mark or f'{number}.'} "
            self._prose(item, indent=len(first), first=first, mark=style or body, style=body)

    def _id(self, correlation: str | None) -> None:
        if correlation is None:
            return
        self._print(Text("Quote this id", "bold"))
        self._print(Text(correlation))

    def _prose(self, text: str, *, indent: int = 0, first: str = "", mark: str = "", style: str = "") -> None:
        lines = _wrapped(text, self._width - indent) if self._width else [text]
        for number, line in enumerate(lines):
            lead = (first, mark) if number == 0 and first else " " * indent
            self._print(Text.assemble(lead, (line, style)))

    def _print(self, text: Text) -> None:
        self._console.print(text, soft_wrap=True)


def _wrapped(text: str, width: int) -> list[str]:
    """Lines of at most ``width`` cells. A word is never cut, so that an id in a sentence stays whole."""
    lines = [""]
    used = 0
    for word in text.split():
        cells = cell_len(word)
        if used and used + 1 + cells > width:
            lines.append("")
            used = 0
        lines[-1] += f" {word}" if used else word
        used += cells + (1 if used else 0)
    return lines


def _without_never(prohibition: str) -> str:
    """Under the title Never the word need not stand in each line again."""
    rest = prohibition.removeprefix("Never ")
    return rest[:1].upper() + rest[1:] if rest != prohibition else prohibition


def _short(message: str) -> str:
    text = " ".join(message.split())
    return text if len(text) <= _LONGEST_MESSAGE else text[: _LONGEST_MESSAGE - 1] + "…"
