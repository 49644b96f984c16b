"""Writes into loops how often they turn (`xla/hlo/transforms/while_loop_trip_count_annotator.cc`)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, ClassVar

from hlofuse.ir.instruction import Instruction
from hlofuse.ir.module import Module
from hlofuse.simplifications.rewrites import added
from hlofuse.simplifications.while_loop_facts import Turns, counter_of, turns_of


@dataclass(frozen=True)
class WhileLoopTripCountAnnotator:
    """`while-loop-trip-count-annotator`.

    A loop from one constant to another whose turns XLA would have to count by running it is left alone.
    """

    name: ClassVar[str] = "while-loop-trip-count-annotator"

    def run(self, module: Module) -> bool:
        changed = False
        for computation in module.computations:
            for loop in computation.instructions:
                if loop.opcode == "while":
                    changed |= _annotate(loop)
        return changed


def _annotate(loop: Instruction) -> bool:
    index = counter_of(loop)
    if index is None:
        return False
    turns = turns_of(loop, index)
    if turns is None and loop.operands[0].operands[index].opcode == "constant":
        return False
    config: dict[str, Any] = {}
    if turns is not None:
        config["known_trip_count"] = {"n": str(turns.count)}
        config["known_init_step"] = {"init": str(turns.start), "step": str(turns.step)}
        _forward_last_value(loop, index, turns)
    config["known_induction_variable"] = {"tuple_index": str(index)}
    config["dynamic_variables"] = []
    loop.attributes = loop.attributes.updated(backend_config=json.dumps(config, separators=(",", ":")))
    return True


def _forward_last_value(loop: Instruction, index: int, turns: Turns) -> None:
    """Who reads the counter behind the loop reads a constant."""
    last = turns.start + turns.step * turns.count
    for user in [u for u in loop.users if u.opcode == "get-tuple-element" and u.tuple_index == index]:
        user.replace_all_uses_with(added(user, "constant", user.shape, [], payload=str(last)))
