"""What the README shows is what happens."""

from __future__ import annotations

import re
import shlex

import pytest
from conftest import ROOT, Run

README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```console\n(.*?)```", README, re.DOTALL)
SESSIONS = [session for block in BLOCKS for session in re.split(r"^\$ ", block, flags=re.MULTILINE) if session]


@pytest.mark.parametrize("session", SESSIONS, ids=lambda session: session.split("\n")[0][:60])
def test_a_session_prints_what_the_readme_shows(run: Run, session: str) -> None:
    """Lines of a session after the command are its output; … stands for any further lines, or the rest of its line."""
    command, _, shown = session.partition("\n")
    command = command.removesuffix("; echo $?")
    words, _, file = command.partition(" < ")
    pipe, bar, last = words.rpartition(" | ")
    stdin = (ROOT / file).read_bytes() if file else b""
    if bar:
        assert pipe.startswith(("echo ", "cat ")), pipe
        _, argument = shlex.split(pipe)
        stdin = argument.encode() if pipe.startswith("echo ") else (ROOT / argument).read_bytes()
    program, *args = shlex.split(last)
    assert program == "errtriage"
    done = run(*args, stdin=stdin, cwd=ROOT)
    output = done.stdout.decode() + done.stderr.decode() + (f"{done.returncode}\n" if "; echo $?" in session else "")
    wild = {"…": r"(?:.*\n)*?"}
    pattern = "".join(wild.get(line) or re.escape(line.removesuffix("…")) + (".*\n" if line.endswith("…") else "\n") for line in shown.splitlines())
    assert re.fullmatch(pattern, output), output


def test_the_readme_shows_sessions() -> None:
    assert len(SESSIONS) >= 5


def test_the_python_example_prints_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    exec(compile(code, "README.md", "exec"), {})
    said = re.findall(r"# (.*)$", code, re.MULTILINE)
    assert capsys.readouterr().out.splitlines() == said


def test_every_option_of_explain_is_in_the_readme(run: Run) -> None:
    options = set(re.findall(r"--[a-z-]+", run("explain", "--help").stdout.decode())) - {"--help"}
    assert {option for option in options if f"`{option}" not in README and option not in README} == set()


def test_the_two_commands_need_nothing_but_python() -> None:
    first, second = re.findall(r"```sh\n(.*?)\n```", README, re.DOTALL)[:2]
    assert first.startswith("python3 -m venv .venv && ")
    assert second.startswith("python3 -m venv .venv && ")
    assert second.endswith(".venv/bin/python -m pytest --quiet")
