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


def expand(url: str, taken: re.Pattern[str]) -> list[str] | None:
    """The inputs behind a URL: itself, what a glob matches, or what is below a folder and has a name that is ``taken``.

    None where there is nothing of that name. Raises OSError where the place cannot be read.
    """
    with _reported(url):
        system, path = _system(url)
        http = _is_http(url)
        if not http and system.isdir(path):
            return _below(system, path, taken)
        if not http and system.exists(path):  # also where there are characters of a glob in its name
            return [url]
        if "*" in path or (not http and re.search(r"[?\[]", path)):
            found = system.glob(path, detail=True)
            files = [_below(system, each, taken) if known.get("type") == "directory" else [_url(system, each)] for each, known in sorted(found.items())]
            return [name for names in files for name in names] if found else None
        return [url] if http else None


def _is_http(url: str) -> bool:
    return url.lower().startswith(("http:", "https:"))


def _below(system: Any, top: str, taken: re.Pattern[str]) -> list[str]:
    """The inputs in a folder and those below it."""
    return sorted(_url(system, each) for each in system.find(top) if _is_log(each, top, taken))


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
        if _is_http(url):
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
    except ImportError as error:
        raise OSError(0, f"{url.partition('://')[0]}:// needs more than is installed ({_line(error)}); {_EXTRA} brings S3 and HTTP") from None
    except Exception as error:  # noqa: BLE001 - each protocol has exceptions of its own
        raise OSError(0, _reason(error)) from None


def _reason(error: BaseException) -> str:
    """Why something cannot be read, in one line and without its address, which may hold a password."""
    cause = error.__cause__ or error
    status = getattr(cause, "status", None)
    if isinstance(error, PermissionError) or status in {401, 403, 407}:
        return "access was refused; the credentials are those that the protocol's own tools use"
    if status in {404, 410} or (isinstance(error, FileNotFoundError) and not isinstance(status, int) and not isinstance(cause, ConnectionError | TimeoutError)):
        nobody = isinstance(cause, OSError) and not isinstance(cause, FileNotFoundError)
        return _line(cause) if nobody else "there is no such object"
    if isinstance(status, int):
        return f"the server answers with status {status}"
    return _line(error) or type(error).__name__


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200]


def _system(url: str) -> tuple[Any, str]:
    """The file system of a URL and the path in it.

    Only the first protocol counts: fsspec would take a key with :: in it for a chain of addresses.
    """
    try:
        from fsspec import get_filesystem_class  # type: ignore[import-untyped]
    except ImportError:
        raise ImportError("fsspec") from None
    protocol, _, rest = url.partition("://")
    url = f"{protocol.lower()}://{rest}"
    kind = get_filesystem_class(protocol.lower())
    system = kind(**kind._get_kwargs_from_urls(url))  # noqa: SLF001 - as fsspec's own url_to_fs does
    system.invalidate_cache()  # what was listed may have changed
    return system, str(kind._strip_protocol(url))  # noqa: SLF001 - as above


def _url(system: Any, path: str) -> str:
    return str(system.unstrip_protocol(path))
