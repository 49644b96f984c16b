"""What the passes before fusion left in XLA's memory and a text does not carry, as far as it can be told."""

from __future__ import annotations

import re
from collections.abc import Mapping

from hlofuse.ir.instruction import Instruction
from hlofuse.ir.module import Module
from hlofuse.ir.unique_ids import UniqueIds
from hlofuse.pipelines.likely_ids.guess import guess_ids
from hlofuse.pipelines.likely_ids.maker import Maker
from hlofuse.pipelines.likely_ids.processing_order import likely_processing_order
from hlofuse.pipelines.users.restore import restore_users

_SOFTMAX = re.compile(r"triton_softmax(?:_computation)?(?:\.(\d+))?")


def restore_history(module: Module, ids: UniqueIds | None) -> None:
    """Unique ids, the order of users and names that are spent, as XLA's fusion passes found them.

    This is the one place that says where they come from: `ids` that XLA wrote down go before all else,
    then comes what repeating XLA's earlier passes left in the module, then what can be told from the text.
    """
    makers: Mapping[Instruction, Maker] | None = None
    if ids is not None:
        ids.apply(module)
    elif not module.has_played_order:
        makers = guess_ids(module)
        module.processing_order = likely_processing_order(module)
    if not module.has_played_order:
        restore_users(module, ids_known=ids is not None, makers=makers)
    if ids is not None:
        ids.give_metadata(module)
    names = module.instruction_names
    reserve_spent_names(module)
    names.reserve([name for i in module.instructions() if (name := _name_before_renaming(i.name))])


def reserve_spent_names(module: Module) -> None:
    """Have new fusions not called as fusions that are there already once were."""
    module.instruction_names.reserve([f"fusion.{k}" for k in range(spent_fusion_names(module))])


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
