#!/usr/bin/env python3
"""Time errtriage as a whole process against check-jsonschema on the same file, in turns, and print the ratios.

    start_up.py [RUNS]

The input is one ovstorage envelope inside a tool result inside a JSON-RPC response, piped in. Both commands are taken
from the environment of this Python. Medians are of whole processes, in milliseconds; the goals are ratios, since
machines differ.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
GOALS = {"json": 0.45, "text": 0.55}

ENVELOPE = {
    "v": "0.1",
    "ok": False,
    "operation": "ovstorage_read",
    "resource": "s3://attic/lamp.usd",
    "error": {"code": "AuthRequired", "message": "sign in", "retryable": False},
}
RESPONSE = {"jsonrpc": "2.0", "id": 7, "result": {"content": [{"type": "text", "text": json.dumps(ENVELOPE)}], "isError": True}}


def milliseconds(command: list[str], data: bytes) -> float:
    """How long one run of a command takes."""
    start = time.perf_counter()
    subprocess.run(command, input=data, capture_output=True, check=False)
    return (time.perf_counter() - start) * 1000


def main() -> int:
    """Measure, print, and exit with 1 when a goal is missed."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    data = json.dumps(RESPONSE).encode()
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        file.write(data)
        file.flush()
        commands = {
            "check-jsonschema": [str(BIN / "check-jsonschema"), "--schemafile", str(ROOT / "schemas/mcp/tool-result.schema.json"), file.name],
            "json": [str(BIN / "errtriage"), "explain", "--format", "json"],
            "text": [str(BIN / "errtriage"), "explain"],
            "help": [str(BIN / "errtriage"), "--help"],
            "python": [sys.executable, "-c", "pass"],
        }
        for command in commands.values():
            milliseconds(command, data)  # warm up
        times: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(runs):
            for name, command in commands.items():
                times[name].append(milliseconds(command, data))
    medians = {name: statistics.median(values) for name, values in times.items()}
    missed = False
    for name, median in medians.items():
        ratio = median / medians["check-jsonschema"]
        goal = GOALS.get(name)
        missed |= goal is not None and ratio > goal
        print(f"{name:18}{median:8.1f} ms  ratio {ratio:.3f}" + (f"  goal {goal}" if goal else ""))
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
