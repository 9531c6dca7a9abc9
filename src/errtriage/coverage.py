"""Proves a pack by its examples: each gets the verdict that it promises, together they go every way that there is, scan
finds what is to be found, and no other contract loses a payload.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from errtriage import payloads, proof
from errtriage.contracts import Contract, Contracts, bundled, with_packs
from errtriage.jsontext import plain
from errtriage.knowledge import given_to
from errtriage.model import Failure, Outcome, Payload, Verdict
from errtriage.packs import Pack, within_bound
from errtriage.pointers import pointer
from errtriage.proof import Problem
from errtriage.render.jsonl import document
from errtriage.scan import Scanner, Settings, Slice
from errtriage.verdicts import Judged, Triage

_ADD = "Add an example to examples/ that does, or drop this."


class Covered(NamedTuple):
    """What a pack came to: what is wrong with it, and how much of it the examples went through."""

    problems: list[Problem]
    examples: int = 0
    codes: int = 0
    branches: int = 0
    rules: int = 0


class _Seen(NamedTuple):
    """What one example came to."""

    file: str
    judged: Judged
    verdict: Verdict


def check(pack: Pack) -> Covered:
    """Everything that is wrong with a pack, or that its examples do not show."""
    found = proof.problems(pack)
    if found:
        return Covered(found)
    # A pack that is bundled is proved as the one that it is.
    contracts = with_packs((pack,))
    contract = next(each for each in contracts if each.folder == Path(pack.folder))
    try:
        examples = contract.examples()
        within_bound(contract.folder / "examples", "*.json")
    except Failure as failure:
        return Covered([Problem("examples", "", str(failure))])
    triage = Triage(contracts)
    seen: list[_Seen] = []
    for name, example in examples.items():
        trouble = proof.held(f"examples/{name}", example, "example")
        found += trouble or _example(f"examples/{name}", example, contract, triage, seen)
    if not examples:
        found.append(Problem("examples", "", "there are no examples", "Put an answer and what must be said of it into examples/NAME.json."))
    ways = list(_ways(contract, seen))
    found += [*ways, *_entries(contract, seen), *_rules(contract, triage), *_scanned(pack, examples, seen), *_intact(contract, contracts)]
    branches = sum(len(node["branches"]) + 1 for node in contract.tree["nodes"].values())
    return Covered(found, len(examples), len(contract.catalogue.entries), branches, len(contract.rules))


def _payloads(triage: Triage, example: Mapping[str, Any]) -> tuple[Triage, list[Payload]]:
    worker = given_to(triage, example.get("given", {}))
    value = example["input"]
    records = worker.records(value) if isinstance(value, str) else _records(value)
    return worker, list(worker.find(records, value if isinstance(value, str) else ""))


def _records(value: Any) -> list[payloads.Record]:
    value = plain(value)
    return [payloads.Record(1, each, whole=True) for each in (value if isinstance(value, list) else [value])]


def _example(file: str, example: Mapping[str, Any], contract: Contract, triage: Triage, seen: list[_Seen]) -> Iterator[Problem]:
    """What is wrong with an example; what it came to is added to ``seen``."""
    worker, found = _payloads(triage, example)
    if len(found) != 1:
        message = f"holds {len(found) or 'no'} payloads, and an example is about one"
        yield Problem(file, "/input", message, "Does `match` in contract.json ask for what stands here?")
        return
    payload = found[0]
    if payload.contract != contract.name:
        yield Problem(file, "/input", f"is recognised as {payload.contract} ({payload.shape})", f"A rank below that of {payload.contract} goes first.")
        return
    judged, verdict = worker.judge(payload), worker.decide(payload)
    seen.append(_Seen(file, judged, verdict))
    got = document(verdict)
    for place, wanted, there in _differences(example["expect"], got, ()):
        yield Problem(file, pointer(("expect", *place)), f"expects {_json(wanted)}, and the verdict has {_json(there)}")
    if verdict.code is not None and verdict.code.lower() in verdict.say.lower():
        yield Problem(file, "/input", f"the plain words say the code: “{verdict.say}”", "`say` is for an end user, who does not know codes.")


def _differences(wanted: Any, got: Any, at: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], Any, Any]]:
    """Where a verdict is not what an example expects: objects by key, lists item by item."""
    if isinstance(wanted, dict) and isinstance(got, dict):
        for name, member in wanted.items():
            yield from _differences(member, got.get(name), (*at, name))
    elif isinstance(wanted, list) and isinstance(got, list) and len(wanted) == len(got):
        for i, (each, other) in enumerate(zip(wanted, got, strict=True)):
            yield from _differences(each, other, (*at, i))
    elif wanted != got:
        yield at, wanted, got


def _json(value: Any) -> str:
    text = orjson.dumps(value).decode()
    return text if len(text) <= 100 else text[:99] + "…"


def _ways(contract: Contract, seen: list[_Seen]) -> Iterator[Problem]:
    """Branches that no example takes or refuses, and leaves that none reaches."""
    answers: dict[tuple[str, int], set[bool]] = defaultdict(set)
    nodes = contract.tree["nodes"]
    for each in seen:
        for step in each.judged.trace:
            if step.branch < 0:
                continue
            for i in range(step.branch):
                answers[step.node, i].add(False)
            answers[step.node, step.branch].add(True)
    for name, node in nodes.items():
        for i, branch in enumerate([*node["branches"], node["otherwise"]]):
            last = i == len(node["branches"])
            place = pointer(["nodes", name, "otherwise"] if last else ["nodes", name, "branches", i])
            if True not in answers[name, i]:
                yield Problem("tree.json", place, f"no example goes this way (“{_said(branch['answer'])}”)", _ADD)
            elif not last and False not in answers[name, i]:
                yield Problem("tree.json", place, f"every example that comes here goes this way (“{_said(branch['answer'])}”)", "Add an example that does not.")


def _said(text: Any) -> str:
    return text if isinstance(text, str) else _json(text)


def _entries(contract: Contract, seen: list[_Seen]) -> Iterator[Problem]:
    """Codes and notes without an example, groups without a code, sources that nothing names."""
    codes = {each.judged.facts.get("code") for each in seen}
    known = [contract.catalogue.find(code) for code in codes]
    for i, entry in enumerate(contract.catalogue.entries):
        if entry not in known:
            yield Problem("codes.json", f"/codes/{i}", f"no example has the code {entry.data.get('code') or entry.data['from']}", _ADD)
    for i, note in enumerate(contract.tree["notes"]):
        if not any(contract.conditions.hold(note["when"], each.judged.facts) for each in seen):
            yield Problem("tree.json", f"/notes/{i}", "this note applies to no example", _ADD)
    used = {entry.data["group"] for entry in contract.catalogue.entries}
    for name in contract.catalogue.groups.keys() - used:
        yield Problem("codes.json", "/groups", f"no code is of the group `{name}`", "Drop it.")
    for name in sorted(contract.data["sources"].keys() - proof.sources_named(contract)):
        yield Problem("contract.json", pointer(["sources", name]), "no entry names this source", "Drop it.")


def _rules(contract: Contract, triage: Triage) -> Iterator[Problem]:
    """Rules that their bad example does not break, or whose good example breaks one."""
    for i, rule in enumerate(contract.rules):
        for kind in ("bad", "good"):
            worker, found = _payloads(triage, {"input": rule[kind]})
            broken = {finding.rule for payload in found for finding in worker.check(payload).findings}
            broken |= {finding.rule for response in worker.empty for finding in worker.check_empty(response)}
            if kind == "bad" and rule["id"] not in broken:
                hint = "Does the rule's condition hold for it, and is it recognised at all?"
                yield Problem("rules.json", f"/rules/{i}/bad", f"does not break {rule['id']}", hint)
            elif kind == "good" and (broken or not found):
                message = f"breaks {', '.join(sorted(broken))}" if broken else "is not recognised"
                yield Problem("rules.json", f"/rules/{i}/good", message, "It must break no rule.")


def _scanned(pack: Pack, examples: Mapping[str, Any], seen: list[_Seen]) -> Iterator[Problem]:
    """Examples that scan does not find in a log, because none of the shape's markers is in them."""
    scanner = Scanner(Settings(packs=(pack,)))
    for each in seen:
        example = examples[each.file.removeprefix("examples/")]
        if "given" in example or each.verdict.outcome is Outcome.SUCCESS:
            continue
        value = example["input"]
        log = value.encode() if isinstance(value, str) else b"12:00:00 ERROR " + orjson.dumps(value)
        part = scanner.slice(Slice("-", 0, len(log), 0.0, log + b"\n"))
        if not part.tally.payloads and not part.open:
            hint = 'Name what stands in every such answer, such as {"member": "status", "begins": ["\\""]} or {"text": "…"}.'
            yield Problem("contract.json", pointer(["shapes", _number(each.judged), "markers"]), f"scan does not find {each.file} in a log", hint)


def _number(judged: Judged) -> int:
    return judged.contract.shapes.index(judged.shape)


def _intact(contract: Contract, contracts: Contracts) -> Iterator[Problem]:
    """Examples of bundled packs that the pack takes away from them."""
    if not contract.origin:
        return
    triage = Triage(contracts)
    for pack in bundled():
        if pack.name == contract.name:
            continue
        for name, example in pack.examples().items():
            _, found = _payloads(triage, example)
            shape = next((each.shape for each in found if each.contract == contract.name), None)
            if shape:
                number = [each.name for each in contract.shapes].index(shape)
                hint = "Ask for more in `match`, or raise the rank."
                yield Problem("contract.json", pointer(["shapes", number, "match"]), f"takes {pack.name}’s example {name} for its own", hint)
