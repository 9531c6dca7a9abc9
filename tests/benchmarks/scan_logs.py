#!/usr/bin/env python3
"""Time scan against ripgrep and jq on the same logs, in turns, and measure its second worker, its growth and its memory.

    scan_logs.py [MEGABYTES] [RUNS]        (default: 512 5)

ripgrep searches for three words; jq makes the same selection on a smaller log, since it takes long. The goals are
ratios, since machines differ. Memory is the greatest of what all processes have for themselves (PSS), in MiB.
"""

from __future__ import annotations

import gzip
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from make_log import write
from turns import BIN, milliseconds

WORDS = '"isError"|"retryable"|rate_limited'
# Lines of JSON, and JSON behind words; of it the failures that the generator writes.
SELECTION = (
    '(fromjson? // (capture("^[^{]*(?<json>\\\\{.*)$").json | fromjson?)) | (.answer? // .) | objects'
    ' | select(.ok == false or .isError == true or (.status | type) == "string" or .structuredContent.tag == "accepted") | 1'
)


def scan(*args: str) -> list[str]:
    """The command with some arguments."""
    return [str(BIN / "errtriage"), "scan", "--format", "json", *args]


def medians(commands: dict[str, list[str]], runs: int) -> dict[str, float]:
    """The median of each command's times, run in turns, in milliseconds."""
    times: dict[str, list[float]] = {name: [] for name in commands}
    for command in commands.values():
        milliseconds(command)
    for _ in range(runs):
        for name, command in commands.items():
            times[name].append(milliseconds(command))
    return {name: statistics.median(values) for name, values in times.items()}


def memory(command: list[str]) -> float:
    """The most that all processes of a command have for themselves at a time, in MiB."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    most = 0
    while process.poll() is None:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        try:
            pids = [str(process.pid), *children.read_text().split()]
            lines = [line for pid in pids for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines() if line.startswith("Pss:")]
            most = max(most, sum(int(line.split()[1]) for line in lines))
        except OSError:
            pass  # it is over
        time.sleep(0.02)
    return most / 1024


def compare(folder: Path, megabytes: int, percent: float, runs: int) -> bool:
    """Compare one log with ripgrep and jq; whether the goals are met."""
    log, small = folder / f"{percent}.log", folder / f"{percent}.small.log"
    failures, few = write(log, megabytes, percent), write(small, 8, percent)
    found = json.loads(subprocess.run(scan(str(log)), capture_output=True, check=True).stdout)["payloads"]
    jq = ["jq", "-R", SELECTION, str(small)]
    selected = len(subprocess.run(jq, capture_output=True, check=True).stdout.split())
    print(f"\n{percent:g} % of lines fail, {megabytes} MiB: {found} found of {failures}; jq selects {selected} of {few} in 8 MiB")
    took = medians({"rg": ["rg", "-c", WORDS, str(log)], "scan": scan(str(log)), "one worker": scan("--workers", "1", str(log)), "jq": jq}, runs)
    rate = {name: (8 if name == "jq" else megabytes) * 1000 / each for name, each in took.items()}
    for name, each in took.items():
        print(f"  {name:12}{each:9.0f} ms  {rate[name]:8.0f} MiB/s")
    to_rg, to_jq, second = took["scan"] / took["rg"], rate["scan"] / rate["jq"], took["one worker"] / took["scan"]
    goals = (
        {"times rg (at most 6)": (to_rg, to_rg <= 6), "times jq (at least 40)": (to_jq, to_jq >= 40)}
        if percent < 10
        else {"times jq (at least 10)": (to_jq, to_jq >= 10)}
    )
    goals["from the second worker (at least 1.7)"] = (second, second >= 1.7)
    for goal, (value, met) in goals.items():
        print(f"  {value:8.2f} {goal}{'' if met else '  MISSED'}")
    return found == failures and selected == few and all(met for _, met in goals.values())


def main() -> int:
    """Measure, print, and exit with 1 when a goal is missed."""
    megabytes = int(sys.argv[1]) if len(sys.argv) > 1 else 512
    runs = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    met = True
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        met &= compare(folder, megabytes, 1, runs)
        met &= compare(folder, megabytes, 20, runs)
        print("\ngrowth and memory, 1 % of lines fail")
        log = folder / "1.log"
        for size in (megabytes // 8, megabytes, megabytes * 4):
            write(log, size, 1)
            took = medians({"scan": scan(str(log))}, 3)["scan"]
            print(f"  {size:6} MiB {took:9.0f} ms  {size * 1000 / took:8.0f} MiB/s  {memory(scan(str(log))):6.0f} MiB of memory")
        write(log, megabytes // 2, 1)
        packed = folder / "1.log.gz"
        with log.open("rb") as source, gzip.open(packed, "wb", 6) as target:
            shutil.copyfileobj(source, target)
        took_gz = medians({"gzip -dc": ["gzip", "-dc", str(packed)], "scan": scan(str(packed))}, runs)
        print(f"\ngzip, {megabytes // 2} MiB: gzip -dc {took_gz['gzip -dc']:.0f} ms, scan {took_gz['scan']:.0f} ms")
    return int(not met)


if __name__ == "__main__":
    sys.exit(main())
