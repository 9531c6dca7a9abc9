"""What only looks like a payload is none: a false verdict is worse than none."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from conftest import CORPUS

from errtriage import triage

FILES = sorted((CORPUS / "nothing").iterdir())


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_look_alike_gets_no_verdict(path: Path) -> None:
    assert triage(path.read_bytes()) == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_look_alike_gets_no_verdict_when_it_is_cut(path: Path) -> None:
    data = path.read_bytes()
    for cut in range(0, len(data), 7):
        assert triage(data[:cut]) == []


def test_ordinary_logs_get_no_verdict() -> None:
    """100,000 lines made of what services really log: words, ids, numbers, JSON, dictionaries, status lines, tables."""
    dice = random.Random(11)
    words = [
        "ok",
        "error",
        "retryable",
        "isError",
        "failed",
        "status",
        "operationId",
        "content",
        "code",
        "message",
        "request",
        "response",
        "timeout",
        "tool",
        "NotFound",
        "uncertain",
        "accepted",
    ]

    def value(depth: int = 0) -> object:
        kind = dice.randrange(9 if depth < 3 else 6)
        if kind < 3:
            return dice.choice(words)
        if kind < 6:
            return dice.choice([None, True, False, dice.randrange(1000), dice.random()])
        if kind == 6:
            return [value(depth + 1) for _ in range(dice.randrange(3))]
        return {dice.choice(words): value(depth + 1) for _ in range(dice.randrange(4))}

    def line(i: int) -> str:
        stamp = f"2026-11-28T09:{i // 60 % 60:02d}:{i % 60:02d}Z"
        kind = dice.randrange(8)
        if kind == 0:
            return json.dumps({"ts": stamp, "level": dice.choice(["info", "error"]), "msg": " ".join(dice.choices(words, k=4)), "extra": value()})
        if kind == 1:
            return f"{stamp} ERROR worker[{i}] {dice.choice(words)}: {json.dumps(value())}"
        if kind == 2:
            return f"{stamp} DEBUG got {value()!r}"
        if kind == 3:
            return f'10.0.0.{i % 255} - - [{stamp}] "POST /{dice.choice(words)} HTTP/1.1" {dice.choice([200, 404, 500, 503])} {i}'
        if kind == 4:
            return f"web-{i % 3} | {dice.choice(words)}={dice.choice(words)} body={json.dumps(json.dumps(value()))}"
        if kind == 5:
            return f"{{ {dice.choice(words)}: '{dice.choice(words)}', {dice.choice(words)}: [Object]"
        return f"{stamp} INFO {' '.join(dice.choices(words, k=dice.randrange(12)))} id={dice.getrandbits(64):x}"

    assert triage("\n".join(line(i) for i in range(100_000))) == []
