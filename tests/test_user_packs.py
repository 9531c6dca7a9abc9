"""Contract packs that are not bundled: where they are found, what goes before what, and what a broken or hostile one does."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import SCHEMAS, Run

from errtriage import packs, triage
from errtriage.contracts import bundled
from errtriage.coverage import check
from errtriage.model import Failure
from errtriage.packs import read, start
from errtriage.proof import problems
from errtriage.safety import Problem

BUSY = {"service": "parcels", "error": {"code": "BUSY", "message": "later", "retry_after": 30}, "request_id": "r-77"}
Edit = Callable[[Any], None]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with the pack that ``contracts new`` starts."""
    start("parcels", tmp_path / ".errtriage")
    return tmp_path


def edit(folder: Path, file: str, change: Edit) -> None:
    """Change a file of a pack."""
    path = folder / file
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data))


def parcels(project: Path) -> Path:
    return project / ".errtriage" / "parcels"


# Where packs are found.


def test_a_project_has_its_packs_in_its_folder_and_below(run: Run, project: Path) -> None:
    below = project / "src" / "deep"
    below.mkdir(parents=True)
    for folder in (project, below):
        (verdict,) = [json.loads(line) for line in run("explain", "-f", "json", stdin=json.dumps(BUSY), cwd=folder).stdout.splitlines()]
        assert (verdict["contract"], verdict["action"], verdict["retry"]["delay_ms"], verdict["correlation_id"]) == ("parcels", "wait", 30_000, "r-77")


def test_packs_of_the_user_of_the_variable_and_of_the_option_are_found(run: Run, tmp_path: Path) -> None:
    user, variable, option, work = (tmp_path / each for each in ("config", "shared", "own", "work"))
    work.mkdir()
    start("from-user", user / "errtriage")
    start("from-variable", variable)
    start("from-option", option)
    env = {"XDG_CONFIG_HOME": str(user), "ERRTRIAGE_PACKS": str(variable)}
    listed = json.loads(run("contracts", "list", "-f", "json", "--pack", str(option / "from-option"), env=env, cwd=work).stdout)
    origins = {each["name"]: each["origin"] for each in listed}
    assert origins["from-user"] == f"{user}/errtriage/from-user (user)"
    assert origins["from-variable"] == f"{variable}/from-variable (ERRTRIAGE_PACKS)"
    assert origins["from-option"] == f"{option}/from-option (--pack)"
    assert {origins[name] for name in bundled().names()} == {"bundled"}


def test_of_two_packs_of_one_name_the_nearer_counts(run: Run, tmp_path: Path) -> None:
    user, variable, option, work = (tmp_path / each for each in ("config", "shared", "own", "work"))
    env = {"XDG_CONFIG_HOME": str(user), "ERRTRIAGE_PACKS": f"{variable}{os.pathsep}{variable / 'nearer'}"}
    places = [user / "errtriage", work / ".errtriage", variable, variable / "nearer", option]
    work.mkdir()
    for number, place in enumerate(places):
        edit(start("parcels", place), "contract.json", setting(f"number {number}", "title"))
        named = ["--pack", str(option)] if place == option else []
        shown = json.loads(run("contracts", "show", "parcels", "-f", "json", *named, env=env, cwd=work).stdout)
        assert shown["title"] == f"number {number}"


def test_a_pack_over_a_bundled_one_is_always_told(run: Run, project: Path) -> None:
    edit(start("http", project / ".errtriage"), "contract.json", lambda data: data.update(rank=90))
    for args in (["explain", "-f", "json"], ["scan", "-f", "json", "-"], ["lint", "-f", "json", "-"], ["contracts", "list"]):
        said = run(*args, stdin=json.dumps(BUSY), cwd=project).stderr.decode()
        assert said == "errtriage: the contract http is that of .errtriage/http (project), in the place of the bundled one.\n"


def test_every_text_says_where_a_contract_is_from(run: Run, project: Path) -> None:
    (project / "a.log").write_text("12:00 ERROR " + json.dumps(BUSY) + "\n")
    for args in (["explain", "a.log"], ["explain", "-f", "markdown", "a.log"], ["lint", "a.log"], ["scan", "a.log"], ["scan", "-f", "html", "a.log"]):
        assert b".errtriage/parcels (project)" in run(*args, cwd=project).stdout, args
    for args in (["codes", "BUSY"], ["codes", "--contract", "parcels"], ["tree", "parcels"], ["contracts", "list"], ["contracts", "show", "parcels"]):
        assert b".errtriage/parcels (project)" in run(*args, cwd=project).stdout, args


