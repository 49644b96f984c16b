"""Reshapes there and back, concatenations of concatenations, and the like
(`xla/hlo/transforms/simplifiers/dynamic_dimension_simplifier.cc`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from hlofuse.analysis.side_effects import has_side_effect
from hlofuse.ir.instruction import Instruction
from hlofuse.ir.module import Module
from hlofuse.ir.replacing import replace_instruction
from hlofuse.simplifications import make


@dataclass(frozen=True)
class DynamicDimensionSimplifier:
    """`dynamic-dimension-simplifier`: each of its rewrites over the whole module, then the next."""

    name: ClassVar[str] = "dynamic-dimension-simplifier"

    def run(self, module: Module) -> bool:
        changed = False
        for rewrite in _REWRITES:
            for computation in module.non_fusion_computations():
                for i in computation.post_order():
                    if i.computation is not None:
                        changed |= rewrite(i)
        return changed


def _flat_concatenate(x: Instruction) -> bool:
    if x.opcode != "concatenate":
        return False
    flat: list[Instruction] = []
    for o in x.operands:
        flat += o.operands if o.opcode == "concatenate" and o.dimensions == x.dimensions else [o]
    if len(flat) == len(x.operands):
        return False
    return replace_instruction(x, make.concatenate(x, flat, x.dimensions[0]), has_side_effect)


def _piece_of_concatenate(x: Instruction) -> bool:
    if x.opcode != "slice" or x.operands[0].opcode != "concatenate" or x.shape.rank != 1:
        return False
    (wanted,) = x.attributes["slice"]
    place = 0
    for piece in x.operands[0].operands:
        size = piece.shape.dimensions[0]
        if place == wanted.start and wanted.limit - wanted.start == size and wanted.stride == 1:
            x.replace_all_uses_with(piece)
            return True
        place += size
    return False


def _scalar_of_broadcast(x: Instruction) -> bool:
    inner = x.operands[0] if x.opcode == "reshape" else x
    if x.shape.dimensions or inner is x or inner.opcode != "broadcast" or inner.shape.rank != 1:
        return False
    if inner.operands[0].shape.dimensions:
        return False
    x.replace_all_uses_with(inner.operands[0])
    return True


def _there_and_back(x: Instruction) -> bool:
    if x.opcode != "reshape" or x.operands[0].opcode != "reshape":
        return False
    return _takes_over(x, x.operands[0].operands[0])


def _nothing_converted(x: Instruction) -> bool:
    return x.opcode == "convert" and _takes_over(x, x.operands[0])


def _nothing_reshaped(x: Instruction) -> bool:
    return x.opcode == "reshape" and _takes_over(x, x.operands[0])


def _takes_over(x: Instruction, source: Instruction) -> bool:
    if x.shape.key != source.shape.key:
        return False
    x.replace_all_uses_with(source)
    return True


_REWRITES: tuple[Callable[[Instruction], bool], ...] = (
    _flat_concatenate,
    _piece_of_concatenate,
    _scalar_of_broadcast,
    _there_and_back,
    _nothing_converted,
    _nothing_reshaped,
)
