"""Reads ``MCP error CODE: MESSAGE``, as the official SDKs print a JSON-RPC error."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

#: Without this there is no error text.
MARK = "MCP error "


@cache
def _pattern() -> Any:
    import re

    # Of nested ones the innermost counts. A stack trace is no part of the message.
    return re.compile(rf"(?:{MARK}-?\d{{1,9}}: )*{MARK}(?P<code>-?\d{{1,9}}): (?P<message>.*?)(?=\n\s+at |\Z)", re.DOTALL)


def error_text(text: str) -> dict[str, Any] | None:
    """The error that a text holds, as JSON-RPC would write it."""
    match = _pattern().search(text)
    return {"code": int(match["code"]), "message": match["message"]} if match else None


def in_lines(text: str) -> Iterator[tuple[int, int, int, dict[str, Any]]]:
    """The errors in a text of lines: where the line begins, the error's first mark and its line's end; one that a line
    repeats counts once.
    """
    position = text.find(MARK)
    while position >= 0:
        start = text.rfind("\n", 0, position) + 1
        end = text.find("\n", position)
        end = end if end >= 0 else len(text)
        if error := error_text(text[position:end]):
            # What follows on the line after a separator is the logger's, not the message's.
            yield start, position, end, {**error, "message": error["message"].partition(" | ")[0]}
        position = text.find(MARK, end)
