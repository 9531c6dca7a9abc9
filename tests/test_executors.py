"""Work in other processes: the same results in the same order, whatever happens to a worker."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import ROOT

from errtriage.executors import Lost, processors, run


def square(number: int) -> int:
    """A job whose length varies, so that results come back out of order."""
    time.sleep(0.002 * (number % 5))
    return number * number


def fatal(number: int) -> int:
    """A job that kills its worker for some numbers."""
    if number % 10 == 7:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_results_come_in_the_order_of_the_jobs(workers: int) -> None:
    assert list(run(square, range(40), workers)) == [i * i for i in range(40)]
    assert list(run(square, [], workers)) == []


def test_a_job_that_kills_its_worker_is_lost_and_the_rest_is_done() -> None:
    assert list(run(fatal, range(25), 2)) == [Lost(i) if i % 10 == 7 else i for i in range(25)]


def test_jobs_are_taken_as_they_are_needed() -> None:
    taken: list[int] = []

    def jobs() -> object:
        for i in range(1000):
            taken.append(i)
            yield i

    results = run(square, jobs(), 2)  # type: ignore[arg-type]
    next(results)
    assert len(taken) < 20
    results.close()  # type: ignore[attr-defined]


def test_there_is_a_processor() -> None:
    assert processors() >= 1


def test_workers_end_with_their_parent(tmp_path: Path) -> None:
    """Also where it was killed, and can tell nobody."""
    code = (
        "import os, sys, time; sys.path.insert(0, sys.argv[1])\n"
        "from errtriage.executors import run\n"
        "def job(n):\n"
        "    open(f'{sys.argv[2]}/{os.getpid()}', 'w').close(); time.sleep(60 if n else 0)\n"
        "list(run(job, range(4), 2))"
    )
    process = subprocess.Popen([sys.executable, "-c", code, str(ROOT / "src"), str(tmp_path)])
    deadline = time.monotonic() + 20
    while len(list(tmp_path.iterdir())) < 3 and time.monotonic() < deadline:
        time.sleep(0.1)
    workers = {int(path.name) for path in tmp_path.iterdir()} - {process.pid}
    assert len(workers) == 2
    process.kill()
    process.wait()
    while any(alive(pid) for pid in workers) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not any(alive(pid) for pid in workers)


def alive(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
