"""What the README shows is what happens."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from conftest import ROOT, Run

from errtriage.cli import COMMANDS
from errtriage.contracts import bundled
from errtriage.rules import catalogue, conduct_catalogue

README = (ROOT / "README.md").read_text()
BEFORE, OWN, REST = re.split(r"(?=^## Your own contract)|(?=^## Safety)", README, flags=re.MULTILINE)


def sessions(text: str) -> list[str]:
    """The commands of a text's console blocks, each with what it shows."""
    blocks = re.findall(r"```console\n(.*?)```", text, re.DOTALL)
    return [session for block in blocks for session in re.split(r"^\$ ", block, flags=re.MULTILINE) if session]


SESSIONS = sessions(BEFORE) + sessions(REST)


def plays(run: Run, session: str, folder: Path) -> None:
    """Run a session and compare: … stands for any further lines, or the rest of its line."""
    command, _, shown = session.partition("\n")
    command = command.removesuffix("; echo $?")
    words, _, file = command.partition(" < ")
    pipe, bar, last = words.rpartition(" | ")
    stdin = (folder / file).read_bytes() if file else b""
    if bar:
        assert pipe.startswith(("echo ", "cat ")), pipe
        _, argument = shlex.split(pipe)
        stdin = argument.encode() if pipe.startswith("echo ") else (folder / argument).read_bytes()
    program, *args = shlex.split(last)
    assert program == "errtriage"
    done = run(*args, stdin=stdin, cwd=folder)
    output = done.stdout.decode() + done.stderr.decode() + (f"{done.returncode}\n" if "; echo $?" in session else "")
    wild = {"…": r"(?:.*\n)*?"}
    pattern = "".join(wild.get(line) or re.escape(line.removesuffix("…")) + (".*\n" if line.endswith("…") else "\n") for line in shown.splitlines())
    assert re.fullmatch(pattern, output), output


@pytest.mark.parametrize("session", SESSIONS, ids=lambda session: session.split("\n")[0][:60])
def test_a_session_prints_what_the_readme_shows(run: Run, session: str) -> None:
    plays(run, session, ROOT)


def test_a_pack_comes_of_the_readme_step_by_step(run: Run, tmp_path: Path) -> None:
    """From nothing to explain, lint and scan of a service that nobody has: each file and each command in its order."""
    steps = re.findall(r"^`([^`\n]+)`:\n\n```(?:json|text)\n(.*?)```$|^```console\n(.*?)```$", OWN, re.DOTALL | re.MULTILINE)
    assert len(steps) > 10
    for file, content, console in steps:
        if file:
            (tmp_path / file).write_text(content)
        for session in sessions(f"```console\n{console}```"):
            if session.startswith("rm "):
                for pattern in shlex.split(session)[1:]:
                    gone = list(tmp_path.glob(pattern))
                    assert gone, pattern
                    for path in gone:
                        path.unlink()
            else:
                plays(run, session, tmp_path)


def test_the_tree_is_what_the_command_draws(run: Run, pytestconfig: pytest.Config) -> None:
    drawn = f"\n```mermaid\n{run('tree', '--format', 'mermaid', 'ovstorage').stdout.decode()}```\n"
    before, mark, rest = README.partition("<!-- tree: written by pytest --regenerate -->")
    shown, end, after = rest.partition("<!-- end of tree -->")
    if pytestconfig.getoption("regenerate"):
        (ROOT / "README.md").write_text(before + mark + drawn + end + after)
        shown = drawn
    assert shown == drawn


def test_the_readme_shows_sessions() -> None:
    assert len(SESSIONS) >= 5


def test_the_python_example_prints_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    exec(compile(code, "README.md", "exec"), {})
    said = re.findall(r"# (.*)$", code, re.MULTILINE)
    assert capsys.readouterr().out.splitlines() == said


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_is_in_the_readme(run: Run, command: str) -> None:
    options = set(re.findall(r"--[a-z-]+", run(command, "--help").stdout.decode())) - {"--help"}
    assert {option for option in options if option not in README} == set()


def test_the_table_of_rules_is_made_from_the_rules(pytestconfig: pytest.Config) -> None:
    rows = [f"| {rule['id']} | {rule['level']} | {rule['what']} |" for rule in (*catalogue(bundled()), *conduct_catalogue(bundled()))]
    table = "\n".join(["", "| rule | level | what it finds |", "| --- | --- | --- |", *rows, ""])
    before, mark, rest = README.partition("<!-- rules: written by pytest --regenerate -->")
    shown, end, after = rest.partition("<!-- end of rules -->")
    if pytestconfig.getoption("regenerate"):
        before, mark, rest = (ROOT / "README.md").read_text().partition("<!-- rules: written by pytest --regenerate -->")
        _, end, after = rest.partition("<!-- end of rules -->")
        (ROOT / "README.md").write_text(before + mark + table + end + after)
        shown = table
    assert shown == table


def test_the_settings_that_the_readme_shows_are_taken(run: Run, tmp_path: Path) -> None:
    (settings,) = re.findall(r"```toml\n(.*?)```", README, re.DOTALL)
    (tmp_path / "pyproject.toml").write_text(settings)
    assert run("lint", "-", stdin="nothing", cwd=tmp_path).stdout.startswith(b"1 file, 0 payloads: no findings; settings of ")
    assert run("lint", "-", stdin='{"v": "0.1", "ok": true, "operation": "o", "result": 1, "x": 1}', cwd=tmp_path).returncode == 1


def test_the_snippets_for_ci_run_the_commands_that_there_are(run: Run, tmp_path: Path) -> None:
    (tmp_path / "captures").mkdir()
    shown = re.findall(r"errtriage (lint --format (?:github|sarif|junit) captures)", "".join(re.findall(r"```yaml\n(.*?)```", README, re.DOTALL)))
    assert len(shown) == 3
    for command in shown:
        assert run(*command.split(), cwd=tmp_path).returncode == 0
    assert "id: errtriage-lint" in README
    assert "id: errtriage-lint" in (ROOT / ".pre-commit-hooks.yaml").read_text()


def test_the_two_commands_need_nothing_but_python() -> None:
    first, second = re.findall(r"```sh\n(.*?)\n```", README, re.DOTALL)[:2]
    assert first.startswith("python3 -m venv .venv && ")
    assert second.startswith("python3 -m venv .venv && ")
    assert second.endswith(".venv/bin/python -m pytest --quiet")
