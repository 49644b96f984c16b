"""An estimate of XLA's ids from a text, which is in post-order and does not carry them. New instructions are
appended (`HloComputation::AddInstruction`), and removed ones leave no gap (`Cleanup`). So ids follow the pass
that created an instruction last, and the time at which it did."""

import re

from hlofuse.ir.graph import Computation, Instruction, Module
from .front_end import named_by_front_end, program_order
from .names import is_of_program, number
from .phases import Evidence, Phase, phase_of
from .recreated import add_recreated, alone_in_layout, split_rounds

# The order in which passes go through the computations of a module.
#
# `HloModule::MakeComputationPostOrder` reads off an order that is kept while computations are added
# (`TopologicalSort`, `xla/online_topsort.h`): callees first, and what is new comes last. A computation that
# calls something new goes after that, and so does all that it is called by. Those of the framework bear
# numbers in the order in which it created them.


_NUMBERED = re.compile(r"[^.]*\.(\d+)(?:\.clone.*)?(?:\.sunk.*)?")


def processing_order(module: Module) -> list[Computation]:
    """All computations in XLA's processing order, the entry last."""
    written = {c: k for k, c in enumerate(module.computations)}
    since = dict[Computation, tuple[int, ...]]()
    for c in module.computation_post_order():
        times = [_first_place(c, written)]
        times += [(*since[x], 0) for i in c for x in i.called_computations if since[x] > (0, 1)]
        since[c] = max(times)
    return sorted(since, key=lambda c: (c is module.entry, since[c], written[c]))


def _first_place(computation: Computation, written: dict[Computation, int]) -> tuple[int, ...]:
    """The place by number, or by when a pass added it: bodies last (`WhileUtil::MakeCountedLoop`)."""
    if (match := _NUMBERED.fullmatch(computation.name)) is not None:
        return (0, 0, int(match[1]))
    caller = computation.first_caller
    if caller is None:
        return (0, 1, written[computation], 0)
    called = caller.called_computations
    is_body = caller.opcode == "while" and called[0] is computation
    return (0, 1, min(written[c] for c in called), int(is_body))


def estimate_order(module: Module) -> None:
    """Give instructions outside fusions ids in estimated creation order, if the dump has op_names."""
    module.processing_order = processing_order(module)
    named = named_by_front_end(module)
    for computation in module.computations:
        if computation.fusion is None and any(is_of_program(x) for x in computation):
            computation.reorder(_place_elements(_by_id(computation, named)))


def _place_elements(order: list[Instruction]) -> list[Instruction]:
    """The order with get-tuple-elements right after their tuple, as passes create them."""
    place = {x: (k, 0) for k, x in enumerate(order)}
    for k, x in enumerate(order, 1):
        if x.opcode == "get-tuple-element":
            place[x] = (place[x.operand][0], k)
    return sorted(order, key=place.__getitem__)


def _by_id(computation: Computation, named: frozenset[Instruction]) -> list[Instruction]:
    evidence = Evidence(computation, named)
    phases = {x: phase_of(evidence, x) for x in computation if x.opcode != "parameter"}
    phases.update(dict.fromkeys(alone_in_layout(phases), Phase.SIMPLIFIED_AGAIN))
    add_recreated(phases)
    parameters = [x for x in computation if x not in phases]
    order = sorted(parameters, key=lambda x: x.parameter_number or 0)
    for phase in Phase:
        members = [x for x, p in phases.items() if p == phase]
        if phase == Phase.FRONT_END:
            members = program_order(members)
        elif phase == Phase.SIMPLIFIED_AGAIN:
            members = split_rounds(members)
        elif phase == Phase.BITCASTS:
            members.sort(key=number)
        order += members
    return order
