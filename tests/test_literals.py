"""Literals that are not quite JSON: read as they print, cut as they were cut, never evaluated."""

from __future__ import annotations

import json
import pprint
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from errtriage import jsontext, literals
from errtriage.cuts import UNSEEN, CutDict, CutList, CutStr, plain

PRINTED: list[tuple[str, str, Any]] = [
    ("Python's constants", "{'a': None, 'b': True, 'c': False}", {"a": None, "b": True, "c": False}),
    ("a tuple", "('a', 1,)", ["a", 1]),
    ("strings side by side", "{'a': 'one '\n 'two'}", {"a": "one two"}),
    ("bytes", "{'a': b'x\\x00'}", {"a": "x\0"}),
    ("escapes", r"'a\n\t\'\\\x41\u0041\u{41}'", "a\n\t'\\AAA"),
    ("a pair of escapes", r"'\ud83d\ude00'", "😀"),
    ("three quotes", "'''a\nb'''", "a\nb"),
    ("an object of a class", "TextContent(type='text', text='x', meta=None)", {"type": "text", "text": "x", "meta": None}),
    ("a value of a class", "AnyUrl('x:y')", "x:y"),
    ("a call that shows no value", "{'a': datetime.datetime(2026, 1, 2)}", {"a": None}),
    ("bare names", "{ a: 1, $b: 'x', c_d: [ true ] }", {"a": 1, "$b": "x", "c_d": [True]}),
    ("joined strings", "{ a: 'one\\n' +\n    'two' }", {"a": "one\ntwo"}),
    ("back-ticks", "{ a: `one\ntwo` }", {"a": "one\ntwo"}),
    ("undefined", "{ a: undefined }", {"a": None}),
    ("what was not printed", "{ a: [Object], b: [Array], c: [Function: d], e: [Circular *1] }", {"a": UNSEEN, "b": UNSEEN, "c": UNSEEN, "e": UNSEEN}),
    ("more than was printed", "[ 1, 2, ... 14 more items ]", [1, 2]),
    ("a class before it", "McpError { code: -1 }", {"code": -1}),
    ("a map", "Map(1) { 'a' => 1 }", {"a": 1}),
    ("a reference", "<ref *1> { a: 1 }", {"a": 1}),
    ("numbers", "[0xff, 1_000, 1n, 1.5, 1e3, -2]", [255, 1000, 1, 1.5, 1000.0, -2]),
    ("typographic quotes", "{“a”: “b”}", {"a": "b"}),
]


@pytest.mark.parametrize(("text", "value"), [case[1:] for case in PRINTED], ids=[case[0] for case in PRINTED])
def test_what_was_printed_is_read(text: str, value: Any) -> None:
    literal = literals.read(text, 0)
    assert (literal.value, literal.end, literal.cut) == (value, len(text), False)


def test_a_model_as_pydantic_prints_it() -> None:
    literal = literals.read("meta=None content=[TextContent(text='x')] isError=True", 0, names=True)
    assert literal.value == {"meta": None, "content": [{"text": "x"}], "isError": True}


CUT: list[tuple[str, str, Any]] = [
    ("in a string", '{"a": "b', CutDict(a=CutStr("b"))),
    ("in a number, which may have gone on", '{"a": 1, "b": 12', CutDict(a=1)),
    ("after a sign", '{"a": [1, -', CutDict(a=CutList([1]))),
    ("in a word", '{"a": tr', CutDict()),
    ("after a word, which cannot go on", '{"a": true', CutDict(a=True)),
    ("in a name", '{"a": 1, "b', CutDict(a=1)),
    ("after a colon", '{"a": 1, "b":', CutDict(a=1)),
    ("in an array", '{"a": [1, 2,', CutDict(a=CutList([1, 2]))),
    ("inside of another", '{"a": {"b": {"c": 1,', CutDict(a=CutDict(b=CutDict(c=1)))),
    ("with a mark", '{"a": 1, "b": … [truncated 9 chars]', CutDict(a=1)),
    ("with dots", '{"a": [1, ...', CutDict(a=CutList([1]))),
    ("by the end of a line", '{"a": "b\n12:00 next line', CutDict(a=CutStr("b"))),
]


@pytest.mark.parametrize(("text", "value"), [case[1:] for case in CUT], ids=[case[0] for case in CUT])
def test_of_a_cut_text_only_what_is_certain_is_kept(text: str, value: Any) -> None:
    literal = literals.read(text, 0)
    assert (literal.value, type(literal.value), literal.cut) == (value, type(value), True)


@pytest.mark.parametrize("text", ["{a b}", "{'a': }", "[1 2]", "{,}", "{'a': os.system}", "[x for x in y]", "lambda: 1", "{1: 2}[1]x"])
def test_what_is_no_literal(text: str) -> None:
    try:
        literal = literals.read(text, 0)
    except literals.Broken:
        return
    assert literal.end < len(text)


def test_what_was_complete_in_a_broken_text_is_kept() -> None:
    with pytest.raises(literals.Broken) as broken:
        literals.read("{'a': {'b': 1}, 'c': [2], oops}", 0)
    assert broken.value.complete == [{"b": 1}, [2]]


values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**18), 10**18) | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
documents = st.dictionaries(st.text(), values, max_size=5)


@given(documents)
def test_any_value_is_read_from_its_repr(value: dict[str, Any]) -> None:
    assert literals.read(repr(value), 0).value == plain(clean(value))
    assert literals.read(pprint.pformat(value, width=40), 0).value == plain(clean(value))


@given(documents, st.integers(0, 400))
def test_a_cut_value_is_a_part_of_the_whole(value: dict[str, Any], cut: int) -> None:
    text = json.dumps(value)
    if cut >= len(text):
        return
    literal = literals.read(text[:cut], 0)
    assert literal.cut
    assert is_part(literal.value, clean(json.loads(text)))


@given(st.text(alphabet="{}[]()'\"`:,=+\\ \nabN1.…“”", max_size=120))
def test_any_text_ends(text: str) -> None:
    try:
        end = literals.read(text, 0).end
    except literals.Broken as broken:
        end = broken.at
    assert 0 <= end <= len(text)


def clean(value: Any) -> Any:
    """A value as it can be read: half of a surrogate pair is replaced."""
    if isinstance(value, str):
        return jsontext.LONE.sub("\ufffd", value)
    if isinstance(value, dict):
        return {clean(name): clean(member) for name, member in value.items()}
    return [clean(item) for item in value] if isinstance(value, list) else value


def is_part(cut: Any, whole: Any) -> bool:
    """Whether what was read of a cut value says nothing that the whole does not say."""
    if cut is None:
        return True
    if isinstance(cut, CutStr):
        return isinstance(whole, str) and whole.startswith(cut.rstrip("\ufffd"))
    if isinstance(cut, dict):
        return isinstance(whole, dict) and all(name in whole and is_part(member, whole[name]) for name, member in cut.items())
    if isinstance(cut, list):
        return isinstance(whole, list) and all(is_part(each, other) for each, other in zip(cut, whole, strict=False))
    return type(cut) is type(whole) and cut == whole
