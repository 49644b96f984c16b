"""Observers of the pass, and tie breakers for ties that rules and costs leave open."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from hlofuse.ir.graph import Instruction

if TYPE_CHECKING:
    from hlofuse.cost.combined import CombinedModel
    from hlofuse.passes.fusion.priority_fusion.legality import Legality
    from hlofuse.rules.verdict import Verdict


Condition: TypeAlias = Callable[[Instruction], bool]


class Observer:
    """Sees every decision of the pass and changes none. Each method does nothing unless overridden."""

    def begin(self, model: CombinedModel) -> None:
        """The pass starts. Its estimates are in `model`, to be read only."""

    def fusing(self, producer: Instruction, consumers: Sequence[Instruction], is_tied: Condition) -> None:
        """The producer is about to be fused; `is_tied` finds others of its priority."""

    def fused(self, fusion: Instruction, producer: str, consumer: str) -> None:
        """`fusion` now holds the producer; the names are those from before."""

    def priority(self, producer: Instruction, us_fused: float, us_unfused: float) -> None:
        """A priority was computed."""

    def refused(self, producer: Instruction, verdict: Verdict, legality: Legality) -> None:
        """The producer was refused; `legality` knows what else speaks against its users."""

    def prevented(self, verdict: Verdict) -> None:
        """The verdict keeps a bitcast out of one of its users, or lets a producer become a further output."""


class TieBreaker(Observer):
    """Chooses where rules and costs allow several orders; by default as ids and use-lists say."""

    def order_updates(self, producers: list[Instruction]) -> None:
        """Put the producers in the order in which priorities are computed: equal pairs share a tiling."""

    def choose(self, tied: Sequence[Instruction]) -> Instruction:
        """The next of several producers with the same, greatest priority."""
        return tied[0]

    def order_users(self, producer: Instruction) -> None:
        """Put the users of a producer in order before its priority is computed."""

    def order_consumers(self, producer: Instruction, consumers: list[Instruction]) -> list[Instruction]:
        """The consumers in the order in which the producer is fused into them."""
        return consumers
