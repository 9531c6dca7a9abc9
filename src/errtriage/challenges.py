"""Reads headers of responses: all by their names, and the challenges of WWW-Authenticate (RFC 9110, section 11.6.1)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

_WORD = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"


@cache  # most responses have no such header
def _part() -> re.Pattern[str]:
    return re.compile(
        rf"""[\s,]*(?:
            (?P<name>{_WORD})\s*=\s*(?:"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<plain>{_WORD}))
          | (?P<scheme>{_WORD})(?:[ ]+[A-Za-z0-9._~+/-]+=*(?=\s*(?:,|$)))?
        )""",
        re.VERBOSE | re.DOTALL,
    )


def challenges(header: str) -> dict[str, dict[str, str]]:
    """The challenges of a header by their schemes, each with its parameters; all names in lower case.

    Of a scheme or parameter that comes twice the first counts. What cannot be read ends it.
    """
    found: dict[str, dict[str, str]] = {}
    parameters: dict[str, str] = {}
    at = 0
    while match := _part().match(header, at):
        at = match.end()
        if match["scheme"]:
            parameters = found.setdefault(match["scheme"].lower(), {})
        else:
            value = match["plain"] if match["quoted"] is None else re.sub(r"\\(.)", r"\1", match["quoted"], flags=re.DOTALL)
            parameters.setdefault(match["name"].lower(), value)
    return found


def by_name(pairs: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Headers by their names in lower case: of one that occurs twice the first counts, but several WWW-Authenticate are one list."""
    headers = {name.lower(): value for name, value in reversed(pairs)}
    asked = [value for name, value in pairs if name.lower() == "www-authenticate"]
    return headers | {"www-authenticate": ", ".join(asked)} if len(asked) > 1 else headers
