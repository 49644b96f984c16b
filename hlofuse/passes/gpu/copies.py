"""Passes that move copies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hlofuse.analysis.elementwise import ELEMENTWISE_BINARY, ELEMENTWISE_UNARY
from hlofuse.ir.fusing import clone_of, computation_of
from hlofuse.ir.graph import Instruction, Module
from hlofuse.ir.shape import Shape
from hlofuse.passes.base import Pass
from hlofuse.passes.common.make import copied
from hlofuse.passes.common.rewriting import replaced, visit_module
from hlofuse.passes.cse import HloCSE
from hlofuse.releases import AROUND_FUSION
from hlofuse.trace import Recorder

# Moves copies behind what does not care about layouts
# (`xla/backends/gpu/transforms/move_copy_to_users.cc`).


_ONE_ARRAY = frozenset({"pad", "slice", "dynamic-slice", "reduce-window", "reverse"})
_STAYS = frozenset({"reduce-precision", "copy", "bitcast-convert"})
_UNARY = ELEMENTWISE_UNARY - _STAYS


class MoveCopyToUsers(Pass):
    """`move_copy_to_users`: `copy` then `sine` becomes `sine` then `copy`."""

    name = "move_copy_to_users"

    def run(self, module: Module, recorder: Recorder) -> bool:
        return visit_module(
            module, _UNARY | ELEMENTWISE_BINARY | _ONE_ARRAY | {"reduce", "concatenate"}, _move, recorder
        )


def _move(user: Instruction) -> bool:
    opcode = user.opcode
    if opcode in ELEMENTWISE_BINARY:
        count = 2
        if len({o.operands[0].shape.key for o in user.operands if o.opcode == "copy"}) > 1:
            return False
    elif opcode == "concatenate":
        count = len(user.operands)
        if len({o.operands[0].shape.minor_to_major for o in user.operands if o.opcode == "copy"}) > 1:
            return False
    else:
        count = 1
    if any(o.opcode != "copy" for o in user.operands[:count]) or user.shape.is_tuple:
        return False
    if opcode == "convert" and len(user.users) == 1 and user.users[0].opcode == "convolution":
        return False
    sources = [o.operands[0] for o in user.operands[:count]]
    operands = [*sources, *user.operands[count:]]
    if opcode == "reduce":
        return replaced(user, computation_of(user).add_instruction(clone_of(user, operands)))
    shape = replace(user.shape, layout=sources[0].shape.layout)
    return replaced(user, copied(_clone(user, shape, operands), user.shape))


def _clone(user: Instruction, shape: Shape, operands: Sequence[Instruction]) -> Instruction:
    new = clone_of(user, operands, user.opcode)
    new.shape = shape
    new.attributes = new.attributes.without("sharding", "frontend_attributes")
    return computation_of(user).add_instruction(new)


# What moves to the host's memory (`xla/hlo/transforms/host_offloader.cc`).


class HostOffloader(Pass):
    """`host-offloader`, of which only the last step does anything to a module that stays on its device."""

    name = "host-offloader"

    def run(self, module: Module, recorder: Recorder) -> bool:
        return HloCSE(release=AROUND_FUSION, only_fusion_computations=False).run(module, recorder)
