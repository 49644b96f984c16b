"""Takes down what a pass decides."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from math import inf
from typing import Any, NamedTuple

from hlofuse.ir import HlofuseError, Instruction, InstructionSequence, Json, Strings
from hlofuse.ir.names import NO_ORIGIN, Origin
from hlofuse.rules.catalogue import Rule
from hlofuse.rules.verdict import Figures, Verdict

NO_FIGURES: Figures = {}  # Shared by all events that have none


class Event(NamedTuple):
    """A decision, with the names at that moment. `event` is `fuse`, `ineligible`, `priority` or `rewrite`."""

    event: str
    pass_name: str
    computation: str
    step: int  # Counts decisions of one pass run from 1; events of one decision share it
    producer: str | None = None
    consumer: str | None = None
    fusion: str | None = None  # fuse: the fusion instruction that now holds the producer
    kind: str | None = None  # fuse: `producer-consumer`, `multi-output` or `sibling`
    created: bool = False  # fuse: the fusion is new (it replaced the consumer)
    duplicated: bool = False  # fuse: the producer lives on for its other users
    rule: str | None = None  # Catalogue code of the rule that settled it
    reason: str | None = None
    figures: Figures = NO_FIGURES
    consumers: Strings = ()
    us_fused: float | None = None
    us_unfused: float | None = None
    removed: Strings = ()  # rewrite: instructions that went (`from` in JSON)
    added: Strings = ()  # rewrite: instructions that came, or stand for the removed ones (`to` in JSON)
    origins: tuple[Origin, ...] = ()
    """Of the producer, then of each consumer or the fusion; of a rewrite those of `added`. Not in JSON."""

    def origin(self, number: int) -> Origin:
        """The origin of the producer (0), or of a consumer (1 and on)."""
        return self.origins[number] if number < len(self.origins) else NO_ORIGIN

    def created_names(self) -> Iterator[tuple[str, Origin]]:
        """The names that instructions have from this event on, with their origins."""
        if self.event == "rewrite":
            yield from zip(self.added, self.origins, strict=False)
        elif self.fusion is not None:
            yield self.fusion, self.origin(1)

    def to_json(self) -> Json:
        """The object of the trace contract; fields that say nothing are left out."""
        out = {}
        for key in (*_FIELDS, *_FIELDS_OF.get(self.event, ())):
            value = getattr(self, _NAMES.get(key, key))
            out[key] = list(value) if isinstance(value, tuple) else value
        out |= {key: text for key in ("rule", "reason") if (text := getattr(self, key)) is not None}
        if self.figures:
            out["figures"] = self.figures
        return out


_FIELDS = ("event", "pass", "computation", "step")
_FIELDS_OF = {
    "fuse": ("producer", "consumer", "fusion", "kind", "created", "duplicated"),
    "ineligible": ("producer", "consumer"),
    "priority": ("producer", "consumers", "us_fused", "us_unfused"),
    "rewrite": ("from", "to"),
}
_NAMES = {"pass": "pass_name", "from": "removed", "to": "added"}  # of fields that JSON has under another


# A trace as text: one JSON object a line (`docs/trace.md`).


def to_jsonl(events: Iterable[Event]) -> str:
    """The events in the order they were taken, each line ending in a newline."""
    return "".join(
        json.dumps(e.to_json(), ensure_ascii=False, separators=(", ", ": ")) + "\n" for e in events
    )


_event: Callable[[tuple[Any, ...]], Event]
_event = partial(tuple.__new__, Event)  # `Event(…)` takes three times as long, and there are thousands
_NO_FUSION = None, None, False, False
_NO_PRICE: tuple[Any, ...] = (), None, None
_NO_CHANGE = *_NO_PRICE, (), ()  # empty fields of an event, in their order


class Skipped(NamedTuple):
    """An instruction that a pass left as it is, because what XLA writes there cannot be expressed."""

    pass_name: str
    computation: str
    instruction: str
    reason: str


class Recorder:
    """Collects events; a pass announces itself with `begin_pass`, and each decision is a step."""

    def __init__(self, most: float = inf) -> None:
        self._most = most  # Decisions of a pass after which a replay ends with HlofuseError
        self.events = list[Event]()
        self.left_alone = dict[Skipped, None]()  # The distinct arguments of `skipped`; not part of the trace
        self.not_repeated = dict[str, Counter[str]]()
        """Opcodes that passes which are not implemented work on, and how many there were at most."""
        self._pass = ""
        self._step = 0

    def begin_pass(self, name: str) -> None:
        """Events from here on belong to the pass of this name (XLA's name, as in its dump files)."""
        self._pass = name
        self._step = 0

    def fuse(
        self,
        producer: Instruction,
        consumer: str,
        fusion: Instruction,
        *,
        rule: Rule,
        kind: str = "producer-consumer",
        created: bool = False,
        duplicated: bool = False,
        reason: str | None = None,
        figures: Figures | None = None,
    ) -> None:
        """`producer` went into `consumer`, which is (or became) `fusion`. A step of its own."""
        self._step += 1
        head = "fuse", self._pass, fusion.computation_name, self._step, producer.name, consumer
        verdict = fusion.name, kind, created, duplicated, rule.code, reason, figures or NO_FIGURES
        self.events.append(_event((*head, *verdict, *_NO_CHANGE, (producer.origin, fusion.origin))))

    def ineligible(self, producer: Instruction, consumer: Instruction | None, verdict: Verdict) -> None:
        """`producer` was not fused into `consumer` (or into anything)."""
        self._step += 1
        if self._step > self._most:
            raise HlofuseError(f"{self._pass} takes more than {self._most:,} decisions")
        head = "ineligible", self._pass, producer.computation_name, self._step, producer.name
        reasons = verdict.rule.code, verdict.reason, verdict.figures
        user: str | None = None
        origins: tuple[Origin, ...] = (producer.origin,)
        if consumer is not None:
            user, origins = consumer.name, (producer.origin, consumer.origin)
        self.events.append(_event((*head, user, *_NO_FUSION, *reasons, *_NO_CHANGE, origins)))

    def repeat(self) -> None:
        """Count a decision that repeats an earlier one, which stands for both."""
        self._step += 1

    def priority(self, producer: Instruction, us_fused: float, us_unfused: float) -> None:
        """The cost of fusing `producer` into its users, and of not fusing it (microseconds)."""
        self._step += 1
        head = "priority", self._pass, producer.computation_name, self._step, producer.name, None
        consumers = tuple([u.name for u in producer.users])
        origins = producer.origin, *[u.origin for u in producer.users]
        price = consumers, us_fused, us_unfused, (), (), origins
        self.events.append(_event((*head, *_NO_FUSION, None, None, NO_FIGURES, *price)))

    def rewrite(
        self,
        computation: str,
        removed: Sequence[str],
        added: InstructionSequence,
        reason: str,
        rule: Rule | None = None,
    ) -> None:
        """Instructions were replaced, merged or removed (wrapping, CSE, DCE, splitting)."""
        self._step += 1
        why = rule.code if rule is not None else "", reason
        head = "rewrite", self._pass, computation, self._step, None, None, *_NO_FUSION, *why
        names, origins = tuple([i.name for i in added]), tuple([i.origin for i in added])
        self.events.append(_event((*head, NO_FIGURES, *_NO_PRICE, tuple(removed), names, origins)))

    def apply(self, rule: Rule, computation: str, removed: Sequence[str], added: InstructionSequence) -> None:
        """`rewrite` by a rule whose title says why."""
        self.rewrite(computation, removed, added, rule.title, rule)

    def created_instructions(
        self, removed: str, added: InstructionSequence, rule: Rule, reason: str = ""
    ) -> None:
        """A pass before fusion has put `added` in the place of the instruction of the name `removed`."""
        computation = added[0].computation_name if added else ""
        self.rewrite(computation, [removed], added, reason or rule.title, rule)

    def skipped(self, instruction: Instruction, reason: str) -> None:
        """The pass leaves `instruction` as it is, though XLA rewrites it: `reason` says what is missing."""
        self.left_alone[Skipped(self._pass, instruction.computation_name, instruction.name, reason)] = None

    def unimplemented(self, opcodes: Counter[str]) -> None:
        """The pass is not implemented, and the module holds these that it works on."""
        self.not_repeated[self._pass] = self.not_repeated.get(self._pass, Counter()) | opcodes


class OnlySkipped(Recorder):
    """Records instructions that passes skip and drops their decisions: for passes without explanations."""

    def fuse(self, *args: Any, **kwargs: Any) -> None: ...

    def ineligible(self, *args: Any, **kwargs: Any) -> None: ...

    def priority(self, *args: Any, **kwargs: Any) -> None: ...

    def rewrite(self, *args: Any, **kwargs: Any) -> None: ...
