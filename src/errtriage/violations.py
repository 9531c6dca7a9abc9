"""Explains why a value does not satisfy a schema: root causes, each with its place, what is there and what would be right.

Imported only when there is something to explain, because jsonschema takes longer to import than all the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, lru_cache
from itertools import islice
from typing import Any

import orjson
from jsonschema import Draft202012Validator, validators
from jsonschema.exceptions import ValidationError, relevance
from referencing import Registry

from errtriage.contracts import compiled
from errtriage.cuts import may_go_on
from errtriage.model import Violation
from errtriage.pointers import pointer

#: The longest value that a message shows, in characters.
_LONGEST = 80
_TYPES = {
    "object": "an object",
    "array": "an array",
    "string": "a string",
    "number": "a number",
    "integer": "a whole number",
    "boolean": "true or false",
    "null": "null",
}

#: Where a reference outside of a schema leads: nowhere, so that it is an error and not a request.
_NOTHING: Registry[Any] = Registry()


@lru_cache(256)
def _matcher(pattern: str) -> Any:
    return compiled({"pattern": pattern})


def _pattern(_validator: Any, pattern: str, text: Any, _schema: Any) -> Iterator[ValidationError]:
    """The keyword ``pattern``, in linear time: a pack's pattern and a payload's text may both be hostile."""
    if isinstance(text, str) and not _matcher(pattern).is_valid(text):
        yield ValidationError(f"does not match {pattern!r}")


def _unique(_validator: Any, wanted: Any, items: Any, _schema: Any) -> Iterator[ValidationError]:
    """The keyword ``uniqueItems``, without comparing each item with each."""
    if wanted is True and isinstance(items, list) and not _unique_items().is_valid(items):
        yield ValidationError("has non-unique elements")


@cache
def _unique_items() -> Any:
    return compiled({"uniqueItems": True})


_Validator: Any = validators.extend(Draft202012Validator, {"pattern": _pattern, "uniqueItems": _unique})  # type: ignore[no-untyped-call]


def explain(
    schema: Mapping[str, Any], value: Any, hide: Callable[[str], str], registry: Registry[Any] = _NOTHING, most: int | None = None
) -> tuple[Violation, ...]:
    """Every root cause for which ``value`` breaks the schema, in the order of their places.

    ``hide`` redacts and cleans what is shown of the value. References outside of the schema lead into ``registry``, and
    are never fetched. With ``most`` no more than so many errors are explained.
    """
    validator = _Validator(schema, registry=registry)
    causes = [cause for error in islice(validator.iter_errors(_plain(value)), most) for cause in _roots(error) if not _behind_cut(cause, value)]
    found = (Violation(hide(pointer(cause.absolute_path)), _keyword(cause), hide(_message(cause, hide))) for cause in causes)
    return tuple(dict.fromkeys(sorted(found, key=lambda violation: (violation.pointer, violation.keyword))))


def _behind_cut(cause: ValidationError, value: Any) -> bool:
    """Whether what is missing or wrong may only have been cut away, which is no violation."""
    for part in cause.absolute_path:
        value = value[part]
    missing = cause.validator == "required" or _only_required(cause.validator_value)
    return may_go_on(value) and (missing or not isinstance(value, dict | list))


def _plain(value: Any, depth: int = 0) -> Any:
    """A copy of a payload that the explaining validator can walk: what no schema looks at so deep is cut off."""
    if depth > 100:
        return None
    if isinstance(value, dict):
        return {name: _plain(member, depth + 1) for name, member in value.items()}
    if isinstance(value, list):
        return [_plain(item, depth + 1) for item in value]
    return value


def _hidden(value: Any, hide: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return hide(value)
    if isinstance(value, dict):
        return {hide(name): _hidden(member, hide) for name, member in value.items()}
    return [_hidden(item, hide) for item in value] if isinstance(value, list) else value


def _roots(error: ValidationError) -> Iterator[ValidationError]:
    """The causes behind an error: of alternatives, those of the one that came nearest."""
    if not error.context or _only_required(error.validator_value):
        yield error
        return
    nearest = min(_alternatives(error.context), key=lambda errors: (len(errors), [relevance(e) for e in errors]))
    for cause in nearest:
        yield from _roots(cause)


def _alternatives(errors: Iterable[ValidationError]) -> list[list[ValidationError]]:
    by_branch: dict[Any, list[ValidationError]] = {}
    for error in errors:
        by_branch.setdefault(error.schema_path[0] if error.schema_path else None, []).append(error)
    return list(by_branch.values())


def _only_required(alternatives: Any) -> bool:
    return isinstance(alternatives, list) and all(isinstance(each, dict) and each.keys() == {"required"} for each in alternatives)


def _keyword(error: ValidationError) -> str:
    return str(error.validator) if error.validator else "false"


def _message(error: ValidationError, hide: Callable[[str], str]) -> str:
    expected: Any = error.validator_value
    there = _show(error, hide)
    match error.validator:
        case "required":
            name = next(name for name in expected if f"'{name}' is a required" in error.message or repr(name) in error.message)
            return f"`{name}` is missing{_wanted(error.schema, name)}"
        case "oneOf" if _only_required(expected) and isinstance(error.instance, dict) and any(each["required"][0] in error.instance for each in expected):
            return "only one of these may be here: " + ", ".join(f"`{name}`" for each in expected for name in each["required"])
        case "anyOf" | "oneOf" if _only_required(expected):
            return "one of these is missing: " + ", ".join(f"`{name}`" for each in expected for name in each["required"])
        case "type":
            return f"{there} is not {_kinds(expected)}"
        case "const":
            return f"{there} is not {_json(expected)}"
        case "enum":
            return f"{there} is none of {', '.join(_json(each) for each in expected)}"
        case "not" if expected == {}:
            return f"{there} must not be here"
        case "additionalProperties" if expected is False:
            known = [*error.schema.get("properties", ())] if isinstance(error.schema, dict) else []
            there_are: Any = error.instance
            return "; ".join(f"`{hide(name)}` must not be here{_near(name, known)}" for name in there_are if name not in known)
        case "minimum" | "exclusiveMinimum":
            return f"{there} is below the least value, {_json(expected)}"
        case "maximum" | "exclusiveMaximum":
            return f"{there} is above the greatest value, {_json(expected)}"
        case "pattern":
            return f"{there} does not match the pattern {_json(expected)}"
        case _:
            return f"{there} does not satisfy `{_keyword(error)}`: {_json(expected)}"


def _wanted(schema: Any, name: str) -> str:
    """What a missing member would have to be, where the schema says it at once."""
    member = schema.get("properties", {}).get(name, {}) if isinstance(schema, dict) else {}
    if not isinstance(member, dict):
        return ""
    if "const" in member:
        return f"; it must be {_json(member['const'])}"
    if "enum" in member:
        return f"; it must be one of {', '.join(map(_json, member['enum']))}"
    return f"; it must be {_kinds(member['type'])}" if "type" in member else ""


def _near(name: str, known: list[str]) -> str:
    """The known name that an unknown one may have been meant for."""
    from difflib import get_close_matches

    near = get_close_matches(name, known, 1)
    return f" (did you mean `{near[0]}`?)" if near else ""


def _kinds(kinds: Any) -> str:
    return " or ".join(_TYPES.get(kind, kind) for kind in ([kinds] if isinstance(kinds, str) else kinds))


def _show(error: ValidationError, hide: Callable[[str], str]) -> str:
    """What stands there, hidden as it would be beside its name, which may say that it is a secret.

    Each string is hidden before it is written as JSON, whose escapes would keep control codes from the cleaning.
    """
    text = _json(_hidden(error.instance, hide))
    name = f'"{error.absolute_path[-1]}": ' if error.absolute_path else ""
    return hide(name + text).removeprefix(name)


def _json(value: Any) -> str:
    try:
        text = orjson.dumps(value).decode()
    except TypeError:
        text = str(value)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
