"""WWW-Authenticate, as RFC 9110 writes it and as servers do."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from errtriage.challenges import challenges

HEADERS = [
    ("Bearer", {"bearer": {}}),
    ('Bearer realm="attic", error="invalid_token"', {"bearer": {"realm": "attic", "error": "invalid_token"}}),
    ('bearer error="insufficient_scope", scope="read write"', {"bearer": {"error": "insufficient_scope", "scope": "read write"}}),
    ("Bearer error=invalid_token", {"bearer": {"error": "invalid_token"}}),
    ('Basic realm="a", Bearer resource_metadata="https://x/y?a=1,b=2"', {"basic": {"realm": "a"}, "bearer": {"resource_metadata": "https://x/y?a=1,b=2"}}),
    ("Negotiate, Basic realm = b", {"negotiate": {}, "basic": {"realm": "b"}}),
    ("Negotiate dG9rZW4=, Bearer", {"negotiate": {}, "bearer": {}}),
    (r'Bearer error_description="say \"please\""', {"bearer": {"error_description": 'say "please"'}}),
    ('Bearer scope="a", Bearer scope="b"', {"bearer": {"scope": "a"}}),
    ('Bearer realm="never closed', {"bearer": {}, "realm": {}}),
    ("", {}),
    ("  , ,", {}),
]


@pytest.mark.parametrize(("header", "found"), HEADERS, ids=[header or "empty" for header, _ in HEADERS])
def test_what_is_read(header: str, found: dict[str, dict[str, str]]) -> None:
    assert challenges(header) == found


@given(st.text(alphabet='Bearer="\\, \t=x/.', max_size=200))
def test_anything_is_read_to_some_end(header: str) -> None:
    for scheme, parameters in challenges(header).items():
        assert scheme == scheme.lower()
        assert all(name == name.lower() for name in parameters)


@pytest.mark.parametrize("part", ['"', "a=", 'a="\\', "Bearer ", "a,", "="])
def test_a_long_header_takes_no_longer_than_its_length(part: str) -> None:
    began = time.monotonic()
    challenges(part * 100_000)
    assert time.monotonic() - began < 5
