#!/usr/bin/env python3
"""Time lint over 2,000 files of one envelope each against check-jsonschema on the same files, in turns.

    lint_many.py [RUNS]

Both commands are taken from the environment of this Python. The goal is a ratio, since machines differ.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from turns import BIN, ROOT, compare

FILES = 2000
GOALS = {"errtriage lint": 0.5}


def main() -> int:
    """Measure, print, and exit with 1 when the goal is missed."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for i in range(FILES):
            error = {"code": "NotFound", "message": f"no lamp {i}", "retryable": False}
            envelope = {"v": "0.1", "ok": False, "operation": "ovstorage_read", "operation_id": f"op-{i}", "resource": f"s3://attic/{i}", "error": error}
            (folder / f"{i:04}.json").write_text(json.dumps(envelope))
        files = [path.name for path in sorted(folder.iterdir())]
        commands = {
            "check-jsonschema": [str(BIN / "check-jsonschema"), "--schemafile", str(ROOT / "schemas/ovstorage/envelope.schema.json"), *files],
            "errtriage lint": [str(BIN / "errtriage"), "lint", *files],
            "two workers": [str(BIN / "errtriage"), "lint", "--workers", "2", *files],
        }
        return int(not compare(commands, GOALS, int(sys.argv[1]) if len(sys.argv) > 1 else 10, cwd=folder))


if __name__ == "__main__":
    sys.exit(main())
