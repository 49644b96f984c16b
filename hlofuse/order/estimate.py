"""An estimate of XLA's ids from a text, which is in post-order and does not carry them.

Whatever the compiler creates is put after what there is (`HloComputation::AddInstruction`), and what is
removed leaves no gap (`Cleanup`), so ids are in the order of who created an instruction last, and when.
"""

from __future__ import annotations

from hlofuse.ir.graph import Computation, Instruction, Module
from hlofuse.order.computations import processing_order
from hlofuse.order.front_end import named_by_front_end
from hlofuse.order.names import is_of_program, number
from hlofuse.order.phases import TABLE, Evidence, Phase, phase_of
from hlofuse.order.program_order import in_program_order
from hlofuse.order.recreated import add_recreated, alone_in_layout, by_numbers, in_rounds

MECHANISMS = (
    "windows",
    "program order",
    "alone in layout",
    "recreated",
    "rounds",
    "numbers",
    "computations",
    "repeated calls",
    "bitcasts by number",
    *(entry.name for entry in TABLE),
)


def estimate_order(module: Module, without: frozenset[str] = frozenset()) -> None:
    """Give the instructions outside of fusions ids in their likely order of creation.

    Where nothing is known of the program (no op_name in the dump) the order of the text is as good as any.
    """
    if "computations" not in without:
        module.processing_order = processing_order(module, without)
    named = named_by_front_end(module)
    for computation in module.computations:
        if computation.fusion is None and any(is_of_program(x) for x in computation):
            computation.reorder(_with_elements_after(_by_id(computation, named, without)))


def _with_elements_after(order: list[Instruction]) -> list[Instruction]:
    """Elements right after the tuple that they are of: they are taken out of it when it is created."""
    place = {x: (k, 0) for k, x in enumerate(order)}
    for k, x in enumerate(order, 1):
        if x.opcode == "get-tuple-element":
            place[x] = (place[x.operands[0]][0], k)
    return sorted(order, key=place.__getitem__)


def _by_id(
    computation: Computation, named: frozenset[Instruction], without: frozenset[str]
) -> list[Instruction]:
    evidence = Evidence(computation, named)
    phases = {x: phase_of(evidence, x, without) for x in computation if x.opcode != "parameter"}
    if "numbers" not in without:
        phases.update(by_numbers(phases))
    if "alone in layout" not in without:
        phases.update(dict.fromkeys(alone_in_layout(phases), Phase.SIMPLIFIED_AGAIN))
    if "recreated" not in without:
        add_recreated(phases)
    parameters = [x for x in computation if x not in phases]
    order = sorted(parameters, key=lambda x: x.parameter_number or 0)
    for phase in Phase:
        members = [x for x, p in phases.items() if p == phase]
        if phase == Phase.FRONT_END:
            if "program order" not in without:
                members = in_program_order(members)
        elif phase == Phase.SIMPLIFIED_AGAIN and "rounds" not in without:
            members = [x for one in in_rounds(members) for x in one]
        elif phase == Phase.BITCASTS and "bitcasts by number" not in without:
            members.sort(key=number)
        order += members
    return order
