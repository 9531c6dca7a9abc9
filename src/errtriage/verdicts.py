"""From a text to its verdicts: find payloads, identify them, walk the contract's tree, say what follows.

This page is the program. It does no input and no output, and it knows no contract: what is decided stands in the packs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from errtriage import delays, jsontext, payloads, rules
from errtriage import facts as locate
from errtriage.contracts import Contract, Contracts, Shape, names_in
from errtriage.cuts import is_cut
from errtriage.facts import Facts
from errtriage.model import Action, Context, Finding, Http, Outcome, Payload, Retry, Source, Step, Verdict, Violation
from errtriage.pointers import pointer, pointer_parts
from errtriage.redact import clean, secrets
from errtriage.wording import Words
from errtriage.wrappers import Calls, Peeler

if TYPE_CHECKING:
    from errtriage.wrappers import Listener


class Triage:
    """Makes verdicts about texts and values.

    ``forced`` limits it to one contract; ``tool`` is a tool or a class of tools; ``http`` is what the transport knew
    when only the body was kept; ``redact`` hides secrets in everything that is shown.
    """

    def __init__(
        self,
        contracts: Contracts,
        *,
        forced: Contract | None = None,
        tool: str | None = None,
        http: Http | None = None,
        redact: bool = True,
    ) -> None:
        self._contracts = contracts
        self._forced = forced
        self._candidates = [forced] if forced else list(contracts)
        self._tool = tool
        self._http = http
        self._redact = redact
        #: ``show`` for texts that come again and again.
        self.shown = lru_cache(4096)(self.show)
        #: The bounds that were met since the last input, each as a sentence without a subject.
        self.troubles: list[str] = []
        #: JSON-RPC responses of the last input in which no payload was found, as what they are: no payload.
        self.empty: list[Payload] = []
        self._ids: Mapping[str, list[str]] = next(
            (pack.data["well_known_ids"] for pack in contracts if "well_known_ids" in pack.data), {"names": [], "headers": []}
        )

    def given(self, forced: str | None, tool: str | None, http: Http | None) -> Triage:
        """The same, for an input about which something else is given."""
        contract = self._contracts.get(forced) if forced else None
        return Triage(self._contracts, forced=contract, tool=tool, http=http, redact=self._redact)

    def text(self, text: str, file: str = "-", *, lossy: bool = False) -> Iterator[Verdict]:
        """Yield the verdicts of a text in order; ``lossy`` says that bytes were replaced to decode it."""
        for payload in self.find(self.records(text, lossy=lossy), text):
            yield self.decide(payload, file)

    def records(self, text: str, first_line: int = 1, *, lossy: bool = False) -> Iterator[payloads.Record]:
        """Yield what a text holds that may be or carry payloads of the contracts."""
        return payloads.records(text, first_line, lossy=lossy, words=self._contracts.words)

    def value(self, value: Any) -> Iterator[Verdict]:
        """Yield the verdicts of a JSON value."""
        value = jsontext.plain(value)
        values = value if isinstance(value, list) else [value]
        for payload in self.find(payloads.Record(1, each, whole=True) for each in values):
            yield self.decide(payload, "-")

    def find(self, records: Iterable[payloads.Record], text: str = "", calls: Calls | None = None, heard: Listener | None = None) -> Iterator[Payload]:
        """Yield the payloads of records; with ``http`` given and nothing found, the response itself.

        ``calls`` are the tools that were called before these records, and takes those that are called in them. ``heard`` is
        told, in the order in which payloads come, what is passed beside them.
        """
        peeler = Peeler(self._recognise, calls, self._contracts.words, heard)
        context = Context(http=self._http, body=True)
        found = False
        body: Any = None
        alone: list[Payload] = []
        for record in records:
            body = record.value if body is None else body
            peeler.strangers.clear()
            here = False
            for payload in peeler.record(record, context):
                found = here = True
                yield payload._replace(tool=peeler.tool_of(payload.context))
            if here or not self._forced or not (judged := self._judged(peeler)):
                continue
            # What stands between words is judged only where it is all there is: a log holds much that is no answer.
            if record.whole or record.http:
                found = True
                yield judged._replace(tool=peeler.tool_of(judged.context))
            else:
                alone.append(judged)
        if not found and len(alone) == 1:
            found = True
            yield alone[0]
        self.troubles = peeler.troubles
        self.empty = peeler.empty
        if not found and self._http and (response := self._recognise("http-response", text if body is None else body, context)):
            yield response

    def _judged(self, peeler: Peeler) -> Payload | None:
        """With a contract forced: the record's outermost unwrapped object, judged against the shape nearest to it."""
        if not self._forced or not peeler.strangers:
            return None
        candidates = ((value, context, shape) for value, context in peeler.strangers for shape in self._forced.shapes)
        value, context, shape = max(candidates, key=lambda candidate: _nearness(candidate[0], candidate[2]))
        return Payload(value, self._forced.name, shape.name, context, unmatched=True)

    def _recognise(self, place: str, value: Any, context: Context, inner: Any = None) -> Payload | None:
        known = locate.probe(value, context, inner, forced=self._forced is not None)
        for contract in self._candidates:
            for shape in contract.shapes:
                if place in shape.data["on"] and shape.matches(known):
                    return Payload(value, contract.name, shape.name, context, inner)
        return None

    def decide(self, payload: Payload, file: str = "-") -> Verdict:
        """Make the verdict about one payload."""
        judged = self.judge(payload)
        contract, shape, facts, entry, unread, leaf, trace = judged
        correlation, found_ids = locate.ids(payload, shape, self._ids["names"], self._ids["headers"])
        shown_id = self.show(correlation) if correlation else None
        words = self.words(judged, shown_id)
        texts = _Texts(contract, None if payload.unmatched else entry, leaf, facts, words, unread)
        truncated = payload.context.truncated and is_cut(payload.value)
        valid = not truncated and shape.accepts(payload.value)
        return Verdict(
            contract=contract.name,
            shape=payload.shape,
            outcome=judged.outcome,
            code=self._fact(facts, "code"),
            operation=self._fact(facts, "operation"),
            resource=self._fact(facts, "resource"),
            message=self._fact(facts, "message"),
            retryable=facts.get("retryable"),
            action=Action(leaf["action"]),
            summary=words.say(leaf["summary"]) or _PLAINLY[Action(leaf["action"])],
            explanation=texts.explanation(),
            steps=texts.steps(),
            never=texts.never(),
            say=texts.say(),
            retry=judged.retry,
            correlation_id=shown_id,
            trace=tuple(step._replace(answer=words.say(step.answer) or words.with_gaps(step.answer)) for step in trace),
            valid=valid,
            violations=() if valid else self._violations(shape, payload.value),
            findings=self._findings(payload, facts, words, unread),
            source=self._source(payload, file, found_ids, truncated=truncated),
        )

    def judge(self, payload: Payload) -> Judged:
        """The facts of a payload and where its contract's tree leads with them."""
        contract = self._contracts.get(payload.contract)
        shape = contract.shape(payload.shape)
        facts = locate.payload_facts(payload, shape)
        entry = locate.add_catalogue(facts, contract)
        locate.add_tool(facts, contract, self._tool, self._contracts.classes, payload.tool, payload.context.prefix)
        unread = locate.undetermined(payload, shape)
        leaf, trace = _walk(contract, facts, unread)
        if payload.unmatched:
            leaf, trace = _UNMATCHED, [Step("Does it match a shape of the contract?", "no; the nearest is {shape}")]
        return Judged(contract, shape, facts, entry, unread, leaf, trace)

    def brief(self, payload: Payload) -> Brief:
        """What a payload is counted by, without the sentences of its verdict."""
        judged = self.judge(payload)
        facts, leaf = judged.facts, judged.leaf
        code, operation = facts.get("code"), facts.get("operation")
        return Brief(
            judged.contract.name,
            judged.shape.name,
            judged.outcome,
            self.shown(code) if isinstance(code, str) else None,
            leaf["action"],
            self.shown(operation) if isinstance(operation, str) else None,
            payload.context.truncated and is_cut(payload.value),
            leaf.get("seems", leaf["outcome"]) == Outcome.SUCCESS,
        )

    def correlation(self, payload: Payload) -> str | None:
        """The id to quote for a payload, as its verdict has it."""
        shape = self._contracts.get(payload.contract).shape(payload.shape)
        correlation, _ = locate.ids(payload, shape, self._ids["names"], self._ids["headers"])
        return self.show(correlation) if correlation else None

    def check(self, payload: Payload) -> Check:
        """What a payload breaks, without the sentences of its verdict."""
        judged = self.judge(payload)
        contract, shape, facts, _, unread, _, _ = judged
        truncated = payload.context.truncated and is_cut(payload.value)
        return Check(
            outcome=judged.outcome,
            truncated=truncated,
            violations=() if truncated or shape.accepts(payload.value) else self._violations(shape, payload.value),
            findings=self._findings(payload, facts, self._words(contract, facts), unread),
        )

    def check_empty(self, response: Payload) -> tuple[Finding, ...]:
        """The rules that a JSON-RPC response without a payload breaks, as a wrapper."""
        facts = locate.wrapper_facts(response.context)
        return self._findings(response, facts, Words(facts, self.show, lambda _: False), set())

    def _findings(self, payload: Payload, facts: Facts, words: Words, unread: set[str]) -> tuple[Finding, ...]:
        if payload.unmatched and not isinstance(payload.value, dict):
            return ()
        found = rules.findings(payload, facts, words, self._contracts, unread)
        return tuple(each._replace(pointer=self._show_pointer(each.pointer)) for each in found)

    def _show_pointer(self, place: str) -> str:
        # Part by part: in a pointer / is ~1, which would hide a URL from the redaction.
        return pointer(self.show(part) for part in pointer_parts(place))

    def show(self, text: str) -> str:
        """A text as output may hold it: without terminal control and, unless asked otherwise, without secrets."""
        text = clean(text)
        return secrets(text, self._contracts.secret_parameters) if self._redact else text

    def _fact(self, facts: Facts, name: str) -> str | None:
        value = facts.get(name)
        return self.show(value) if isinstance(value, str) else None

    def words(self, judged: Judged, shown_id: str | None) -> Words:
        """What the sentences about a payload are made of; ``shown_id`` is the id to quote, ready to be shown."""
        words = self._words(judged.contract, judged.facts)
        words.add(id_clause=f" and quote {shown_id}" if shown_id else "", id_clause_quote=f", quoting {shown_id}" if shown_id else "")
        if judged.retry and judged.retry.delay_ms is not None:
            words.add(delay=delays.in_words(judged.retry.delay_ms))
        return words

    def _words(self, contract: Contract, facts: Facts) -> Words:
        return Words(facts, self.show, lambda condition: contract.conditions.hold(condition, facts))

    def _violations(self, shape: Shape, value: Any) -> tuple[Violation, ...]:
        from errtriage import violations

        return violations.explain(shape.schema, value, self.show)

    def _source(self, payload: Payload, file: str, ids: Mapping[str, str], *, truncated: bool) -> Source:
        context = payload.context
        rpc_id = context.rpc.get("id") if context.rpc else None
        return Source(
            file=clean(file),
            line=context.place.line,
            wrappers=context.wrappers,
            http_status=context.http.status if context.http else None,
            rpc_id=self.show(rpc_id) if isinstance(rpc_id, str) else rpc_id if type(rpc_id) in (int, float) else None,
            ids={self.show(name): self.show(value) for name, value in ids.items()},
            truncated=truncated,
            repaired=context.repaired,
        )


