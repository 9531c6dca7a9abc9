"""The wheel carries the packs, the completions and the manual page, and works where only it is installed."""

from __future__ import annotations

import json
import os
import site
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from conftest import ROOT, SCHEMAS


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = "from hatchling.build import build_wheel; import sys; print(build_wheel(sys.argv[1]))"
    done = subprocess.run([sys.executable, "-c", build, str(folder)], cwd=ROOT, capture_output=True, text=True, check=True)
    return folder / done.stdout.split()[-1]


def test_it_carries_packs_completions_and_the_manual_page(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    packs = {f"errtriage/schemas/{path.relative_to(SCHEMAS)}" for path in SCHEMAS.rglob("*.json")}
    assert packs <= names
    assert "errtriage/py.typed" in names
    shared = {name.split(".data/data/")[1] for name in names if ".data/data/" in name}
    assert shared == {
        "share/bash-completion/completions/errtriage",
        "share/zsh/site-functions/_errtriage",
        "share/fish/vendor_completions.d/errtriage.fish",
        "share/man/man1/errtriage.1",
    }


def test_it_works_without_the_checkout(wheel: Path, tmp_path: Path) -> None:
    place = tmp_path / "installed"
    zipfile.ZipFile(wheel).extractall(place)
    # Only what the wheel needs comes from the test environment: its own editable link to the checkout stays out.
    paths = [str(place), *site.getsitepackages()]
    code = "import sys; sys.path = sys.argv[1].split(';') + [p for p in sys.path if 'site-packages' not in p]; sys.argv = ['errtriage', 'explain', '--format', 'json']; from errtriage.cli import app; app()"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code, ";".join(paths)],
        input=b'{"error": "rate_limited"}',
        capture_output=True,
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"]},
        check=False,
    )
    assert done.stderr == b""
    assert json.loads(done.stdout)["shape"] == "rate-limit"
