"""Proves a pack by its examples: each gets the verdict that it promises, together they go every way that there is, scan
finds what is to be found, and no other contract loses a payload.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from errtriage import payloads, proof
from errtriage.audit import Audit
from errtriage.conduct import Breach
from errtriage.contracts import Contract, Contracts, bundled, own_conduct, with_packs
from errtriage.jsontext import plain
from errtriage.judge import Settings as TrafficSettings
from errtriage.knowledge import given_to
from errtriage.model import Failure, Outcome, Payload, Verdict
from errtriage.packs import Pack, read_file, within_bound
from errtriage.pointers import pointer
from errtriage.regions import Slice
from errtriage.render.jsonl import document
from errtriage.safety import Problem, parsed
from errtriage.scan import Scanner, Settings
from errtriage.traffic import read_slice
from errtriage.verdicts import Judged, Triage

_ADD = "Add an example to examples/ that does, or drop this."


class Covered(NamedTuple):
    """What a pack came to: what is wrong with it, and how much of it the examples went through."""

    problems: list[Problem]
    examples: int = 0
    codes: int = 0
    branches: int = 0
    rules: int = 0


class _Example(NamedTuple):
    """One example, with where it stands."""

    file: str
    pointer: str
    data: Mapping[str, Any]


class _Seen(NamedTuple):
    """What one example came to."""

    example: _Example
    payload: Payload
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
    examples: list[_Example] = []
    found = [*_strays(contract.folder), *_read(contract.folder / "examples", examples)]
    triage = Triage(contracts)
    seen: list[_Seen] = []
    wrong = [problem for example in examples for problem in _example(example, contract, triage, seen)]
    if not examples:
        found.append(Problem("examples", "", "there are no examples", "Put an answer and what must be said of it into examples/NAME.json."))
    # Causes first: what is not recognised, then fields that are nowhere, then verdicts that are others.
    unexpected = [each for each in wrong if "/expect" in each.pointer]
    found += [*(each for each in wrong if each not in unexpected), *(_fields(contract, seen) if seen else ()), *unexpected]
    if seen:
        found += [*_ways(contract, seen), *_entries(contract, seen), *_scanned(pack, seen)]
    found += [*_rules(contract, triage), *_conduct(contract, pack), *_intact(contract, contracts)]
    branches = sum(len(node["branches"]) + 1 for node in contract.tree["nodes"].values())
    return Covered(found, len(examples), len(contract.catalogue.entries), branches, len(contract.rules) + len(contract.conduct["rules"]))


_FILES = ("contract.json", "codes.json", "tree.json", "rules.json", "conduct.json")


def _strays(folder: Path) -> Iterator[Problem]:
    """Files that look as if they belonged to a pack, and that nothing reads."""
    for path in sorted(folder.glob("*.json")):
        if path.name not in _FILES and not path.name.endswith(".schema.json"):
            near = get_close_matches(path.name, _FILES, 1)
            yield Problem(path.name, "", "is no file of a pack, and is not read", f"Did you mean {near[0]}?" if near else "Rename or drop it.")
    for path in sorted((folder / "examples").glob("*")):
        if path.suffix != ".json" or path.is_dir():
            yield Problem(f"examples/{path.name}", "", "is no example, and is not read", "An example is a JSON file; a raw response is a text in its `input`.")


def _read(folder: Path, examples: list[_Example]) -> Iterator[Problem]:
    """Read the examples, of which a file may hold several; yields what is wrong with them as such."""
    try:
        paths = within_bound(folder, "*.json")
    except Failure as failure:
        yield Problem("examples", "", str(failure).rstrip("."))
        return
    for path in paths:
        file = f"examples/{path.name}"
        try:
            trouble, value = parsed(file, read_file(path))
        except Failure as failure:
            trouble, value = [Problem(file, "", str(failure).rstrip("."))], None
        trouble = trouble or proof.held(file, value, "example")
        yield from trouble
        if not trouble:
            several = value if isinstance(value, list) else [value]
            examples += [_Example(file, f"/{i}" if isinstance(value, list) else "", each) for i, each in enumerate(several)]


def _payloads(triage: Triage, example: Mapping[str, Any]) -> tuple[Triage, list[Payload]]:
    worker = given_to(triage, example.get("given", {}))
    value = example["input"]
    records = worker.records(value) if isinstance(value, str) else _records(value)
    return worker, list(worker.find(records, value if isinstance(value, str) else ""))


def _records(value: Any) -> list[payloads.Record]:
    value = plain(value)
    return [payloads.Record(1, each, whole=True) for each in (value if isinstance(value, list) else [value])]


def _example(example: _Example, contract: Contract, triage: Triage, seen: list[_Seen]) -> Iterator[Problem]:
    """What is wrong with an example; what it came to is added to ``seen``."""
    file, place = example.file, example.pointer
    try:
        worker, found = _payloads(triage, example.data)
    except Failure as failure:  # a contract that is given and that there is not
        yield Problem(file, f"{place}/given", str(failure).rstrip("."))
        return
    if len(found) != 1:
        message = f"holds {len(found) or 'no'} payloads, and an example is about one"
        yield Problem(file, f"{place}/input", message, "Does `match` in contract.json ask for what stands here?")
        return
    payload = found[0]
    if payload.contract != contract.name:
        yield Problem(file, f"{place}/input", f"is recognised as {payload.contract} ({payload.shape})", f"A rank below that of {payload.contract} goes first.")
        return
    judged, verdict = worker.judge(payload), worker.decide(payload)
    seen.append(_Seen(example, payload, judged, verdict))
    got = document(verdict)
    way = " › ".join(f"{step.question} {step.answer}" for step in verdict.trace)
    for at, wanted, there in _differences(example.data["expect"], got, ()):
        if at[0] not in got:
            near = get_close_matches(str(at[0]), list(got), 1)
            hint = f"Did you mean `{near[0]}`?" if near else f"A verdict has {', '.join(got)}."
            yield Problem(file, place + pointer(("expect", *at)), f"`{at[0]}` is nothing that a verdict has", hint)
            continue
        hint = f"The way was: {way}" if at in {("action",), ("outcome",)} else ""
        yield Problem(file, place + pointer(("expect", *at)), f"expects {_json(wanted)}, and the verdict has {_json(there)}", hint)
    if not verdict.valid and "valid" not in example.data["expect"]:
        broken = "; ".join(f"{each.pointer or 'all of it'}: {each.message}" for each in verdict.violations[:3])
        yield Problem(file, f"{place}/input", f"does not satisfy {judged.shape.data['schema']} ({broken})", 'Mend one of them, or expect "valid": false.')
    if verdict.code and not verdict.code.islower() and re.search(rf"(?<!\w){re.escape(verdict.code)}(?!\w)", verdict.say):
        yield Problem(file, f"{place}/input", f"the plain words say the code: “{verdict.say}”", "`say` is for an end user, who does not know codes.")


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


def _fields(contract: Contract, seen: list[_Seen]) -> Iterator[Problem]:
    """Shapes without an example, and fields that are never there."""
    for number, shape in enumerate(contract.shapes):
        mine = [each for each in seen if each.judged.shape == shape]
        if not mine:
            yield Problem("contract.json", f"/shapes/{number}", f"no example is of the shape `{shape.name}`", _ADD)
            continue
        for name, field in shape.data["fields"].items():
            if not any(name in each.judged.facts for each in mine):
                yield Problem(
                    "contract.json",
                    pointer(["shapes", number, "fields", name]),
                    "no example has anything there",
                    _nearest(field["at"][0], mine[0].payload.value),
                )


def _nearest(place: Any, value: Any) -> str:
    """A place that is there, and that a place which is not may be meant for."""
    if not isinstance(place, str) or not place.startswith("/"):
        return "Add an example that has, or drop the field."
    there = [pointer(at) for at in _all_places(value, ())][:1000]
    near = get_close_matches(place, there, 1, 0.7)
    return f"Did you mean {near[0]}?" if near else "Add an example that has, or drop the field."


def _all_places(value: Any, at: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if isinstance(value, dict):
        for name, member in value.items():
            yield (*at, name)
            yield from _all_places(member, (*at, name))


def _entries(contract: Contract, seen: list[_Seen]) -> Iterator[Problem]:
    """Codes and notes without an example, groups without a code, sources that nothing names."""
    codes = {each.judged.facts.get("code") for each in seen}
    known = [contract.catalogue.find(code) for code in codes]
    missing = [(i, str(entry.data.get("code") or entry.data["from"])) for i, entry in enumerate(contract.catalogue.entries) if entry not in known]
    if missing:
        names = ", ".join(name for _, name in missing[:10]) + (f" and {len(missing) - 10} more" if len(missing) > 10 else "")
        what = f"no example has the code {names}" if len(missing) == 1 else f"no example has the codes {names}"
        yield Problem("codes.json", f"/codes/{missing[0][0]}", what, _ADD.replace("this", "them") if len(missing) > 1 else _ADD)
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


def _conduct(contract: Contract, pack: Pack) -> Iterator[Problem]:
    """Entries of conduct that their bad example does not break, or whose good example breaks anything."""
    for i, entry in enumerate(contract.conduct["rules"]):
        for kind in ("bad", "good"):
            broken = audited(entry[kind], (pack,))
            mine = [each for each in broken if (each.rule, each.contract) == (entry["rule"], contract.name)]
            if kind == "bad" and not mine:
                hint = _NEEDS.get(entry["rule"], "Are the answers in it recognised, does `when` hold for one, and is the call after it the same?")
                yield Problem("conduct.json", f"/rules/{i}/bad", f"does not break {entry['rule']}", hint)
            elif kind == "good" and broken:
                yield Problem("conduct.json", f"/rules/{i}/good", f"breaks {', '.join(sorted({each.rule for each in broken}))}", "It must break no rule.")


#: What traffic needs to break a rule, beyond an answer for which ``when`` holds and the same call after it.
_NEEDS = {
    "AU102": "Does the leaf state a delay, do the records have times, and is the same call made again before it is over?",
    "AU103": "The same change must follow under another idempotency key; for one under the same key, or without keys, use AU101.",
    "AU104": "Does the leaf state `max_attempts` or `backoff_ms`, and is the same call made too often, or after pauses that do not grow?",
    "AU105": "Does the answer have an HTTP status, and does another call follow that is not answered well?",
    "AU106": "The same call must follow under another idempotency key.",
    "AU107": "Are there more than `most` calls of the contract's tools within the time, and do the records have times?",
}


def audited(traffic: str | list[dict[str, Any]], packs: tuple[Pack, ...] = ()) -> list[Breach]:
    """What is broken in an example of traffic."""
    settings = TrafficSettings(packs=packs)
    audit = Audit(settings, frozenset(rule["id"] for rule in own_conduct()["rules"]))
    data = log_of(traffic)
    audit.open("-")
    audit.add(read_slice((settings, Slice("-", 0, len(data), 0.0, data))))
    audit.finish()
    return audit.breaches


def log_of(traffic: str | list[dict[str, Any]]) -> bytes:
    """An example of traffic as a log; a record that repeats is written so often, each with an id and a time of its own."""
    if isinstance(traffic, str):
        return traffic.encode()
    lines = [orjson.dumps(each) for record in traffic for each in _repeated(record)]
    return b"".join(line + b"\n" for line in lines)


def _repeated(record: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if "repeat" not in record:
        yield record
        return
    try:
        begin = datetime.fromisoformat(record["time"])
    except ValueError:
        return  # an example that breaks nothing, which is said
    every = timedelta(milliseconds=record["repeat"]["every_ms"])
    for number in range(record["repeat"]["count"]):
        yield {"time": (begin + number * every).isoformat(timespec="milliseconds"), "message": {**record["message"], "id": number + 1}}


def _scanned(pack: Pack, seen: list[_Seen]) -> Iterator[Problem]:
    """Examples that scan does not find in a log, because none of the shape's markers is in them."""
    scanner = Scanner(Settings(packs=(pack,)))
    missed: dict[int, _Seen] = {}
    for each in seen:
        if "given" in each.example.data or each.verdict.outcome is Outcome.SUCCESS:
            continue
        value = each.example.data["input"]
        log = value.encode() if isinstance(value, str) else b"12:00:00 ERROR " + orjson.dumps(value)
        part = scanner.slice(Slice("-", 0, len(log) + 1, 0.0, log + b"\n"))
        if not part.tally.payloads and not part.open:
            missed.setdefault(each.judged.contract.shapes.index(each.judged.shape), each)
    for number, each in missed.items():
        hint = f"Name what every such answer has and others have not, such as {_marker(each)}."
        yield Problem("contract.json", pointer(["shapes", number, "markers"]), f"scan does not find {each.example.file} in a log", hint)