class Brief(NamedTuple):
    """What scan asks of a payload."""

    contract: str
    shape: str
    outcome: Outcome
    code: str | None
    action: str
    operation: str | None
    truncated: bool
    #: A success, or what was read of one that was cut.
    success: bool


class Check(NamedTuple):
    """What lint asks of a payload."""

    outcome: Outcome
    truncated: bool
    violations: tuple[Violation, ...]
    findings: tuple[Finding, ...]


class Judged(NamedTuple):
    """A payload's facts and where the tree leads with them; the answers in ``trace`` are texts that are not said yet."""

    contract: Contract
    shape: Shape
    facts: Facts
    entry: Mapping[str, Any] | None
    unread: set[str]
    leaf: Mapping[str, Any]
    trace: list[Step]

    @property
    def outcome(self) -> Outcome:
        """The leaf's outcome; a failure's code may know it better."""
        known = self.leaf["outcome"]
        return Outcome(known if self.entry is None or known != "failure" else self.entry.get("outcome", known))

    @property
    def retry(self) -> Retry | None:
        """What the leaf says of the next call; the delay may be that of a fact, or the longest of several."""
        if self.leaf.get("retry") is None:
            return None
        known = dict(self.leaf["retry"])
        backoff, delay = known.pop("backoff_ms"), known["delay_ms"]
        if isinstance(delay, Mapping):
            named = delay["longest"] if "longest" in delay else [delay["fact"]]
            values = (self.facts.get(name) for name in named)
            known["delay_ms"] = max((value for value in values if isinstance(value, int) and not isinstance(value, bool) and value >= 0), default=None)
        return Retry(**known, backoff_ms=None if backoff is None else tuple(backoff))


