#!/usr/bin/env python3
"""Look for inputs that make errtriage raise or run away: mutate the corpus and the examples, and triage what comes out.

    fuzz_triage.py [SECONDS] [SEED]        (default: 60 seconds, a new seed)

Runs in one process, without a limit on anything but the time. Every verdict is also rendered as text, JSON and
Markdown. Exits with 1 and prints the input when something raises, or takes longer than a second for each 100 kB.
"""

from __future__ import annotations

import io
import random
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import errtriage
from errtriage.contracts import bundled
from errtriage.render import jsonl, markdown
from errtriage.render.text import TextRenderer

ROOT = Path(__file__).resolve().parents[2]
SEEDS = [path.read_bytes() for folder in ("tests/corpus/explain", "tests/corpus/nothing") for path in sorted((ROOT / folder).iterdir())]
SEEDS += [path.read_bytes() for path in sorted((ROOT / "schemas").glob("*/examples/*.json"))]
PIECES = [
    b"{", b"}", b"[", b"]", b'"', b"'", b"\\", b'\\"', b":", b",", b"\n", b"\r\n", b"\0", b"\x1b[1m", b"\xff", b"\xef\xbb\xbf", b"NaN", b"1e999", b"9" * 30,
    b"null", b"true", b"None", b"undefined", b"[Object]", b"... 3 more items", b"HTTP/1.1 503 x\r\nRetry-After: ", b"data: ", b"> ", b"web-1 | ", b"MCP error -32602: ",
    b'{"log":"', b'"MESSAGE":', b"CallToolResult(", b"meta=None content=[", b"\\ud83d", b"\xe2\x80\x9c", b"\x1f\x8b\x08", b"BZh9", b"eyJaaaaaa.", b"password=", b"?sig=",
]  # fmt: skip


def mutated(dice: random.Random) -> bytes:
    """One input: a seed with some changes."""
    data = bytearray(dice.choice(SEEDS))
    changes: list[Callable[[int], None]] = [
        lambda at: data.__setitem__(slice(at, at + dice.randrange(9)), b""),
        lambda at: data.__setitem__(slice(at, at), dice.choice(PIECES)),
        lambda at: data.__setitem__(slice(at, at), dice.choice(PIECES) * dice.randrange(300)),
        lambda at: data.__setitem__(slice(at, at + 1), bytes([dice.randrange(256)])),
        lambda at: data.__setitem__(slice(at, at), data[at : at + dice.randrange(200)]),
        lambda at: data.__setitem__(slice(at, at), dice.choice(SEEDS)),
        lambda at: data.__setitem__(slice(at, len(data)), b""),
    ]
    for _ in range(dice.randrange(1, 8)):
        dice.choice(changes)(dice.randrange(len(data) + 1))
    return bytes(data)


def triaged(data: bytes, dice: random.Random) -> None:
    """Everything that the command does with an input, but for reading and writing."""
    contract = dice.choice([None, None, "ovstorage", "coffeechats", "mcp", "http"])
    status = dice.choice([None, None, None, 401, 429, 502])
    renderer = TextRenderer(io.StringIO(), color=True, width=dice.choice([None, 40, 100]), trace=True, contracts=bundled())
    for verdict in errtriage.triage(data, contract=contract, status=status, tool=dice.choice([None, "actions.cancel", "proposal"])):
        renderer.write(verdict)
        jsonl.line(verdict)
        markdown.block(verdict, trace=True, contracts=bundled())


def main() -> int:
    """Fuzz until the time is over or something is found."""
    limit = float(sys.argv[1]) if len(sys.argv) > 1 else 60
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(1 << 32)
    dice = random.Random(seed)
    end = time.monotonic() + limit
    count = size = 0
    while time.monotonic() < end:
        data = mutated(dice)
        count += 1
        size += len(data)
        start = time.process_time()
        try:
            triaged(data, dice)
        except Exception:  # noqa: BLE001 - whatever it is, it is what is looked for
            traceback.print_exc()
            print(f"seed {seed}, input {count}: {data!r}")
            return 1
        if time.process_time() - start > 1 + len(data) / 100_000:
            print(f"slow ({time.process_time() - start:.1f} s), seed {seed}, input {count}: {data!r}")
            return 1
    print(f"{count} inputs, {size >> 10} KiB, seed {seed}: nothing found")
    return 0


if __name__ == "__main__":
    sys.exit(main())
