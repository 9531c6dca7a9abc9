"""JSON Pointers (RFC 6901): building and following them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

#: What ``follow`` returns where a pointer leads nowhere; None is a value of its own.
MISSING: Any = object()


def pointer(parts: Iterable[str | int]) -> str:
    """The pointer to the member under ``parts``."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in parts)


@lru_cache(4096)  # the places of packs are followed for every payload
def pointer_parts(path: str) -> tuple[str, ...]:
    """The names and indices that a pointer leads through."""
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in path.split("/")[1:])


def follow(value: Any, path: str) -> Any:
    """The member that ``path`` leads to, or MISSING."""
    return follow_parts(value, pointer_parts(path))


def follow_parts(value: Any, parts: Iterable[str]) -> Any:
    """The member under ``parts``, or MISSING."""
    for part in parts:
        if isinstance(value, dict):
            value = value.get(part, MISSING)
        elif isinstance(value, list) and part.isdecimal() and len(part) < 10 and int(part) < len(value):
            value = value[int(part)]
        else:
            return MISSING
    return value
