"""Annotations: `strip-memory-placement-annotations` of XLA:CPU, which has one memory, and those of Shardy."""

from __future__ import annotations

from collections.abc import Callable

from hlofuse.analysis.custom_calls import PLACEMENTS, SHARDY, custom_call_target, hands_on
from hlofuse.ir.fusing import computation_of
from hlofuse.ir.graph import Instruction, Module
from hlofuse.passes.base import Pass
from hlofuse.trace import Recorder


class StripMemoryPlacementAnnotations(Pass):
    name = "strip-memory-placement-annotations"

    def run(self, module: Module, recorder: Recorder) -> bool:
        return remove_annotations(module, lambda i: custom_call_target(i) in PLACEMENTS)


class ShardyXLA(Pass):
    """`shardy-xla`, of which only that is repeated: Shardy's calls that change no shape are removed."""

    name = "shardy-xla"

    def run(self, module: Module, recorder: Recorder) -> bool:
        return remove_annotations(module, _is_shardy)


_LATER = frozenset({"FuncResultSharding", "PropagationBarrier", "ShardingGroup"})
"""Those that `sharding-remover` knows."""


def _is_shardy(instruction: Instruction) -> bool:
    target = custom_call_target(instruction)
    return target.startswith(SHARDY) and target.removeprefix(SHARDY) not in _LATER


def remove_annotations(module: Module, chosen: Callable[[Instruction], bool] = hands_on) -> bool:
    """Have who reads an annotation read its operand; True if there was one."""
    changed = False
    for i in list(module.instructions()):
        if chosen(i) and hands_on(i):
            i.replace_all_uses_with(i.operands[0])
            i.drop_all_control_dependencies()
            computation_of(i).remove_instruction(i)
            changed = True
    return changed
