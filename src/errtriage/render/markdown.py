"""A verdict for a ticket. Text of a payload is shown, never interpreted: no links, images, mentions or HTML come from it."""

from __future__ import annotations

import re
from collections.abc import Iterable

from errtriage.contracts import Contracts
from errtriage.model import Verdict
from errtriage.redact import clean
from errtriage.render.words import ACTIONS, OUTCOMES, identity, origin

_CODE = re.compile(r"(?<![`\\])`([^`\n]+)`(?!`)")
_SPECIAL = re.compile(r"([\\`*_\[\]#|~!])")
_MENTION = re.compile(r"(?<!\w)@(?=\w)")
_LINK = re.compile(r"(?i)\b(https?|ftp)://|\bwww\.")


def block(verdict: Verdict, *, trace: bool | None, contracts: Contracts) -> str:
    """One verdict as a Markdown section.

    ``trace`` says whether the tree is drawn with the path that was taken (True), the path is listed (None), or neither.
    """
    lines = [f"### {OUTCOMES[verdict.outcome]}: {ACTIONS[verdict.action]}", "", f"**{_escape(verdict.summary)}**", ""]
    lines += [_escape(identity(verdict)), ""]
    if verdict.correlation_id is not None:
        lines += ["Id to quote:", "", *_fenced(verdict.correlation_id), ""]
    if verdict.explanation:
        lines += ["**What happened.** " + _escape(verdict.explanation), ""]
    if verdict.message:
        lines += ["The service’s words:", "", *_fenced(verdict.message), ""]
    lines += _list("What to do", verdict.steps, numbered=True)
    lines += _list("Never", verdict.never)
    lines += ["**Tell the user.** " + _escape(verdict.say), ""]
    lines += _list("Against its contract", _problems(verdict))
    if trace and all(step.branch >= 0 for step in verdict.trace):
        from errtriage.render.tree_graph import mermaid

        drawn = mermaid(contracts.get(verdict.contract), verdict.trace).rstrip("\n").split("\n")
        lines += ["**How it was decided**", "", "```mermaid", *drawn, "```", ""]
    elif trace is not False:
        lines += _list("How it was decided", [f"{step.question} {step.answer}" for step in verdict.trace])
    lines += [f"Found in {_escape(clean(origin(verdict, contracts.origins)))}.", ""]
    return "\n".join(lines) + "\n"


def _problems(verdict: Verdict) -> list[str]:
    violations = [f"`{each.pointer or '/'}` {each.message}" for each in verdict.violations]
    return violations + [f"{each.rule} ({each.level}) `{each.pointer or '/'}` {each.message}" for each in verdict.findings]


def _list(title: str, items: Iterable[str], *, numbered: bool = False) -> list[str]:
    lines = [f"{f'{i}.' if numbered else '-'} {_escape(item)}" for i, item in enumerate(items, 1)]
    return [f"**{title}**", "", *lines, ""] if lines else []


def _escape(text: str) -> str:
    """Text as it reads, on one line: only short code spans keep their meaning."""
    text = " ".join(text.split())
    parts = []
    position = 0
    for match in _CODE.finditer(text):
        parts += [_escape_plain(text[position : match.start()]), match[0]]
        position = match.end()
    return "".join([*parts, _escape_plain(text[position:])])


def _escape_plain(text: str) -> str:
    text = _SPECIAL.sub(r"\\\1", text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;"))
    # A zero-width space keeps a name from being notified and an address from becoming a link.
    text = _MENTION.sub("@\u200b", text)
    return _LINK.sub(lambda match: match[0].replace("://", ":\u200b//").replace("www.", "www\u200b."), text)


def _fenced(text: str) -> list[str]:
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall(r"`+", text)), default=0))
    return [f"{fence}text", *text.split("\n"), fence]
