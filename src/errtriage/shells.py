"""Puts our completion scripts in the place of Typer's, and keeps Rich out of the answers to a TAB.

Typer's script for zsh offers nothing at the first TAB, and loses quotation marks; ours do what ``tests/test_shells.py``
tries in real shells. Typer draws help texts with Rich, which takes longer than all the rest of an answer and eats words
in brackets. Both are changed in Typer itself, and only when completion is asked for, because it offers no other way.
"""

from __future__ import annotations

from pathlib import Path

#: Our scripts by the names that Typer has for shells.
SCRIPTS = {"bash": "errtriage.bash", "zsh": "_errtriage", "fish": "errtriage.fish", "powershell": "errtriage.ps1", "pwsh": "errtriage.ps1"}


def mend() -> None:
    """Let Typer show and install our scripts, and answer with help texts as they are."""
    from typer import _completion_classes, _completion_shared

    here = Path(__file__).resolve().parent
    folder = next((each for each in (here / "completions", here.parents[1] / "completions") if each.is_dir()), None)
    if folder is not None:
        # Typer takes a script for a template.
        _completion_shared._completion_scripts.update({shell: (folder / file).read_text().replace("%", "%%") for shell, file in SCRIPTS.items()})  # noqa: SLF001 - as above
    _completion_classes._sanitize_help_text = _as_it_is  # noqa: SLF001 - as above


def _as_it_is(text: str) -> str:
    return text
