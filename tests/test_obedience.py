"""Clients that do as they are told, whatever they are answered and however their sessions interleave: never a finding."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest
from conversations import COMPLETED, FIXED_TEXT, UNCERTAIN, Record, answer, at, call, error, failed, hint, notice, request, response, result, stored
from hypothesis import find, given, settings
from hypothesis import strategies as st
from test_audit import audit_of

#: What a client does in a session: it is given the time (ms), and yields records.
Draw = Callable[[st.SearchStrategy[Any]], Any]


class Client:
    """One session of a client that keeps to every contract."""

    def __init__(self, draw: Draw) -> None:
        self.draw = draw
        self.ids = count(1)
        self.keys = count(1)

    def session(self) -> list[Record]:
        """Some operations, several of them at a time, in the order in which their messages are logged."""
        records = [record for _ in range(self.draw(st.integers(1, 5))) for record in self.operation(self.draw(st.integers(0, 30_000)))]
        return sorted(records, key=lambda record: str(record["time"]))

    def operation(self, now: int) -> Iterator[Record]:
        """One thing that the client wants, with arguments of its own, until it is done or it stops."""
        number = next(self.keys)
        if self.draw(st.booleans()):
            yield from self.storage(now, number)
        else:
            yield from self.change(now, number)

    def storage(self, now: int, number: int) -> Iterator[Record]:
        """A call of ovstorage: retried while that is allowed, with growing pauses; else changed or left."""
        tool = self.draw(st.sampled_from(["ovstorage_read", "ovstorage_stat", "ovstorage_write", "ovstorage_move"]))
        address = f"s3://bucket/{number}"
        pause = self.draw(st.integers(10, 2000))
        for _ in range(5):
            identifier = next(self.ids)
            yield call(now, identifier, tool, address=address)
            now += self.draw(st.integers(1, 500))
            given = self.draw(
                st.sampled_from(["ok", "Transient", "NotFound", "PermissionDenied", "InvalidArgument", "CommitAmbiguous", "NoRoute", "-32602", "503"])
            )
            if given == "503":
                yield response(now, "503 Service Unavailable", "Retry-After: 2")
                now += 2000 + self.draw(st.integers(0, 3000))
                pause = 0
                continue
            yield self.answered(now, identifier, given, tool)
            if given != "Transient":
                yield from self.afterwards(now, given, tool, address)
                return
            pause = 2 * pause + self.draw(st.integers(1, 300))
            now += pause

    def answered(self, now: int, identifier: int, given: str, tool: str) -> Record:
        """The answer of that kind."""
        if given == "ok":
            return answer(now, identifier, stored(tool))
        if given == "-32602":
            return error(now, identifier, -32602)
        more = {"next_action": "Look at the connections."} if given == "NoRoute" else {}
        return answer(now, identifier, failed(given, tool, retryable=given == "Transient", **more))

    def afterwards(self, now: int, given: str, tool: str, address: str) -> Iterator[Record]:
        """After a failure: nothing, another call, or the same one after what was asked for."""
        # Time tells nothing about what may have been done.
        choice = self.draw(st.sampled_from(["stop", "other", "person", "after a change", *(["later"] if given != "CommitAmbiguous" else [])]))
        now += self.draw(st.integers(1, 3000))
        if choice == "stop" or given == "ok":
            return
        if choice == "other":
            yield call(now, next(self.ids), tool, address=f"{address}-other")
            return
        if choice == "person":
            yield {"time": at(now), "role": "user", "content": f"Try {address} again at {now}."}
        elif choice == "after a change":
            identifier = next(self.ids)
            yield call(now, identifier, "ovstorage_write", address=address, data="new")
            yield answer(now + 5, identifier, stored("ovstorage_write"))
        else:
            now += 61_000
        yield call(now + 10, next(self.ids), tool, address=address)

    def change(self, now: int, number: int) -> Iterator[Record]:
        """A change of Coffee Chats: hints are waited for, unknown outcomes are read first."""
        contact, key = f"c-{number}", f"key-{number}-0"
        for attempt in range(1, 5):
            identifier = next(self.ids)
            yield call(now, identifier, "contacts.notes.update", contactId=contact, note="hello", idempotencyKey=key)
            now += self.draw(st.integers(1, 500))
            given = self.draw(st.sampled_from(["completed", "hint", "uncertain", "denied", "conflict", "fixed", "429", "gave up"]))
            if given == "hint":
                delay = self.draw(st.integers(1, 5000))
                yield answer(now, identifier, hint(delay))
                now += delay + self.draw(st.integers(0, 50))
            elif given == "429":
                yield response(now, "429 Too Many Requests", "Retry-After: 1")
                now += 1000 + self.draw(st.integers(0, 50))
            elif given in ("uncertain", "conflict"):
                yield answer(now, identifier, UNCERTAIN if given == "uncertain" else result("failed", "conflict", "VERSION_CONFLICT"))
                yield from self.read(now + 5, contact)
                now += 20
                key = self.draw(st.sampled_from([key, f"key-{number}-{attempt}"]))
            elif given == "gave up":
                yield notice(now, "notifications/cancelled", requestId=identifier, reason="too slow")
                yield answer(now + self.draw(st.integers(0, 3)), identifier, COMPLETED)
                now += 4
            else:
                yield answer(now, identifier, {"completed": COMPLETED, "fixed": FIXED_TEXT}.get(given, result("failed", "denied", "ACTION_DENIED")))
                return

    def read(self, now: int, contact: str) -> Iterator[Record]:
        """A read of a contact, that goes well."""
        identifier = next(self.ids)
        if self.draw(st.booleans()):
            yield call(now, identifier, "contacts.get", contactId=contact)
        else:
            yield request(now, identifier, "resources/read", {"uri": f"contacts/{contact}"})
        yield answer(now + 5, identifier, {"content": [{"type": "text", "text": "a note"}]})


def capture(records: list[Record], name: str, shape: str) -> list[str]:
    """The records of a session as lines of a log; the name of the session in each."""
    lines = []
    for record in records:
        if shape == "prefix" and "message" in record:
            lines.append(f"{record['time']} session={name} {json.dumps(record['message'])}")
        else:
            lines.append(json.dumps({"session": name, **record}))
    return lines


@st.composite
def logs(draw: Draw, client: type[Client] = Client) -> str:
    """The sessions of one or more obedient clients in one log, interleaved in any way, some messages logged twice."""
    sessions = [capture(client(draw).session(), f"s-{n}", draw(st.sampled_from(["prefix", "record"]))) for n in range(draw(st.integers(1, 3)))]
    lines = []
    while any(sessions):
        chosen = sessions[draw(st.integers(0, len(sessions) - 1))]
        if chosen:
            line = chosen.pop(0)
            lines += [line] * draw(st.sampled_from([1, 1, 1, 2]))
    return "".join(line + "\n" for line in lines)


@given(logs())
def test_an_obedient_client_is_never_found_guilty(text: str) -> None:
    assert [(each.rule, each.line, each.what) for each in audit_of(text).breaches] == []


class Hasty(Client):
    """Does not read after an unknown outcome."""

    def read(self, now: int, contact: str) -> Iterator[Record]:  # noqa: ARG002 - as the base class has it
        """Nothing."""
        yield from ()


class Stubborn(Client):
    """Makes the same call again, whatever was answered."""

    def afterwards(self, now: int, given: str, tool: str, address: str) -> Iterator[Record]:  # noqa: ARG002 - as above
        """The same call."""
        yield call(now + 10, next(self.ids), tool, address=address)


@pytest.mark.parametrize(("client", "rule"), [(Hasty, "AU103"), (Stubborn, "AU101")])
def test_the_generator_would_notice(client: type[Client], rule: str) -> None:
    """Clients that leave out one duty are found guilty: without that, the test above would prove nothing."""
    find(logs(client), lambda text: rule in {each.rule for each in audit_of(text).breaches}, settings=settings(derandomize=True, database=None))
