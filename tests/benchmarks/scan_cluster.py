#!/usr/bin/env python3
"""Time scan on a Dask cluster of this machine against its own processes, and print the ratios.

    scan_cluster.py [MEBIBYTES] [RUNS]

The log has one failure in 200 lines. A scheduler and workers are started from the command line once for one and once for
two workers, each with one thread, and every scan is a whole process with its connection to the scheduler. What a slice
costs beyond its work is measured with slices that are nearly empty.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[1]))

from fleet import cluster, log

BIN = Path(sys.executable).parent
GOALS = {"cluster against processes, two each": 0.75, "two workers against one": 1.7}


def timed(folder: Path, *args: str) -> float:
    """Seconds of one scan as a whole process."""
    began = time.perf_counter()
    subprocess.run([str(BIN / "errtriage"), "scan", "-f", "json", *args], cwd=folder, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - began


def overhead(scheduler: Path) -> float:
    """Milliseconds that one more slice takes, with nothing in it."""
    from errtriage.cluster import connected
    from errtriage.executors import run_on
    from errtriage.regions import Slice
    from errtriage.scan import Settings, scan_slice

    with connected(str(scheduler), None) as found:
        jobs = [(Settings(), Slice("-", 0, 1, 0.0, b"\n"))] * 400
        list(run_on(found.executor, scan_slice, jobs[:40], found.threads, found.lost))
        began = time.perf_counter()
        list(run_on(found.executor, scan_slice, jobs, found.threads, found.lost))
        return (time.perf_counter() - began) * 1000 / len(jobs)


def main() -> None:
    """Measure and print."""
    size = int(sys.argv[1]) if len(sys.argv) > 1 else 1024
    runs = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "a.log").write_bytes(log(size))
        times: dict[str, float] = {}
        for workers in (1, 2):
            place = folder / str(workers)
            place.mkdir()
            with cluster(place, workers=workers) as scheduler:
                timed(folder, "--cluster", str(scheduler), "a.log")  # workers import what they need
                turns = [(timed(folder, "--cluster", str(scheduler), "a.log"), timed(folder, "--workers", str(workers), "a.log")) for _ in range(runs)]
                times[f"cluster, {workers}"], times[f"processes, {workers}"] = (median(each) for each in zip(*turns, strict=True))
                if workers == 2:
                    print(f"a slice costs {overhead(scheduler):.2f} ms beyond its work")
        for what, seconds in times.items():
            print(f"{what:<14} {seconds:6.2f} s  {size / seconds:7.0f} MiB/s")
        ratios = {
            "cluster against processes, two each": times["processes, 2"] / times["cluster, 2"],
            "two workers against one": times["cluster, 1"] / times["cluster, 2"],
        }
        for what, ratio in ratios.items():
            print(f"{what}: {ratio:.2f} (goal {GOALS[what]})")


if __name__ == "__main__":
    main()
