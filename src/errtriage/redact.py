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
_CONTROL = _Pattern(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]+", ""
)


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


# What stands behind a secret's name: a string (its quotes may be escaped, and it may have no end), a list or an object, or
# a run of characters; a comma or & in it ends it only where something else follows.
_VALUE = r"""
    (?P<open>["'`])(?:\\.|(?!(?P=open))[^\n\\])*(?:(?P=open)|(?=\n|\Z|\\\Z))
    | (?P<escaped>\\+["'`])(?:(?!(?P=escaped))[^\n])+(?:(?P=escaped)|(?=\n|\Z))
    | &quot;(?:(?!&quot;)[^\n])*(?:&quot;|(?=\n|\Z))
    | \[[^\]\n]*\]? | \{[^}\n]*\}? | \([^)\n]*\)?
    | (?:[^\s"'`,;&<>()\[\]{}\\]|[,;&](?!\s|[\w.-]+=|\Z))+
"""
_NAMED = _Pattern(
    r"""(?ix)
    (?P<name>(?<!mon)(?<!tur)(?<!don)(?<!hoc)(?<!joc)(?<!whis)(?:key|token|secret|password|passwd|passphrase))
    (?P<sep>\\*["'`]?(?:&quot;)?\]?\s{0,40}(?::=|[:=]>?|%3[ad])\s{0,40})
    (?P<value>"""
    + _VALUE
    + ")",
    "key", "token", "secret", "passw", "passphrase",
)  # fmt: skip
# A placeholder that stands where a secret was is no secret.
_HIDDEN = r"(?!\W{0,2}(?:redacted|removed|masked|hidden)\W{0,2}(?:[\s\"'&,;]|\Z)|\*{2,})"
# Words that follow “bearer” in a sentence.
_PROSE = r"(?!(?:tokens?|auth|authentication|authorization|credentials?|scheme|is|was|has|not|and|or|for|in|required|expired|missing|invalid)\b(?![-._~+/=]))"
_BEARER = _Pattern(rf"(?i)\b(bearer)((?:\s+|%20|\s*[:=]\s*)\\*[\"']?){_HIDDEN}{_PROSE}[A-Za-z0-9._~+/=:-]+", "bearer")
_AUTHORIZATION = _Pattern(r"""(?i)(authorization\\*["']?\s{0,8}[:=]\s{0,8}\\*["']?(?:basic|digest|token|negotiate)\s+)[^\s"'\\,]+""", "authorization")
_USERINFO = _Pattern(r"""(?<=:)(\\?/\\?/)[^/?#\s"'<>\\]*@""", "@")
_KEY = r"[A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----"
# No boundary before most of them: taking colour codes out may have glued something to them.
_SHAPES = _Pattern(
    r"eyJ[A-Za-z0-9_-]{5,}+(?:\.[A-Za-z0-9_-]*+){0,4}"  # JSON Web Token; without a dot it is none
    r"|(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{12,}"  # AWS access key id
    r"|gh[pousr]_[A-Za-z0-9]{16,}|github_pat_[A-Za-z0-9_]{16,}"
    r"|xox[a-z]-[A-Za-z0-9-]{8,}|xapp-[A-Za-z0-9-]{8,}|hooks\.slack\.com/services/[A-Za-z0-9/]+"
    r"|(?<![A-Za-z0-9])sk-(?:[A-Za-z]+-)*[A-Za-z0-9_-]{20,}|[sr]k_(?:live|test)_[A-Za-z0-9]{10,}|AIza[A-Za-z0-9_-]{30,}"
    rf"|-----BEGIN {_KEY}[\s\S]*?(?:-----END {_KEY}|\Z)",
    "eyj", "akia", "asia", "abia", "acca", "gh", "github_pat_", "xox", "xapp-", "slack", "sk-", "k_live_", "k_test_", "aiza", "private key",
)  # fmt: skip


@cache
def _parameters(names: frozenset[str]) -> _Pattern:
    """The pattern of the query parameters whose values are secrets."""
    alternatives = "|".join(re.escape(name) for name in sorted(names))
    return _Pattern(
        rf"""(?i)((?:[?&;#]|\\u0026|%(?:25)*(?:3f|26))(?:{alternatives})(?:=|%(?:25)*3d)){_HIDDEN}[^&;#\s"'<>()\\{{}}]+""", *(["=", "3d"] if names else [])
    )


def service_secrets(text: str, parameters: Iterable[str]) -> str:
    """Redact what a service that hands out signed URLs redacts itself: ``parameters``, URL userinfo, bearer tokens."""
    lower = text.lower()
    text = _parameters(parameters if isinstance(parameters, frozenset) else frozenset(parameters)).sub(rf"\1{REDACTED}", text, lower)
    text = _USERINFO.sub(r"\1", text, lower)
    return _BEARER.sub(rf"\1\2{REDACTED}", text, lower)


def _hide_value(match: re.Match[str]) -> str:
    quote = match["open"] or match["escaped"] or ""
    return f"{match['name']}{match['sep']}{quote}{REDACTED}{quote}"


def _hide_shape(match: re.Match[str]) -> str:
    return match[0] if match[0].startswith("eyJ") and "." not in match[0] else REDACTED


def secrets(text: str, parameters: Iterable[str]) -> str:
    """Redact every secret that errtriage knows the look of: a service's own, well-known shapes, and named values.

    ``parameters`` are the names of query parameters whose values are secrets, compared without case.
    """
    joined = text.replace("\ufffd", "")
    if joined != text and secrets(joined, parameters) != joined:
        text = joined  # control characters must not keep a secret, or its name, from being seen
    lower = text.lower()
    text = _SHAPES.sub(_hide_shape, text, lower)
    text = service_secrets(text, parameters)
    text = _AUTHORIZATION.sub(rf"\1{REDACTED}", text, lower)
    return _NAMED.sub(_hide_value, text, lower)
