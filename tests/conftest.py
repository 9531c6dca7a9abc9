"""What several tests share: the packs, their examples, and whole-command runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import settings

# Where everything must run, the same examples are tried each time, so that what lands does not hang on luck; at a
# developer's they are new ones each time. Speed is measured elsewhere.
settings.register_profile("developer", deadline=None)
settings.register_profile("must-run", deadline=None, derandomize=True)
settings.load_profile("must-run" if os.environ.get("ERRTRIAGE_TESTS_MUST_RUN") else "developer")

# No test sees the packs of whoever runs it.
os.environ["XDG_CONFIG_HOME"] = os.devnull

ROOT = Path(__file__).resolve().parents[1]
SCHEMAS = ROOT / "schemas"
CORPUS = Path(__file__).parent / "corpus"


class Run:
    """Runs the command as a process, the way a shell does."""

    def __call__(self, *args: str, stdin: bytes | str = b"", env: dict[str, str] | None = None, cwd: Path | None = None) -> subprocess.CompletedProcess[bytes]:
        data = stdin.encode() if isinstance(stdin, str) else stdin
        settings = {
            name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "GITHUB_ACTIONS", "ERRTRIAGE_PACKS")
        }
        settings |= {"PYTHONIOENCODING": "utf-8", **(env or {})}
        command = [sys.executable, "-m", "errtriage", *args]
        return subprocess.run(command, input=data, capture_output=True, env=settings, cwd=cwd, timeout=60, check=False)


@pytest.fixture(scope="session")
def run() -> Run:
    """The command as a process."""
    return Run()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--regenerate", action="store_true", help="write generated files anew instead of comparing them")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Where everything is installed (ERRTRIAGE_TESTS_MUST_RUN), a skipped test is a failure."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("ERRTRIAGE_TESTS_MUST_RUN") and reporter and reporter.stats.get("skipped"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
