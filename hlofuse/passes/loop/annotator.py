"""Loops that say how often they run (`xla/hlo/transforms/while_loop_trip_count_annotator.cc`)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, ClassVar

from hlofuse.ir.graph import Instruction, Module
from hlofuse.ir.removing import set_attribute
from hlofuse.passes.base import Pass
from hlofuse.passes.common import make
from hlofuse.passes.loop.parts import all_loops
from hlofuse.passes.loop.trip_count import Counter, counter_of, induction_variable
from hlofuse.trace import Recorder


@dataclass(frozen=True)
class WhileLoopTripCountAnnotator(Pass):
    """`while-loop-trip-count-annotator`.

    A loop from one constant to another whose turns XLA would have to count by running it is left alone.
    """

    name: ClassVar[str] = "while-loop-trip-count-annotator"

    def run(self, module: Module, recorder: Recorder) -> bool:
        changed = False
        for loop in all_loops(module):
            changed |= _annotate(loop)
        return changed


def _annotate(loop: Instruction) -> bool:
    index, init = induction_variable(loop), loop.operands[0]
    if index is None or init.opcode != "tuple":
        return False
    counter = counter_of(loop)
    config: dict[str, Any] = {}
    if counter is not None and counter.init >= 0 and counter.trips > 0:
        config["known_trip_count"] = {"n": str(counter.trips)}
        config["known_init_step"] = {"init": str(counter.init), "step": str(counter.step)}
        _forward_last_value(loop, counter)
    elif init.operands[index].opcode == "constant":
        return False
    config["known_induction_variable"] = {"tuple_index": str(index)}
    config["dynamic_variables"] = []
    set_attribute(loop, "backend_config", json.dumps(config, separators=(",", ":")))
    return True


def _forward_last_value(loop: Instruction, counter: Counter) -> None:
    """Who reads the counter behind the loop reads a constant."""
    last = counter.init + counter.step * counter.trips
    for user in list(loop.users):
        if user.opcode == "get-tuple-element" and user.tuple_index == counter.index and user.users:
            user.replace_all_uses_with(make.scalar(user, user.shape.element_type, last))
