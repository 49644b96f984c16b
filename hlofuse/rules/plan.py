"""A fusion plan: what a replay decides in another way than XLA's fusion passes on GPU.

It takes the place of the cost model and of the order of the queue, never of a rule about what can be fused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from hlofuse.ir.graph import Instruction, Module
from hlofuse.rules.catalogue import Rule
from hlofuse.rules.verdict import Verdict

KINDS = {
    "apart": "{p} is not fused",
    "first": "{p} is fused first, whatever the cost",
    "last": "{p} is fused last, whatever the cost",
    "split": "{p} and {c} are not merged into a multi-output kernel",
    "join": "{p} and {c} are merged into a multi-output kernel, whatever the cost",
}
PAIRS = ("split", "join")
PLANNED = Rule(
    "PLAN",
    "The fusion plan does not fuse them",
    outcome=True,
    page={"condition": "The fusion plan decides it."},
)
APART_BY_PLAN = Verdict(PLANNED)


@dataclass(frozen=True, slots=True, order=True)
class Intervention:
    """A decision that differs from XLA's.

    Instructions have their names at the input of priority fusion. A fusion has that of the consumer that it
    grew from, which does not depend on what was fused before.
    """

    kind: str
    producer: str
    consumer: str = ""  # of `PAIRS` only

    def __str__(self) -> str:
        return KINDS[self.kind].format(p=self.producer, c=self.consumer)


FusionPlan: TypeAlias = tuple[Intervention, ...]
"""What goes first does so in the order of the plan."""


class PlanInForce:
    """A plan during one replay: it knows which instruction grew from which."""

    def __init__(self, plan: FusionPlan) -> None:
        self._places = {s.producer: (s.kind, k) for k, s in enumerate(plan) if s.kind not in PAIRS}
        self._pairs = {frozenset((s.producer, s.consumer)): s.kind for s in plan if s.kind in PAIRS}
        self._origins: dict[Instruction, str] = {}

    def begin(self, module: Module) -> None:
        """Note the names of the instructions before anything is fused."""
        self._origins = {i: i.name for i in module.instructions()}

    def place(self, producer: Instruction) -> tuple[str, int]:
        """`apart`, `first` with a number, or `last`; empty where XLA decides."""
        return self._places.get(self._origins.get(producer, ""), ("", 0))

    def pair(self, a: Instruction, b: Instruction) -> str:
        """`split` or `join` for two kernels that multi-output fusion may join; else empty."""
        return self._pairs.get(frozenset(self._origins.get(x, x.name) for x in (a, b)), "")
