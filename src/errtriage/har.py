"""Reads the responses of a HAR capture (HTTP Archive 1.2). Imported when one is met."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from errtriage.challenges import by_name
from errtriage.model import Http


def exchanges(entries: Iterable[Any]) -> Iterator[tuple[Http, str, str, Any]]:
    """Yield for each entry that has a response: status, headers and method; what was
    asked; the body; when it was received.

    An entry with status 0 has none: the browser got no answer. The time is the start of the request, as HAR has it.
    """
    for entry in entries:
        response = entry.get("response") if isinstance(entry, dict) else None
        status = response.get("status") if isinstance(response, dict) else None
        if isinstance(response, dict) and type(status) is int and status > 0:
            content = response.get("content")
            content = content if isinstance(content, dict) else {}
            yield _http(status, response, content, entry.get("request")), _asked(entry.get("request")), _body(content), entry.get("startedDateTime")


def _http(status: int, response: Mapping[str, Any], content: Mapping[str, Any], request: Any) -> Http:
    listed = response.get("headers")
    given = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
    pairs = [(str(each.get("name", "")), str(each.get("value", ""))) for each in given]
    if isinstance(content.get("mimeType"), str):
        pairs.append(("Content-Type", content["mimeType"]))
    method = request.get("method") if isinstance(request, dict) else None
    return Http(
        status,
        str(response.get("statusText") or "") or None,
        by_name(pairs),
        method.upper() if isinstance(method, str) else None,
        headers_seen=bool(given),
        names={name.lower(): name for name, _ in reversed(pairs)},
    )


def _asked(request: Any) -> str:
    data = request.get("postData") if isinstance(request, dict) else None
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
