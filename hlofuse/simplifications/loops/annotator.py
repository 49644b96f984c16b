"""Loops that say how often they run (`xla/hlo/transforms/while_loop_trip_count_annotator.cc`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hlofuse.ir.instruction import Instruction
from hlofuse.ir.module import Module
from hlofuse.ir.replacing import set_attribute
from hlofuse.simplifications import make
from hlofuse.simplifications.loops.parts import all_loops
from hlofuse.simplifications.loops.trip_count import Counter, counter_of


@dataclass(frozen=True)
class WhileLoopTripCountAnnotator:
    """`while-loop-trip-count-annotator`, of loops that count up from a constant to a constant."""

    name: ClassVar[str] = "while-loop-trip-count-annotator"

    def run(self, module: Module) -> bool:
        changed = False
        for loop in all_loops(module):
            counter = counter_of(loop)
            if counter is not None and counter.init >= 0 and counter.trips > 0:
                _annotate(loop, counter)
                changed = True
        return changed


def _annotate(loop: Instruction, counter: Counter) -> None:
    config = (
        f'{{"known_trip_count":{{"n":"{counter.trips}"}}'
        f',"known_init_step":{{"init":"{counter.init}","step":"{counter.step}"}}'
        f',"known_induction_variable":{{"tuple_index":"{counter.index}"}},"dynamic_variables":[]}}'
    )
    set_attribute(loop, "backend_config", config)
    last = counter.init + counter.step * counter.trips
    for user in list(loop.users):
        if user.opcode == "get-tuple-element" and user.tuple_index == counter.index and user.users:
            user.replace_all_uses_with(make.scalar(user, user.shape.element_type, last))
