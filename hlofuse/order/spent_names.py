"""Names that earlier passes handed out: XLA gives none of them to a new fusion."""

from __future__ import annotations

import re

from hlofuse.ir.graph import Module

_SOFTMAX = re.compile(r"triton_softmax(?:_computation)?(?:\.(\d+))?")


def reserve_fusion_names(module: Module) -> None:
    """Reserve the names that the fusions in the module once had."""
    module.instruction_names.reserve([f"fusion.{k}" for k in range(spent_fusion_names(module))])


def reserve_names_before_renaming(module: Module) -> None:
    """Reserve the names that instructions had before the pass `rename-instructions`."""
    module.instruction_names.reserve(
        [name for i in module.instructions() if (name := _name_before_renaming(i.name))]
    )


def _name_before_renaming(name: str) -> str | None:
    """The pass before fusion (`rename-instructions`) appended .0 to names; the old ones stay spent."""
    root, dot, number = name.rpartition(".")
    if not dot or not number.isdecimal():
        return None
    # A name without a number got the first free one: it had asked for 0.
    return root if number == "0" else f"{root}.0"


def spent_fusion_names(module: Module) -> int:
    """How many of the names fusion, fusion.1, … have been handed out before.

    Every fusion is called so when it is made and renamed afterwards. Softmax fusions that were made
    and given up again show in the numbers of those that stayed, or in their computations: those stay,
    called by nobody, until PriorityFusion is over.
    """
    others, softmax = 0, 0
    for computation in module.computations:
        if match := _SOFTMAX.fullmatch(computation.name):
            softmax = max(softmax, int(match[1] or 0) + 1)
        for instruction in computation:
            if instruction.opcode != "fusion":
                continue
            if match := _SOFTMAX.fullmatch(instruction.name):
                softmax = max(softmax, int(match[1] or 0) + 1)
            else:
                others += 1
    return others + softmax