def _marker(seen: _Seen) -> str:
    """A marker for a shape: a member that its match asks for."""
    value = seen.payload.value
    names = [name for name in seen.judged.shape.members if isinstance(value, dict) and name in value]
    if not names:
        return '{"text": "…"}'
    texts = [name for name in names if isinstance(value[name], str) and value[name]]
    name = min(texts or names)
    begins = _json(value[name])[:-1] if name in texts else _json(value[name])[0]
    return _json({"member": name, "begins": [begins]})


def _intact(contract: Contract, contracts: Contracts) -> Iterator[Problem]:
    """Examples of bundled packs that the pack takes away from them."""
    if not contract.origin:
        return
    triage = Triage(contracts)
    taken: dict[tuple[str, str], list[str]] = defaultdict(list)
    for pack in bundled():
        if pack.name == contract.name:
            continue
        for example in pack.examples():
            _, found = _payloads(triage, example)
            for shape in {each.shape for each in found if each.contract == contract.name}:
                taken[pack.name, shape].append(example["about"])
    for (name, shape), abouts in taken.items():
        number = [each.name for each in contract.shapes].index(shape)
        more = f" and {len(abouts) - 1} more of its examples" if len(abouts) > 1 else ""
        hint = "Ask for more in `match`, or raise the rank."
        yield Problem("contract.json", pointer(["shapes", number, "match"]), f"takes an answer of {name} for its own (“{abouts[0]}”){more}", hint)
