"""Reads inputs: files and standard input to bytes, and bytes to text."""

from __future__ import annotations

import codecs
import sys
from pathlib import Path

from errtriage.model import Failure

STDIN = "-"

# UTF-32 is not among them: its little-endian mark begins with UTF-16's, and nobody logs in it.
_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))


def read(name: str) -> bytes:
    """All bytes of a file, or of standard input for ``-``. Raises Failure where it cannot be read."""
    if name == STDIN:
        if sys.stdin is None:
            raise Failure("Standard input is closed.", "Name a file, or pipe something in.")
        return sys.stdin.buffer.read()
    path = Path(name)
    try:
        return path.read_bytes()
    except IsADirectoryError:
        raise Failure(f"{name} is a folder, and explain reads files.", "Name the files in it.") from None
    except OSError as error:
        raise Failure(f"{name} cannot be read: {error.strerror}.") from None
    except ValueError:  # a name with a NUL character
        raise Failure(f"{name!r} is no name of a file.") from None


def decode(data: bytes) -> tuple[str, bool]:
    """The text of ``data`` by its byte order mark, else UTF-8; and whether bytes had to be replaced."""
    encoding = "utf-8"
    for mark, name in _MARKS:
        if data.startswith(mark):
            data, encoding = data[len(mark) :], name
            break
    try:
        return data.decode(encoding), False
    except UnicodeDecodeError:
        return data.decode(encoding, "replace"), True
