"""What outcomes and actions are called in output for people."""

from __future__ import annotations

from collections.abc import Mapping

from errtriage.model import Action, Outcome, Verdict
from errtriage.wording import where

OUTCOMES: Mapping[Outcome, str] = {
    Outcome.SUCCESS: "Succeeded",
    Outcome.PENDING: "Pending",
    Outcome.NEEDS_INPUT: "Needs input",
    Outcome.FAILURE: "Failed",
    Outcome.PARTIAL: "Partly done",
    Outcome.UNCERTAIN: "Outcome unknown",
    Outcome.CANCELLED: "Cancelled",
    Outcome.UNRECOGNISED: "Unrecognised answer",
}

ACTIONS: Mapping[Action, str] = {
    Action.NONE: "nothing to do",
    Action.RETRY: "retry the same call",
    Action.WAIT: "wait",
    Action.FOLLOW_HINT: "do what the service says",
    Action.FIX_ARGUMENTS: "fix the call",
    Action.DECIDE: "you decide",
    Action.CHOOSE_OTHER_OPERATION: "choose another operation",
    Action.READ_FIRST: "read before anything else",
    Action.CONFIRM: "a person must confirm",
    Action.REAUTHORIZE: "stop: access must be granted again",
    Action.REPORT: "report it and stop",
}


#: Rich styles of outcomes' labels: reverse colours read on light and dark backgrounds alike.
LABELS: Mapping[Outcome, str] = {
    Outcome.SUCCESS: "bold black on green",
    Outcome.PENDING: "bold black on cyan",
    Outcome.NEEDS_INPUT: "bold black on cyan",
    Outcome.FAILURE: "bold white on red",
    Outcome.PARTIAL: "bold black on yellow",
    Outcome.UNCERTAIN: "bold black on yellow",
    Outcome.CANCELLED: "bold black on white",
    Outcome.UNRECOGNISED: "bold white on magenta",
}


def identity(verdict: Verdict) -> str:
    """What the verdict is about, in one line: contract, code, operation, resource."""
    named = [verdict.contract, verdict.code or verdict.shape, verdict.operation, verdict.resource]
    return " · ".join(" ".join(part.split()) for part in named if part)


def origin(verdict: Verdict, packs: Mapping[str, str]) -> str:
    """Where the payload was found, what was peeled off, and where its contract is from, if that is not bundled.

    ``packs`` says it for those contracts.
    """
    source = verdict.source
    parts = [f"{where(source.file)}, line {source.line}"]
    if source.wrappers:
        parts.append("in " + " > ".join(source.wrappers))
    if source.http_status is not None:
        parts.append(f"HTTP {source.http_status}")
    if source.rpc_id is not None:
        parts.append(f"JSON-RPC id {source.rpc_id}")
    if source.repaired:
        parts.append("mended to be read")
    if source.truncated:
        parts.append("cut short")
    if verdict.contract in packs:
        parts.append(f"contract from {packs[verdict.contract]}")
    return "; ".join(parts)
