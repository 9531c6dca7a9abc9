"""``errtriage codes`` and ``errtriage tree``: the packs as people read them."""

from __future__ import annotations

import json
import re

import pytest
from conftest import Run

from errtriage.contracts import bundled

PACKS = list(bundled())


def test_every_code_is_listed_with_what_to_do(run: Run) -> None:
    listed = run("codes").stdout.decode()
    for pack in PACKS:
        for entry in pack.catalogue.entries:
            assert entry.data["title"] in listed
    known = json.loads(run("codes", "--format", "json").stdout)
    assert len(known) == sum(len(pack.catalogue.entries) for pack in PACKS)
    assert [each["code"] for each in known if not each["readings"]] == []


@pytest.mark.parametrize(
    ("args", "codes"),
    [
        (["ovstorage/NotFound"], ["NotFound"]),
        (["NotFound", "VERSION_CONFLICT"], ["NotFound", "VERSION_CONFLICT"]),
        (["-32005"], ["-32019 to -32000"]),
        (["Auth*"], ["AuthRequired", "AuthCancelled", "AuthExpired", "AuthorizationLeaseExpired"]),
        (["coffeechats/ACTION_*"], ["ACTION_DENIED", "ACTION_EXPIRED"]),
        (["--contract", "coffeechats", "--action", "wait"], ["PERMIT_BACKPRESSURE"]),
    ],
    ids=" ".join,
)
def test_codes_are_found_by_name_prefix_contract_and_action(run: Run, args: list[str], codes: list[str]) -> None:
    found = json.loads(run("codes", "--format", "json", *args).stdout)
    assert [each["code"] for each in found] == codes


def test_a_code_is_explained_with_every_reading_and_an_example(run: Run) -> None:
    shown = run("codes", "VERSION_CONFLICT").stdout.decode()
    assert shown.count("Example") >= 4  # a safe write, a proposal, a withdrawal, unknown
    assert "actions.cancel" in shown
    assert "Source: Coffee Chats" in shown
    assert "The service lists this code, and its documents do not explain it." in run("codes", "AuthExpired").stdout.decode()


def test_a_code_that_nobody_knows_is_another_answer(run: Run) -> None:
    done = run("codes", "NotFnd")
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.decode().startswith("errtriage: No contract has the code 'NotFnd'. Did you mean 'NotFound'? ")
    wrong = run("codes", "--acton", "retry")
    assert (wrong.returncode, wrong.stderr) == (2, b"errtriage: There is no option --acton. See `errtriage codes --help`.\n")


@pytest.mark.parametrize("pack", PACKS, ids=lambda pack: pack.name)
def test_a_tree_is_drawn_whole_in_every_format(run: Run, pack: object) -> None:
    contract = next(each for each in PACKS if each is pack)
    branches = sum(len(node["branches"]) + 1 for node in contract.tree["nodes"].values())
    text = run("tree", contract.name).stdout.decode()
    assert len(re.findall(r"[├└]─ ", text)) == branches
    assert all(node["question"] in text for node in contract.tree["nodes"].values())
    mermaid = run("tree", "--format", "mermaid", contract.name).stdout.decode()
    assert mermaid.startswith("flowchart TD\n")
    assert mermaid.count(" -->|") == branches
    dot = run("tree", "--format", "dot", contract.name).stdout.decode()
    assert dot.count(" -> ") == branches
    assert dot.startswith(f'digraph "{contract.name}" {{\n')
    assert dot.endswith("}\n")


def test_all_trees_are_drawn_when_none_is_named(run: Run) -> None:
    shown = run("tree").stdout.decode().splitlines()
    assert [line for line in shown if line in {pack.name for pack in PACKS}] == [pack.name for pack in PACKS]
