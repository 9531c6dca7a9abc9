"""The lint rules: conditions from the packs, and the few general predicates that packs may name.

A rule applies to payloads of its own contract or, with ``about``, to any payload that has this wrapper around it,
whatever contract it is of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from errtriage.contracts import Condition, Contract, Contracts, names_in, own_conduct, own_rules, unknown_name
from errtriage.cuts import may_go_on
from errtriage.facts import Facts
from errtriage.model import Failure, Finding, Payload
from errtriage.pointers import MISSING, follow, pointer
from errtriage.redact import service_secrets
from errtriage.wording import Words

Rule = Mapping[str, Any]
Holds = Callable[[Condition, Any], bool]


def findings(payload: Payload, facts: Facts, words: Words, contracts: Contracts, unread: set[str]) -> tuple[Finding, ...]:
    """Every rule that a payload breaks, in the order of the packs; none that asks for a fact that was cut away."""
    places = wrappers(payload)
    found: list[Finding] = []
    for rule, contract in _rules_for(contracts, payload.contract, payload.shape, tuple(places)):
        if unread and unread & names_in(rule.get("when", {})):
            continue
        found += _broken(rule, places, facts, words, contract)
    return tuple(found)


@lru_cache(256)
def _rules_for(contracts: Contracts, name: str, shape: str, present: tuple[str, ...]) -> list[tuple[Rule, Contract]]:
    """The rules about payloads of a shape, or about the wrappers around them, each with its contract."""
    found: list[tuple[Rule, Contract]] = []
    for contract in contracts:
        own = contract.name == name
        for rule in contract.rules if own or contract.data.get("wraps") else ():
            about = rule.get("about")
            applies = about in present if about else own and shape in rule.get("shapes", (shape,))
            if applies and rule.get("in", "payload") in present:
                found.append((rule, contract))
    return found


def catalogue(contracts: Contracts) -> list[Rule]:
    """Every rule that there is: those of the packs, the most specific first, and errtriage's own.

    Each has its ``contract`` (``errtriage`` for its own) and its ``source`` in words.
    """
    packs = [
        {**rule, "contract": pack.name, "origin": pack.origin, "source": pack.data["sources"][rule["source"]]} for pack in contracts for rule in pack.rules
    ]
    own = {"contract": "errtriage", "origin": "", "source": "errtriage's own: what it takes to find and read a payload"}
    return [*packs, *({**rule, **own} for rule in own_rules())]


def conduct_catalogue(contracts: Contracts) -> list[Rule]:
    """The rules of audit: what each is about is errtriage's own, and what holds for which service stands in the packs.

    The examples are those of the first pack that has the rule; ``source`` names those of all.
    """
    found: list[Rule] = []
    for rule in own_conduct()["rules"]:
        entries = [(pack, entry) for pack in contracts for entry in pack.conduct["rules"] if entry["rule"] == rule["id"]]
        if entries:
            _, first = entries[0]
            sources = dict.fromkeys(f"{pack.name}: {pack.data['sources'][entry['source']]}" for pack, entry in entries)
            known = {"contract": "audit", "origin": "", "source": "; ".join(sources), "bad": first["bad"], "good": first["good"]}
            found.append({**rule, **known})
    return found


def selected(select: Sequence[str], ignore: Sequence[str], known: Sequence[str], others: Sequence[str] = ()) -> frozenset[str]:
    """The rules that count: those that ``select`` names (all, where it names none of them) without those that ``ignore`` names.

    Both hold ids or prefixes of ids. ``others`` may be named too, and mean nothing here. Raises Failure for one that fits no
    rule.
    """
    every = [*known, *others]
    chosen = {rule for each in select for rule in _named(each, every)} & {*known}
    return frozenset((chosen or {*known}) - {rule for each in ignore for rule in _named(each, every)})


def _named(given: str, known: Sequence[str]) -> list[str]:
    found = [rule for rule in known if rule.startswith(given.upper())]
    if not found or not given:
        raise Failure(*unknown_name("rule", given, list(known)))
    return found


def wrappers(payload: Payload) -> dict[str, Any]:
    """What a rule may point into, by name."""
    context = payload.context
    places: dict[str, Any] = {"payload": payload.value}
    if context.tool_result is not None:
        places["tool-result"] = context.tool_result.value
    if context.meta is not None:
        places["meta"] = {"_meta": context.meta}
    if context.rpc is not None:
        places["jsonrpc"] = context.rpc
    if context.http is not None:
        places["http"] = {"status": context.http.status, "headers": context.http.headers}
    return places


def _broken(rule: Rule, places: Mapping[str, Any], facts: Facts, words: Words, contract: Contract) -> Iterator[Finding]:
    if "when" in rule and not contract.conditions.hold(rule["when"], facts):
        return
    target = places[rule.get("in", "payload")]
    for at in _places(rule, target, places, words, contract):
        # What stands there, for the message; nothing where it is missing or more than a word.
        words.set_found(follow(target, at))
        yield Finding(rule["id"], rule["level"], at, words.say(rule["message"]) or rule["what"])


def _places(rule: Rule, target: Any, places: Mapping[str, Any], words: Words, contract: Contract) -> Iterator[str]:
    check = rule.get("check")
    if check is None:
        yield _first_place(rule.get("at", ""), target, words)
        return
    match check["name"]:
        case "differs":
            if _differ(_at(check["left"], places), _at(check["right"], places)):
                yield rule["at"]
        case "secret":
            yield from _secrets(check["at"], target, contract.secret_parameters)
        case "undocumented":
            yield from _undocumented(check["documented"], target)
        case "each":
            yield from _each(check, target, rule.get("at", ""), contract.conditions.hold)


def _first_place(at: Any, target: Any, words: Words) -> str:
    """The first of the given places that exists in the target (a place may stand under a condition)."""
    places = [at] if isinstance(at, str | Mapping) else at
    said = [place for each in places if (place := words.say(each)) is not None]
    return next((place for place in said if follow(target, place) is not MISSING), said[0] if len(said) == 1 else "")


def _at(place: str, places: Mapping[str, Any]) -> Any:
    wrapper, colon, path = place.partition(":")
    return follow(places.get(wrapper, {}), path) if colon and not place.startswith("/") else follow(places["payload"], place)


def _differ(left: Any, right: Any) -> bool:
    return left is not MISSING and right is not MISSING and right is not None and left != right


def _secrets(at: list[str], target: Any, parameters: frozenset[str]) -> Iterator[str]:
    for place in at:
        value = follow(target, place)
        items = [(f"{place}/{i}", item) for i, item in enumerate(value)] if isinstance(value, list) else [(place, value)]
        for path, text in items:
            if isinstance(text, str) and service_secrets(text, parameters) != text:
                yield path


def _undocumented(documented: Mapping[str, list[str]], target: Any) -> Iterator[str]:
    for place, names in documented.items():
        value = follow(target, place)
        if isinstance(value, dict):
            yield from (place + pointer([name]) for name in value if name not in names)


def _each(check: Mapping[str, Any], target: Any, at: str, hold: Holds) -> Iterator[str]:
    items = follow(target, check["at"])
    for i, item in enumerate(items if isinstance(items, list) else []):
        if not may_go_on(item) and not hold(check["item"], item):
            place = f"{check['at']}/{i}"
            yield place + at if follow(item, at) is not MISSING else place
