"""Work in other processes: the same results in the same order, whatever happens to a worker."""

from __future__ import annotations

import os
import signal
import time

import pytest

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
