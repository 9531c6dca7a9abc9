"""Exact output: every input of the corpus as JSON, and some of them as text and Markdown.

``pytest --regenerate`` writes the outputs anew; read the difference before it is committed.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import CORPUS, Run

INPUTS = sorted(path for path in (CORPUS / "explain").iterdir() if path.suffix in (".json", ".jsonl", ".log", ".http"))
OUTPUTS = {"json": "verdicts", "text": "txt", "markdown": "md"}


@pytest.mark.parametrize("path", INPUTS, ids=lambda path: path.name)
@pytest.mark.parametrize("format", OUTPUTS)
def test_the_output_is_exactly_this(run: Run, path: Path, format: str, pytestconfig: pytest.Config) -> None:
    expected = path.with_name(f"{path.name}.{OUTPUTS[format]}")
    done = run("explain", "--format", format, path.name, cwd=path.parent)
    assert (done.returncode, done.stderr) == (0, b"")
    if pytestconfig.getoption("regenerate"):
        expected.write_bytes(done.stdout)
    assert done.stdout == expected.read_bytes()
