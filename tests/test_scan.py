"""``errtriage scan``: the same payloads as explain, for any slices and workers; counts, reports, and what goes wrong."""

from __future__ import annotations

import bz2
import contextlib
import csv
import gzip
import json
import lzma
import os
import pty
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any, Self

import jsonschema
import pytest
from conftest import CORPUS, SCHEMAS, Run
from hypothesis import given, settings
from hypothesis import strategies as st

from errtriage import slices
from errtriage.contracts import bundled
from errtriage.inputs import decode, decompress
from errtriage.markers import Search, _patterns
from errtriage.merge import Merge
from errtriage.regions import Slice
from errtriage.render.jsonl import line
from errtriage.scan import Scanner, Settings, scan_slice, scanner_for
from errtriage.slices import Queue
from errtriage.survey import of_merge
from errtriage.verdicts import Triage

ENVELOPE = {"v": "0.1", "ok": False, "operation": "ovstorage_read", "operation_id": "op-1", "error": {"code": "NotFound", "message": "m", "retryable": False}}
BUSY = {**ENVELOPE, "operation_id": "op-2", "error": {"code": "Transient", "message": "busy", "retryable": True}}
UNKNOWN = {
    "status": "uncertain",
    "scenario": "uncertain",
    "operationId": "op-3",
    "error": {"code": "OUTCOME_UNKNOWN", "retryable": False, "correlationId": "op-3"},
}
DONE = {"tag": "completed", "scenario": "success", "operationId": "op-4"}
OK = {"v": "0.1", "ok": True, "operation": "ovstorage_read", "result": {}}
RPC = {"jsonrpc": "2.0", "id": 7, "result": {"isError": True, "content": [{"type": "text", "text": json.dumps(UNKNOWN)}]}}
CALL = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "contacts.notes.update", "arguments": {}}}
TRIAGE = Triage(bundled())


def explained(data: bytes, name: str = "x") -> list[bytes]:
    """What explain finds, as JSON Lines."""
    text, lossy = decode(decompress(data).data)
    return [line(verdict) for verdict in TRIAGE.text(text, name, lossy=lossy)]


def scanned(path: Path, size: int, *, successes: bool = False) -> list[bytes]:
    """What scan finds in slices of some size, as JSON Lines."""
    asked = Settings(successes=successes, verdicts=True)
    merge = Merge(scanner_for(asked))
    queue = Queue(merge, asked, [str(path)], size)
    found = []
    for job in queue.jobs():
        part = scan_slice(job)
        queue.next_slice()
        found += [line(verdict) for verdict in merge.add(part)]
    queue.finish()
    assert merge.tally.skipped == []
    return found


def failures(found: list[bytes]) -> list[bytes]:
    """Without successes, and without what was read of one that was cut."""
    verdicts = [json.loads(each) for each in found]
    cut = [verdict["source"]["truncated"] and verdict["outcome"] == "unrecognised" for verdict in verdicts]
    return [each for each, verdict, skip in zip(found, verdicts, cut, strict=True) if verdict["outcome"] != "success" and not skip]


INPUTS = sorted(path for folder in ("explain", "nothing") for path in (CORPUS / folder).iterdir() if path.suffix not in (".verdicts", ".txt", ".md"))


@pytest.mark.parametrize("size", [1, 300, 1 << 30])
@pytest.mark.parametrize("path", INPUTS, ids=lambda path: path.name)
def test_scan_finds_what_explain_finds_in_slices_of_any_size(path: Path, size: int) -> None:
    want = explained(path.read_bytes(), str(path))
    assert scanned(path, size, successes=True) == want
    assert scanned(path, size) == failures(want)


def docker(text: str) -> str:
    return "".join(json.dumps({"log": each, "stream": "stdout", "time": "2031-05-02T08:00:00Z"}) + "\n" for each in text.splitlines(keepends=True))


def cut_by_docker(text: str) -> str:
    """As Docker cuts a long line: records whose text does not end in a newline."""
    pieces = [text[i : i + 37] for i in range(0, len(text), 37)]
    return "".join(json.dumps({"log": piece, "stream": "stdout", "time": "2031-05-02T08:00:00Z"}) + "\n" for piece in [*pieces[:-1], pieces[-1] + "\n"])


