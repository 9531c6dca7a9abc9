"""A Rich console that prints what it is given, and nothing else: no markup, no wrapping of its own, no guesses."""

from __future__ import annotations

from typing import TextIO

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

#: Lines of prose are not longer than this, however wide the terminal is.
WIDEST = 100


class _Console(Console):
    """Rich ends the program with exit code 1 when the reader of a pipe goes away; that is for the command to decide."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


class Terminal:
    """Prints lines; ``width`` is the terminal's, or None for a pipe, where nothing is wrapped."""

    def __init__(self, stream: TextIO, *, color: bool, width: int | None) -> None:
        self._console = _Console(
            file=stream, force_terminal=color, color_system="standard" if color else None, width=10_000,
            highlight=False, markup=False, emoji=False, legacy_windows=False,
            _environ={},  # what the environment asks for is decided before
        )  # fmt: skip
        #: How wide the terminal is, in cells; None for a pipe.
        self.width = width
        self._prose = min(width, WIDEST) if width else None

    def line(self, text: Text | str = "") -> None:
        """Print one line as it is, however long."""
        self._console.print(Text(text) if isinstance(text, str) else text, soft_wrap=True)

    def rule(self) -> None:
        """Print a line that sets two parts off."""
        self.line(Text("─" * (self._prose or 80), "dim"))

    def prose(self, text: str, *, indent: int = 0, first: str = "", mark: str = "", style: str = "") -> None:
        """Print a sentence, wrapped where there is a width; its first line may begin with a mark in a style of its own."""
        lines = wrapped(text, self._prose - indent) if self._prose else [text]
        for number, line in enumerate(lines):
            lead = (first, mark) if number == 0 and first else " " * indent
            self.line(Text.assemble(lead, (line, style)))


def wrapped(text: str, width: int) -> list[str]:
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
