#!/usr/bin/env python3
"""Time errtriage as a whole process against check-jsonschema on the same file, in turns, and print the ratios.

    start_up.py [RUNS]

The input is one ovstorage envelope inside a tool result inside a JSON-RPC response, piped in. Both commands are taken
from the environment of this Python. The goals are ratios, since machines differ.
"""

from __future__ import annotations

import json
import sys
import tempfile

from turns import BIN, ROOT, compare

GOALS = {"json": 0.45, "text": 0.55}

ENVELOPE = {
    "v": "0.1",
    "ok": False,
    "operation": "ovstorage_read",
    "resource": "s3://attic/lamp.usd",
    "error": {"code": "AuthRequired", "message": "sign in", "retryable": False},
}
RESPONSE = {"jsonrpc": "2.0", "id": 7, "result": {"content": [{"type": "text", "text": json.dumps(ENVELOPE)}], "isError": True}}


def main() -> int:
    """Measure, print, and exit with 1 when a goal is missed."""
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
        return int(not compare(commands, GOALS, int(sys.argv[1]) if len(sys.argv) > 1 else 20, data=data))


if __name__ == "__main__":
    sys.exit(main())