PAYLOADS = [ENVELOPE, BUSY, UNKNOWN, DONE, OK, RPC, {"error": "rate_limited"}, {"isError": True, "content": [{"type": "text", "text": "Tool call failed."}]}]
FORMS: list[Any] = [
    json.dumps,
    lambda value: json.dumps(value, indent=2),
    lambda value: json.dumps(value, indent=0),
    lambda value: json.dumps([value, 1], indent=1),
    lambda value: f"2031-05-02T08:00:01Z ERROR client: {json.dumps(value)}",
    lambda value: f"2031-05-02T08:00:01Z ERROR client: {json.dumps(value)} (end)",
    lambda value: "result " + json.dumps(value, indent=2),
    lambda value: json.dumps({"time": "2031-05-02T08:00:01Z", "level": "error", "payload": value}),
    lambda value: json.dumps({"ts": 1_935_475_201, "msg": "got " + json.dumps({"result": json.dumps(value)})}),
    lambda value: "INFO got " + repr(value),
    lambda value: f"HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\n\r\n{json.dumps(value)}",
    lambda value: f"event: message\ndata: {json.dumps(value)}\n",
    lambda value: docker(json.dumps(value) + "\n").rstrip("\n"),
    lambda value: docker(json.dumps(value, indent=2) + "\n").rstrip("\n"),
    lambda value: cut_by_docker(json.dumps(value)).rstrip("\n"),
    lambda value: "\n".join(f"2031-05-02T08:00:01Z stdout F {each}" for each in json.dumps(value, indent=1).split("\n")),
    lambda value: "\n".join(f"12:00:01 app {each}" for each in json.dumps(value, indent=1).split("\n")),
    lambda value: f"\x1b[31mERROR\x1b[0m {json.dumps(value).replace('false', 'fal' + chr(27) + '[1mse')}",
    lambda value: json.dumps(value)[:-30],
    lambda value: json.dumps(value).replace("e", "\\u0065", 3),
]
NOISE = [
    "2031-05-02T08:00:00Z INFO all is well",
    "INFO: started",
    '{"level": "info", "ok": true, "status": 200}',
    "",
    "[]",
    "\tat java.lang.Thread",
    "x: 1,",
    '127.0.0.1 - - [01/May/2031:08:00:00 +0000] "GET / HTTP/1.1" 500 12',
    json.dumps(CALL),
]
RECORDS = st.one_of(st.sampled_from(NOISE), st.builds(lambda form, value: form(value), st.sampled_from(FORMS), st.sampled_from(PAYLOADS)))


@settings(max_examples=300)
@given(records=st.lists(RECORDS, max_size=8), end=st.sampled_from(["", "\n"]), size=st.sampled_from([1, 50, 400, 1 << 20]))
def test_any_mixture_gives_the_same_in_slices_of_any_size(tmp_path_factory: pytest.TempPathFactory, records: list[str], end: str, size: int) -> None:
    path = tmp_path_factory.getbasetemp() / "mixture.log"
    path.write_text("\n".join(records) + end)
    whole = scanned(path, 1 << 30, successes=True)
    assert scanned(path, size, successes=True) == whole
    assert failures(scanned(path, size)) == failures(whole)


@settings(max_examples=100)
@given(records=st.lists(st.builds(FORMS[7], st.sampled_from(PAYLOADS)) | st.sampled_from(NOISE[:3]), max_size=30))
def test_what_is_remembered_of_records_changes_no_count(tmp_path_factory: pytest.TempPathFactory, records: list[str]) -> None:
    path = tmp_path_factory.getbasetemp() / "repeated.log"
    path.write_text("\n".join(records * 3) + "\n")
    expected = Counter(json.loads(each)["code"] for each in failures(explained(path.read_bytes())))
    got: Counter[str | None] = Counter()
    for key, group in counted(path, Scanner(Settings())).tally.groups.items():
        got[key.code] += group.count
    assert got == expected


def counted(path: Path, scanner: Scanner, size: int = 1 << 30) -> Merge:
    """The merge of a file that was only counted."""
    merge = Merge(scanner)
    queue = Queue(merge, Settings(), [str(path)], size)
    for _, each in queue.jobs():
        part = scanner.slice(each)
        queue.next_slice()
        assert list(merge.add(part)) == []
    queue.finish()
    return merge


def test_without_hyperscan_the_same_places_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    search = Search(bundled())
    data = "\n".join(form(value) for form in FORMS for value in PAYLOADS).encode()
    lines = {data[:at].count(b"\n") for number, at in search.candidates(data) if search.confirm(data, number, at) is not None}
    monkeypatch.setitem(sys.modules, "hyperscan", None)
    plain = Search(bundled())
    assert plain._scan.__qualname__.startswith(_patterns.__name__)
    assert {data[:at].count(b"\n") for number, at in plain.candidates(data) if plain.confirm(data, number, at) is not None} == lines


# Reports

LOG = "".join(
    json.dumps({"time": f"2031-05-02T08:{minute:02}:00Z", "level": "error", "payload": value}) + "\n"
    for minute, value in enumerate([ENVELOPE, BUSY, UNKNOWN, BUSY, DONE, {**ENVELOPE, "operation_id": "op-9"}])
)


