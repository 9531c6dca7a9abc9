"""Secrets and terminal control never come out, whatever they are wrapped in; what is no secret stays."""

from __future__ import annotations

import json

import pytest
from conftest import Run
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from errtriage import triage
from errtriage.contracts import bundled
from errtriage.redact import clean, secrets

PARAMETERS = bundled().secret_parameters

SECRETS = [
    ("https://a.example/x?X-Amz-Signature=S3CR3T&versionId=3", "https://a.example/x?X-Amz-Signature=REDACTED&versionId=3"),
    ("https://a.example/x?prefix=p&SIG=S3CR3T", "https://a.example/x?prefix=p&SIG=REDACTED"),
    ("a?x=1&amp;se=S3CR3T", "a?x=1&amp;se=REDACTED"),
    ("a%3Fsig%3DS3CR3T", "a%3Fsig%3DREDACTED"),
    ("https://user:S3CR3T@a.example/x", "https://a.example/x"),
    ("postgres://S3CR3T@db/x", "postgres://db/x"),
    ("https://u:S3C@R3T@a.example/x@y", "https://a.example/x@y"),
    ("Authorization: Bearer S3CR3T.x-y", "Authorization: Bearer REDACTED"),
    ("bearer S3CR3T", "bearer REDACTED"),
    ("Authorization: Basic S3CR3T==", "Authorization: Basic REDACTED"),
    ("eyJS3CR3T.eyJS3CR3T.S3CR3T", "REDACTED"),
    ("id AKIAS3CR3TS3CR3TXX", "id REDACTED"),
    ("ghp_S3CR3TS3CR3TS3CR3T", "REDACTED"),
    ("github_pat_S3CR3TS3CR3TS3CR3T", "REDACTED"),
    ("xoxb-S3CR3T-S3CR3T", "REDACTED"),
    ("-----BEGIN RSA PRIVATE KEY-----\nS3CR3T\n-----END RSA PRIVATE KEY-----", "REDACTED"),
    ("-----BEGIN PRIVATE KEY-----\nS3CR3T", "REDACTED"),
    ("MCP_API_KEY=S3CR3T next", "MCP_API_KEY=REDACTED next"),
    ("x-api-key: S3CR3T", "x-api-key: REDACTED"),
    ("apiKey=S3CR3T", "apiKey=REDACTED"),
    ("accessToken: S3CR3T", "accessToken: REDACTED"),
    ("password=S3CR3T, user=u", "password=REDACTED, user=u"),
    ('{"client_secret": "S3CR3T and S3CR3T"}', '{"client_secret": "REDACTED"}'),
    (r"{\"password\":\"S3CR3T\"}", r"{\"password\":\"REDACTED\"}"),
    ("{'db_password': 'S3CR3T'}", "{'db_password': 'REDACTED'}"),
    ('password: "S3CR3T', 'password: "REDACTED"'),
    ("DB_PASSWORD => S3CR3T", "DB_PASSWORD => REDACTED"),
    ("password=(S3CR3T)", "password=REDACTED"),
    ("user[password]=S3CR3T", "user[password]=REDACTED"),
    ("pass\ufffdword=S3CR3T", "password=REDACTED"),
    ("PGPASSWORD=S3CR3T", "PGPASSWORD=REDACTED"),
    ("dbpassword=S3CR3T", "dbpassword=REDACTED"),
    ("AWSSECRETKEY: S3CR3T", "AWSSECRETKEY: REDACTED"),
    ('{"token": ["S3CR3T", "S3CR3T"]}', '{"token": REDACTED}'),
    ('{"secret": {"v": "S3CR3T"}}', '{"secret": REDACTED}'),
    ("token            : S3CR3T", "token            : REDACTED"),
    ("token := S3CR3T", "token := REDACTED"),
    ("password%3DS3CR3T", "password%3DREDACTED"),
    ("password=&quot;S3CR3T and S3CR3T&quot;", "password=REDACTED"),
    ("password=ab,S3CR3T rest", "password=REDACTED rest"),
    ("password=ab&S3CR3T&prefix=p", "password=REDACTED&prefix=p"),
    (r'password="ab\"S3CR3T" rest', 'password="REDACTED" rest'),
    ("-----BEGIN PGP PRIVATE KEY BLOCK-----\nS3CR3T\n-----END x\nS3CR3T\n-----END PGP PRIVATE KEY BLOCK-----", "REDACTED"),
    ("xghp_S3CR3TS3CR3TS3CR3T", "xREDACTED"),
    ("id_AKIAS3CR3TS3CR3TXX", "id_REDACTED"),
    (r"https://x/a?x=1\u0026sig=S3CR3T", r"https://x/a?x=1\u0026sig=REDACTED"),
    (r"https:\/\/u:S3CR3T@h", r"https:\/\/h"),
    ("x#signature=S3CR3T", "x#signature=REDACTED"),
    ("a%253Fsig%253DS3CR3T", "a%253Fsig%253DREDACTED"),
    ('Bearer "S3CR3T"', 'Bearer "REDACTED"'),
    ("Bearer: S3CR3T", "Bearer: REDACTED"),
    ("Bearer redacted-S3CR3T", "Bearer REDACTED"),
    ("?sig=removed-S3CR3T", "?sig=REDACTED"),
]


