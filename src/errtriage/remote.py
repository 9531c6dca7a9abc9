"""Inputs that a URL names, through fsspec: every protocol that it knows, with the credentials that its tools use.

Network is used for these inputs only, and fsspec is imported only for them.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple

from errtriage.model import Failure

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+-]*)(?:::[a-z]+)*://")
_EXTRA = "pip install 'errtriage[remote]'"
#: How much is fetched at once where something is read from its start, in bytes.
_BLOCK = 4 << 20


#: What the protocols call what changes with the content, and when something was written.
_IDENTITIES = ("ETag", "etag", "versionId", "md5Hash", "content_md5", "Content-MD5")
_TIMES = ("LastModified", "Last-Modified", "mtime", "last_modified", "updated", "modified")


class Info(NamedTuple):
    """What is known of a remote input: its size in bytes (None where only reading it tells), when it was written in seconds
    since 1970, and what changes when its content does (empty where nothing is known to).
    """

    size: int | None
    modified: float
    identity: str


def is_remote(name: str) -> bool:
    """Whether a name is a URL."""
    return "://" in name and _URL.match(name) is not None


def expand(url: str, taken: re.Pattern[str]) -> list[str] | None:
    """The inputs behind a URL: itself, what a glob matches, or what is below a folder and has a name that is ``taken``.

    None where there is nothing of that name. Raises OSError where the place cannot be read.
    """
    with _reported(url):
        system, path = _system(url)
        http = url.lower().startswith(("http:", "https:"))
        if "*" in path or (not http and re.search(r"[?\[]", path)):
            found = system.glob(path)
            return sorted(_url(system, each) for each in found) or None
        if http:
            return [url]
        if system.isdir(path):
            return sorted(_url(system, each) for each in system.find(path) if _is_log(each, path, taken))
        return [url] if system.exists(path) else None


def _is_log(path: str, top: str, taken: re.Pattern[str]) -> bool:
    below = path[len(top) :].strip("/").split("/")
    return not any(part.startswith(".") for part in below) and taken.search(below[-1]) is not None


def info(url: str) -> Info:
    """What is known of an input. Raises OSError where it cannot be read."""
    with _reported(url):
        system, path = _system(url)
        known = system.info(path)
        size = known.get("size")
        identity = next((str(known[name]) for name in _IDENTITIES if known.get(name)), "")
        modified = next((moment for name in _TIMES if (moment := _seconds(known.get(name)))), None)
        return Info(size if isinstance(size, int) else None, modified or time.time(), identity or f"{size} {modified}")


def _seconds(value: Any) -> float | None:
    if isinstance(value, datetime):
        return value.timestamp()
    if isinstance(value, int | float):
        return float(value)
    try:
        return parsedate_to_datetime(value).timestamp() if isinstance(value, str) else None
    except ValueError:
        return None


def opened(url: str) -> tuple[Any, bool]:
    """A stream of an input's bytes, which fetches as it is read, and whether parts of it can be fetched.

    Not every server of HTTP gives parts, and only asking for one tells. Raises OSError where it cannot be read.
    """
    with _reported(url):
        system, path = _system(url)
        if url.lower().startswith(("http:", "https:")):
            try:
                probe = system.open(path, "rb", block_size=1, cache_type="none")
                probe.seek(1)
                probe.read(1)
            except (ValueError, OSError, NotImplementedError):
                return _Stream(url, system.open(path, "rb", block_size=0)), False
        return _Stream(url, system.open(path, "rb", block_size=_BLOCK, cache_type="readahead")), True


class _Stream:
    """A file of fsspec's whose failures are OSErrors, as those of other files are."""

    def __init__(self, url: str, file: Any) -> None:
        self._url, self._file = url, file

    def read(self, size: int = -1) -> bytes:
        """At most ``size`` bytes, none at the end."""
        with _reported(self._url):
            return bytes(self._file.read(size))

    def seek(self, offset: int) -> None:
        """Go on at an offset."""
        with _reported(self._url):
            self._file.seek(offset)


def read(url: str) -> bytes:
    """All bytes of an input. Raises OSError where it cannot be read."""
    with _reported(url):
        system, path = _system(url)
        return bytes(system.cat_file(path))


def read_range(url: str, start: int, end: int, identity: str) -> bytes:
    """Some bytes of an input. Raises OSError where it cannot be read, or is not what it was (``identity``)."""
    with _reported(url):
        system, path = _system(url)
        data = bytes(system.cat_file(path, start=start, end=end))
    if len(data) != end - start or (identity and info(url).identity != identity):
        raise OSError(0, "it changed while it was read; scan it again")
    return data


@contextmanager
def _reported(url: str) -> Iterator[None]:
    """Whatever a protocol raises becomes an OSError that says what is wrong in one line."""
    try:
        yield
    except Failure:
        raise
    except FileNotFoundError as error:
        # What stands behind it may be that nobody answered.
        cause = error.__cause__ if isinstance(error.__cause__, OSError) else None
        raise OSError(0, _line(cause) if cause and not isinstance(cause, FileNotFoundError) else "there is no such object") from None
    except PermissionError:
        raise OSError(0, "access was refused; the credentials are those that the protocol's own tools use") from None
    except ImportError as error:
        raise Failure(f"{url.partition('://')[0]}:// inputs need more than is installed ({_line(error)}).", f"Install it: {_EXTRA}.") from None
    except Exception as error:  # noqa: BLE001 - each protocol has exceptions of its own
        raise OSError(0, _line(error) or type(error).__name__) from None


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200]


def _system(url: str) -> tuple[Any, str]:
    """The file system of a URL and the path in it."""
    try:
        from fsspec.core import url_to_fs  # type: ignore[import-untyped]
    except ImportError:
        raise Failure(f"{url.partition('://')[0]}:// inputs need the extra for remote inputs.", f"Install it: {_EXTRA}.") from None
    system, path = url_to_fs(url)
    system.invalidate_cache()  # what was listed may have changed
    return system, str(path)


def _url(system: Any, path: str) -> str:
    return str(system.unstrip_protocol(path))