def report(run: Run, *args: str, stdin: str | bytes = LOG, code: int = 0) -> dict[str, Any]:
    done = run("scan", "--format", "json", *args, stdin=stdin)
    assert done.returncode == code, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def test_the_report_counts_and_keeps_what_matters(run: Run) -> None:
    got = report(run, "-")
    jsonschema.validate(got, json.loads((SCHEMAS / "meta" / "scan.schema.json").read_text()))
    assert (got["files"], got["bytes"], got["lines"], got["payloads"], got["truncated"]) == (1, len(LOG), 6, 5, 0)
    assert got["by_outcome"] == {"uncertain": 1, "failure": 4}
    assert got["by_action"] == {"read-first": 1, "decide": 2, "retry": 2}
    assert [group["code"] for group in got["groups"]] == ["OUTCOME_UNKNOWN", "NotFound", "Transient"]
    decide = got["groups"][1]
    assert decide["count"] == 2
    assert (decide["first_seen"], decide["last_seen"]) == ("2031-05-02T08:00:00Z", "2031-05-02T08:05:00Z")
    assert decide["operations"] == {"ovstorage_read": 2}
    assert decide["ids"] == ["op-1", "op-9"]
    assert decide["places"] == [{"file": "-", "line": 1}, {"file": "-", "line": 6}]
    assert sum(decide["histogram"]) == 2
    assert decide["histogram"][0] == decide["histogram"][-1] == 1
    assert decide["summary"].startswith("You decide: ")


@pytest.mark.parametrize(
    ("args", "codes"),
    [
        (["--all"], ["OUTCOME_UNKNOWN", "NotFound", "Transient", None]),
        (["--only", "retry"], ["Transient"]),
        (["--only", "uncertain,NotFound"], ["OUTCOME_UNKNOWN", "NotFound"]),
        (["--since", "2031-05-02T08:02:00Z"], ["OUTCOME_UNKNOWN", "NotFound", "Transient"]),
        (["--since", "2031-05-02T08:02:30Z", "--until", "2031-05-02T10:04:00+02:00"], ["Transient"]),
        (["--until", "2031-05-02T08:01:00Z"], ["NotFound"]),
        (["--since", "1h"], []),
        (["--top", "1"], ["OUTCOME_UNKNOWN"]),
    ],
    ids=lambda value: " ".join(map(str, value)),
)
def test_only_what_is_asked_for_is_counted(run: Run, args: list[str], codes: list[str | None]) -> None:
    past = LOG.replace("2031", "2021") if args == ["--since", "1h"] else LOG
    assert [group["code"] for group in report(run, *args, "-", stdin=past)["groups"]] == codes


@pytest.mark.parametrize(("outcome", "code"), [("uncertain", 1), ("partial", 1), ("failure", 1), ("pending", 1), ("success", 1)])
def test_fail_on_counts_an_outcome_and_those_that_are_worse(run: Run, outcome: str, code: int) -> None:
    assert run("scan", "--fail-on", outcome, "-", stdin=LOG).returncode == code
    assert run("scan", "--fail-on", "uncertain", "-", stdin=json.dumps(BUSY)).returncode == 0


