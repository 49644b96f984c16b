"""Which instructions PriorityFusion takes for the same when it looks up the tiling of a pair.

Mirrors `FusionDeduplicationCache` (`xla/service/gpu/fusion_deduplication_cache.cc`). Operands are
compared by shape only, so `multiply(x, x)` and `multiply(x, y)` are the same: whichever pair is tiled
first settles tiling, cost and refusal for its duplicates.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TypeAlias

from hlofuse.analysis.structural_key import StructuralKeys
from hlofuse.ir.graph import Instruction, Module

PairId: TypeAlias = tuple[int, int, int, bool]
"""Numbers of producer and consumer, the operand's place, whether the producer stays an output."""


class StructuralIds:
    """Numbers of instructions; a fusion gets its number from what it was made of."""

    def __init__(self, module: Module, is_fusible: Callable[[Instruction], bool]) -> None:
        keys = StructuralKeys()
        ids: dict[Hashable, int] = {}
        self._numbers: dict[Instruction, int] = {}
        for instruction in module.instructions():
            if is_fusible(instruction):
                operands = tuple([o.shape.key for o in instruction.operands])
                key = (keys.of_instruction(instruction), instruction.payload, operands)
                self._numbers[instruction] = ids.setdefault(key, len(ids))
        self._next = len(ids)
        self._pairs: dict[PairId, int] = {}

    def pair(
        self, producer: Instruction, consumer: Instruction, *, extra_outputs: bool = False
    ) -> PairId | None:
        """What the pair is called; None if one of the two has no number."""
        first, second = self._numbers.get(producer), self._numbers.get(consumer)
        if first is None or second is None:
            return None
        pair = (first, second, consumer.operands.index(producer), extra_outputs)
        if pair not in self._pairs:
            self._pairs[pair] = self._next
            self._next += 1
        return pair

    def fused(self, fusion: Instruction, pair: PairId | None) -> None:
        """`fusion` was made of the pair."""
        if pair is not None:
            self._numbers[fusion] = self._pairs[pair]
