#!/usr/bin/env python3
"""Time the finding of payloads in the worst inputs we know of, at growing sizes: seconds for each, and the growth.

    worst_inputs.py [MEGABYTES ...]        (default: 1 4)

Each input is one piece repeated. Twice the size must take about twice the time; the last column is the time of the
largest size over what the smallest predicts, so that 1.0 is linear.
"""

from __future__ import annotations

import sys
import time

import errtriage

PIECES = [
    "{", "[", "[[{", '{"', '{"a":', '{"a":[', '"', "\\", '{\\"', '["', '"{\\"', '{"a":1} ', '{"a":{},', "[{", "{a:", "{'a':{'", "{a:1},", "A(b=", "'", "`",
    "HTTP/1.1 404     ", "HTTP/1.1 404 x\n", "data: {\n", "> {\n", "a-1 | {\n", "MCP error -1: ", "x\x1b[1m{", '{"log":"{","stream":"x"}\n', "eyJaaaaa-", "key=",
]  # fmt: skip


def seconds(piece: str, megabytes: float) -> float:
    """How long one input takes, from bytes to verdicts."""
    data = ("retryable " + piece * int(megabytes * (1 << 20) / len(piece))).encode()
    start = time.perf_counter()
    errtriage.triage(data)
    return time.perf_counter() - start


def main() -> None:
    """Measure and print."""
    sizes = [float(size) for size in sys.argv[1:]] or [1, 4]
    seconds("{}", 0.1)  # imports
    print("piece".ljust(28) + "".join(f"{size:8g} MB" for size in sizes) + "   growth")
    for piece in PIECES:
        times = [seconds(piece, size) for size in sizes]
        growth = times[-1] / (times[0] * sizes[-1] / sizes[0])
        print(repr(piece)[:26].ljust(28) + "".join(f"{each:9.2f} s" for each in times) + f"{growth:9.2f}", flush=True)


if __name__ == "__main__":
    main()
