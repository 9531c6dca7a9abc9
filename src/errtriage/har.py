"""Reads the responses of a HAR capture (HTTP Archive 1.2). Imported when one is met."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from errtriage.challenges import by_name
from errtriage.model import Http

#: An exchange that took longer, in ms, took no time that is known.
_LONGEST_MS = 10**10


class Exchange(NamedTuple):
    """One entry of a capture: what was asked, and what was answered (``http`` is None where no answer came).

    ``started`` is the start of the request, as HAR has it, and ``took_ms`` how long it took until the answer was there.
    """

    http: Http | None
    asked: str
    body: str
    started: Any
    took_ms: float
    #: Of the request: its headers by lower-case name, and scheme, host and path of its address.
    headers: Mapping[str, str]
    address: str


def exchanges(entries: Iterable[Any]) -> Iterator[Exchange]:
    """Yield what each entry holds. One with status 0 has no answer: the browser got none."""
    for entry in entries:
        if not isinstance(entry, dict):
            continue
        request = entry.get("request")
        request = request if isinstance(request, dict) else {}
        response = entry.get("response")
        response = response if isinstance(response, dict) else {}
        status: Any = response.get("status")
        content = response.get("content")
        content = content if isinstance(content, dict) else {}
        http = _http(status, response, content, request) if type(status) is int and status > 0 else None
        time: Any = entry.get("time")
        took = time if type(time) in (int, float) and 0 <= time < _LONGEST_MS else 0
        address = re.split(r"[?#]", str(request.get("url") or ""), maxsplit=1)[0]
        yield Exchange(http, _asked(request), _body(content), entry.get("startedDateTime"), took, by_name(_pairs(request)), address)


def _pairs(message: Mapping[str, Any]) -> list[tuple[str, str]]:
    listed = message.get("headers")
    given = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
    return [(str(each.get("name", "")), str(each.get("value", ""))) for each in given]


def _http(status: int, response: Mapping[str, Any], content: Mapping[str, Any], request: Mapping[str, Any]) -> Http:
    given = _pairs(response)
    pairs = list(given)
    if isinstance(content.get("mimeType"), str):
        pairs.append(("Content-Type", content["mimeType"]))
    method = request.get("method")
    return Http(
        status,
        str(response.get("statusText") or "") or None,
        by_name(pairs),
        method.upper() if isinstance(method, str) else None,
        headers_seen=bool(given),
        names={name.lower(): name for name, _ in reversed(pairs)},
    )


def _asked(request: Mapping[str, Any]) -> str:
    data = request.get("postData")
    text = data.get("text") if isinstance(data, dict) else None
    return text if isinstance(text, str) else ""


def _body(content: Mapping[str, Any]) -> str:
    text = content.get("text")
    if not isinstance(text, str) or content.get("encoding") != "base64":
        return text if isinstance(text, str) else ""
    try:
        return b64decode(text).decode("utf-8", "replace")
    except ValueError:
        return ""
