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


def _known(contract: Contract, entry: Code, readings: tuple[Reading, ...]) -> Known:
    data = entry.data
    return Known(
        contract.name,
        contract.origin,
        data["code"] if "code" in data else f"{data['from']} to {data['to']}",
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
    for example in contract.examples().values():
        given = example.get("given", {})
        worker = given_to(triage, given)
        verdicts = worker.text(example["input"]) if isinstance(example["input"], str) else worker.value(example["input"])
        found += [Reading(example.get("about", ""), example["input"], given, verdict) for verdict in verdicts if verdict.contract == contract.name]
    return found


def given_to(triage: Triage, given: Mapping[str, Any]) -> Triage:
    """A triage for an example: with what was known beside its input."""
    return triage.given(given.get("contract"), given.get("tool"), Http.known(given.get("status"), given.get("headers")))


def matching(known: Iterable[Known], asked: str) -> list[Known]:
    """The codes that ``asked`` names: a code (a number also by its range), or CONTRACT/CODE; upper and lower case count."""
    contract, slash, code = asked.rpartition("/")
    return [each for each in known if (not slash or each.contract == contract) and (each.code == code or _in_range(each.code, code))]


def _in_range(code: str, asked: str) -> bool:
    first, to, last = code.partition(" to ")
    try:
        return bool(to) and int(first) <= int(asked) <= int(last)
    except ValueError:
        return False
