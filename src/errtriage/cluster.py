"""Runs the work of a scan on a Dask cluster, through the executor interface that its client has.

Imported only for ``--cluster``; distributed takes a third of a second.
"""

from __future__ import annotations

import logging
import os
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from queue import Empty, Queue
from typing import Any, NamedTuple

from errtriage.model import Failure

_EXTRA = "pip install 'errtriage[dask]'"
#: How long a scheduler may take to answer, and a first worker to come, in seconds.
_ANSWER, _WORKER = 10, 60


class Cluster(NamedTuple):
    """A cluster that is connected: its executor, how many threads work in it, and what it raises for a job that was lost."""

    executor: Any
    threads: int
    lost: tuple[type[BaseException], ...]
    client: Any

    def reached(self, names: Sequence[str]) -> set[str]:
        """Those of some files that every worker sees as they are seen here."""
        if not names:
            return set()
        here = stats(list(names))
        seen = self.client.run(stats, list(names), on_error="return")
        return {name for i, name in enumerate(names) if here[i] is not None and all(isinstance(each, list) and each[i] == here[i] for each in seen.values())}


def stats(names: list[str]) -> list[tuple[int, int] | None]:
    """Size and time of files, as this process sees them; None for one that it does not see. Runs on workers."""
    found: list[tuple[int, int] | None] = []
    for name in names:
        try:
            status = os.stat(name)  # noqa: PTH116 - plain data from plain names
            found.append((status.st_size, status.st_mtime_ns))
        except OSError:
            found.append(None)
    return found


@contextmanager
def connected(where: str, workers: int | None) -> Iterator[Cluster]:
    """Connect to a scheduler by its address or its file, or start a cluster on this machine (``local``) with some workers.

    Raises Failure where the extra is not installed, nobody answers, no worker comes, or workers have another errtriage.
    """
    if not where:
        raise Failure("--cluster names no scheduler.", "Is a variable empty?")
    try:
        from distributed import Client, KilledWorker, LocalCluster
        from distributed.client import FutureCancelledError
    except ImportError:
        raise Failure("--cluster needs the extra for clusters.", f"Install it: {_EXTRA}.") from None
    for name in ("distributed", "asyncio", "tornado"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # what is lost is reported
    warnings.filterwarnings("ignore", module="distributed")
    local = LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) if where == "local" else None  # type: ignore[no-untyped-call]
    try:
        client = _client(Client, local or where)
        try:
            _check(client)
            threads = sum(client.nthreads().values())
            yield Cluster(client.get_executor(pure=False), threads, (KilledWorker, FutureCancelledError), client)
        finally:
            client.close()
    finally:
        if local is not None:
            local.close()


def _client(kind: Any, where: Any) -> Any:
    """A client that is connected. Whoever answers at the address may be no scheduler, and then never comes to an end."""
    found: Queue[Any] = Queue()

    def connect() -> None:
        try:
            if isinstance(where, str) and os.path.isfile(where):  # noqa: PTH113 - a name as it was given
                found.put(kind(scheduler_file=where, timeout=_ANSWER, set_as_default=False))
            else:
                found.put(kind(where, timeout=_ANSWER, set_as_default=False))
        except Exception as error:  # noqa: BLE001 - whatever it is, there is no scheduler
            found.put(error)

    threading.Thread(target=connect, daemon=True).start()
    try:
        client = found.get(timeout=_ANSWER + 5)
    except Empty:
        client = TimeoutError()
    if isinstance(client, Exception):
        hint = "Name it as tcp://HOST:8786, as the file that `dask scheduler --scheduler-file` writes, or say local."
        raise Failure(f"No Dask scheduler answers at {where} ({type(client).__name__}).", hint)
    return client


def _check(client: Any) -> None:
    """Whether there are workers, and whether they have the errtriage that this is."""
    try:
        client.wait_for_workers(1, timeout=_WORKER)
    except TimeoutError:
        raise Failure("The scheduler has no worker.", "Start some: `dask worker ADDRESS` on each machine.") from None
    mine = version("errtriage")
    for worker, theirs in client.run(version, "errtriage", on_error="return").items():
        if not isinstance(theirs, str):
            raise Failure(f"The worker {worker} has no errtriage.", f"Install errtriage {mine} there, in the environment that its worker runs in.")
        if theirs != mine:
            raise Failure(f"The worker {worker} has errtriage {theirs}, and this is {mine}.", "Install the same version in both places.")
