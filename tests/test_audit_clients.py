"""audit tells an obedient and a disobedient client apart by the traffic that was captured between them and a real server.

Clients and server are of the official MCP SDK. They talk over stdio and over HTTP, in the last revision with sessions and
in the one without, and what the tool reads is what went over the wire.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest
from conftest import Run

pytest.importorskip("mcp", reason="the MCP SDK is not installed")

import anyio
from mcp_clients import CLIENTS, HERE, WRONGS, Wrong, har, raw, talk_over_http, talk_over_stdio

#: The revisions of MCP that they speak: the last one with a handshake and sessions, and the first one without.
REVISIONS = {"2025-11-25": False, "2026-07-28": True}
#: How the traffic is kept: as a log, as log records, as a HAR capture, as raw HTTP without times.
FORMS = ["log", "jsonl", "har", "http"]
CALL = re.compile(r'"method": ?"tools/call"')


@contextmanager
def service() -> Iterator[str]:
    """The server over HTTP; gives its address."""
    with subprocess.Popen([sys.executable, HERE / "mcp_service.py", "http"], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


@pytest.fixture(scope="module", params=REVISIONS)
def captures(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what each client and its server said to each other, in every form, and with several in one file."""
    folder = tmp_path_factory.mktemp(request.param)
    modern = REVISIONS[request.param]
    anyio.run(lambda: talk_over_stdio(folder / "all.log", modern=modern))
    lines = (folder / "all.log").read_text().splitlines(keepends=True)
    for name in CLIENTS:
        mine = [line.replace(f" session={name}", "") for line in lines if f" session={name} " in line]
        (folder / f"{name}.log").write_text("".join(mine))
        parts = [line.split(" ", 2) for line in mine]
        records = [{"time": time, "direction": direction, "message": json.loads(message)} for time, direction, message in parts]
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    with service() as url:
        exchanged = anyio.run(lambda: talk_over_http(url, modern=modern))
    both = [*exchanged["obedient"], *exchanged["disobedient"]]
    for name, exchanges in {**exchanged, "both": both}.items():
        (folder / f"{name}.har").write_bytes(har(exchanges))
        (folder / f"{name}.http").write_bytes(raw(exchanges))
    return folder


def audited(run: Run, path: Path) -> tuple[int, dict[str, Any]]:
    done = run("audit", "--format", "json", str(path))
    assert done.stderr == b""
    return done.returncode, json.loads(done.stdout)


def steps(report: dict[str, Any]) -> list[tuple[str, str, str | None]]:
    """The findings of a report: the rule, the tool that was called, and the code that forbade it."""
    return [(each["rule"], each["tool"], each["verdict"]["code"]) for each in report["findings"]]


def calls(path: Path) -> list[tuple[int | None, datetime | None]]:
    """Where and when each call of a tool stands in a capture. A HAR capture tells when, raw HTTP where."""
    if path.suffix == ".har":
        entries = json.loads(path.read_bytes())["log"]["entries"]
        asked = [each for each in entries if CALL.search(each["request"].get("postData", {}).get("text", ""))]
        return [(None, datetime.fromisoformat(each["startedDateTime"])) for each in asked]
    lines = enumerate(path.read_text().splitlines(), 1)
    return [(number, None) for number, line in lines if CALL.search(line)]


def expected_of(path: Path) -> list[tuple[Wrong, int]]:
    """What is to be found in a capture of the disobedient client, with the number of the offending call."""
    over_http, timed = path.suffix in (".har", ".http"), path.suffix != ".http"
    last = accumulate(len(wrong.pauses) + (wrong.rule == "AU105") for wrong in WRONGS)
    return [(wrong, number - 1) for wrong, number in zip(WRONGS, last, strict=True) if (over_http or not wrong.http) and (timed or not wrong.timed)]