def test_json_lines_are_explains(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text(LOG)
    explained_lines = run("explain", "--format", "json", str(path)).stdout
    assert run("scan", "--format", "jsonl", "--all", str(path)).stdout == explained_lines
    assert run("scan", "--format", "jsonl", str(path)).stdout == b"".join(each + b"\n" for each in failures(explained_lines.splitlines()))


def test_csv_has_a_row_for_each_group_and_no_formulas(run: Run) -> None:
    hostile = json.dumps({**ENVELOPE, "operation": "=HYPERLINK(1)", "operation_id": "+1", "error": {**ENVELOPE["error"], "code": "@cmd"}})  # type: ignore[dict-item]
    rows = list(csv.DictReader(StringIO(run("scan", "--format", "csv", "-", stdin=LOG + hostile).stdout.decode())))
    assert [row["code"] for row in rows] == ["OUTCOME_UNKNOWN", "'@cmd", "NotFound", "Transient"]
    assert rows[1]["operations"].startswith("'=")
    assert rows[1]["ids"] == "'+1"
    assert rows[2]["count"] == "2"


@pytest.mark.parametrize("width", [80, 140, None], ids=["80", "140", "pipe"])
def test_the_text_report_is_exactly_this(run: Run, width: int | None, pytestconfig: pytest.Config) -> None:
    expected = CORPUS / "scan" / f"agent.{width or 'pipe'}.txt"
    done = run("scan", "logs", cwd=CORPUS / "scan", env={"COLUMNS": str(width)} if width else {})
    assert (done.returncode, done.stderr) == (0, b"")
    if pytestconfig.getoption("regenerate"):
        expected.write_bytes(done.stdout)
    assert done.stdout == expected.read_bytes()


def test_many_groups_are_shown_in_one_line_each(run: Run) -> None:
    log = "\n".join(json.dumps({**ENVELOPE, "error": {**ENVELOPE["error"], "code": f"Odd{i}"}}) for i in range(300))  # type: ignore[dict-item]
    shown = run("scan", "-", stdin=log).stdout.decode()
    assert len(shown.splitlines()) < 20 * 6 + 300
    assert "Odd299" in shown


def test_no_failure_is_said(run: Run) -> None:
    done = run("scan", "-", stdin="all is well\n")
    assert done.stdout.decode() == "1 file, 12 bytes, 1 line\nNo failure was found.\nSuccesses are not looked for; --all counts them too.\n"
    assert done.returncode == 0


def test_an_answer_far_from_its_call_knows_its_tool(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text(json.dumps(CALL) + "\n" + "12:00 INFO nothing to see here\n" * 200 + json.dumps(RPC) + "\n")
    for size in (1, 1000, 1 << 20):
        (found,) = scanned(path, size)
        assert json.loads(found)["operation"] == "contacts.notes.update"
    (group,) = counted(path, Scanner(Settings()), 500).tally.groups.values()
    assert group.operations == {"contacts.notes.update": 1}


# Inputs

COMPRESSED: dict[str, Any] = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}


@pytest.mark.parametrize("kind", COMPRESSED)
def test_compressed_and_wide_files_are_read(run: Run, kind: str, tmp_path: Path) -> None:
    (tmp_path / f"a.log.{kind}").write_bytes(COMPRESSED[kind](LOG.encode()))
    (tmp_path / "b.log").write_bytes(b"\xff\xfe" + LOG.encode("utf-16-le"))
    (tmp_path / "c.log").write_bytes(b"\xef\xbb\xbf" + LOG.encode())
    got = report(run, str(tmp_path))
    assert (got["files"], got["payloads"]) == (3, 15)
    assert {(place["line"]) for group in got["groups"] for place in group["places"]} <= set(range(1, 7))


def test_a_damaged_file_gives_what_was_read_and_exit_2(run: Run, tmp_path: Path) -> None:
    data = gzip.compress((LOG * 3000).encode())
    (tmp_path / "a.log.gz").write_bytes(data[: len(data) // 2])
    (tmp_path / "b.log").write_text(LOG)
    got = report(run, str(tmp_path), str(tmp_path / "gone.log"), code=2)
    assert got["payloads"] > 1000
    assert [each["reason"] for each in got["skipped"]][:1] == ["there is no such file or folder"]
    assert "its gzip data is damaged or cut short" in got["skipped"][1]["reason"]


def big_log(path: Path, megabytes: int) -> int:
    """A log that takes several slices; returns how many failures it has."""
    chunk = "".join(f"2031-05-02T08:00:00Z INFO nothing {i}\n" for i in range(2000)) + LOG
    times = megabytes * (1 << 20) // len(chunk) + 1
    path.write_text(chunk * times)
    return times * 5


def test_any_number_of_workers_gives_the_same_bytes(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "big.log"
    failed = big_log(path, 40)
    reports = [run("scan", "--format", "json", "--workers", workers, str(path)).stdout for workers in ("1", "2", "3")]
    assert reports[0] == reports[1] == reports[2]
    assert json.loads(reports[0])["payloads"] == failed
    monkeypatch.setattr(slices, "_FIRST", 1 << 20)
    merge = counted(path, Scanner(Settings()), 1 << 20)
    survey = of_merge(merge)
    assert [group.total for group in survey.groups] == [group["count"] for group in json.loads(reports[0])["groups"]]


def test_a_stream_is_cut_as_a_file_is(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "big.log"
    big_log(path, 40)
    of_file = json.loads(run("scan", "--format", "json", str(path)).stdout.replace(str(path).encode(), b"-"))
    with path.open("rb") as stream:
        done = subprocess.run([sys.executable, "-m", "errtriage", "scan", "--format", "json", "-"], stdin=stream, capture_output=True, check=True)
    assert json.loads(done.stdout) == of_file


def test_output_goes_to_a_file(run: Run, tmp_path: Path) -> None:
    for format in ("text", "json", "jsonl", "csv", "html"):
        path = tmp_path / f"report.{format}"
        done = run("scan", "--format", format, "--output", str(path), "-", stdin=LOG)
        assert (done.returncode, done.stdout) == (0, b"")
        assert "op-3" in path.read_text()
    done = run("scan", "--output", str(tmp_path / "no" / "such"), "-", stdin=LOG)
    assert done.returncode == 2
    assert done.stderr.decode() == f"errtriage: The report cannot be written to {tmp_path}/no/such: No such file or directory.\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_a_full_disk_is_a_sentence(run: Run) -> None:
    done = run("scan", "--format", "json", "--output", "/dev/full", "-", stdin=LOG)
    assert done.returncode == 2
    assert done.stderr.decode().startswith("errtriage: The output cannot be written: No space left on device.")


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (["--since", "yesterday", "-"], "--since 'yesterday' is no time. Write it as 2031-05-02T08:00, or as so long before now: 30m, 6h, 2d."),
        (["--follow", "--format", "html", "-"], "--follow has no end, and --format html is written at the end. Use --format text or jsonl."),
    ],
)
def test_wrong_usage_is_a_sentence(run: Run, args: list[str], sentence: str) -> None:
    done = run("scan", *args)
    assert (done.returncode, done.stderr.decode()) == (2, f"errtriage: {sentence}\n")


def test_an_interruption_prints_what_was_found() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "errtriage", "scan", "--format", "json", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdin
    process.stdin.write(LOG.encode())
    process.stdin.flush()
    time.sleep(1.5)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert json.loads(out)["payloads"] == 5
    assert err == b"errtriage: interrupted; this is what was found until then.\n"


# Following


class Followed:
    """A run that follows a file, and the verdicts that it has printed."""

    def __init__(self, *args: str) -> None:
        command = [sys.executable, "-m", "errtriage", "scan", "--follow", "--format", "jsonl", *args]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def __enter__(self) -> Self:
        time.sleep(1.0)
        return self

    def __exit__(self, *_: object) -> None:
        self.process.send_signal(signal.SIGINT)
        self.process.communicate(timeout=20)
        assert self.process.returncode == 130

    def next(self) -> dict[str, Any]:
        assert self.process.stdout
        verdict: dict[str, Any] = json.loads(self.process.stdout.readline())
        return verdict


@pytest.fixture
def followed(tmp_path: Path) -> Iterator[tuple[Path, Followed]]:
    """A log with a failure and two lines in it, and a run that follows it."""
    path = tmp_path / "app.log"
    path.write_text(f"INFO started\n{json.dumps(ENVELOPE)}\n")
    with Followed(str(path)) as run:
        yield path, run


def append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def test_a_file_is_followed_across_rotation_and_truncation(followed: tuple[Path, Followed]) -> None:
    path, run = followed
    append(path, json.dumps(BUSY) + "\n")
    first = run.next()
    assert (first["code"], first["source"]["line"], first["source"]["file"]) == ("Transient", 3, str(path))
    append(path, json.dumps(UNKNOWN, indent=2)[:40])
    time.sleep(0.3)
    append(path, json.dumps(UNKNOWN, indent=2)[40:] + "\n")
    assert run.next()["code"] == "OUTCOME_UNKNOWN"
    append(path, json.dumps(BUSY) + "\n")
    path.rename(path.with_suffix(".log.1"))
    path.write_text(json.dumps(ENVELOPE) + "\n")
    assert [(each["code"], each["source"]["line"]) for each in (run.next(), run.next())] == [("Transient", 14), ("NotFound", 1)]
    time.sleep(0.5)
    path.write_text("")
    time.sleep(0.5)
    append(path, "\n" + json.dumps(BUSY) + "\n")
    last = run.next()
    assert (last["code"], last["source"]["line"]) == ("Transient", 2)


def test_a_file_that_is_not_there_yet_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "later.log"
    with Followed(str(path)) as run:
        path.write_text(json.dumps(BUSY) + "\n")
        assert run.next()["code"] == "Transient"


def test_standard_input_is_followed_to_its_end(run: Run) -> None:
    done = run("scan", "--follow", "-", stdin=LOG)
    assert done.returncode == 0
    assert done.stdout.startswith(b" FAILED  you decide  ")
    assert len(done.stdout.splitlines()) == 5


def on_a_terminal(*args: str) -> tuple[bytes, bytes]:
    """What a run writes to standard output, and to standard error, which is a terminal."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen([sys.executable, "-m", "errtriage", "scan", *args], stdout=subprocess.PIPE, stderr=theirs)
    os.close(theirs)
    out, _ = process.communicate(timeout=60)
    shown = b""
    with contextlib.suppress(OSError):  # the terminal is gone
        while piece := os.read(ours, 65536):
            shown += piece
    os.close(ours)
    return out, shown


def test_progress_is_shown_on_a_terminal_only(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "big.log"
    big_log(path, 40)
    plain = run("scan", "--format", "json", str(path))
    assert plain.stderr == b""
    out, shown = on_a_terminal("--format", "json", str(path))
    assert out == plain.stdout
    assert re.search(rb"/\d+\.\d MB", shown)
    assert on_a_terminal("--format", "json", "--no-progress", str(path)) == (plain.stdout, b"")


def test_a_file_that_vanishes_is_said_and_the_rest_is_done(tmp_path: Path) -> None:
    first, second = tmp_path / "a.log", tmp_path / "b.log"
    first.write_text(LOG)
    second.write_text(LOG)
    merge = Merge(Scanner(Settings()))
    queue = Queue(merge, Settings(), [str(first), str(second)], 1 << 20)
    for _, each in queue.jobs():
        if each.path == str(first):
            first.unlink()
        part = Scanner(Settings()).slice(each)
        queue.next_slice()
        assert list(merge.add(part)) == []
    queue.finish()
    assert merge.tally.skipped == [(str(first), "No such file or directory")]
    assert merge.tally.payloads == 5


def test_a_file_that_shrinks_or_grows_is_read_as_far_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text(LOG * 2)
    (each,) = slices.of_input(str(path))
    assert isinstance(each, Slice)
    append(path, LOG)
    assert Scanner(Settings()).slice(each).tally.payloads == 10
    path.write_text(LOG)
    assert Scanner(Settings()).slice(each).tally.payloads == 5


TEXTS = ["Tool call failed.", "No such city 12.", "No posting 7 here.", "transcript a1", ""]
CODES = ["NotFound", "Locked", "Odd1", "Odd2", "404", "Transient"]
VARIED: list[Any] = [
    lambda dice: {"isError": True, "content": [{"type": "text", "text": dice(TEXTS)}]},
    lambda dice: {**ENVELOPE, "operation": dice(["a", "ovstorage_read", "op7"]), "error": {"code": dice(CODES), "message": dice(TEXTS), "retryable": dice([True, False])}},
    lambda dice: {**ENVELOPE, "error": {"code": dice(CODES), "message": "m", "retryable": False, "next_action": dice(["", " ", "Do 1.", "Do 2."])}},
    lambda dice: {
        "status": dice(["failed", "uncertain", "cancelled", "odd7"]), "scenario": dice(["conflict", "denied"]), "operationId": dice(["a1", "7", "bb"]),
        "error": {"code": dice([*CODES, "VERSION_CONFLICT"]), "retryable": False, "correlationId": dice(["a1", "404", ""])},
    },
    lambda dice: {"structuredContent": {"tag": dice(["accepted", "odd3", "odd4"]), "scenario": "loading", "operationId": "o1"},
                  "_meta": {"coffeechats/retry": {"code": "PERMIT_BACKPRESSURE", "retryAfterMs": dice([0, 5, 5000, 5001, None, "x1"]), "retryable": True}}},
    lambda dice: {"title": "Busy", "status": dice([400, 404, 503, 599, 600]), "detail": dice(TEXTS), "instance": "/a1"},
    lambda dice: {"jsonrpc": "2.0", "id": dice([1, 2]), "error": {"code": dice([-32602, -32042, -32001, 7]), "message": dice(TEXTS)}},
    lambda dice: {"result": dice([None, "x1", {"isError": True, "content": []}]), "time": dice([None, "2031-05-02T08:00:01Z", 1_935_475_201]), "ok": dice([True, False])},
]  # fmt: skip


@settings(max_examples=400, deadline=None)
@given(data=st.data())
def test_records_that_look_alike_are_counted_as_they_are(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """Counting by what is remembered of records comes to the same as deciding about each of them."""

    def dice(choices: list[Any]) -> Any:
        return data.draw(st.sampled_from(choices))

    lines = []
    for _ in range(data.draw(st.integers(1, 3))):
        make, behind = dice(VARIED), dice([True, False])
        for number in range(12):
            value = make(dice)
            time = f"2031-05-02T08:00:{number:02}Z"
            lines.append(f"{time} ERROR got: {json.dumps(value)}" if behind else json.dumps({dice(["time", "ts"]): time, "n": number, "payload": value}))
    path = tmp_path_factory.getbasetemp() / "alike.log"
    path.write_text("\n".join(lines * 2) + "\n")
    verdicts = [json.loads(each) for each in failures(explained(path.read_bytes()))]
    expected = Counter(
        (verdict["contract"], verdict["shape"], verdict["outcome"], verdict["code"], verdict["action"], verdict["operation"]) for verdict in verdicts
    )
    got: Counter[Any] = Counter()
    tally = counted(path, Scanner(Settings())).tally
    for key, group in tally.groups.items():
        got.update({(*key, operation): count for operation, count in group.operations.items()})
        got[*key, None] += group.count - sum(group.operations.values())
    assert +got == expected


# What once went wrong


def codes_of(run: Run, text: str | bytes, *args: str) -> tuple[int, list[str | None]]:
    """How many payloads explain finds that are no success, and the codes of those that scan counts."""
    data = text if isinstance(text, bytes) else text.encode()
    wanted = [json.loads(each)["code"] for each in failures(explained(data))]
    got = report(run, *args, "-", stdin=data)
    assert sorted(filter(None, wanted)) == sorted(str(group["code"]) for group in got["groups"] for _ in range(group["count"]) if group["code"] is not None)
    assert got["payloads"] == len(wanted)
    return len(wanted), [group["code"] for group in got["groups"]]


def test_a_text_is_never_taken_for_a_flag(run: Run) -> None:
    oks: list[Any] = [False, "no", []]
    good, odd, empty = ({**ENVELOPE, "ok": ok} for ok in oks)
    for first in (odd, empty):
        log = "\n".join(json.dumps(value) for value in [first, *[good] * 20, first, good])
        assert codes_of(run, log) == (21, ["NotFound"])
    assert codes_of(run, "\n".join(json.dumps(value) for value in [good, good, good, good, *[odd] * 20]))[0] == 4


def quoted(value: Any) -> str:
    """JSON in a string as .NET writes it, with no quote in it."""
    return json.dumps({"m": "@"}).replace("@", json.dumps(value).replace("\\", "\\u005C").replace('"', "\\u0022"))


SPELLINGS = [
    "\n".join(quoted(value) for value in (ENVELOPE, UNKNOWN, PAYLOADS[-1], {"jsonrpc": "2.0", "id": 1, "error": {"code": -32602, "message": "x"}})),
    json.dumps({"p": '{"isError":\ttrue,\n"content":[]}'}),
    '{"isError"\n:\r\n\ttrue, "content": []}',
    "INFO " + repr({"m": '{"isError":\ttrue, "content": []}'}),
    "".join(json.dumps({"log": piece, "stream": "stdout"}) + "\n" for piece in ('{"isErr', 'or": true, "content": []}\n')),
    json.dumps({"m": '{"isError"\n:\ttrue,"content":[]}'}),
    json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": "42"}], "isError": "yes"}}),
    json.dumps({"m": "HTTP/1.1 502 Bad Gateway\r\nServer: x\r\n\r\n"}).replace("/", "\\/"),
    '[2031-05-02T08:00:00Z] {\n[2031-05-02T08:00:00Z]   "isError": true,\n[2031-05-02T08:00:00Z]   "content": []\n[2031-05-02T08:00:00Z] }',
    '{app} {\n{app}   "isError": true,\n{app}   "content": []\n{app} }',
    "POST /orders HTTP/1.1\nHost: a\nContent-Type: application/json\n\n{}\n\nHTTP/1.1 502 Bad Gateway\nServer: x\n\n",
]


@pytest.mark.parametrize("text", SPELLINGS, ids=range(len(SPELLINGS)))
def test_every_spelling_that_explain_reads_is_found(run: Run, text: str, tmp_path: Path) -> None:
    assert codes_of(run, text)[0] >= 1
    path = tmp_path / "a.log"
    path.write_text(text)
    assert scanned(path, 1) == failures(explained(text.encode(), str(path)))


@pytest.mark.parametrize(
    ("line", "first"),
    [
        ('{"time": "2031-05-02T08:00:01Z", "jsonrpc": "2.0", "id": 1, "error": {"code": -32602, "message": "x"}}', "2031-05-02T08:00:01Z"),
        (json.dumps({"ts": "1935475201.5", **ENVELOPE}), "2031-05-02T08:00:01.500Z"),
        (json.dumps({"timestamp": 1_935_475_201_000, "payload": ENVELOPE}), "2031-05-02T08:00:01Z"),
        (json.dumps({"@timestamp": 1_935_475_201_000_000_000, "payload": ENVELOPE}), "2031-05-02T08:00:01Z"),
        (f"<165>1 2031-05-02T08:00:01.003Z h a - - - {json.dumps(ENVELOPE)}", "2031-05-02T08:00:01.003Z"),
        (f"web-1  | 2031-05-02T08:00:01+02:00 {json.dumps(ENVELOPE)}", "2031-05-02T06:00:01Z"),
        (f"2031-05-02 08:00:01,250 ERROR {json.dumps(ENVELOPE)}", "2031-05-02T08:00:01.250"),
        (f"2031-05-02 08:00:01 UTC [7] {json.dumps(ENVELOPE)}", "2031-05-02T08:00:01Z"),
        (f'10.0.0.1 - - [02/May/2031:08:00:01 +0200] "GET / HTTP/1.1" 200 1 {json.dumps(ENVELOPE)}', "2031-05-02T06:00:01Z"),
        (f"nothing {json.dumps(ENVELOPE)}", None),
    ],
)
def test_a_record_says_its_time_in_any_of_these_ways(run: Run, line: str, first: str | None) -> None:
    (group,) = report(run, "-", stdin=line)["groups"]
    assert group["first_seen"] == first
    repeated = report(run, "-", stdin=f"{line}\n" * 9)["groups"]
    assert [(each["count"], each["first_seen"]) for each in repeated] == [(9, first)]


def test_syslog_names_no_year(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text(f"Dec 31 23:59:01 host app: {json.dumps(ENVELOPE)}\n")
    os.utime(path, (1_735_700_000, 1_735_700_000))  # 2025-01-01
    assert report(run, str(path))["groups"][0]["first_seen"] == "2024-12-31T23:59:01"


def test_times_count_though_the_first_record_has_none(run: Run) -> None:
    log = "\n".join(json.dumps({"time": time, "payload": ENVELOPE}) for time in [None] * 5 + [f"2031-05-02T08:00:{i:02}Z" for i in range(10)])
    (group,) = report(run, "-", stdin=log)["groups"]
    assert (group["count"], group["first_seen"], group["last_seen"]) == (15, "2031-05-02T08:00:00Z", "2031-05-02T08:00:09Z")


def test_what_comes_before_the_damage_of_a_compressed_file_counts(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.log.gz").write_bytes(gzip.compress(LOG.encode()) + b"garbage")
    assert report(run, str(tmp_path), code=2)["payloads"] == 5


def test_codes_without_end_are_counted_together(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from errtriage import tally

    monkeypatch.setattr(tally, "_MOST_GROUPS", 5)
    path = tmp_path / "a.log"
    path.write_text("\n".join(json.dumps({**ENVELOPE, "error": {"code": f"Odd{i}x", "message": "m", "retryable": False}}) for i in range(50)))
    groups = counted(path, Scanner(Settings())).tally.groups
    assert {key.code: group.count for key, group in groups.items()}["(others)"] == 45
    assert sum(group.count for group in groups.values()) == 50


def test_lines_without_end_are_bounded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from errtriage import boundaries, regions

    monkeypatch.setattr(boundaries, "MOST", 10_000)
    monkeypatch.setattr(regions, "_LONGEST_RECORD", 30_000)
    path = tmp_path / "a.log"
    path.write_text(" indented\n" * 5000 + f" {json.dumps(ENVELOPE)}\n" + " indented\n" * 5000)
    assert counted(path, Scanner(Settings())).tally.payloads == 1
    path.write_text("words " * 10_000 + json.dumps(ENVELOPE))
    merge = counted(path, Scanner(Settings()))
    assert (merge.tally.payloads, len(merge.troubles)) == (0, 1)


def test_the_input_is_never_written_over(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text(LOG)
    done = run("scan", "a.log", "--output", "./a.log", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (2, b"errtriage: ./a.log is read, and cannot be written over. Name another file for --output.\n")
    assert path.read_text() == LOG


def test_nothing_found_says_what_was_asked_for(run: Run, tmp_path: Path) -> None:
    done = run("scan", "--only", "Failed", "-", stdin=LOG)
    assert b"Nothing was found that was asked for." in done.stdout
    assert done.stderr == b"errtriage: --only Failed: no action or outcome is called so, and no contract knows such a code.\n"
    assert b"Nothing was read." in run("scan", str(tmp_path / "gone")).stdout


@pytest.mark.parametrize(
    "args",
    [["--since", "2027", "-"], ["--since", "2031-05-02", "--until", "2031-05-01", "-"], ["--follow", "--top", "1", "-"], ["--follow", "--output", "x", "-"]],
)
def test_what_makes_no_sense_is_wrong_usage(run: Run, args: list[str]) -> None:
    assert run("scan", *args, stdin=LOG).returncode == 2


@pytest.mark.parametrize("tag", ["-x", "/x", ".x", "", "é", " ", "completed ", "completedx", "x"])
def test_a_tag_is_found_however_it_begins(tag: str) -> None:
    """The usual tag is not looked for, and nothing else may be taken for it."""
    line = f"12:00 ERROR {json.dumps({'tag': tag, 'scenario': 'loading', 'operationId': 'abc'}, ensure_ascii=False)}\n".encode()
    assert scanner_for(Settings()).slice(Slice("-", 0, len(line), 0.0, line)).tally.payloads == 1


@pytest.mark.parametrize("error", [-1, 5, True, False, [], ["x"], "x", {}])
def test_an_error_beside_a_success_is_found_whatever_it_is(error: Any) -> None:
    line = f"12:00 ERROR {json.dumps({'v': '0.1', 'ok': True, 'operation': 'o', 'result': 1, 'error': error})}\n".encode()
    assert scanner_for(Settings()).slice(Slice("-", 0, len(line), 0.0, line)).tally.payloads == 1


def test_what_was_learnt_gives_no_time_to_a_line_whose_time_is_not_kept(run: Run) -> None:
    """Of more than 1,024 characters before a record only the last count, the first time and every other."""
    line = (
        f'2026-11-30T09:00:00Z {"x " * 600}{{"v": "0.1", "ok": false, "operation": "o", "error": {{"code": "NotFound", "message": "m", "retryable": false}}}}\n'
    )
    report = json.loads(run("scan", "-f", "json", "-", stdin=line * 40).stdout)
    assert [(group["count"], sum(group["histogram"])) for group in report["groups"]] == [(40, 0)]
