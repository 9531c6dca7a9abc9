"""All that there is to know about a code: what the catalogue says, and the verdicts about the pack's own examples of it.

What to do about a code is decided by the tree, and not by the catalogue alone; the examples show it, and a test holds
that every code has one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from errtriage.contracts import Code, Contract
from errtriage.model import Http, Verdict
from errtriage.verdicts import Triage


class Reading(NamedTuple):
    """What a code means in one example: the example itself, what was given beside it, and the verdict."""

    about: str
    example: Any
    given: Mapping[str, Any]
    verdict: Verdict


class Known(NamedTuple):
    """One code of one contract. ``documented`` is false where the service lists the code and says nothing about it."""

    contract: str
    #: Where the contract is from, in words; empty for a bundled one.
    origin: str
    code: str
    #: Other ways in which payloads write the code.
    aliases: tuple[str, ...]
    title: str
    group: str
    group_title: str
    retryable: bool | None
    documented: bool
    source: str
    readings: tuple[Reading, ...]

    @property
    def actions(self) -> list[str]:
        """What is to be done about it, in every reading once."""
        return list(dict.fromkeys(str(reading.verdict.action) for reading in self.readings))


def everything(contracts: Iterable[Contract], triage: Triage) -> list[Known]:
    """Every code of the given contracts, in the order of their catalogues. ``triage`` makes the verdicts."""
    found = []
    for contract in contracts:
        readings = _readings(contract, triage)
        for entry in contract.catalogue.entries:
            mine = tuple(reading for reading in readings if reading.verdict.code is not None and contract.catalogue.find(reading.verdict.code) == entry)
            found.append(_known(contract, entry, mine))
    return found


def _name(entry: Code) -> str:
    """A code, or the range that it stands for."""
    return entry.data["code"] if "code" in entry.data else f"{entry.data['from']} to {entry.data['to']}"


def _known(contract: Contract, entry: Code, readings: tuple[Reading, ...]) -> Known:
    data = entry.data
    return Known(
        contract.name,
        contract.origin,
        _name(entry),
        tuple(data.get("aliases", ())),
        data["title"],
        data["group"],
        entry.group["title"],
        entry.retryable,
        data.get("documented", True),
        contract.data["sources"][data["source"]],
        readings,
    )


def _readings(contract: Contract, triage: Triage) -> list[Reading]:
    """The verdicts about the pack's own examples."""
    found = []
    for example in contract.examples():
        given = example.get("given", {})
        worker = given_to(triage, given)
        verdicts = worker.text(example["input"]) if isinstance(example["input"], str) else worker.value(example["input"])
        found += [Reading(example.get("about", ""), example["input"], given, verdict) for verdict in verdicts if verdict.contract == contract.name]
    return found


def given_to(triage: Triage, given: Mapping[str, Any]) -> Triage:
    """A triage for an example: with what was known beside its input."""
    return triage.given(given.get("contract"), given.get("tool"), Http.known(given.get("status"), given.get("headers")))


def matching(known: Iterable[Known], asked: str) -> list[Known]:
    """The codes that ``asked`` names: a code (a number also by its range, and by what else it is written as), or
    CONTRACT/CODE; with a ``*`` at its end those that begin so. Upper and lower case count.
    """
    found = [each for each in known if _fits(asked, each.contract, each.code, each.aliases)]
    # A range is what is said of the numbers in it that have no entry of their own.
    own = {each.contract for each in found if " to " not in each.code}
    return [each for each in found if asked.endswith("*") or " to " not in each.code or each.contract not in own]


def contracts_with(contracts: Iterable[Contract], asked: Iterable[str]) -> list[Contract]:
    """The contracts of which some code is asked for: the examples of the others need not be read."""
    asked = list(asked)
    return [
        contract
        for contract in contracts
        if any(_fits(each, contract.name, _name(entry), entry.data.get("aliases", ())) for each in asked for entry in contract.catalogue.entries)
    ]


def _fits(asked: str, contract: str, code: str, aliases: Iterable[str]) -> bool:
    if asked.endswith("*"):
        return f"{contract}/{code}".startswith(asked[:-1]) or code.startswith(asked[:-1])
    of, slash, name = asked.rpartition("/")
    return (not slash or of == contract) and (name == code or name in aliases or _in_range(code, name))


def _in_range(code: str, asked: str) -> bool:
    first, to, last = code.partition(" to ")
    try:
        return bool(to) and int(first) <= int(asked) <= int(last)
    except ValueError:
        return False
