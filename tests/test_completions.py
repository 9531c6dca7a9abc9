"""The completion scripts in the repository are the generated ones, and errtriage answers all that shells ask."""

from __future__ import annotations

import os

import pytest
import shell_scripts
from conftest import ROOT, Run
from typer._completion_classes import _sanitize_help_text


@pytest.mark.parametrize("name", shell_scripts.scripts())
def test_a_script_is_the_generated_one(name: str, pytestconfig: pytest.Config) -> None:
    path = ROOT / "completions" / name
    script = shell_scripts.scripts()[name]
    if pytestconfig.getoption("regenerate"):
        path.write_text(script)
    assert path.read_text() == script


def test_help_holds_nothing_that_typer_drops_from_what_tab_shows() -> None:
    # It takes [x] for a colour and :x: for a picture, and drops or replaces them.
    texts = [each.help or "" for place in shell_scripts.walk() for each in (place.command, *place.options)]
    short = [place.command.get_short_help_str() for place in shell_scripts.walk()]
    for text in (*(" ".join(text.split()) for text in texts if "\n" not in text), *short):
        assert _sanitize_help_text(text).split() == text.split()


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