#: What to do in general, where a pack's own sentences all name facts that are not known.
_PLAINLY: Mapping[Action, str] = {
    Action.NONE: "Nothing to do.",
    Action.RETRY: "Make the same call again, with growing pauses and not for ever.",
    Action.WAIT: "Wait before the next call.",
    Action.FOLLOW_HINT: "Do what the service says.",
    Action.FIX_ARGUMENTS: "Correct the call before you make it again.",
    Action.DECIDE: "You decide how to go on.",
    Action.CHOOSE_OTHER_OPERATION: "Look at what is offered, and choose another operation.",
    Action.READ_FIRST: "Read what is stored before anything else.",
    Action.CONFIRM: "A person must approve or supply something first.",
    Action.REAUTHORIZE: "Stop: a person must grant access again.",
    Action.REPORT: "Show this to a person and stop.",
}

#: What is said of an object that was judged against a contract that it does not match (spec of ``--contract``).
_UNMATCHED: Mapping[str, Any] = {
    "outcome": "unrecognised",
    "action": "report",
    "summary": ["Do not act on this answer: it matches no shape of the contract that was asked for. Show it to a person{id_clause}."],
    "explanation": ["The contract was given, and the answer is none that it documents. The violations say how it differs from the nearest shape, {shape}."],
    "steps": [
        "Compare the violations with what the service sends, or leave `--contract` away to have the contract found.",
        "Show the answer to whoever runs the service{id_clause}.",
    ],
    "never": ["Never act on an answer whose shape is not documented."],
    "say": ["The service gave an answer that is not described, so it is not known what became of the request."],
}


