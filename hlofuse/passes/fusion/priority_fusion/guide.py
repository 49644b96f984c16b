"""Somebody who settles for the pass what its rules and costs leave open."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from hlofuse.cost.combined import CombinedModel
from hlofuse.ir.instruction import Instruction


class Guide(Protocol):
    """Told of everything the pass decides, asked where it may go either way."""

    def begin(self, model: CombinedModel) -> None:
        """The pass starts; its estimates are in `model`, to be read and not to be added to."""

    def order_updates(self, producers: list[Instruction]) -> None:
        """Priorities are about to be worked out: in which order? Equal pairs share one tiling."""

    def choose(self, equal: Sequence[Instruction]) -> Instruction:
        """Which of several producers with the same, greatest priority is next."""

    def order_users(self, producer: Instruction) -> None:
        """The producer's priority is about to be worked out: its users may be put in another order."""

    def order_consumers(self, producer: Instruction, consumers: list[Instruction]) -> list[Instruction]:
        """The producer is about to be fused: into its consumers in which order?"""

    def fused(self, fusion: Instruction, producer: str, consumer: str) -> None:
        """A fusion was made."""

    def priority(self, producer: Instruction, us_fused: float, us_unfused: float) -> None:
        """A priority was worked out."""

    def refused(self, producer: Instruction, reason: str, all_reasons: Callable[[], Sequence[str]]) -> None:
        """The producer was refused; why its users refuse, all of them, is worked out for who asks."""
