#!/usr/bin/env python3
"""Write a log for measurements of speed: the same bytes for the same arguments.

    make_log.py FILE MEGABYTES PERCENT

PERCENT of the lines are failures: half of them in JSON log records, half as JSON behind words. The rest are an access
log in JSON, plain text, and results that went well. Prints how many failures there are.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import Any

import orjson

TOOLS = ("ovstorage_read", "ovstorage_stat", "ovstorage_write", "ovstorage_list")
CODES = (("NotFound", False), ("NoRoute", False), ("Locked", False), ("PermissionDenied", False), ("Transient", True), ("ResourceExhausted", True))
RESULTS = (
    ("failed", "conflict", "VERSION_CONFLICT"),
    ("failed", "denied", "ACTION_DENIED"),
    ("uncertain", "uncertain", "OUTCOME_UNKNOWN"),
    ("cancelled", "cancelled", "OPERATION_CANCELLED"),
)


class Writer:
    """Makes lines, from dice with a seed."""

    def __init__(self) -> None:
        self._dice = random.Random(20310502)
        self._milliseconds = 0

    def _id(self) -> str:
        return f"{self._dice.getrandbits(96):024x}"

    def _time(self) -> str:
        self._milliseconds += 9
        seconds, thousandths = divmod(self._milliseconds, 1000)
        return f"2031-05-{2 + seconds // 86400 % 28:02}T{seconds // 3600 % 24:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{thousandths:03}Z"

    def failure(self) -> bytes:
        """One line with a failure in it."""
        value, time = self._payload(), self._time()
        if self._dice.random() < 0.5:
            return orjson.dumps({"time": time, "level": "error", "name": "agent", "msg": "answer", "answer": value})
        return f"{time} ERROR agent answer: ".encode() + orjson.dumps(value)

    def _payload(self) -> dict[str, Any]:
        kind = self._dice.random()
        if kind < 0.5:
            code, retryable = self._dice.choice(CODES)
            error = {"code": code, "message": f"{code} for lamp {self._dice.getrandbits(32):x}", "retryable": retryable}
            resource = f"s3://attic-{self._dice.randrange(30)}/{self._dice.getrandbits(32):x}.usd"
            return {"v": "0.1", "ok": False, "operation": self._dice.choice(TOOLS), "operation_id": self._id(), "resource": resource, "error": error}
        identifier = self._id()
        if kind < 0.8:
            status, scenario, code = self._dice.choice(RESULTS)
            return {
                "status": status, "scenario": scenario, "operationId": identifier,
                "error": {"code": code, "retryable": False, "correlationId": identifier},
            }  # fmt: skip
        if kind < 0.9:
            return {"isError": True, "content": [{"type": "text", "text": "Tool call failed."}]}
        hint = {"code": "PERMIT_BACKPRESSURE", "retryAfterMs": self._dice.randrange(1, 5001), "retryable": True}
        return {"structuredContent": {"tag": "accepted", "scenario": "loading", "operationId": identifier}, "_meta": {"coffeechats/retry": hint}}

    def ordinary(self) -> bytes:
        """One line without."""
        kind, time = self._dice.random(), self._time()
        if kind < 0.6:
            record = {
                "time": time,
                "level": "info",
                "name": "access",
                "method": "GET",
                "path": f"/lamps/{self._dice.getrandbits(40):x}",
                "status": 200,
                "ms": self._dice.randrange(900),
                "request_id": self._id(),
                "ok": True,
            }
            return orjson.dumps(record)
        if kind < 0.9:
            return f"{time} INFO worker-{self._dice.randrange(64)} polished {self._dice.randrange(1000)} lamps in {self._dice.random():.4f} s, batch {self._id()}".encode()
        return orjson.dumps(
            {"time": time, "level": "info", "name": "agent", "msg": "answer", "answer": {"tag": "completed", "scenario": "success", "operationId": self._id()}}
        )


def write(path: Path, megabytes: int, percent: float) -> int:
    """Write a log of some MiB, and return how many failures it holds."""
    writer = Writer()
    dice = random.Random(7)
    size = failures = 0
    with path.open("wb", buffering=1 << 20) as file:
        while size < megabytes << 20:
            failed = dice.random() * 100 < percent
            failures += failed
            size += file.write((writer.failure() if failed else writer.ordinary()) + b"\n")
    return failures


if __name__ == "__main__":
    print(write(Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])), "failures")
