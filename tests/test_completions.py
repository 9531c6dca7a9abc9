"""The completion scripts in the repository are the generated ones, and errtriage answers all that shells ask."""

from __future__ import annotations

import os

import pytest
import shell_scripts
from conftest import ROOT, Run

from errtriage import shells
from errtriage.cli import COMMANDS, load


@pytest.mark.parametrize("name", shell_scripts.scripts())
def test_a_script_is_the_generated_one(name: str, pytestconfig: pytest.Config) -> None:
    path = ROOT / "completions" / name
    script = shell_scripts.scripts()[name]
    if pytestconfig.getoption("regenerate"):
        path.write_text(script)
    assert path.read_text() == script


@pytest.mark.parametrize("shell", ["zsh", "fish", "powershell"])
def test_an_answer_with_help_texts_needs_no_rich(run: Run, shell: str) -> None:
    """Typer draws them with Rich, which takes longer than the rest of the answer and eats words in brackets."""
    env = {"_ERRTRIAGE_COMPLETE": f"complete_{shell}", "_TYPER_COMPLETE_ARGS": "errtriage co", "_TYPER_COMPLETE_WORD_TO_COMPLETE": "co"}
    done = run(env={**env, "PYTHONPROFILEIMPORTTIME": "1", "_TYPER_COMPLETE_FISH_ACTION": "get-args"})
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.decode().splitlines()}
    assert COMMANDS["contracts"].split(",")[0] in done.stdout.decode()
    assert not {"rich", "orjson", "jsonschema_rs", "errtriage.commands.scan", "errtriage.commands.codes"} & loaded


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("errtriage ex", ["explain"]),
        ("errtriage explain --contract ov", ["ovstorage"]),
        ("errtriage explain --format ", ["text", "json", "markdown"]),
        ("errtriage explain --color n", ["never"]),
        ("errtriage lint --format s", ["sarif"]),
        ("errtriage lint --fail-on w", ["warning"]),
        ("errtriage rules HT", ["HT101", "HT102"]),
        ("errtriage scan --format j", ["json", "jsonl"]),
        ("errtriage scan --only unc", ["uncertain"]),
    ],
)
def test_tab_offers_what_fits(run: Run, words: str, offered: list[str]) -> None:
    env = {"_ERRTRIAGE_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    done = run(env=env)
    assert done.stdout.decode().split() == offered, os.fsdecode(done.stderr)


@pytest.mark.parametrize(
    ("shell", "asked", "answer"),
    [
        ("zsh", {"_TYPER_COMPLETE_ARGS": "errtriage codes VERSION_"}, """_arguments '*: :(("VERSION_CONFLICT"))'"""),
        ("fish", {"_TYPER_COMPLETE_ARGS": "errtriage codes VERSION_", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}, "VERSION_CONFLICT"),
        ("powershell", {"_TYPER_COMPLETE_ARGS": "errtriage codes VERSION_", "_TYPER_COMPLETE_WORD_TO_COMPLETE": "VERSION_"}, "VERSION_CONFLICT:::"),
    ],
)
def test_what_install_completion_installs_is_answered(run: Run, shell: str, asked: dict[str, str], answer: str) -> None:
    done = run(env={"_ERRTRIAGE_COMPLETE": f"complete_{shell}", **asked})
    assert done.stdout.decode().strip() == answer, os.fsdecode(done.stderr)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_what_errtriage_installs_is_the_same_script(run: Run, shell: str) -> None:
    env = {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    shown = run("--show-completion", shell, env=env).stdout.decode()
    assert shown == (ROOT / "completions" / shells.SCRIPTS[shell]).read_text()


def test_a_list_of_commands_says_what_their_own_help_says() -> None:
    for name, line in COMMANDS.items():
        assert load(name).help.splitlines()[0] == line