@pytest.mark.parametrize("form", FORMS)
def test_the_obedient_client_broke_nothing(run: Run, captures: Path, form: str) -> None:
    path = captures / f"obedient.{form}"
    status, report = audited(run, path)
    assert (status, report["findings"]) == (0, [])
    # That is no blindness: each failure was seen, and kept to.
    assert report["calls"] == len(calls(path))
    (session,) = [each for each in report["sessions"] if each["calls"]]
    assert session["contracts"][0] == "coffeechats"
    assert "ovstorage" in session["contracts"]
    assert session["obeyed"] == session["verdicts"] >= 13


@pytest.mark.parametrize("form", FORMS)
def test_each_step_of_the_disobedient_client_is_found(run: Run, captures: Path, form: str) -> None:
    path = captures / f"disobedient.{form}"
    status, report = audited(run, path)
    assert status == 1
    expected = expected_of(path)
    found = report["findings"]
    assert steps(report) == [(wrong.rule, wrong.tool, wrong.code) for wrong, _ in expected]
    assert [each["rule"] for each in report["not_applied"]] == (["AU102", "AU104"] if form == "http" else [])
    there = calls(path)
    for each, (_, number) in zip(found, expected, strict=True):
        line, time = there[number]
        assert each["line"] == line or line is None
        assert time is None or datetime.fromisoformat(each["time"]) == time
        if form in ("log", "jsonl"):  # the answer stands right before the call that it forbids
            assert each["verdict"]["line"] == line - 1  # type: ignore[operator]
            assert each["between_ms"] is not None


@pytest.mark.parametrize("form", ["log", "jsonl", "har"])
def test_calls_that_were_made_at_the_same_time_forbid_each_other_nothing(run: Run, captures: Path, form: str) -> None:
    status, report = audited(run, captures / f"parallel.{form}")
    assert (status, report["findings"], report["calls"]) == (0, [], 5)


def test_clients_in_one_log_are_told_apart(run: Run, captures: Path) -> None:
    _, report = audited(run, captures / "all.log")
    assert {each["session"] for each in report["findings"]} == {"disobedient"}
    assert steps(report) == [(wrong.rule, wrong.tool, wrong.code) for wrong, _ in expected_of(captures / "all.log")]
    assert {each["session"]: bool(each["broken"]) for each in report["sessions"]} == {"obedient": False, "disobedient": True, "parallel": False}


@pytest.mark.parametrize("form", ["har", "http"])
def test_clients_in_one_capture_of_http_are_told_apart(run: Run, captures: Path, form: str) -> None:
    """By the session's id where the revision has one, else by what else tells clients apart: their credentials."""
    path = captures / f"both.{form}"
    _, report = audited(run, path)
    assert steps(report) == [(wrong.rule, wrong.tool, wrong.code) for wrong, _ in expected_of(path)]
    assert sorted(bool(each["broken"]) for each in report["sessions"] if each["calls"]) == [False, True]


def test_an_answer_that_crossed_its_cancellation_is_told(run: Run, captures: Path) -> None:
    """The SDK's server answers no request that was taken back in time; one that was blocked meanwhile answers late."""
    lines = (captures / "obedient.log").read_text().splitlines()
    slow, again, blocked = (number for number, line in enumerate(lines, 1) if CALL.search(line) and re.search("slow|blocked", line))
    _, report = audited(run, captures / "obedient.log")
    (late,) = report["late_answers"]
    assert (late["called"], late["outcome"], late["gave_up"] > blocked, late["answered"] > late["gave_up"]) == (blocked, "success", True, True)
    # Of the others there is no answer at all on the wire.
    for called in (slow, again):
        identifier = json.loads(lines[called - 1].split(" ", 2)[2])["id"]
        said = [line.split(" ", 2)[1:] for line in lines[called:]]
        mine = [(direction, message) for direction, message in said if json.loads(message).get("id") == identifier]
        assert mine == []
        assert any(f'"requestId":{identifier},' in message for _, message in said)
