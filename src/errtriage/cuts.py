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


class Unseen:
    """A value that is there and was not printed (``[Object]``)."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "UNSEEN"


UNSEEN = Unseen()


def plain(value: Any) -> Any:
    """A copy of a value without the marks of a cut, for readers that know only the plain types."""
    if isinstance(value, Unseen):
        return None
    if isinstance(value, str):
        return str(value)
    if isinstance(value, dict):
        return {name: plain(member) for name, member in value.items()}
    return [plain(item) for item in value] if isinstance(value, list) else value


def may_go_on(value: Any) -> bool:
    """Whether the end of a value was cut away."""
    return isinstance(value, CutStr | CutDict | CutList | Unseen)


def is_cut(value: Any) -> bool:
    """Whether a value, or anything in it, was cut or not printed."""
    if may_go_on(value):
        return True
    members = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(is_cut(member) for member in members)


def agree(one: Any, other: Any) -> bool:
    """Whether two values may be the same: what is there of both is, and the rest was cut or not printed."""
    if isinstance(one, Unseen) or isinstance(other, Unseen):
        return True
    if isinstance(one, str) and isinstance(other, str) and (isinstance(one, CutStr) or isinstance(other, CutStr)):
        return one.startswith(other) or other.startswith(one)
    if isinstance(one, dict) and isinstance(other, dict):
        missing = (one.keys() - other.keys() and not may_go_on(other)) or (other.keys() - one.keys() and not may_go_on(one))
        return not missing and all(agree(member, other[name]) for name, member in one.items() if name in other)
    if isinstance(one, list) and isinstance(other, list):
        lengths = len(one) == len(other) or may_go_on(one) or may_go_on(other)
        return lengths and all(agree(each, its) for each, its in zip(one, other, strict=False))
    return type(one) is type(other) and bool(one == other)
