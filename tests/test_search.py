"""Finding JSON in any text: what is found, where, and that it takes time in proportion to the text."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from errtriage import jsontext, payloads, search

VALUES = [
    ("alone", '{"a": 1}', [{"a": 1}]),
    ("after words", 'ERROR it failed {"a": 1}', [{"a": 1}]),
    ("before words", '{"a": 1} was the answer', [{"a": 1}]),
    ("two on a line", 'x {"a": 1} y {"b": 2} z', [{"a": 1}, {"b": 2}]),
    ("on several lines", 'start\n{\n  "a": [\n    1\n  ]\n}\nend', [{"a": [1]}]),
    ("brackets that are no JSON", '[info] {not json} {"a": 1}', [{"a": 1}]),
    ("quotes that are not closed", 'he said "{"a": 1}', [{"a": 1}]),
    ("inside a broken object", '{"a": {"b": 1}, oops', [{"b": 1}]),
    ("deep inside a broken array", '[[{"a": 1}, {"b": 2}', [{"a": 1}, {"b": 2}]),
    ("after a broken start", '{"a": {"b": 1}', [{"b": 1}]),
    ("a string that fills its line", '"{\\"a\\": 1}"', ['{"a": 1}']),
    ("a string that does not", 'x "{\\"a\\": 1}" y', ['{"a": 1}']),
    ("a string in key=value", 'level=error body="{\\"a\\": 1}"', ['{"a": 1}']),
    ("a trailing comma is none", '{"a": 1,}', []),
    ("not a number", '{"a": NaN}', [{"a": None}]),
    ("more than 64 bits", '{"a": 123456789012345678901234567890}', [{"a": 123456789012345678901234567890}]),
    ("half of a pair", '{"a": "\\ud83d"}', [{"a": "\ufffd"}]),
    ("a pair", '{"a": "\\ud83d\\ude00"}', [{"a": "😀"}]),
    ("twice the same name: the last counts", '{"a": 1, "a": 2}', [{"a": 2}]),
    ("arrays of scalars hold nothing", "[1, 2]", []),
]


@pytest.mark.parametrize(("text", "values"), [case[1:] for case in VALUES], ids=[case[0] for case in VALUES])
def test_what_is_found(text: str, values: list[Any]) -> None:
    assert [found.value for found in search.scan(text)] == values


@pytest.mark.parametrize(
    ("text", "repaired"),
    [
        ('{"a": NaN}', True),
        ('{"a": -Infinity}', True),
        ('{"a": "\\ud83d"}', True),
        ('{"a": 12345678901234567890123}', False),
        ('{"a": "\\ud83d\\ude00"}', False),
    ],
)
def test_what_counts_as_a_repair(text: str, repaired: bool) -> None:
    assert jsontext.read(text)[1] is repaired


def test_digits_of_an_id_are_kept() -> None:
    digits = "9" * 5000
    assert jsontext.read(f'{{"id": {digits}}}')[0] == {"id": digits}


LINES = [
    ("a document", '\n\n{"a": 1}', [3]),
    ("elements of an array", '[\n  {"a": 1},\n  {"a": 2}, {"a": 3},\n\n  {"a": 4}\n]', [2, 3, 3, 5]),
    ("a compact array", '[{"a": 1}, {"a": 2}]', [1, 1]),
    ("JSON Lines", '{"a": 1}\n\n{"a": 2}\n', [1, 3]),
    ("log lines", 'start\nx {"a": 1}\ny\nz {"a": 2}', [2, 4]),
    ("over several lines", 'start\n{\n "a": 1}\nx {"a": 2}', [2, 4]),
    ("Windows line ends", 'start\r\nx {"a": 1}\r\n', [2]),
    ("an array after words", 'one\nx [{"a": 1},\n{"a": 2}]', [2]),
    ("strings in an array", '[\n"a",\n"{}"\n]', [2, 3]),
    ("arrays in JSON Lines", '[{"a": 1}]\n[{"a": 2}]', [1, 2]),
    ("responses", "x\nHTTP/1.1 400 Bad\r\nA: b\r\n\r\n{}\nHTTP/1.1 500 Worse\r\n\r\n", [2, 6]),
]


@pytest.mark.parametrize(("text", "lines"), [case[1:] for case in LINES], ids=[case[0] for case in LINES])
def test_where_records_start(text: str, lines: list[int]) -> None:
    assert [record.line for record in payloads.records(text) if record.value or record.http] == lines


def test_the_words_before_a_value() -> None:
    assert [record.prefix for record in payloads.records('a\n  b c {"x": 1} d {"y": 2}')] == ["b c", 'b c {"x": 1} d']


def test_a_response_ends_where_its_length_says() -> None:
    text = 'HTTP/1.1 400 Bad\r\nContent-Length: 8\r\n\r\n{"a": 1}\n2026 INFO {"b": 2}'
    first, second = payloads.records(text)
    assert (first.http and first.http.status, first.text) == (400, '{"a": 1}')
    assert (second.value, second.line) == ({"b": 2}, 5)


@pytest.mark.parametrize("line", ['GET /x "HTTP/1.1 500 Internal"', "HTTP/1.1 500 Internal and more words\nno header", "-> HTTP/1.1 500 Oops\nA: b"])
def test_a_status_line_that_is_quoted_is_no_response(line: str) -> None:
    assert not [record for record in payloads.records(line) if record.http]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.text(), json_values, min_size=1, max_size=4), st.text(alphabet=st.characters(exclude_characters='{["\\'), max_size=20), st.booleans())
def test_any_object_is_found_after_any_words(value: dict[str, Any], words: str, pretty: bool) -> None:
    text = f"{words} {json.dumps(value, indent=2 if pretty else None)}\n{words}"
    assert [found.value for found in search.scan(text)] == [value]


@given(st.text(alphabet='{}[]":,\\ \n1a', max_size=200))
def test_any_text_ends_without_an_exception(text: str) -> None:
    for found in search.scan(text):
        assert 0 <= found.start < found.end <= len(text)


@given(json_values)
def test_the_tolerant_reader_reads_what_the_strict_one_reads(value: Any) -> None:
    text = json.dumps(value)
    assert jsontext._read_tolerantly(text)[0] == json.loads(jsontext.LONE.sub("\ufffd", json.dumps(value, ensure_ascii=False)))


WORST = [
    "HTTP/1.1 404     ",
    "HTTP/1.1 404\t",
    "{a:",
    "{'a':{'",
    "{'a':[{a:1},",
    "{a:1},",
    "[{'a':",
    "A(b=",
    "meta=None ",
    "content=[{",
    "'",
    "`",
    "{`",
    "{a:'",
    "{“a”:",
    "{a:1 ",
    "{'a':1}}",
    "data: {\n",
    "> {\n",
    "a-1 | {\n",
    "MCP error -1: ",
    "x\x1b[1m{",
    "{",
    "[",
    "[[{",
    '{"',
    '{"a":',
    '{"a":[',
    '"',
    "\\",
    '{\\"',
    '["',
    '"{\\"',
    "[[]",
    '{"a":{},',
    '{"a":1} ',
    '{"a":1},"',
    '"{\\"a\\":1}" ',
    "key:",
    "HTTP/1.1 500 x\n",
]


@pytest.mark.parametrize("piece", WORST)
def test_the_work_grows_with_the_text(piece: str) -> None:
    """Counted in lines of Python that run, so that the machine's speed does not matter."""

    def steps(times: int) -> int:
        import sys

        count = 0

        def trace(_frame: Any, event: str, _arg: Any) -> Any:
            nonlocal count
            count += event == "line"
            return trace

        text = f"retryable {piece * times}"
        before = sys.gettrace()
        sys.settrace(trace)
        try:
            for _ in payloads.records(text):
                pass
        finally:
            sys.settrace(before)
        return count

    assert steps(4000) <= 6 * steps(1000) + 10_000
