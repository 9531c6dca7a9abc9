"""Takes secrets and terminal control out of text that came with a payload.

The order matters: control codes go first, so that a token split by colour codes does not come back together
after the secrets were looked for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cache, cached_property

REDACTED = "REDACTED"


class _Pattern:
    """A regular expression that is compiled when a text first holds one of the words without which it cannot match.

    Most text holds none of them, and compiling all the patterns would take longer than reading an envelope.
    """

    def __init__(self, source: str, *needs: str) -> None:
        self._source = source
        self._needs = needs

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        return re.compile(self._source)

    def sub(self, replacement: str | Callable[[re.Match[str]], str], text: str, lower: str) -> str:
        """Replace every match; ``lower`` is the text in lower case."""
        return self._compiled.sub(replacement, text) if any(word in lower for word in self._needs) else text


_CODES = (
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor, erase
    r"|\x1b[\]PX^_][^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)?"  # OSC, DCS, SOS, PM, APC up to their end
    r"|\x9b[0-?]*[ -/]*[@-~]"  # CSI as one character
    r"|\x1b[ -/]*[0-~]?"  # any other escape
)
_TERMINAL = _Pattern(_CODES, "\x1b", "\x9b")
# C0 and C1 but tab and newline, DEL, and the marks that turn the direction of text or hide it.
_CONTROL = _Pattern("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]+", "")


def clean(text: str) -> str:
    """Return ``text`` without terminal sequences and with any other control characters shown as U+FFFD."""
    if text.isascii() and text.isprintable():
        return text
    text = _TERMINAL.sub("", text.replace("\r\n", "\n"), text)
    return text if text.isprintable() else _CONTROL.sub("\ufffd", text, text)


@cache
def terminal_codes() -> re.Pattern[str]:
    """The pattern of what stands in a captured terminal beside the text: control sequences and runs of NUL."""
    return re.compile(_CODES + r"|\x00+")


# What a value after `=` or `:` looks like: quoted (also with escaped quotes), or up to white space or a delimiter.
_VALUE = r"""(?P<open>\\*["'`])(?:(?!(?P=open)).)+(?:(?P=open)|(?=\n|\Z))|[^\s"'`,;&<>()\[\]{}\\]+"""
_NAMED = _Pattern(
    r"""(?ix)
    (?P<name>
      (?:(?<![a-z])|(?-i:(?<=[a-z0-9])(?=[A-Z]))|(?:api|access|auth|private|signing|session|client|refresh|bearer|csrf|user|shared|master|account))
      (?:key|token|secret|password|passwd|passphrase)
    )
    (?P<sep>\\*["'`]?\s{0,8}[:=]>?\s{0,8})
    (?P<value>"""
    + _VALUE
    + ")",
    "key", "token", "secret", "passw", "passphrase",
)  # fmt: skip
# A placeholder that stands where a secret was is no secret.
_HIDDEN = r"(?!\W{0,4}(?:redacted|removed|masked|hidden)\b|\*{2,})"
_BEARER = _Pattern(rf"(?i)\b(bearer)(\s+|%20){_HIDDEN}[A-Za-z0-9._~+/=:-]+", "bearer")
_AUTHORIZATION = _Pattern(r"""(?i)(authorization\\*["']?\s{0,8}[:=]\s{0,8}\\*["']?(?:basic|digest|token|negotiate)\s+)[^\s"'\\,]+""", "authorization")
_USERINFO = _Pattern(r"""(?<=:)//[^/?#\s"'<>\\]*@""", "@")
_SHAPES = _Pattern(
    r"\beyJ[A-Za-z0-9_-]{5,}(?:\.[A-Za-z0-9_-]*){1,4}"  # JSON Web Token
    r"|\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{12,}\b"  # AWS access key id
    r"|\bgh[pousr]_[A-Za-z0-9]{16,}|\bgithub_pat_[A-Za-z0-9_]{16,}"
    r"|\bxox[a-z]-[A-Za-z0-9-]{8,}|\bxapp-[A-Za-z0-9-]{8,}|hooks\.slack\.com/services/[A-Za-z0-9/]+"
    r"|\bsk-(?:[A-Za-z]+-)*[A-Za-z0-9_-]{20,}|\b[sr]k_(?:live|test)_[A-Za-z0-9]{10,}|\bAIza[A-Za-z0-9_-]{30,}"
    r"|-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----(?:(?!-----END)[\s\S])*(?:-----END [A-Z0-9 ]*PRIVATE KEY-----)?",
    "eyj", "akia", "asia", "abia", "acca", "gh", "github_pat_", "xox", "xapp-", "slack", "sk-", "k_live_", "k_test_", "aiza", "private key",
)  # fmt: skip


@cache
def _parameters(names: frozenset[str]) -> _Pattern:
    """The pattern of the query parameters whose values are secrets."""
    alternatives = "|".join(re.escape(name) for name in sorted(names))
    return _Pattern(rf"""(?i)((?:[?&;]|%3f|%26)(?:{alternatives})(?:=|%3d)){_HIDDEN}[^&;#\s"'<>()\\{{}}]+""", *(["=", "%3d"] if names else []))


def service_secrets(text: str, parameters: Iterable[str]) -> str:
    """Redact what a service that hands out signed URLs redacts itself: ``parameters``, URL userinfo, bearer tokens."""
    lower = text.lower()
    text = _parameters(frozenset(parameters)).sub(rf"\1{REDACTED}", text, lower)
    text = _USERINFO.sub("//", text, lower)
    return _BEARER.sub(rf"\1\2{REDACTED}", text, lower)


def _hide_value(match: re.Match[str]) -> str:
    quote = match["open"] or ""
    return f"{match['name']}{match['sep']}{quote}{REDACTED}{quote}"


def secrets(text: str, parameters: Iterable[str]) -> str:
    """Redact every secret that errtriage knows the look of: a service's own, well-known shapes, and named values.

    ``parameters`` are the names of query parameters whose values are secrets, compared without case.
    """
    lower = text.lower()
    text = _SHAPES.sub(REDACTED, text, lower)
    text = service_secrets(text, parameters)
    text = _AUTHORIZATION.sub(rf"\1{REDACTED}", text, lower)
    return _NAMED.sub(_hide_value, text, lower)