@pytest.mark.parametrize(("text", "shown"), SECRETS, ids=[text[:25] for text, _ in SECRETS])
def test_a_secret_goes_and_the_rest_stays(text: str, shown: str) -> None:
    assert secrets(text, PARAMETERS) == shown
    assert secrets(shown, PARAMETERS) == shown


@pytest.mark.parametrize(
    "text",
    [
        "monkey=banana",
        "keyboard: qwerty",
        "a tokenizer: x",
        "versionId=3&prefix=p",
        "a@b.example",
        "https://a.example/@scope/x",
        "see=you",
        "Bearer REDACTED",
        "the bear",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert secrets(text, PARAMETERS) == text


CODES = [
    ("\x1b[31mred\x1b[0m", "red"),
    ("\x1b]0;title\x07rest", "rest"),
    ("\x1b]8;;https://a.example\x1b\\link\x1b]8;;\x1b\\", "link"),
    ("\x9b2Jgone", "gone"),
    ("a\x00\x00b", "a\ufffdb"),
    ("a\u202eb", "a\ufffdb"),
    ("a\u061cb", "a\ufffdb"),
    ("a\U000e0041b", "a\ufffdb"),
    ("two\r\nlines\tand a tab", "two\nlines\tand a tab"),
    ("tok\x1b[0men=S3CR3T", "token=S3CR3T"),
]


@pytest.mark.parametrize(("text", "shown"), CODES, ids=[repr(text) for text, _ in CODES])
def test_terminal_control_goes(text: str, shown: str) -> None:
    assert clean(text) == shown


@given(st.text())
def test_nothing_that_moves_a_terminal_is_left(text: str) -> None:
    assert not any(character not in "\n\t" and (character < " " or "\x7f" <= character <= "\x9f") for character in clean(text))


HOSTILE = "pass\x1b[1mword=S3CR3T [bold]b[/bold] \x1b]0;owned\x07 \u202e <img src=x> [click](https://evil.example) @everyone"
PLACES = {
    "message": {"v": "0.1", "ok": False, "operation": "o", "error": {"code": "Locked", "message": HOSTILE, "retryable": False}},
    "hint": {"v": "0.1", "ok": False, "operation": "o", "error": {"code": "Locked", "message": "m", "retryable": False, "next_action": HOSTILE}},
    "code": {"v": "0.1", "ok": False, "operation": "o", "error": {"code": HOSTILE, "message": "m", "retryable": False}},
    "operation": {"v": "0.1", "ok": False, "operation": HOSTILE, "error": {"code": "Locked", "message": "m", "retryable": False}},
    "resource": {"v": "0.1", "ok": False, "operation": "o", "resource": HOSTILE, "error": {"code": "Locked", "message": "m", "retryable": False}},
    "id": {"v": "0.1", "ok": False, "operation": "o", "operation_id": HOSTILE, "error": {"code": "Locked", "message": "m", "retryable": False}},
    "violation": {"v": HOSTILE, "ok": False, "operation": "o", "error": {"code": "Locked", "message": "m", "retryable": HOSTILE}},
    "name": {"v": "0.1", "ok": False, "operation": "o", "error": {"code": "Locked", "message": "m", "retryable": False, HOSTILE: 1}},
    "text": {"isError": True, "content": [{"type": "text", "text": HOSTILE}]},
    "rpc id": {"jsonrpc": "2.0", "id": HOSTILE, "error": {"code": -32603, "message": HOSTILE}},
    "tag": {"tag": HOSTILE, "scenario": "success", "operationId": "x"},
    "problem": {"title": HOSTILE, "status": 400, "detail": HOSTILE, "instance": HOSTILE, "requestId": HOSTILE},
}


@pytest.mark.parametrize("format", ["text", "json", "markdown"])
@pytest.mark.parametrize("place", PLACES)
def test_hostile_text_is_harmless_wherever_it_stands(run: Run, place: str, format: str) -> None:
    done = run("explain", "--format", format, "--color", "never", stdin=json.dumps(PLACES[place]))
    assert (done.returncode, done.stderr) == (0, b"")
    output = done.stdout.decode()
    assert "S3CR3T" not in output
    assert "\x1b" not in output
    assert "\u202e" not in output
    if format == "markdown":
        tokens = MarkdownIt("gfm-like", {"linkify": False}).parse(output)
        kinds = {child.type for token in tokens for child in [token, *(token.children or [])]}
        assert not {"html_block", "html_inline", "image", "link_open", "table_open", "s_open"} & kinds
        prose = "".join(child.content for token in tokens for child in token.children or [] if child.type == "text")
        assert "@everyone" not in prose
    elif "bold" in output:
        assert "[bold]b[/bold]" in output.replace("~1", "/")  # in a pointer / is ~1


def test_a_member_whose_name_says_secret_is_hidden_in_a_violation() -> None:
    (verdict,) = triage({"jsonrpc": "2.0", "id": {"api_key": "S3CR3T"}, "error": {"code": -32603, "message": "m"}})
    assert "S3CR3T" not in repr(verdict)


def test_a_secret_is_hidden_before_a_text_is_shortened() -> None:
    (verdict,) = triage({"isError": True, "content": [{"type": "text", "text": "x " * 470 + "https://user:S3CR3T" + "z" * 60 + "@host/p"}]})
    assert "S3CR3T" not in repr(verdict)


def test_a_secret_is_hidden_in_pointers_and_on_standard_error(run: Run) -> None:
    (verdict,) = triage({"v": "0.1", "ok": True, "operation": "o", "result": 1, "https://u:S3CR3T@h": 1})
    assert [finding.pointer for finding in verdict.findings] == ["/https:~1~1h"]
    assert b"S3CR3T" not in run("explain", stdin='{"ghp_S3CR3TS3CR3TS3CR3T": 1}').stderr


@pytest.mark.parametrize(
    "piece", ["eyJaaaaa-", "sk-a-", "key=", 'key="', "token:[", "://", "Bearer ", "?sig=", "AKIA", "-----BEGIN PRIVATE KEY-----", "\x1b]", "xoxb-"]
)
def test_redaction_takes_time_in_proportion(piece: str) -> None:
    """A quadratic pattern would take minutes on this, and the test's time would run out."""
    secrets(clean(piece * 60_000), PARAMETERS)


def test_secrets_are_shown_when_asked_for(run: Run) -> None:
    done = run("explain", "--format", "json", "--no-redact", stdin=json.dumps(PLACES["message"]))
    assert b"S3CR3T" in done.stdout
    assert b"\x1b" not in done.stdout
