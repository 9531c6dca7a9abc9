"""The completion scripts in the repository are the generated ones."""

from __future__ import annotations

import os

import pytest
from conftest import ROOT, Run
from typer._completion_shared import get_completion_script

SCRIPTS = {"bash": "errtriage.bash", "zsh": "_errtriage", "fish": "errtriage.fish", "powershell": "errtriage.ps1"}


@pytest.mark.parametrize("shell", SCRIPTS)
def test_a_script_is_the_generated_one(shell: str, pytestconfig: pytest.Config) -> None:
    path = ROOT / "completions" / SCRIPTS[shell]
    script = get_completion_script(prog_name="errtriage", complete_var="_ERRTRIAGE_COMPLETE", shell=shell) + "\n"
    if pytestconfig.getoption("regenerate"):
        path.write_text(script)
    assert path.read_text() == script


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("errtriage ex", ["explain"]),
        ("errtriage explain --contract o", ["ovstorage"]),
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
