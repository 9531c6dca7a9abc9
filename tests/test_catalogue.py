"""``errtriage codes`` and ``errtriage tree``: the packs as people read them."""

from __future__ import annotations

import json
import re

import pytest
from conftest import SCHEMAS, Run

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


def test_explain_draws_the_tree_along_the_path_that_was_taken(run: Run) -> None:
    shown = run("explain", "--trace", "--tool", "actions.cancel", str(SCHEMAS / "coffeechats/examples/cancelled.json")).stdout.decode()
    drawn = shown[shown.index("How it was decided") : shown.index("  " + str(SCHEMAS))]
    assert drawn == (
        "How it was decided\n"
        "  Which shape does the answer have?\n"
        "  ├─ an accepted result with a retry hint beside it → wait (pending)\n"
        "  ├─ a protocol error without a code …\n"
        "  ├─ a refusal for rate limiting → wait (pending)\n"
        "  ├─ a refusal by the transport …\n"
        "  └▶ a result\n"
        "     Is there a `tag`?\n"
        "     ├─ yes, and a `status` beside it, which the document rules out → report it and stop (unrecognised answer)\n"
        "     ├─ yes …\n"
        "     └▶ no\n"
        "        Which `status` is it?\n"
        "        ├─ uncertain, whatever `retryable` says → read before anything else (outcome unknown)\n"
        "        ├▶ cancelled\n"
        "        │  Did the caller ask for it with actions.cancel?\n"
        "        │  ├▶ yes → nothing to do (cancelled)\n"
        "        │  └─ no, or not known from the input → report it and stop (cancelled)\n"
        "        ├─ failed …\n"
        "        └─ none that the document names → report it and stop (unrecognised answer)\n"
    )


def test_a_ticket_has_the_drawing_with_the_path_thick(run: Run) -> None:
    shown = run("explain", "--trace", "-f", "markdown", str(SCHEMAS / "http/examples/response-429.json")).stdout.decode()
    drawn = run("tree", "-f", "mermaid", "http").stdout.decode()
    in_ticket = shown.partition("```mermaid\n")[2].partition("```")[0]
    assert in_ticket.replace("==>", "-->") == drawn
    assert [line for line in in_ticket.splitlines() if "==>" in line] == ['  n0 ==>|"#60;code#62;: too many requests"| n10']


@pytest.mark.parametrize("file", ["--contract coffeechats", "cut"])
def test_a_path_that_is_not_of_the_tree_is_listed(run: Run, file: str) -> None:
    """An answer that matches no shape, and one that was cut before it could be decided about."""
    if file == "cut":
        done = run("explain", "--trace", stdin='x {"v": "0.1", "ok": false, "operation": "o", "error": {"code": "NotFo')
        assert "  › " in done.stdout.decode()
        assert "not to be told: the answer was cut short" in done.stdout.decode()
    else:
        done = run("explain", "--trace", *file.split(), stdin='{"x": 1}')
        assert "  › Does it match a shape of the contract? no; the nearest is " in done.stdout.decode()


def test_a_number_with_an_entry_of_its_own_is_not_its_range(run: Run) -> None:
    found = json.loads(run("codes", "404", "499", "google/5", "-f", "json").stdout)
    assert [(each["contract"], each["code"]) for each in found] == [("http", "404"), ("http", "400 to 499"), ("google", "NOT_FOUND")]
