"""The command as people and scripts meet it: exit codes, streams, colour, and sentences when something is wrong."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Run

OK = json.dumps({"v": "0.1", "ok": True, "operation": "doctor", "result": {}})
LOCKED = json.dumps(
    {"v": "0.1", "ok": False, "operation": "ovstorage_read", "operation_id": "op-3", "error": {"code": "Locked", "message": "held", "retryable": False}}
)
BUSY = json.dumps({"v": "0.1", "ok": False, "operation": "ovstorage_read", "error": {"code": "Transient", "message": "busy", "retryable": True}})
ODD = json.dumps({"tag": "half_done", "scenario": "loading", "operationId": "op-4"})


def test_a_file_and_standard_input(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "answer.json"
    file.write_text(LOCKED)
    done = run("explain", "--format", "json", str(file), "-", stdin=BUSY)
    assert done.returncode == 0
    assert [json.loads(line)["source"]["file"] for line in done.stdout.splitlines()] == [str(file), "-"]


@pytest.mark.parametrize(("text", "code"), [(OK, 0), (LOCKED, 19), (BUSY, 10), (ODD, 20), (f"{OK}\n{BUSY}\n{LOCKED}", 19), ("no payload", 1)])
def test_exit_by_action(run: Run, text: str, code: int) -> None:
    assert run("explain", "--exit-code", stdin=text).returncode == code


def test_quiet_prints_nothing_but_the_exit_code(run: Run) -> None:
    done = run("explain", "-q", "--exit-code", stdin=BUSY)
    assert (done.returncode, done.stdout, done.stderr) == (10, b"", b"")


NOTHING = [
    ("", "the input is empty"),
    ("  \n", "the input is empty"),
    ("all is well", "it is not JSON at byte 0, and no line of it holds any"),
    ('{"hello": 1, "you": 2}', "it is a JSON object with the keys 'hello', 'you', which is none of their shapes"),
    ("{}", "it is a JSON object with no keys, which is none of their shapes"),
    ('[{"a": 1}, 2]', "it is a JSON array of 2, none of a known shape"),
    ("42", "it is a single JSON value, not an object"),
    ('x {"a": 1}', "a JSON value was read in it, none of a known shape"),
    ('x {"a": 1}\n{"b": 2}', "2 JSON values were read in it, none of a known shape"),
    ('{"a": 1', "it is not JSON at byte 7, and no line of it holds any"),
]


@pytest.mark.parametrize(("text", "instead"), NOTHING, ids=[instead[:30] for _, instead in NOTHING])
def test_no_payload_is_one_sentence_and_exit_1(run: Run, text: str, instead: str) -> None:
    done = run("explain", stdin=text)
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.decode() == f"errtriage: standard input: no payload of ovstorage, coffeechats, oauth, google, mcp or http found; {instead}.\n"


BOUNDS = [
    ('{"a":' * 5000 + "1" + "}" * 5000, "its JSON nests deeper than 256 levels, and is not read"),
    ('{"a":' * 500 + "1" + "}" * 500, "its wrappers nest deeper than 100 levels; what lies deeper is not searched"),
]


@pytest.mark.parametrize(("text", "sentence"), BOUNDS, ids=[sentence[:20] for _, sentence in BOUNDS])
def test_past_a_bound_is_a_sentence_and_the_rest_is_done(run: Run, text: str, sentence: str) -> None:
    done = run("explain", stdin=text)
    assert (done.returncode, done.stderr.decode()) == (1, f"errtriage: standard input: {sentence}.\n")
    done = run("explain", "--format", "json", stdin=f"{text}\n{LOCKED}")
    assert (done.returncode, len(done.stdout.splitlines()), done.stderr.decode()) == (0, 1, f"errtriage: standard input: {sentence}.\n")


def test_an_unreadable_file_does_not_stop_the_others(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "answer.json"
    file.write_text(LOCKED)
    done = run("explain", "--format", "json", str(tmp_path / "gone.json"), str(tmp_path), str(file))
    assert done.returncode == 2
    assert len(done.stdout.splitlines()) == 1
    assert (
        done.stderr.decode()
        == f"errtriage: {tmp_path}/gone.json cannot be read: No such file or directory.\nerrtriage: {tmp_path} is a folder, and not a file. Name the files in it.\n"
    )


WRONG = [
    (["--contract", "ovstorag"], "There is no contract 'ovstorag'. Did you mean 'ovstorage'? Known: ovstorage, coffeechats, oauth, google, mcp, http."),
    (["--format", "jsn"], "There is no format 'jsn'. Did you mean 'json'? Known: text, json, markdown."),
    (["--color", "allways"], "There is no colour setting 'allways'. Did you mean 'always'? Known: auto, always, never."),
    (["--status", "9"], "9 is not in the range 100<=x<=999"),
    (["--header", "Retry-After 5"], "--header 'Retry-After 5' is no header. Write it as 'Name: value', such as 'Retry-After: 5'."),
    (["--formt", "json"], "No such option: --formt"),
]


@pytest.mark.parametrize(("args", "sentence"), WRONG, ids=[args[0] + args[1] for args, _ in WRONG])
def test_wrong_usage_exits_2_and_offers_the_nearest(run: Run, args: list[str], sentence: str) -> None:
    done = run("explain", *args, stdin=LOCKED)
    assert (done.returncode, done.stdout) == (2, b"")
    assert sentence in done.stderr.decode()


def test_what_the_transport_knew(run: Run) -> None:
    done = run("explain", "--format", "json", "--status", "429", "--header", "Retry-After: 3", stdin='{"error": "rate_limited"}')
    verdict = json.loads(done.stdout)
    assert (verdict["retry"]["delay_ms"], verdict["source"]["http_status"]) == (3000, 429)


@pytest.mark.parametrize("body", ["", "<html>Bad gateway</html>", '{"oops": 1}'])
def test_a_status_alone_is_an_answer(run: Run, body: str) -> None:
    verdict = json.loads(run("explain", "--format", "json", "--status", "502", stdin=body).stdout)
    assert (verdict["contract"], verdict["shape"], verdict["code"], verdict["action"]) == ("http", "response", "502", "report")


def test_no_trace(run: Run) -> None:
    assert b"How it was decided" in run("explain", stdin=LOCKED).stdout
    assert b"How it was decided" not in run("explain", "--no-trace", stdin=LOCKED).stdout


@pytest.mark.parametrize(("args", "env", "colored"), [
    ([], {}, False),
    ([], {"FORCE_COLOR": "1"}, True),
    ([], {"FORCE_COLOR": "0"}, False),
    ([], {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
    (["--color", "always"], {"NO_COLOR": "1"}, True),
    (["--color", "never"], {"FORCE_COLOR": "1"}, False),
    ([], {"GITHUB_ACTIONS": "true", "CI": "true"}, False),
])  # fmt: skip
def test_colour_in_a_pipe(run: Run, args: list[str], env: dict[str, str], colored: bool) -> None:
    assert (b"\x1b[" in run("explain", *args, stdin=LOCKED, env=env).stdout) is colored


@pytest.mark.parametrize("command", [["--help"], ["explain", "--help"]])
def test_help_is_plain_also_where_ci_switches_colour_on(run: Run, command: list[str]) -> None:
    done = run(*command, env={"GITHUB_ACTIONS": "true", "PY_COLORS": "1", "CI": "true"})
    assert done.returncode == 0
    assert b"\x1b" not in done.stdout
    assert b"explain" in done.stdout


def on_a_terminal(args: list[str], columns: int, stdin: bytes) -> bytes:
    """What the command writes to a terminal of this width."""
    import fcntl
    import struct
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    env = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR", "COLUMNS")}
    command = [sys.executable, "-m", "errtriage", *args]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=theirs, stderr=subprocess.DEVNULL, env=env | {"TERM": "xterm"}) as process:
        os.close(theirs)
        assert process.stdin
        process.stdin.write(stdin)
        process.stdin.close()
        output = b""
        try:
            while part := os.read(ours, 65536):
                output += part
        except OSError:  # the other end is closed
            pass
        os.close(ours)
    return output


@pytest.mark.parametrize("columns", [40, 80, 140])
def test_a_terminal_gets_colour_and_lines_that_fit_but_an_id_is_never_broken(columns: int) -> None:
    import re

    long_id = "op-" + "0123456789" * 16
    output = on_a_terminal(["explain"], columns, LOCKED.replace("op-3", long_id).encode()).decode()
    assert "\x1b[" in output
    lines = re.sub(r"\x1b\[[0-9;]*m", "", output).split("\r\n")
    assert long_id in lines
    assert all(len(line) <= columns for line in lines if long_id not in line)
    assert f"\r\n{long_id}\r\n" in output, "no colour in the id's line"


def test_an_id_in_a_pipe_is_a_line_of_its_own(run: Run) -> None:
    assert "op-3" in run("explain", stdin=LOCKED).stdout.decode().splitlines()


def test_an_output_without_the_characters_gets_plain_ones(run: Run) -> None:
    done = run("explain", stdin=LOCKED.replace("held", "gehört “mir”"), env={"PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0
    assert done.stdout.isascii()
    assert b'geh?rt "mir"' in done.stdout


def test_a_reader_that_goes_away_ends_it_quietly() -> None:
    # The shell's own pipe: head reads a line and goes away while the command still writes.
    script = f"yes '{LOCKED}' | head -n 2000 | (\"$0\" -m errtriage explain; echo $? >&2) | head -n 1"
    done = subprocess.run([script, sys.executable], shell=True, capture_output=True, timeout=60, check=False)
    assert done.stderr == b"141\n"


def test_an_interruption_exits_130() -> None:
    import signal
    import time

    with subprocess.Popen([sys.executable, "-m", "errtriage", "explain"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        time.sleep(2)  # it waits for its standard input by then
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
        assert process.stderr
        assert process.stderr.read() == b""


def test_a_bug_of_ours_exits_70_and_says_how_to_report_it(run: Run, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import errtriage.verdicts\nerrtriage.verdicts.Triage.text = lambda *args, **kwargs: 1 / 0\n")
    done = run("explain", stdin=LOCKED, env={"PYTHONPATH": str(tmp_path)})
    assert done.returncode == 70
    assert done.stderr.decode().startswith("errtriage: this is a bug in errtriage 0.1.0: ZeroDivisionError at sitecustomize.py:2. Please report it")


def test_a_terminal_on_standard_input_is_told_what_is_waited_for() -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen([sys.executable, "-m", "errtriage", "explain"], stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    os.close(theirs)
    os.write(ours, LOCKED.encode() + b"\n\x04\x04")
    output, errors = process.communicate(timeout=30)
    assert b"Locked" in output
    assert errors == b"errtriage: reading standard input: paste a failing answer, then press Ctrl-D (or name a file).\n"
    os.close(ours)


def test_a_closed_standard_input_is_said() -> None:
    done = subprocess.run(f"{sys.executable} -m errtriage explain <&-", shell=True, capture_output=True, check=False)
    assert done.returncode == 2
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_full_disk_is_said(form: str) -> None:
    command = f"'{sys.executable}' -m errtriage explain -f {form} >/dev/full"
    done = subprocess.run([command], input=LOCKED.encode(), shell=True, capture_output=True, check=False)
    sentence = b"errtriage: The output cannot be written: No space left on device. Free some room or write it elsewhere.\n"
    assert (done.returncode, done.stderr) == (2, sentence)


def test_a_name_that_is_no_text_is_shown_as_one(run: Run, tmp_path: Path) -> None:
    file = os.fsencode(tmp_path) + b"/bad\xff.json"
    Path(os.fsdecode(file)).write_text(LOCKED)
    for form in ("text", "json"):
        assert run("explain", "-f", form, os.fsdecode(file)).returncode == 0


@pytest.mark.parametrize("columns", ["9" * 5000, "x", "-1", "0", ""])
def test_odd_columns_do_no_harm(run: Run, columns: str) -> None:
    assert run("explain", stdin=LOCKED, env={"COLUMNS": columns}).returncode == 0


def test_the_version(run: Run) -> None:
    assert run("--version").stdout == b"errtriage 0.1.0\n"


def test_no_command_shows_the_help(run: Run) -> None:
    done = run()
    assert b"Usage: errtriage" in done.stdout + done.stderr
