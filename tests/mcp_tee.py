"""Stands between a client of MCP and its server over stdio: ``python mcp_tee.py LOG NAME COMMAND...``.

Passes each line on as it is, and first appends it to the log with the time, the session's name and its direction. Several
may write to one log.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from datetime import UTC, datetime
from typing import IO


def copy(source: IO[bytes], target: IO[bytes], log: int, words: str) -> None:
    """Copy lines until there are none, then close what they were copied to."""
    for line in source:
        now = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
        os.write(log, f"{now} {words} ".encode() + line)
        target.write(line)
        target.flush()
    target.close()


def main() -> int:
    """Run the server with its streams passing through here."""
    path, name, *command = sys.argv[1:]
    log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        threading.Thread(target=copy, args=(sys.stdin.buffer, server.stdin, log, f"session={name} -->"), daemon=True).start()
        copy(server.stdout, sys.stdout.buffer, log, f"session={name} <--")
        return server.wait()


if __name__ == "__main__":
    sys.exit(main())
