"""What `jax.checkpoint` keeps for the derivative, and rounds to the precision that it has already.

AlgebraicSimplifier (`HandleReducePrecision`, `xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`) takes
such roundings away, behind layout normalization in a run of its own (`GpuCompiler`).
"""

from __future__ import annotations

from hlofuse.ir.computation import Computation
from hlofuse.ir.instruction import Instruction
from hlofuse.ir.shape import FLOATING_TYPES
from hlofuse.pipelines.names import operation
from hlofuse.pipelines.users.common.holes import last_in_front
from hlofuse.pipelines.users.products.merged_dots import is_behind_merged

_NOT_ROUNDED = frozenset(
    {"parameter", "get-tuple-element", "dynamic-slice", "constant", "bitcast", "reduce-precision"}
)
"""What the layer was given (JAX rounds only what it computes), and a rounding of the program's own."""


def rounded_values(computation: Computation) -> dict[Instruction, Instruction]:
    """What was rounded, with the user by which a loop stacks it.

    That has the rounding's name; none if layout normalization made it, or if it is the write itself.
    """
    if not any(_has_name_of_rounding(x) for x in computation):
        return {}
    found = {x.operands[0]: x for x in computation if x.opcode == "bitcast" and _has_name_of_rounding(x)}
    for write in computation:
        if write.opcode == "dynamic-update-slice":
            stacked = write.operands[1]
            if stacked.opcode != "bitcast":
                found[stacked] = write
            elif not stacked.op_name or _has_name_of_rounding(stacked):
                found[stacked.operands[0]] = stacked
    return {
        x: u
        for x, u in found.items()
        if x.opcode not in _NOT_ROUNDED and x.shape.element_type in FLOATING_TYPES
    }


def with_last_in_place_of_rounding(
    producer: Instruction, users: list[Instruction], rounded: dict[Instruction, Instruction]
) -> list[Instruction]:
    """The users of `producer`, if that was rounded: they had been the rounding's, the last took its place.

    Behind merged products ReshapeMover (`xla/hlo/transforms/simplifiers/reshape_mover.cc`) moved two reshapes
    past the rounding: the last of those that compute with it took the place of one, what stacks it that of
    the other. LayoutNormalization made what stacks it ahead of the others.
    """
    if producer not in rounded:
        return users
    stacking = rounded[producer]
    others = [u for u in users if u is not stacking]
    if is_behind_merged(producer):
        users = [stacking, *last_in_front(others)]
    elif stacking.opcode == "bitcast" and not stacking.op_name:
        users = [stacking, *others]
    return last_in_front(users)


def _has_name_of_rounding(x: Instruction) -> bool:
    return operation(x) == "reduce_precision" and x.opcode != "reduce-precision"
