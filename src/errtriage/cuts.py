"""Marks on what was cut short: values whose end a log took away. What is not there may have been."""

from __future__ import annotations

from typing import Any


class CutStr(str):
    """A string whose end was cut away."""

    __slots__ = ()


class CutDict(dict[str, Any]):
    """An object whose end was cut away: a member that is not there may have been."""

    __slots__ = ()


class CutList(list[Any]):
    """An array whose end was cut away."""

    __slots__ = ()


def plain(value: Any) -> Any:
    """A copy of a value without the marks of a cut, for readers that know only the plain types."""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, dict):
        return {name: plain(member) for name, member in value.items()}
    return [plain(item) for item in value] if isinstance(value, list) else value


def may_go_on(value: Any) -> bool:
    """Whether the end of a value was cut away."""
    return isinstance(value, CutStr | CutDict | CutList)
