"""Scans on a Dask cluster: a real scheduler and real workers on loopback, started from the command line."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, Run
from deadly import tripled
from fleet import BIN, cluster, compressed, log, object_store, until

from errtriage.executors import Lost, run_on

LARGE = log(40)
SMALL = log(0.3)
OBJECTS = {"a.log": LARGE, "b.log.gz": compressed(SMALL)}


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("logs")
    (folder / "a.log").write_bytes(LARGE)
    (folder / "b.log.gz").write_bytes(OBJECTS["b.log.gz"])
    return folder


@pytest.fixture(scope="module")
def store() -> Iterator[dict[str, str]]:
    with object_store(OBJECTS) as env:
        yield env


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory: pytest.TempPathFactory, store: dict[str, str]) -> Iterator[Path]:
    """A scheduler with two workers, in another folder than the logs."""
    tests = str(Path(__file__).parent)
    with cluster(tmp_path_factory.mktemp("cluster"), env={**store, "PYTHONPATH": tests}) as file:
        yield file


INPUTS = ["a.log", "b.log.gz", "s3://logs/a.log", "s3://logs/b.log.gz", "-"]


@pytest.mark.parametrize("name", INPUTS)
def test_every_engine_gives_the_same_bytes(run: Run, logs: Path, store: dict[str, str], scheduler: Path, name: str) -> None:
    """One process, two, a cluster; a file, a compressed one, an object, standard input."""
    stdin = LARGE if name == "-" else b""
    reports = [
        run("scan", "-f", "json", *engine, name, stdin=stdin, env=store, cwd=logs).stdout
        for engine in (["--workers", "1"], ["--workers", "2"], ["--cluster", str(scheduler)])
    ]
    assert json.loads(reports[0])["payloads"] == (SMALL if "b.log" in name else LARGE).count(b"ERROR")
    assert reports[1] == reports[0]
    assert reports[2] == reports[0]


def test_a_file_that_the_workers_cannot_see_travels_to_them(run: Run, logs: Path, scheduler: Path) -> None:
    """Where a worker finds another file or none under the name, the slices carry their bytes."""
    here = run("scan", "-f", "json", "a.log", cwd=logs)
    code = (
        "import sys; from errtriage import cluster; cluster.Cluster.reached = lambda *_: set(); "
        "sys.argv[1:] = ['scan', '-f', 'json', '--cluster', sys.argv[1], 'a.log']; from errtriage.cli import app; app()"
    )
    done = subprocess.run([sys.executable, "-c", code, str(scheduler)], cwd=logs, capture_output=True, check=True)
    assert done.stdout == here.stdout


def test_workers_with_several_threads_share_nothing(run: Run, logs: Path, tmp_path: Path) -> None:
    here = run("scan", "-f", "json", "a.log", "b.log.gz", cwd=logs)
    with cluster(tmp_path, workers=1, threads=2) as file:
        for _ in range(3):
            there = run("scan", "-f", "json", "--cluster", str(file), "a.log", "b.log.gz", cwd=logs)
            assert (there.stderr, there.stdout) == (b"", here.stdout)


def test_packs_travel_to_the_workers(run: Run, scheduler: Path, tmp_path: Path) -> None:
    run("contracts", "new", "parcels", cwd=tmp_path)
    answer = {"service": "parcels", "error": {"code": "BUSY", "message": "later"}, "request_id": "r-1"}
    (tmp_path / "a.log").write_text(f"12:00 {json.dumps(answer)}\n" * 100)
    report = json.loads(run("scan", "-f", "json", "--cluster", str(scheduler), "a.log", cwd=tmp_path).stdout)
    assert [(group["contract"], group["count"]) for group in report["groups"]] == [("parcels", 100)]


def test_a_cluster_on_this_machine(run: Run, logs: Path) -> None:
    here = run("scan", "-f", "json", "a.log", cwd=logs)
    there = run("scan", "-f", "json", "--cluster", "local", "--workers", "2", "a.log", cwd=logs)
    assert (there.returncode, there.stderr, there.stdout) == (0, b"", here.stdout)


def started(scheduler: Path, folder: Path, *names: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "errtriage", "scan", "-f", "json", "--cluster", str(scheduler), *names]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def client_of(scheduler: Path) -> Any:
    from distributed import Client

    kind: Any = Client
    return kind(scheduler_file=str(scheduler), set_as_default=False, timeout=30)


def test_a_worker_that_is_killed_in_the_middle_costs_nothing(run: Run, tmp_path: Path) -> None:
    names = [f"{number}.log" for number in range(6)]
    for name in names:
        (tmp_path / name).write_bytes(LARGE)
    here = run("scan", "-f", "json", *names, cwd=tmp_path)
    with cluster(tmp_path, env={"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "3"}) as file, client_of(file) as client:
        client.wait_for_workers(2, timeout=60)
        victims = client.run(os.getpid)
        scan = started(file, tmp_path, *names)
        until(lambda: any(client.processing().values()))
        os.kill(next(iter(victims.values())), signal.SIGKILL)
        out, err = scan.communicate(timeout=100)
        assert (scan.returncode, err) == (0, b"")
        assert out == here.stdout


def test_work_that_kills_its_worker_is_lost_and_the_rest_is_done(scheduler: Path) -> None:
    from errtriage.cluster import connected

    with connected(str(scheduler), None) as found:
        results = list(run_on(found.executor, tripled, range(20), found.threads, found.lost))
    assert results == [Lost(job) if job == 7 else 3 * job for job in range(20)]


def test_ctrl_c_prints_what_was_found_and_cancels_the_rest(scheduler: Path, tmp_path: Path) -> None:
    names = [f"{number}.log" for number in range(12)]
    for name in names:
        (tmp_path / name).write_bytes(LARGE)
    with client_of(scheduler) as client:
        client.wait_for_workers(2, timeout=60)
        scan = started(scheduler, tmp_path, *names)
        until(lambda: any(client.processing().values()))
        scan.send_signal(signal.SIGINT)
        out, err = scan.communicate(timeout=60)
        assert scan.returncode == 130
        assert json.loads(out)["version"] == 1
        assert err.endswith(b"errtriage: interrupted; this is what was found until then.\n")
        until(lambda: not any(client.processing().values()))


def test_workers_with_another_version_are_told_apart(run: Run, tmp_path: Path) -> None:
    other = tmp_path / "other"
    (other / "errtriage-9.9.9.dist-info").mkdir(parents=True)
    (other / "errtriage-9.9.9.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: errtriage\nVersion: 9.9.9\n")
    with cluster(tmp_path, workers=1, worker_env={"PYTHONPATH": str(other)}) as file:
        done = run("scan", "--cluster", str(file), "-")
    assert (done.returncode, done.stdout) == (2, b"")
    assert b" has errtriage 9.9.9, and this is " in done.stderr
    assert done.stderr.endswith(b"Install the same version in both places.\n")


def test_a_scheduler_that_does_not_answer_is_said(run: Run, tmp_path: Path) -> None:
    done = run("scan", "--cluster", "tcp://127.0.0.1:9", "-")
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.startswith(b"errtriage: No Dask scheduler answers at tcp://127.0.0.1:9 (")
    (tmp_path / "a.log").write_bytes(SMALL)
    for where in ("a.log", "", "tcp://me:s3cr3t@127.0.0.1:9"):
        nobody = run("scan", "--cluster", where, "a.log", cwd=tmp_path)
        assert (nobody.returncode, nobody.stdout) == (2, b"")
        assert nobody.stderr.startswith((b"errtriage: No Dask scheduler answers at ", b"errtriage: --cluster names no scheduler."))
        assert b"s3cr3t" not in nobody.stderr
    wrong = run("scan", "--cluster", "nonsense://x", "-")
    assert (wrong.returncode, wrong.stdout) == (2, b"")
    assert b"No Dask scheduler answers at nonsense://x" in wrong.stderr


def test_the_three_lines_of_the_readme_scan_a_bucket(tmp_path: Path, store: dict[str, str]) -> None:
    block = next(each for each in re.findall(r"```sh\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL) if each.startswith("dask scheduler"))
    scheduler, worker, scan = (shlex.split(line) for line in block.splitlines())
    env = {**os.environ, **store, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}
    running = []
    try:
        for command in ([*scheduler, "--host", "127.0.0.1", "--port", "0", "--no-dashboard"], [*worker, "--no-dashboard"]):
            running.append(subprocess.Popen(command, cwd=tmp_path, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
            until((tmp_path / "scheduler.json").is_file)
        done = subprocess.run([*scan[:-1], "s3://logs/"], cwd=tmp_path, env=env, capture_output=True, check=False, timeout=100)
    finally:
        for process in reversed(running):
            process.terminate()
            process.wait(20)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith(b"2 files, 40.3 MiB, ")
