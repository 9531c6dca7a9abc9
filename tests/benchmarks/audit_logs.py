#!/usr/bin/env python3
"""Time audit against scan on the same logs, in turns, and measure its memory and its growth.

    audit_logs.py [MEGABYTES] [RUNS]        (default: 256 5)

Two logs: one that is only traffic (requests and answers of sessions that interleave, one in ten fails), and the log for
scan, in which little is. The goal is a third of scan's speed. Memory is the greatest of what all processes have for
themselves (PSS), in MiB.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
from pathlib import Path

from make_log import write
from scan_logs import medians, memory
from turns import BIN

SESSIONS, GOAL = 50, 3.0


def traffic(path: Path, megabytes: int) -> None:
    """Write the traffic of interleaved sessions; the same bytes for the same size."""
    dice = random.Random(5)
    numbers = [0] * SESSIONS
    clock = size = 0
    with path.open("w") as file:
        while size < megabytes << 20:
            session = dice.randrange(SESSIONS)
            numbers[session] += 1
            clock += 3
            address = f"s3://bucket-{session}/{numbers[session]:x}.bin"
            call = {"jsonrpc": "2.0", "id": numbers[session], "method": "tools/call", "params": {"name": "ovstorage_read", "arguments": {"address": address}}}
            envelope = {"v": "0.1", "ok": True, "operation": "ovstorage_read", "operation_id": f"{dice.getrandbits(80):020x}", "resource": address}
            failed = dice.random() < 0.1
            rest = (
                {"ok": False, "error": {"code": "NotFound", "message": "nothing there", "retryable": False}}
                if failed
                else {"result": {"size": dice.randrange(9999)}}
            )
            result = {"content": [{"type": "text", "text": json.dumps({**envelope, **rest})}], "isError": failed}
            for later, message in enumerate((call, {"jsonrpc": "2.0", "id": numbers[session], "result": result})):
                seconds, ms = divmod(clock + later, 1000)
                time = f"2026-11-{1 + seconds // 86_400:02}T{seconds // 3600 % 24:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{ms:03}Z"
                size += file.write(json.dumps({"time": time, "session": f"s-{session}", "message": message}) + "\n")


def compare(name: str, log: Path, runs: int) -> bool:
    """Print how audit and scan do on a log; whether the goal is met."""
    commands = {
        f"{command} {workers}": [str(BIN / "errtriage"), command, "--format", "json", *(["--workers", "1"] if workers == "alone" else []), str(log)]
        for command in ("scan", "audit")
        for workers in ("alone", "default")
    }
    times = medians(commands, runs)
    size = log.stat().st_size / (1 << 20)
    print(f"\n{name}, {size:.0f} MiB: " + ", ".join(f"{each} {time:.0f} ms ({size / time * 1000:.0f} MiB/s)" for each, time in times.items()))
    ratios = {workers: times[f"audit {workers}"] / times[f"scan {workers}"] for workers in ("alone", "default")}
    print("  audit takes " + ", ".join(f"{ratio:.2f} times scan's time ({workers})" for workers, ratio in ratios.items()) + f"; goal {GOAL:g}")
    print(f"  memory: scan {memory(commands['scan default']):.0f}, audit {memory(commands['audit default']):.0f} MiB")
    return all(ratio <= GOAL for ratio in ratios.values())


def main(megabytes: int = 256, runs: int = 5) -> int:
    """Print the figures; 1 where a goal is missed."""
    met = True
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "agents.log"
        for size in (megabytes // 4, megabytes):  # memory must not grow with the size
            traffic(log, size)
            met &= compare("only traffic", log, runs)
        write(log, megabytes, 2)
        met &= compare("little traffic, 2 % failures", log, runs)
    return int(not met)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:3])))
