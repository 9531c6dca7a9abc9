"""Reads inputs: files and standard input to bytes, compressed or not, and bytes to text."""

from __future__ import annotations

import codecs
import re
import sys
from collections.abc import Callable, Iterator
from io import BytesIO
from itertools import chain
from typing import Any, NamedTuple

from errtriage.model import Failure

STDIN = "-"
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+-]*://")

# UTF-32 is not among them: its little-endian mark begins with UTF-16's, and nobody logs in it.
_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))


#: What an input may come to, in bytes, after decompression; a document that is a whole file fits.
MOST_BYTES = 1 << 30
#: How many times as long as what was compressed a text may be, once it is longer than HARMLESS bytes.
MOST_TIMES = 200
HARMLESS = 64 << 20
_LONGEST_MARK = 6
_PIECE, _LARGE_PIECE = 1 << 16, 1 << 20

# The first bytes of compressed data (RFC 1952, bzip2, .xz, RFC 8878).
_COMPRESSED = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ\x00": "xz", b"\x28\xb5\x2f\xfd": "zstd"}


class Decompressed(NamedTuple):
    """What compressed data holds; ``trouble`` says why it is not all of it."""

    data: bytes
    trouble: str | None = None


def is_url(name: str) -> bool:
    """Whether a name is a URL, and not that of a file."""
    return _URL.match(name) is not None


def read(name: str) -> bytes:
    """All bytes of a file, or of standard input for ``-``, as they are. Raises Failure where it cannot be read."""
    if name == STDIN:
        if sys.stdin is None:
            raise Failure("Standard input is closed.", "Name a file, or pipe something in.")
        return sys.stdin.buffer.read()
    if is_url(name):
        return _remote(name)
    try:
        with open(name, "rb") as file:  # noqa: PTH123 - a Path takes a third of the time of reading a small file
            return file.read()
    except IsADirectoryError:
        raise Failure(f"{name} is a folder, and not a file.", "Name the files in it.") from None
    except OSError as error:
        raise Failure(f"{name} cannot be read: {error.strerror}.") from None
    except ValueError:  # a name with a NUL character
        raise Failure(f"{name!r} is no name of a file.") from None


def _remote(url: str) -> bytes:
    from errtriage import remote

    try:
        return remote.read(url)
    except OSError as error:
        raise Failure(f"{url} cannot be read: {error.strerror}.") from None


def decompress(data: bytes) -> Decompressed:
    """What ``data`` holds, if it is gzip, bzip2, xz or zstd by its first bytes; else ``data`` itself.

    Several streams one after another are read as one. A stream that is cut or damaged gives what was read of it; one
    that grows past the bounds gives nothing.
    """
    kind = _kind(data)
    if kind is None:
        return Decompressed(data)
    parts: list[bytes] = []
    length = 0
    try:
        for part in _streams(kind, data):
            length += len(part)
            if length > MOST_BYTES or (length > HARMLESS and length > MOST_TIMES * len(data)):
                return Decompressed(b"", f"it decompresses to more than {length >> 20} MiB, which is past what errtriage reads")
            parts.append(part)
    except (OSError, EOFError, ValueError, _errors(kind)) as error:
        return Decompressed(b"".join(parts), f"its {kind} data is damaged or cut short ({error})")
    return Decompressed(b"".join(parts))


class Piece(NamedTuple):
    """Some of what a stream holds, in UTF-8 or as it came; ``lossy`` says that bytes had to be replaced."""

    data: bytes
    lossy: bool = False


class _Counting:
    """A stream whose first bytes were read already, which counts what is read of it."""

    def __init__(self, head: bytes, stream: Any) -> None:
        self._head, self._stream = head, stream
        self.count = 0

    def read(self, size: int = -1) -> bytes:
        """At most ``size`` bytes, none at the end."""
        if self._head:
            data, self._head = (self._head, b"") if size < 0 else (self._head[:size], self._head[size:])
        else:
            data = _some(self._stream, size)
        self.count += len(data)
        return data

    def readable(self) -> bool:
        """As the decompressing modules ask."""
        return True


def _some(stream: Any, size: int) -> bytes:
    """What there is of a stream, at most ``size`` bytes; a pipe is not waited for until so many have come."""
    return bytes(getattr(stream, "read1", stream.read)(size) or b"")


def pieces(stream: Any) -> Iterator[Piece | str]:
    """What a stream holds, piece by piece: decompressed, and in UTF-8 where its mark says that it is in UTF-16.

    A sentence without a subject stands in the place of what could not be read.
    """
    head = _some(stream, _LARGE_PIECE)
    while 0 < len(head) < _LONGEST_MARK and (more := _some(stream, _LARGE_PIECE)):
        head += more
    source = _Counting(head, stream)
    kind = _kind(head)
    plain = _plain_pieces(source) if kind is None else _decompressed(kind, source)
    first = next(plain, b"")
    wide = next((name for mark, name in _MARKS[1:] if isinstance(first, bytes) and first.startswith(mark)), None)
    decoder = codecs.getincrementaldecoder(wide)("replace") if wide else None
    for piece in chain([first], plain):
        if isinstance(piece, str) or decoder is None:
            yield piece if isinstance(piece, str) else Piece(piece)
        else:
            text = decoder.decode(piece).removeprefix("\ufeff")
            yield Piece(text.encode("utf-8", "replace"), "\ufffd" in text)


def _plain_pieces(source: _Counting) -> Iterator[bytes | str]:
    while piece := source.read(_LARGE_PIECE):
        yield piece


def _decompressed(kind: str, source: _Counting) -> Iterator[bytes | str]:
    length = 0
    try:
        reader = _OPENED[kind]().open(source)
        while piece := reader.read1(_LARGE_PIECE):  # what comes before some damage is read
            length += len(piece)
            if length > HARMLESS and length > MOST_TIMES * source.count:
                yield f"it decompresses to more than {MOST_TIMES} times its size, which is past what errtriage reads"
                return
            yield piece
    except (OSError, EOFError, ValueError, _errors(kind)) as error:
        yield f"its {kind} data is damaged or cut short ({error})"


def is_compressed(head: bytes) -> bool:
    """Whether data is compressed, by its first bytes."""
    return _kind(head) is not None


def is_wide(head: bytes) -> bool:
    """Whether data is in UTF-16, by its first bytes."""
    return any(head.startswith(mark) for mark, _ in _MARKS[1:])


def _kind(data: bytes) -> str | None:
    return next((kind for mark, kind in _COMPRESSED.items() if data.startswith(mark)), None)


def _errors(kind: str) -> type[Exception]:
    if kind == "gzip":
        from zlib import error

        return error
    if kind == "xz":
        from lzma import LZMAError

        return LZMAError
    if kind == "zstd":
        return _zstd().ZstdError  # type: ignore[no-any-return]
    return OSError


def _streams(kind: str, data: bytes) -> Iterator[bytes]:
    reader = _OPENED[kind]().open(BytesIO(data))
    while part := reader.read1(_PIECE):
        yield part


def _gzip() -> Any:
    import gzip

    return gzip


def _bzip2() -> Any:
    import bz2

    return bz2


def _xz() -> Any:
    import lzma

    return lzma


def _zstd() -> Any:
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd
    return zstd


_OPENED: dict[str, Callable[[], Any]] = {"gzip": _gzip, "bzip2": _bzip2, "xz": _xz, "zstd": _zstd}


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