#: What takes the place of a leaf when the cut took away a field that decides; the outcome stays as far as it was read.
_CUT: Mapping[str, Any] = {
    "action": "report",
    "summary": ["The answer was cut short before all that decides could be read: get the whole of it, or show it to a person{id_clause}."],
    "explanation": ["Only a part of the answer is there; what is missing may change what is to be done."],
    "steps": [
        "Get the whole answer from where it was logged or captured, and explain that.",
        "If it cannot be had, show this to a person{id_clause} and stop.",
    ],
    "never": ["Never act on the part that is there: what was cut away may forbid it."],
    "say": ["Only a part of the answer was kept, so it is not known what has to be done."],
}


def _walk(contract: Contract, facts: Facts, unread: set[str]) -> tuple[Mapping[str, Any], list[Step]]:
    """Walk the tree from its root: the leaf that is reached, and each question with the text of its answer.

    A question about a field that was cut away cannot be answered: then the leaf is only where the way seems to lead.
    """
    tree = contract.tree
    target: str = tree["root"]
    trace: list[Step] = []
    certain = True
    while (node := tree["nodes"].get(target)) is not None:
        branch, number = node["otherwise"], len(node["branches"])
        for i, each in enumerate(node["branches"]):
            certain = certain and not (unread and unread & names_in(each["when"]))
            if contract.conditions.hold(each["when"], facts):
                branch, number = each, i
                break
        trace.append(Step(node["question"], branch["answer"] if certain else "not to be told: the answer was cut short", target, number if certain else -1))
        target = branch["to"]
    leaf: Mapping[str, Any] = tree["leaves"][target]
    if certain:
        return leaf, trace
    return {**_CUT, "outcome": "unrecognised" if leaf["outcome"] == "success" else leaf["outcome"], "seems": leaf["outcome"]}, trace


