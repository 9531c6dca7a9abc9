"""Where a finding stands: lines and columns through every wrapper that leaves the text as it is, and strings in strings."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from errtriage.contracts import bundled
from errtriage.lint import Linter, Settings
from errtriage.model import Place
from errtriage.places import Span, Wanted, locate
from errtriage.pointers import follow_parts
from errtriage.reports import Located

ENVELOPE = {"v": "0.1", "ok": False, "operation": "o", "error": {"code": "NotFound", "message": 'é😀 "x"\n', "retryable": True}}
TEXT = json.dumps(ENVELOPE)
RESULT = {"content": [{"type": "text", "text": TEXT}], "isError": True}


def only(data: str | bytes, rule: str = "OV101") -> Located:
    """The one finding of a rule in a file."""
    linter = Linter(bundled(), Settings(rules=frozenset([rule])))
    (finding,) = linter.data("file", data.encode() if isinstance(data, str) else data).findings
    return finding


PLAIN = {
    "document": TEXT,
    "pretty": json.dumps(ENVELOPE, indent=3),
    "array": json.dumps([1, "x", ENVELOPE], indent=1),
    "lines": f'{{"a": 1}}\n{TEXT}\n',
    "log": f"12:00 INFO ü\n12:01 ERROR {TEXT} (end)\n",
    "record": json.dumps({"level": "error", "answer": ENVELOPE}),
    "json-rpc": json.dumps({"jsonrpc": "2.0", "id": 1, "result": RESULT}, indent=2),
    "twice escaped": json.dumps({"log": "got " + json.dumps({"jsonrpc": "2.0", "id": 1, "result": RESULT})}),
    "plain characters": json.dumps({"log": json.dumps(RESULT, ensure_ascii=False)}, ensure_ascii=False),
    "http": f"HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\n\r\n{TEXT}\r\n",
    "tool result over http": f"noise\nHTTP/1.1 200 OK\nA: b\n\n{json.dumps(RESULT)}\n",
    "har": json.dumps({"log": {"entries": [{"response": {"status": 404, "headers": [], "content": {"text": TEXT}}}] * 2}}),
    "duplicate names": '{"v": "0.1", "ok": true, "ok": false, "operation": "o", "error": {"code": "NotFound", "message": "m", "retryable": false, "retryable": true}}',
    "CRLF": json.dumps(ENVELOPE, indent=2).replace("\n", "\r\n"),
}


@pytest.mark.parametrize("text", PLAIN.values(), ids=PLAIN.keys())
def test_a_finding_stands_where_its_member_is_written(text: str) -> None:
    linter = Linter(bundled(), Settings(rules=frozenset(["OV101"])))
    findings = linter.data("file", text.encode()).findings
    last = text.rindex("true") if "isError" not in text else text.rindex("true", 0, text.rindex("isError"))
    assert findings
    finding = findings[-1]
    before = text[:last]
    assert (finding.line, finding.column) == (before.count("\n") + 1, len(before) - before.rfind("\n"))
    assert (finding.end_line, finding.end_column) == (finding.line, finding.column + 4 if finding.column else None)
    assert finding.excerpt is not None
    assert finding.excerpt.text[finding.excerpt.start : finding.excerpt.end] == "true"


def test_bytes_before_the_text_do_not_count() -> None:
    assert only(b"\xef\xbb\xbf" + TEXT.encode()).column == only(TEXT).column
    assert only(b"\xff\xfe" + TEXT.encode("utf-16-le")).column == only(TEXT).column


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        (
            f'{{"log":"x {json.dumps(TEXT)[1:-1]}\\n","stream":"stdout","time":"2031-01-01T00:00:00Z"}}\n{{"log":"b\\n","stream":"stdout"}}\n',
            1,
            None,
        ),  # a carrier wrote it anew
        (f"event: message\ndata: {TEXT}\n\n", 1, None),
        ("INFO x\nERROR " + repr(ENVELOPE), 2, 7),  # no JSON: where it begins
        ("12:00 \x1b[31m" + TEXT, 1, None),  # colour codes were taken out
    ],
    ids=["docker", "events", "repr", "colours"],
)
def test_elsewhere_the_line_of_the_record_is_known(text: str, line: int, column: int | None) -> None:
    finding = only(text)
    assert (finding.line, finding.column) == (line, column)


def test_rules_about_wrappers_point_into_them() -> None:
    rpc = {"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": TEXT}, {"type": "video"}], "isError": False}}
    text = json.dumps(rpc, indent=1)
    lines = text.split("\n")
    assert '"isError": false' in lines[only(text, "OV104").line - 1]
    assert '"type": "video"' in lines[only(text, "MC103").line - 1]
    inner = json.dumps({"message": json.dumps(rpc)})
    finding = only(inner, "MC103")
    assert finding.column is not None
    assert inner[finding.column - 1 :].startswith('\\"video\\"')
    hint = {"structuredContent": {"tag": "completed", "scenario": "success", "operationId": "o"}, "_meta": {"coffeechats/retry": {"code": "X"}}}
    text = json.dumps(hint, indent=1)
    assert "coffeechats/retry" in text.split("\n")[only(text, "CC104").line - 1]
    assert only('a\nHTTP/1.1 429 Too Many Requests\nA: b\n\n{"error": "rate_limited"}', "CC108").line == 2


def test_a_hidden_secret_moves_the_mark_or_takes_it_away() -> None:
    secret = "?sig=0123456789"
    before = json.dumps({**ENVELOPE, "resource": "https://a.example/x" + secret, "zz": 1})
    finding = only(before, "OV105")
    assert finding.excerpt is not None
    assert "0123456789" not in finding.excerpt.text
    assert finding.excerpt.start is None
    itself = only(before, "OV103").excerpt
    assert itself is not None
    assert itself.text[itself.start : itself.end] == '"https://a.example/x?sig=REDACTED"'


def test_a_long_line_is_shown_around_the_mark() -> None:
    finding = only(json.dumps({"a": "x" * 50_000, "b": ENVELOPE, "c": "y" * 50_000}))
    assert finding.excerpt is not None
    assert len(finding.excerpt.text) < 300
    assert finding.excerpt.text[finding.excerpt.start : finding.excerpt.end] == "true"


VALUES = st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20)


def paths(value: Any) -> list[list[str]]:
    """The ways to every member of a value."""
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [[]] + [[str(name), *rest] for name, member in members for rest in paths(member)]


@given(value=st.lists(VALUES) | st.dictionaries(st.text(), VALUES), indent=st.sampled_from([None, 0, 2]), ascii_only=st.booleans(), depth=st.integers(0, 3))
def test_every_member_is_found_in_any_json_however_often_it_was_escaped(value: Any, indent: int | None, ascii_only: bool, depth: int) -> None:
    text = "é " + json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    place = Place(1, value, 2)
    for _ in range(depth):
        outer = {"😀": text}
        place = place._replace(around=Place(1, outer, 0, text)) if place.around is None else wrapped(place, Place(1, outer, 0, text))
        text = json.dumps(outer, ensure_ascii=ascii_only)
    ways = paths(value)
    spans = locate(text, [(place, Wanted(value, way)) for way in ways])
    for way, span in zip(ways, spans, strict=True):
        assert span is not None
        written = text[span.start : span.end]
        for _ in range(depth):
            written = json.loads(f'"{written}"')
        assert json.loads(written) == follow_parts(value, way)


def wrapped(place: Place, outermost: Place) -> Place:
    """A place with one more string around the outermost."""
    if place.around is None:
        return place._replace(around=outermost)
    return place._replace(around=wrapped(place.around, outermost))


@given(text=st.text(alphabet='{}[]":,a1\\ \n'), start=st.integers(0, 5))
def test_text_that_is_no_json_is_no_trouble(text: str, start: int) -> None:
    value = {"a": ["a"]}
    (span,) = locate(text, [(Place(1, value, start), Wanted(value["a"], ["0"]))])
    assert span is not None
    assert isinstance(span, Span)
