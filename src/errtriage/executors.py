"""Runs one function over many jobs, here or in other processes, and yields the results in the order of the jobs.

Knows nothing of what the function does. Functions and jobs travel between processes, so they are plain data and
functions of modules. A job that kills its worker is reported as lost, and the others are done.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple

#: How many jobs wait for each worker, so that none is idle and the results fit into memory.
_WINDOW = 3
#: How often a worker looks whether its parent is still there, in seconds.
_LOOK = 1.0
_END: Any = object()


class Lost(NamedTuple):
    """What stands for the result of a job whose worker went away (killed, or out of memory)."""

    job: Any


def processors() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def run(function: Callable[[Any], Any], jobs: Iterable[Any], workers: int) -> Iterator[Any]:
    """Yield ``function(job)`` for each job in order, in this process for one worker, else in ``workers`` processes.

    Yields Lost for a job whose worker went away twice; jobs that were only beside it are done again.
    """
    waiting = iter(jobs)
    # The first job runs here: where there is no second one, no process is worth its start, and where there is, its
    # workers begin with what this process has learnt.
    yield from map(function, waiting if workers <= 1 else islice(waiting, 1))
    if workers <= 1:
        return
    left: list[Any] = []
    while True:
        left = yield from _pooled(function, left, waiting, workers)
        if not left:
            return
        # The first of them, or one that ran beside it, took its worker down: alone, it shows which.
        first, *left = left
        lost = yield from _pooled(function, [first], iter(()), 1)
        if lost:
            yield Lost(first)


def run_on(
    executor: Any, function: Callable[[Any], Any], jobs: Iterable[Any], threads: int, lost: tuple[type[BaseException], ...]
) -> Generator[Any, None, None]:
    """Yield ``function(job)`` for each job in order, on an executor with so many threads.

    Yields Lost for a job for which one of the exceptions ``lost`` comes back twice: an engine may blame a job that was only
    beside the one that took its worker down. What is pending is cancelled at the end.
    """
    waiting = iter(jobs)
    pending: deque[tuple[Any, Any]] = deque()
    try:
        while True:
            while len(pending) < threads * _WINDOW and (job := next(waiting, _END)) is not _END:
                pending.append((job, executor.submit(function, job)))
            if not pending:
                return
            job, future = pending.popleft()
            try:
                result = future.result()
            except lost:
                try:
                    result = executor.submit(function, job).result()
                except lost:
                    result = Lost(job)
            yield result
    finally:
        for _, future in pending:
            future.cancel()


def _pooled(function: Callable[[Any], Any], first: list[Any], jobs: Iterator[Any], workers: int) -> Generator[Any, None, list[Any]]:
    """Yield results until all is done or a worker goes away; return the jobs that have no result yet."""
    from concurrent.futures.process import BrokenProcessPool, ProcessPoolExecutor
    from multiprocessing import active_children, get_context

    again = deque(first)
    pending: deque[tuple[Any, Any]] = deque()
    # Where it is safe, a copy of this process needs no time to import what is imported here already.
    # A thread that reads from a network may hold a lock that the copy would wait for for ever.
    alone = not any(thread.name == "fsspecIO" for thread in threading.enumerate())
    context = get_context(("fork" if alone else "spawn") if sys.platform == "linux" else None)
    pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_begin, initargs=(os.getpid(),))
    job = _END
    done = False
    try:
        while True:
            while len(pending) < workers * _WINDOW:
                job = again.popleft() if again else next(jobs, _END)
                if job is _END:
                    break
                pending.append((job, pool.submit(function, job)))
                job = _END
            if not pending:
                done = True
                return []
            yield pending[0][1].result()
            pending.popleft()
    except BrokenProcessPool:
        refused = [] if job is _END else [job]
        return [each for each, _ in pending] + refused + list(again)
    finally:
        if not done:  # interrupted, or a worker is gone: nobody waits for what the others still do
            for worker in active_children():
                worker.kill()
        # Without waiting, the interpreter would wake a pool on its way out whose pipes may be closed already.
        pool.shutdown(wait=True, cancel_futures=True)


def _begin(parent: int) -> None:
    """What a worker begins with. Ctrl-C reaches every process of the terminal; the parent decides what becomes of the work."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    """End when the parent is gone: killed, it can tell nobody, and its workers would wait for it for ever."""
    while os.getppid() == parent:
        time.sleep(_LOOK)
    os._exit(1)
