"""A single operation becomes a fusion of its own (`xla/codegen/emitters/fusion_wrapper_base.cc`)."""

from __future__ import annotations

from collections.abc import Iterator

from hlofuse.ir.fusing import create_fusion
from hlofuse.ir.graph import Computation, Instruction, Module
from hlofuse.ir.removing import move_control_dependencies

_ENTERED = frozenset({"conditional", "while", "call", "async-start"})


def reached(entry: Computation) -> Iterator[Instruction]:
    """Instructions in post-order, those of called control flow in place of its first caller."""
    entered: set[Computation] = set()
    stack: list[Iterator[Computation | Instruction]] = [iter((entry,))]
    while stack:
        for x in stack[-1]:
            if isinstance(x, Computation):
                if x not in entered:
                    entered.add(x)
                    stack.append(iter(x.post_order()))
                    break
            elif x.opcode in _ENTERED:
                stack.append(iter(x.called_computations))
                break
            else:
                yield x
        else:
            stack.pop()


def wrap(module: Module, instruction: Instruction, kind: str) -> Instruction:
    """The fusion `wrapped_OPCODE` of that kind, in the place of `instruction`, which is removed."""
    computation = instruction.computation
    assert computation is not None
    fusion = create_fusion(instruction, kind)
    fusion.name = module.instruction_names.unique(f"wrapped_{instruction.opcode}")
    body = fusion.fused_computation
    body.name = module.computation_names.unique(f"wrapped_{instruction.opcode}_computation")
    move_control_dependencies(instruction, fusion)
    instruction.replace_all_uses_with(fusion)
    computation.remove_instruction(instruction)
    return fusion