def test_a_folder_that_somebody_else_put_there_is_not_used(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Anybody may make a folder .errtriage in /tmp."""
    below = project / "mine"
    below.mkdir()
    assert packs.project_folder(below) == project / ".errtriage"
    others = project / ".errtriage"
    really = Path.stat

    def stat(path: Path, **options: Any) -> os.stat_result:
        found = really(path, **options)
        return os.stat_result((*found[:4], 12345, *found[5:10])) if path == others else found

    monkeypatch.setattr(Path, "stat", stat)
    assert packs.project_folder(below) is None


def test_the_python_interface_uses_only_the_packs_that_it_is_given(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)
    assert triage(BUSY) == []
    (verdict,) = triage(BUSY, packs=[str(project / ".errtriage")])
    assert verdict.contract == "parcels"
    with pytest.raises(Failure, match="is no contract pack and holds none"):
        triage(BUSY, packs=[str(project / "nowhere")])


# One pack, every command.


def test_lint_scan_and_their_workers_know_it(run: Run, project: Path) -> None:
    wrong = {**BUSY, "error": {"code": "BUSY"}}
    folder = project / "captures"
    folder.mkdir()
    for number in range(1100):
        (folder / f"{number:04}.json").write_text(json.dumps(wrong if number == 1050 else BUSY))
    done = run("lint", "-f", "json", "--workers", "2", "captures", cwd=project)
    assert [(each["file"], each["pointer"]) for each in json.loads(done.stdout)["findings"]] == [("captures/1050.json", "/error")]
    log = project / "app.log"
    log.write_text("".join(f"2026-11-30T09:00:00Z ERROR call failed {json.dumps(BUSY)}\n{'x' * 200}\n" for _ in range(40_000)))
    one, two = (run("scan", "-f", "json", "--workers", number, "app.log", cwd=project).stdout for number in ("1", "2"))
    assert one == two
    assert [(group["contract"], group["action"], group["count"]) for group in json.loads(one)["groups"]] == [("parcels", "wait", 40_000)]


def test_audit_and_its_workers_hold_clients_to_it(run: Run, project: Path) -> None:
    """The rules of conduct that a new pack begins with, in a log beside which other services' rules hold on."""
    bad = [json.dumps(record) for record in json.loads((parcels(project) / "conduct.json").read_text())["rules"][0]["bad"]]
    (project / "agent.log").write_text("".join(line + "\n" for line in bad))
    for workers in ("1", "2"):
        done = run("audit", "--format", "json", "--workers", workers, "agent.log", cwd=project)
        assert done.returncode == 1
        (finding,) = json.loads(done.stdout)["findings"]
        assert (finding["rule"], finding["contract"], finding["line"]) == ("AU102", "parcels", 3)
        assert finding["instead"] == "wait 30 s, then make the same call again"
        assert finding["source"] == "parcels: the page of its documentation that describes errors"
    shown = run("contracts", "show", "parcels", cwd=project).stdout.decode()
    assert "AU102  after BUSY the call is made again when the seconds of retry_after are over" in shown


def test_codes_tree_and_rules_know_it(run: Run, project: Path) -> None:
    rule = {
        "id": "PA101", "level": "note", "source": "docs", "what": "a short message", "why": "It helps nobody.", "message": "say more than “{found}”",
        "when": {"required": ["message"], "properties": {"message": {"maxLength": 3}}}, "at": "/error/message", "bad": BUSY | {"error": {"code": "BUSY", "message": "no"}}, "good": BUSY,
    }  # fmt: skip
    edit(parcels(project), "rules.json", lambda data: data["rules"].append(rule))
    assert run("contracts", "check", cwd=project).returncode == 0
    assert b"PA101" in run("rules", "PA101", cwd=project).stdout
    assert b'say more than \xe2\x80\x9c"no"\xe2\x80\x9d' in run("lint", "-", stdin=json.dumps(rule["bad"]), cwd=project).stdout
    assert b"parcels" in run("codes", "BUSY", cwd=project).stdout
    assert "which the documentation does not name / there is none" in run("tree", "parcels", cwd=project).stdout.decode()


def test_tab_offers_what_is_in_it(run: Run, project: Path) -> None:
    def offered(words: str) -> list[str]:
        env = {"_ERRTRIAGE_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
        return run(env=env, cwd=project).stdout.decode().split()

    assert offered("errtriage explain --contract parc") == ["parcels"]
    assert offered("errtriage codes BU") == ["BUSY"]
    assert offered("errtriage codes parcels/") == ["parcels/INVALID", "parcels/NOT_FOUND", "parcels/BUSY"]
    (parcels(project) / "codes.json").write_text("[" * 100_000)
    (parcels(project) / "contract.json").write_text('{"name": ["parcels"]}')
    assert offered("errtriage codes BU") == []


def test_path_says_where_is_looked(run: Run, project: Path) -> None:
    shown = run("contracts", "path", env={"ERRTRIAGE_PACKS": "/nowhere"}, cwd=project).stdout.decode().splitlines()
    assert shown == [
        f"bundled  {SCHEMAS}",
        f"user  {os.devnull}/errtriage  (not there)",
        f"project  {project}/.errtriage  (1 pack)",
        "ERRTRIAGE_PACKS  /nowhere  (not there)",
    ]
    assert run("contracts", "path", "parcels", cwd=project).stdout.decode() == f"{project}/.errtriage/parcels\n"
    assert run("contracts", "path", "http", cwd=project).stdout.decode() == f"{SCHEMAS}/http\n"


# Starting one.


def test_a_new_pack_passes_its_own_check(run: Run, tmp_path: Path) -> None:
    made = run("contracts", "new", "parcels", cwd=tmp_path)
    assert made.stdout.decode().startswith(".errtriage/parcels is a working pack.")
    done = run("contracts", "check", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, b".errtriage/parcels: nothing is wrong; 4 examples go all 4 ways and have all 3 codes.\n")


def test_an_editor_finds_the_schema_of_every_file_of_a_new_pack(project: Path) -> None:
    for path in parcels(project).rglob("*.json"):
        schema = json.loads(path.read_text())["$schema"]
        assert schema.startswith("https://json-schema.org/") or (path.parent / schema).is_file(), path


@pytest.mark.parametrize("name", ["Parcels", "../x", "", "errtriage", "a" * 50])
def test_a_name_that_no_contract_can_have_is_refused(run: Run, tmp_path: Path, name: str) -> None:
    done = run("contracts", "new", "--", name, cwd=tmp_path)
    assert (done.returncode, list(tmp_path.iterdir())) == (2, [])
    assert done.stderr.decode().startswith(f"errtriage: A contract cannot be called '{name}'.")


def test_what_is_there_is_not_written_over(run: Run, project: Path) -> None:
    done = run("contracts", "new", "parcels", cwd=project)
    assert (done.returncode, done.stderr) == (2, b"errtriage: .errtriage/parcels is there already. Choose another name, or another place with --into.\n")


# Broken ones.


def broken(project: Path) -> None:
    edit(parcels(project), "tree.json", lambda data: data["nodes"]["code"]["branches"][0].update(to="fxi"))


def test_a_broken_pack_is_a_warning(run: Run, project: Path) -> None:
    broken(project)
    done = run("explain", "-f", "json", stdin='{"error": "rate_limited"}', cwd=project)
    assert done.returncode == 0
    assert done.stderr.decode() == (
        "errtriage: The contract pack .errtriage/parcels cannot be used: tree.json /nodes/code/branches/0/to: leads to `fxi`, which is neither a node nor a leaf"
        ". It is left out; `errtriage contracts check .errtriage/parcels` says all.\n"
    )


@pytest.mark.parametrize(
    "args",
    [["explain", "--contract", "parcels"], ["explain", "--pack", ".errtriage"], ["lint", "--contract", "parcels", "-"], ["codes", "--contract", "parcels"]],
)
def test_a_broken_pack_that_was_asked_for_is_an_error(run: Run, project: Path, args: list[str]) -> None:
    broken(project)
    done = run(*args, stdin=json.dumps(BUSY), cwd=project)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"cannot be used: tree.json /nodes/code/branches/0/to" in done.stderr


def test_a_folder_without_packs_is_told(run: Run, tmp_path: Path) -> None:
    asked = run("explain", "--pack", "nowhere", cwd=tmp_path)
    assert (asked.returncode, asked.stderr) == (
        2,
        b"errtriage: nowhere is no contract pack and holds none: a pack is a folder with contract.json. `errtriage contracts new NAME` starts one.\n",
    )


def problem(folder: Path) -> Problem:
    found = check(read(folder, "test")).problems
    assert found
    return found[0]


def entry(*path: Any) -> Callable[[Any], Any]:
    """What is at a place of a file."""

    def follow(data: Any) -> Any:
        for part in path:
            data = data[part]
        return data

    return follow


def setting(value: Any, *path: Any) -> Edit:
    """Set what is at a place."""
    return lambda data: entry(*path[:-1])(data).__setitem__(path[-1], value)


def dropping(*path: Any) -> Edit:
    """Take out what is at a place."""
    return lambda data: entry(*path[:-1])(data).__delitem__(path[-1])


WRONG: list[tuple[str, Edit, str, str, str]] = [
    ("contract.json", dropping("rank"), "", r"`rank` is missing", ""),
    ("contract.json", setting(1, "titel"), "", r"`titel` must not be here \(did you mean `title`\?\)", ""),
    ("contract.json", setting("docz", "shapes", 0, "source"), "/shapes/0/source", "names the source `docz`", "Did you mean `docs`"),
    ("contract.json", setting("failed.schema.json", "shapes", 0, "schema"), "/shapes/0/schema", "no file failed.schema.json", "Did you mean `failure.schema.json`"),
    ("contract.json", setting({"required": ["valeu"]}, "shapes", 0, "match"), "/shapes/0/match", "asks for `valeu`", "Did you mean `value`"),
    ("contract.json", setting(["boolean"], "shapes", 0, "fields", "code", "type"), "/shapes/0/fields/code/type", "cannot be of type boolean", "integer or string"),
    ("contract.json", setting({"a": "quick"}, "tools"), "/tools/a", "no class `quick`", ""),
    ("contract.json", setting({"pattern": "(?<=a)b"}, "shapes", 0, "match", "properties", "value"), "/shapes/0/match", "no usable JSON Schema", "lookaround"),
    ("codes.json", setting("bussy", "codes", 2, "group"), "/codes/2/group", "no group `bussy`", "Did you mean `busy`"),
    ("codes.json", setting("BUSY", "codes", 0, "code"), "/codes/2", "`BUSY` stands twice", ""),
    ("codes.json", setting("{mesage}", "codes", 2, "say"), "/codes/2/say", "names {mesage}, which nothing gives", "Did you mean `message`"),
    ("codes.json", setting("It is BUSY.", "codes", 2, "say"), "/input", "the plain words say the code", "end user"),
    ("tree.json", setting("noed", "root"), "/root", "no node `noed`", "Did you mean `code`"),
    ("tree.json", setting("code", "nodes", "code", "otherwise", "to"), "/nodes/code", "leads back to itself", "must end at a leaf"),
    ("tree.json", setting("fix", "nodes", "code", "otherwise", "to"), "/leaves/report", "is never reached", ""),
    ("tree.json", setting({"fact": "message"}, "leaves", "wait", "retry", "delay_ms"), "/leaves/wait/retry/delay_ms", "`message` is no number", "seconds"),
    ("tree.json", setting({"fact": "retry_msx"}, "leaves", "wait", "retry", "delay_ms"), "/leaves/wait/retry/delay_ms", "names the fact `retry_msx`", "`retry_ms`"),
    ("tree.json", setting({"required": ["gruop"]}, "nodes", "code", "branches", 0, "when"), "/nodes/code/branches/0/when", "asks for `gruop`", "`group`"),
    ("tree.json", setting("maybe", "leaves", "fix", "action"), "/leaves/fix/action", '"maybe" is none of', ""),
    ("rules.json", setting([{"id": "OV101"}], "rules"), "/rules/0", "is missing", ""),
    ("examples/busy.json", setting("retry", "expect", "action"), "/expect/action", 'expects "retry", and the verdict has "wait"', ""),
    ("examples/busy.json", setting({"a": 1}, "input"), "/input", "holds no payloads", "`match`"),
    ("examples/busy.json", setting({"error": "rate_limited"}, "input"), "/input", r"is recognised as coffeechats \(rate-limit\)", "rank"),
    ("contract.json", setting([{"text": "never there"}], "shapes", 0, "markers"), "/shapes/0/markers", "scan does not find examples/", '{"member":"service","begins":["\\"parcels"]}'),
    ("contract.json", dropping("shapes", 0, "markers"), "/shapes/0/markers", "scan does not find examples/", ""),
    ("contract.json", setting("x", "sources", "spare"), "/sources/spare", "no entry names this source", "Drop it"),
    ("tree.json", setting([{"when": {"required": ["http_status"]}, "source": "docs", "steps": ["x"]}], "notes"), "/notes/0", "applies to no example", ""),
    ("contract.json", setting(["http:/headers/Request-Id"], "shapes", 0, "fields", "code", "at"), "/shapes/0/fields/code/at/0", "a response has nothing at http:/headers/Request-Id", "lower case"),
    ("contract.json", setting(["http:/header/x"], "shapes", 0, "fields", "code", "at"), "/shapes/0/fields/code/at/0", "a response has nothing at http:/header/x", "`headers`"),
    ("contract.json", setting(["/eror/code"], "shapes", 0, "fields", "code", "at"), "/shapes/0/fields/code", "no example has anything there", "Did you mean /error/code?"),
    ("contract.json", setting({"at": ["/x"], "type": ["string"]}, "shapes", 0, "fields", "reason"), "/shapes/0/fields/reason", "the name of a general fact", "Rename it"),
    ("contract.json", lambda data: data["shapes"].append({**data["shapes"][0], "name": "other"}), "/shapes/1", "no example is of the shape `other`", ""),
    ("contract.json", setting({"required": ["error"]}, "shapes", 0, "match"), "/shapes/0/match", "asks for `error`", "stands under `value`"),
    ("failure.schema.json", setting({"requird": ["a"]}, "properties", "error"), "/properties/error/requird", "`requird` is no keyword of JSON Schema", "Did you mean `required`?"),
    ("codes.json", setting("unknown", "groups", 0, "name"), "/groups/0/name", "unknown", ""),
    ("codes.json", setting("Too {code, much", "codes", 2, "say"), "/codes/2/say", "has a brace that names no fact", "such as {code}"),
    ("tree.json", setting("waiting", "nodes", "code", "branches", 2, "when", "properties", "group", "const"), "/nodes/code/branches/2/when", "asks whether `group` is `waiting`, which it never is", ""),
    ("tree.json", setting("success", "leaves", "wait", "outcome"), "/leaves/wait/action", '"wait" is not "none"', ""),
    ("tree.json", setting({"fact": "retry_after"}, "leaves", "wait", "retry", "delay_ms"), "/leaves/wait/retry/delay_ms", "`retry_after` is no delay in milliseconds", "retry_after_ms"),
    ("examples/busy.json", setting("r-3", "expect", "corelation_id"), "/expect/corelation_id", "`corelation_id` is nothing that a verdict has", "Did you mean `correlation_id`?"),
    ("examples/busy.json", setting("decide", "expect", "action"), "/expect/action", "expects", "The way was: What does the code ask for? BUSY: later"),
    ("conduct.json", setting("AU109", "rules", 0, "rule"), "/rules/0/rule", '"AU109" is none of', ""),
    ("conduct.json", setting("docz", "rules", 0, "source"), "/rules/0/source", "names the source `docz`", "Did you mean `docs`"),
    ("conduct.json", setting({"required": ["acton"]}, "rules", 0, "when"), "/rules/0/when", "asks for `acton`", "Did you mean `action`"),
    ("conduct.json", setting({"required": ["action"], "properties": {"action": {"const": "wiat"}}}, "rules", 0, "when"), "/rules/0/when", "asks whether `action` is `wiat`, which it never is", "`wait`"),
    ("conduct.json", setting("wait {delya}", "rules", 0, "instead"), "/rules/0/instead", "names {delya}, which nothing gives", "`delay`"),
    ("conduct.json", setting(["quick"], "reads"), "/reads/0", "no class `quick`", ""),
    ("conduct.json", lambda data: data["rules"][0].update(bad=data["rules"][0]["good"]), "/rules/0/bad", "does not break AU102", "state a delay"),
    ("conduct.json", lambda data: data["rules"][0].update(good=data["rules"][0]["bad"]), "/rules/0/good", "breaks AU102", "no rule"),
    ("conduct.json", lambda data: data["rules"][0].update(rule="AU103"), "/rules/0/bad", "does not break AU103", "another idempotency key; for one under the same key, or without keys, use AU101"),
    ("conduct.json", dropping("rules", 0, "when"), "/rules/0", "`when` is missing", ""),
    ("examples/busy.json", lambda data: data.update(given={"contract": "parcel"}), "/given", "There is no contract 'parcel'", ""),
]  # fmt: skip


@pytest.mark.parametrize(("file", "change", "pointer", "message", "hint"), WRONG, ids=[f"{file}-{message[:30]}" for file, _, _, message, _ in WRONG])
def test_what_is_wrong_is_said_with_its_place_and_a_suggestion(project: Path, file: str, change: Edit, pointer: str, message: str, hint: str) -> None:
    edit(parcels(project), file, change)
    found = problem(parcels(project))
    assert (found.file if not file.startswith("examples") else file, found.pointer) == (
        file if "say the code" not in message else "examples/busy.json",
        pointer,
    )
    assert re.search(message, found.message), found.message
    assert hint in found.hint


@pytest.mark.parametrize("file", ["contract.json", "codes.json", "tree.json"])
def test_a_file_that_is_missing_or_no_json_is_said(project: Path, file: str) -> None:
    (parcels(project) / file).write_text('{\n"name": "x",\n}')
    found = problem(parcels(project))
    assert (found.file, found.message[:11]) == (file, "is not JSON")
    assert found.message.endswith("line 2")
    (parcels(project) / file).write_text('{"name": 1, "name": 2}')
    assert problem(parcels(project)).message == "the name `name` stands twice in one object"
    if file != "contract.json":
        (parcels(project) / file).unlink()
        assert problem(parcels(project)).message == "is missing"


def test_an_example_too_few_and_one_too_like_the_others_is_said(project: Path) -> None:
    (parcels(project) / "examples" / "busy.json").unlink()
    said = {(each.pointer, each.message) for each in check(read(parcels(project), "test")).problems}
    assert said == {
        ("/shapes/0/fields/retry_ms", "no example has anything there"),
        ("/nodes/code/branches/2", "no example goes this way (“{code}: later”)"),
        ("/codes/2", "no example has the code BUSY"),
    }


def test_a_pack_that_takes_what_is_another_contracts_is_said(project: Path) -> None:
    edit(
        parcels(project),
        "contract.json",
        setting({"required": ["value"], "properties": {"value": {"type": "object", "required": ["error"]}}}, "shapes", 0, "match"),
    )
    taken = [each.message for each in check(read(parcels(project), "test")).problems if "for its own" in each.message]
    assert not any("of ovstorage" in each for each in taken)  # its rank is lower
    edit(parcels(project), "contract.json", setting(1, "rank"))
    taken = [each.message for each in check(read(parcels(project), "test")).problems if "for its own" in each.message]
    assert "takes an answer of ovstorage for its own (“AliasChainTooLong as the service sends it, without a hint.”) and 53 more of its examples" in taken


def test_check_prints_every_problem_and_fails(run: Run, project: Path) -> None:
    broken(project)
    done = run("contracts", "check", cwd=project)
    assert done.returncode == 1
    assert done.stdout.decode() == (
        ".errtriage/parcels: 1 problem\n  tree.json /nodes/code/branches/0/to\n    leads to `fxi`, which is neither a node nor a leaf.\n    Did you mean `fix`?\n"
    )
    (found,) = json.loads(run("contracts", "check", "-f", "json", cwd=project).stdout)
    assert found["problems"] == [
        {
            "file": "tree.json",
            "pointer": "/nodes/code/branches/0/to",
            "message": "leads to `fxi`, which is neither a node nor a leaf",
            "hint": "Did you mean `fix`?",
        }
    ]
    assert run("contracts", "check", "nowhere", cwd=project).returncode == 2
    assert run("contracts", "check", "http", "mcp", cwd=project).returncode == 0


def test_a_file_that_nothing_reads_is_said(project: Path) -> None:
    (parcels(project) / "rule.json").write_text("{}")
    (parcels(project) / "examples" / "more").mkdir()
    (parcels(project) / "examples" / "a.http").write_text("HTTP/1.1 200 OK")
    (parcels(project) / "examples" / "b.json").write_text("{")
    said = [(each.file, each.message) for each in check(read(parcels(project), "test")).problems]
    assert said == [
        ("rule.json", "is no file of a pack, and is not read"),
        ("examples/a.http", "is no example, and is not read"),
        ("examples/more", "is no example, and is not read"),
        ("examples/b.json", "is not JSON: unexpected end of data, line 1"),
    ]


def test_a_file_may_hold_several_examples(run: Run, project: Path) -> None:
    """A service with many codes has one file for all that go the same way."""
    examples = parcels(project) / "examples"
    several = [json.loads(path.read_text()) for path in sorted(examples.glob("*.json"))]
    for path in examples.glob("*.json"):
        path.unlink()
    (examples / "all.json").write_text(json.dumps(several))
    assert check(read(parcels(project), "test"))[:2] == ([], 4)
    assert run("codes", "BUSY", cwd=project).stdout.count(b"Example") == 1
    several[0]["expect"]["action"] = "decide"
    (examples / "all.json").write_text(json.dumps(several))
    found = problem(parcels(project))
    assert (found.file, found.pointer) == ("examples/all.json", "/0/expect/action")


def test_a_text_whose_facts_are_all_unknown_is_never_empty(project: Path) -> None:
    edit(parcels(project), "tree.json", setting(["Mend {message}."], "leaves", "fix", "summary"))
    edit(parcels(project), "tree.json", setting("{message}: the request", "nodes", "code", "branches", 0, "answer"))
    (verdict,) = triage({**BUSY, "error": {"code": "INVALID"}}, packs=[str(parcels(project))])
    assert (verdict.summary, verdict.trace[0].answer) == ("Correct the call before you make it again.", "…: the request")


def test_a_pack_may_begin_as_editors_on_windows_write_it(project: Path) -> None:
    path = parcels(project) / "codes.json"
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert check(read(parcels(project), "test")).problems == []


# Hostile ones.


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {"not": value}
    return value


def fan_out() -> Any:
    """A schema of a hundred lines that is two to the power of forty parts."""
    steps = {f"d{i}": {"allOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(40)}
    return {"$defs": {**steps, "d40": {"type": "object"}}, "$ref": "#/$defs/d0"}


HOSTILE: list[tuple[str, Any, str]] = [
    ("round in circles", {"$ref": "#"}, "leads back to itself"),
    ("round in larger circles", {"$defs": {"a": {"anyOf": [{"$ref": "#/$defs/b"}]}, "b": {"allOf": [{"$ref": "#/$defs/a"}]}}, "$ref": "#/$defs/a"}, "leads back to itself"),
    ("a reference to the network", {"$ref": "http://127.0.0.1:9/schema.json"}, "leads to nothing in this file"),
    ("a reference to a file", {"$ref": "file:///etc/passwd"}, "leads to nothing in this file"),
    ("a reference to another pack", {"$ref": "../http/problem.schema.json"}, "leads to nothing in this file"),
    ("the schema of schemas", {"$ref": "https://json-schema.org/draft/2020-12/schema"}, "leads to nothing in this file"),
    ("a moving reference", {"$dynamicRef": "#x"}, "may not be used"),
    ("another base", {"$defs": {"a": {"$id": "http://example.org/", "$ref": "#/x"}}}, "`\\$id` may not be used"),
    ("patterns in names", {"patternProperties": {"(a+)+$": {}}}, "may not be used"),
    ("more work than it looks", fan_out(), "references written out"),
    ("a pattern of unbounded size", {"pattern": "((a{1000}){1000}){1000}"}, "no usable JSON Schema"),
    ("too deep", deep(300), "nests deeper than"),
    ("control characters", {"title": "\x1b]0;owned\x07"}, "control characters"),
    ("a member that is called as a keyword is", {"properties": {"properties": {"patternProperties": {"(a+)+$": {}}}}}, "may not be used"),
    ("a member that is called as data is", {"properties": {"default": {"allOf": [{"$ref": "#/properties/default"}]}}}, "leads back to itself"),
    ("a reference in another spelling", {"$defs": {"a%41": {}, "aA": {"$ref": "#/$defs/a%41"}}, "$ref": "#/$defs/a%41"}, "leads to nothing in this file"),
    (
        "a long chain of references",
        {"default": {**{f"d{i}": {"$ref": f"#/default/d{i + 1}"} for i in range(600)}, "d600": {}}, "allOf": [{"$ref": "#/default/d400"}, {"$ref": "#/default/d0"}]},
        "too many references",
    ),
    ("another kind of schema", {"$schema": "http://json-schema.org/draft-07/schema#"}, "another kind of JSON Schema"),
    ("another kind of schema inside", {"properties": {"a": {"$schema": "https://json-schema.org/draft/2020-12/schema"}}}, "another kind of JSON Schema"),
    ("too many patterns", {"anyOf": [{"pattern": f"a{i}"} for i in range(500)]}, "patterns"),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "message"), [each[1:] for each in HOSTILE], ids=[each[0] for each in HOSTILE])
def test_a_hostile_schema_is_refused_at_once(project: Path, schema: Any, message: str) -> None:
    began = time.monotonic()
    text = json.dumps(schema)
    (parcels(project) / "failure.schema.json").write_text(text)
    found = problems(read(parcels(project), "test"))
    assert re.search(message, found[0].message), found
    if "deep" not in message:
        start("second", project / ".errtriage")
        edit(project / ".errtriage" / "second", "tree.json", setting({"type": "object", **schema}, "nodes", "code", "branches", 0, "when"))
        found = problems(read(project / ".errtriage" / "second", "test"))
        assert re.search(message, found[0].message), found
    assert time.monotonic() - began < 10  # far more than it takes, and far less than what it is after


def test_a_pattern_that_would_run_away_does_not(run: Run, project: Path) -> None:
    """Where it decides, where a violation is explained, and where scan remembers what it saw."""
    edit(parcels(project), "failure.schema.json", setting({"type": "string", "pattern": "^(a+)+$"}, "properties", "error", "properties", "message"))
    note = {"when": {"required": ["message"], "properties": {"message": {"pattern": "^(a|a)*(a+)+$"}}}, "source": "docs", "steps": ["x"]}
    edit(parcels(project), "tree.json", setting([note], "notes"))
    answer = json.dumps({**BUSY, "error": {"code": "BUSY", "message": "a" * 5000 + "!"}})
    (verdict,) = [json.loads(line) for line in run("explain", "-f", "json", stdin=answer, cwd=project).stdout.splitlines()]
    assert [each["keyword"] for each in verdict["violations"]] == ["pattern"]
    assert json.loads(run("scan", "-f", "json", "-", stdin=f"x {answer}\n" * 20, cwd=project).stdout)["payloads"] == 20


def test_a_file_that_is_huge_or_none_is_refused(run: Run, project: Path) -> None:
    (parcels(project) / "codes.json").write_bytes(b" " * (2 << 20))
    assert b"parcels/codes.json is larger than 512 KiB" in run("explain", stdin="x", cwd=project).stderr
    (parcels(project) / "codes.json").unlink()
    if hasattr(os, "mkfifo"):
        os.mkfifo(parcels(project) / "codes.json")
        assert b"parcels/codes.json is no file" in run("explain", stdin="x", cwd=project).stderr
    for number in range(1100):
        (parcels(project) / f"s{number}.schema.json").touch()
    assert b"has more than 1,000 files" in run("explain", stdin="x", cwd=project).stderr


LARGE: list[tuple[str, str, Any]] = [
    ("names", "codes.json", lambda _: {f"n{i}": 1 for i in range(30_000)}),
    ("codes that are none", "codes.json", lambda data: {**data, "codes": [0] * 100_000}),
    ("groups that are not there", "codes.json", lambda data: {**data, "codes": [{**data["codes"][0], "code": f"c{i}", "group": f"x{i}"} for i in range(1900)]}),
    ("long names", "codes.json", lambda data: {**data, "groups": [*data["groups"], {"name": "ab" * 40_000, "title": "t", "source": "docs"}], "codes": [{**data["codes"][0], "group": "ba" * 40_000}]}),
    ("nodes", "tree.json", lambda data: {**data, "nodes": {f"a{i}": {**data["nodes"]["code"], "otherwise": {"answer": "x", "to": f"a{(i + 1) % 300}"}} for i in range(300)}}),
    ("markers", "contract.json", lambda data: {**data, "shapes": [{**data["shapes"][0], "name": f"s{i}", "markers": [{"member": f"m{j}", "begins": [f'"{k}' for k in range(50)]} for j in range(30)]} for i in range(20)]}),
]  # fmt: skip


@pytest.mark.parametrize(("file", "made"), [each[1:] for each in LARGE], ids=[each[0] for each in LARGE])
def test_a_large_pack_is_refused_before_it_takes_long(run: Run, project: Path, file: str, made: Callable[[Any], Any]) -> None:
    path = parcels(project) / file
    path.write_text(json.dumps(made(json.loads(path.read_text()))))
    began = time.monotonic()
    done = run("scan", "-f", "json", "-", stdin=json.dumps(BUSY), cwd=project)
    assert (done.returncode, done.stderr.count(b"cannot be used")) == (0, 1)
    assert len(done.stderr) < 2000
    assert time.monotonic() - began < 20  # a hundred times less than it took


def test_a_payload_cannot_make_a_schema_slow(run: Run, project: Path) -> None:
    edit(parcels(project), "failure.schema.json", lambda data: data["properties"].update(items={"uniqueItems": True}))
    answer = {**BUSY, "items": [*({"a": i} for i in range(4000)), {"a": 0}]}
    began = time.monotonic()
    assert b'"keyword":"uniqueItems"' in run("explain", "-f", "json", stdin=json.dumps(answer), cwd=project).stdout
    assert time.monotonic() - began < 10


def test_a_link_that_leads_out_of_a_pack_is_not_followed(run: Run, project: Path) -> None:
    (project / "private.json").write_text('{"aws_key": 1}')
    (parcels(project) / "codes.json").unlink()
    (parcels(project) / "codes.json").symlink_to(project / "private.json")
    done = run("explain", stdin="x", cwd=project)
    assert b"codes.json leads out of its pack" in done.stderr
    assert b"aws_key" not in done.stderr
    (project / "meta").mkdir()
    (project / "there").symlink_to(project / "meta")
    (project / "packs").mkdir()
    (project / "packs" / "meta").symlink_to(project / "meta")
    start("second", project / "packs")
    assert list((project / "meta").iterdir()) == []


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_tab_waits_for_nothing_and_offers_no_control(run: Run, project: Path) -> None:
    env = {"_ERRTRIAGE_COMPLETE": "complete_bash", "COMP_WORDS": "errtriage explain --contract z", "COMP_CWORD": "3"}
    edit(parcels(project), "contract.json", lambda data: data.update(name="zz\x1b]0;owned\x07\nmore", tools={"zt\x1b[31m": "a"}))
    assert run(env=env, cwd=project).stdout.strip() == b""
    (parcels(project) / "codes.json").unlink()
    os.mkfifo(parcels(project) / "codes.json")
    assert run(env={**env, "COMP_WORDS": "errtriage codes VERS", "COMP_CWORD": "2"}, cwd=project).stdout.strip() == b"VERSION_CONFLICT"


def test_what_a_bundled_pack_hides_stays_hidden(run: Run, project: Path) -> None:
    start("ovstorage", project / ".errtriage")
    answer = {**BUSY, "service": "ovstorage", "error": {"code": "BUSY", "message": "see https://h/x?X-Amz-Signature=abcdef0123456789&a=1"}}
    shown = run("explain", stdin=json.dumps(answer), cwd=project).stdout
    assert b"X-Amz-Signature=REDACTED" in shown


def test_where_packs_cannot_be_looked_for_there_are_none(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    code = (
        "import os, sys; os.chdir(sys.argv[1]); os.rmdir(sys.argv[1]); sys.argv = ['errtriage', 'explain', '-f', 'json']; from errtriage.cli import app; app()"
    )
    done = subprocess.run([sys.executable, "-c", code, str(folder)], input=b'{"error": "rate_limited"}', capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert run("explain", "-f", "json", stdin='{"error": "rate_limited"}', env={"ERRTRIAGE_PACKS": "/nowhere"}).returncode == 0


def test_a_check_by_name_is_of_the_pack_that_would_be_used(run: Run, project: Path) -> None:
    start("mcp", project / ".errtriage")
    edit(project / ".errtriage" / "mcp", "tree.json", lambda data: data.update(root="x"))
    for name in ("mcp", str(project / ".errtriage" / "mcp" / "contract.json")):
        done = run("contracts", "check", name, cwd=project)
        assert (done.returncode, b"there is no node `x`" in done.stdout) == (1, True)


def test_a_pack_cannot_name_a_file_outside_of_itself(project: Path) -> None:
    edit(parcels(project), "contract.json", setting("../../secret.schema.json", "shapes", 0, "schema"))
    assert problem(parcels(project)).pointer == "/shapes/0/schema"


@pytest.mark.parametrize(
    "schema", [True, False, {"anyOf": [False, {"type": "array"}]}, {"properties": {"error": False}}, {"not": {}}, {"if": {}, "then": False}]
)
def test_a_schema_may_be_true_or_false_anywhere(run: Run, project: Path, schema: Any) -> None:
    (parcels(project) / "failure.schema.json").write_text(json.dumps(schema))
    for answer in (BUSY, {"x": 1}):
        (verdict,) = [
            json.loads(line) for line in run("explain", "--contract", "parcels", "-f", "json", stdin=json.dumps(answer), cwd=project).stdout.splitlines()
        ]
        assert verdict["valid"] is (schema is True or (answer is not BUSY and "properties" in str(schema)))
        assert run("lint", "--contract", "parcels", "-", stdin=json.dumps(answer), cwd=project).returncode in {0, 1}


@pytest.mark.parametrize("entry", [{"code": "X", "from": 1}, {"code": "X", "to": 1}, {"code": "X", "from": 1, "to": 2}, {"from": 2}, {}])
def test_a_code_is_one_or_a_range(project: Path, entry: dict[str, Any]) -> None:
    rest = {"group": "busy", "title": "t", "meaning": "m", "say": "s", "source": "docs"}
    edit(parcels(project), "codes.json", lambda data: data["codes"].append({**rest, **entry}))
    assert problem(parcels(project)).pointer == "/codes/3"


# What a pack can say.


def test_a_place_in_an_item_of_an_array(project: Path) -> None:
    """The first item that fits; its members as words; a delay in seconds or as protobuf writes it; the longest of two."""
    fields = {
        "detail_ms": {
            "at": [{"in": "/error/details", "where": {"required": ["kind"], "properties": {"kind": {"const": "pause"}}}, "at": "/for"}],
            "type": ["duration"],
        },
        "faults": {"at": [{"in": "/error/details", "where": {"required": ["faults"]}, "at": "/faults", "each": ["/field", "/why"]}], "type": ["list"]},
    }
    edit(parcels(project), "contract.json", lambda data: data["shapes"][0]["fields"].update(fields))
    edit(parcels(project), "contract.json", setting([{"in": "/ids", "at": "/id"}], "shapes", 0, "ids", "correlation"))
    edit(parcels(project), "tree.json", setting({"longest": ["retry_ms", "detail_ms"]}, "leaves", "wait", "retry", "delay_ms"))
    edit(parcels(project), "tree.json", setting([["Mend {faults}.", "Mend it."]], "leaves", "wait", "steps"))
    details: list[Any] = [
        5,
        {"kind": "other", "for": "9s"},
        {"kind": "pause", "for": "31.5s"},
        {"faults": [{"field": "a.b", "why": "too long"}, {"field": "c"}, "x"]},
    ]
    answer = {**BUSY, "error": {**BUSY["error"], "details": details}, "ids": [{"id": "i-1"}, {"id": "i-2"}]}  # type: ignore[dict-item]
    (verdict,) = triage(answer, packs=[str(parcels(project))])
    assert verdict.retry
    assert (verdict.retry.delay_ms, verdict.correlation_id, verdict.steps) == (31_500, "i-1", ("Mend a.b – too long, c.",))
    details[2]["for"] = "29s"
    (verdict,) = triage(answer, packs=[str(parcels(project))])
    assert verdict.retry
    assert verdict.retry.delay_ms == 30_000
    odds: list[Any] = [None, {}, "x", [], [[]]]
    for odd in odds:
        (verdict,) = triage({**answer, "error": {**BUSY["error"], "details": odd}, "ids": odd}, packs=[str(parcels(project))])  # type: ignore[dict-item]
        assert (verdict.correlation_id, verdict.steps) == (None, ("Mend it.",))


def test_another_way_to_write_a_code(run: Run, project: Path) -> None:
    edit(parcels(project), "codes.json", lambda data: data["codes"][2].update(aliases=["17", "busy"]))
    edit(parcels(project), "contract.json", setting(["string", "integer"], "shapes", 0, "fields", "code", "type"))
    for written in ("BUSY", "busy", 17, "17"):
        (verdict,) = triage({**BUSY, "error": {"code": written, "message": "m"}}, packs=[str(parcels(project))])
        assert (verdict.code, verdict.action) == ("BUSY", "wait")
    assert b"Also written 17 or busy." in run("codes", "17", cwd=project).stdout


def test_what_a_response_asks_for(project: Path) -> None:
    """Conditions and fields on headers and challenges, and on the wrappers around."""
    match = {"required": ["http_status", "challenges"], "properties": {"challenges": {"required": ["parcel"]}, "within": {"contains": {"const": "http"}}}}
    edit(parcels(project), "contract.json", setting(match, "shapes", 0, "match"))
    edit(parcels(project), "contract.json", setting(["http-response"], "shapes", 0, "on"))
    fields = {"code": {"at": ["http:/challenges/parcel/why"], "type": ["string"]}, "message": {"at": ["http:/headers/x-note"], "type": ["string"]}}
    edit(parcels(project), "contract.json", lambda data: data["shapes"][0]["fields"].update(fields))
    (verdict,) = triage('HTTP/1.1 401 No\r\nWWW-Authenticate: Parcel why="BUSY"\r\nX-Note: tomorrow\r\n\r\n', packs=[str(parcels(project))])
    assert (verdict.contract, verdict.code, verdict.message) == ("parcels", "BUSY", "tomorrow")


def test_what_programs_print_is_found_by_the_words_of_a_pack(run: Run, project: Path) -> None:
    printed = f"12:00 got {BUSY!r}"
    assert json.loads(run("explain", "-f", "json", stdin=printed, cwd=project).stdout)["source"]["wrappers"] == []
    assert json.loads(run("scan", "-f", "json", "-", stdin=printed, cwd=project).stdout)["payloads"] == 1
    other = "12:00 got {'parcel': {'why': 'BUSY'}}"
    assert run("explain", "-f", "json", stdin=other, cwd=project).returncode == 1
    value = {"required": ["value"], "properties": {"value": {"type": "object", "required": ["parcel"]}}}
    edit(parcels(project), "contract.json", setting(value, "shapes", 0, "match"))
    edit(parcels(project), "contract.json", setting([{"member": "parcel", "begins": ["{"]}], "shapes", 0, "markers"))
    assert json.loads(run("explain", "-f", "json", stdin=other, cwd=project).stdout)["contract"] == "parcels"


CONDITIONS: list[tuple[str, Any, list[Any]]] = [
    ("how long a text is", {"required": ["message"], "properties": {"message": {"minLength": 4}}}, ["abc", "abcd", "ab1", "abc1", "", "1"]),
    ("whether a list has an item", {"required": ["list"], "properties": {"list": {"contains": {"const": "x"}}}}, [["x"], ["y"], [], ["y", "x"], [1]]),
    ("whether items differ", {"required": ["list"], "properties": {"list": {"uniqueItems": True}}}, [["x", "y"], ["z", "z"], [], [1, 1], [1, 2]]),
    ("what a text begins with", {"required": ["message"], "properties": {"message": {"pattern": "^a"}}}, ["ab", "ba", "a1", "b1", ""]),
    ("what a text ends with", {"required": ["message"], "properties": {"message": {"pattern": "z$"}}}, ["az", "za", "1z", "z1"]),
    ("whether a number is a multiple", {"required": ["number"], "properties": {"number": {"multipleOf": 5}}}, [5, 6, 10, 11, 0, 2.5]),
    ("whether a number is large", {"required": ["number"], "properties": {"number": {"minimum": 100}}}, [99, 100, 101, -1, 99.5]),
    ("how long a delay is", {"required": ["retry_ms"], "properties": {"retry_ms": {"minimum": 60000}}}, [30, 600, "30", "600", None]),
    ("an item by its number", {"required": ["first"], "properties": {"first": {"const": "x"}}}, [["x"], ["y"], ["y", "x"]]),
    ("what blanks are", {"required": ["message"], "properties": {"message": {"pattern": "\\S"}}}, [" ", "\x1c", "", "a"]),
    ("whether there is a delay", {"required": ["pause_ms"]}, ["30s", "30", "soon", "31s", "-1s", 5]),
    ("whether there are seconds", {"required": ["retry_ms"]}, [30, "30", "30s", -1, 1.5, None, "x1"]),
]


@pytest.mark.parametrize(("condition", "values"), [each[1:] for each in CONDITIONS], ids=[each[0] for each in CONDITIONS])
def test_scan_remembers_records_by_all_that_a_pack_asks(run: Run, project: Path, condition: Any, values: list[Any]) -> None:
    """Lines that are alike but for what decides: scan counts each as explain reads it."""
    fields = (
        {name: {"at": [f"/{name}"], "type": [kind]} for name, kind in (("list", "array"), ("number", "number"))}
        | {"first": {"at": ["/list/0"], "type": ["string"]}}
        | {"pause_ms": {"at": ["/pause"], "type": ["duration"]}}
    )
    edit(parcels(project), "contract.json", lambda data: data["shapes"][0]["fields"].update(fields))
    edit(parcels(project), "tree.json", lambda data: data["nodes"]["code"]["branches"].insert(0, {"when": condition, "answer": "as asked", "to": "report"}))
    answers = [{**BUSY, "error": {"code": "BUSY", "message": value, "retry_after": value}, "list": value, "number": value, "pause": value} for value in values]
    # Only what comes after three ids of a group is counted by what is remembered.
    lines = [{**answers[i % len(answers)], "request_id": f"r-{i}"} for i in range(9 * len(answers))]
    log = "".join(f"2026-11-30T09:00:0{i % 10}Z ERROR {json.dumps(line)}\n" for i, line in enumerate(lines))
    explained = [json.loads(line)["action"] for line in run("explain", "-f", "json", stdin=log, cwd=project).stdout.splitlines()]
    assert len(set(explained)) == 2
    counted = json.loads(run("scan", "-f", "json", "-", stdin=log, cwd=project).stdout)["by_action"]
    assert counted == {action: explained.count(action) for action in sorted(set(explained), key=list(counted).index)}