def _nearness(value: Any, shape: Shape) -> tuple[int, bool]:
    """How many members an object shares with what a shape's schema names; of equals, one that any object may be."""
    known = shape.schema.get("properties", ()) if isinstance(shape.schema, Mapping) else ()
    shared = sum(name in known for name in value) if isinstance(value, dict) else -1
    return shared, "object" in shape.data["on"]


def _applies(entry: Mapping[str, Any], leaf: Mapping[str, Any]) -> bool:
    """Whether a code's texts fit what was decided: a code that stands beside another outcome would contradict it."""
    outcomes = entry.get("with")
    return leaf["outcome"] in outcomes if outcomes else leaf["outcome"] not in ("success", "unrecognised")


class _Texts:
    """The sentences of a verdict, put together from the leaf, the code's entry and the notes that apply."""

    def __init__(  # noqa: PLR0913, PLR0917 - it takes what a verdict is made of
        self, contract: Contract, entry: Mapping[str, Any] | None, leaf: Mapping[str, Any], facts: Facts, words: Words, unread: set[str]
    ) -> None:
        self._words = words
        self._leaf = leaf
        self._entry: Mapping[str, Any] = entry if entry and _applies(entry, leaf) else {}
        self._unknown: Mapping[str, Any] = {}
        self._notes: list[Mapping[str, Any]] = []
        if leaf is _UNMATCHED:
            return
        expects_code = "code" in contract.shape(facts["shape"]).data["fields"]
        if entry is None and expects_code and _applies(contract.catalogue.unknown, leaf):
            self._unknown = contract.catalogue.unknown
        notes = (note for note in contract.tree["notes"] if not unread & names_in(note["when"]))
        self._notes = [note for note in notes if contract.conditions.hold(note["when"], facts)]

    def _from_notes(self, name: str) -> list[Any]:
        return [text for note in self._notes for text in note.get(name, ())]

    def explanation(self) -> str:
        meaning = [self._entry["meaning"]] if self._entry else [self._unknown["meaning"]] if self._unknown else []
        return " ".join(self._words.all([*meaning, *self._leaf.get("explanation", ()), *self._from_notes("explanation")]))

    def steps(self) -> tuple[str, ...]:
        own = [*self._leaf.get("steps", ()), *self._entry.get("steps", ()), *self._from_notes("steps")]
        return tuple(self._words.all([*own, *self._leaf.get("finally", ())]))

    def never(self) -> tuple[str, ...]:
        return tuple(self._words.all([*self._entry.get("never", ()), *self._leaf.get("never", ()), *self._from_notes("never")]))

    def say(self) -> str:
        what = [self._entry["say"]] if self._entry else self._unknown.get("say", [])
        return " ".join(self._words.all([*what, *self._from_notes("say"), *self._leaf.get("say", ())]))
