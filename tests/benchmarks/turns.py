"""Times commands as whole processes in turns, so that a machine that slows down slows all of them, and compares medians."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent


def milliseconds(command: Sequence[str], data: bytes = b"", cwd: Path | None = None) -> float:
    """How long one run of a command takes."""
    start = time.perf_counter()
    subprocess.run(command, input=data, capture_output=True, check=False, cwd=cwd)
    return (time.perf_counter() - start) * 1000


def compare(commands: Mapping[str, Sequence[str]], goals: Mapping[str, float], runs: int, *, data: bytes = b"", cwd: Path | None = None) -> bool:
    """Run every command ``runs`` times, print medians and their ratio to the first command's, and say whether all goals are met."""
    times: dict[str, list[float]] = {name: [] for name in commands}
    for command in commands.values():
        milliseconds(command, data, cwd)  # warm up
    for _ in range(runs):
        for name, command in commands.items():
            times[name].append(milliseconds(command, data, cwd))
    medians = {name: statistics.median(values) for name, values in times.items()}
    first = next(iter(medians.values()))
    for name, median in medians.items():
        goal = f"  goal {goals[name]}" if name in goals else ""
        print(f"{name:24}{median:9.1f} ms  ratio {median / first:.3f}{goal}")
    return all(medians[name] / first <= goal for name, goal in goals.items())
