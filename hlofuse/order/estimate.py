"""An estimate of XLA's ids from a text, which is in post-order and does not carry them.

New instructions are appended (`HloComputation::AddInstruction`), and removed ones leave no gap (`Cleanup`).
So ids follow the pass that created an instruction last, and the time at which it did.
"""

import re
from collections import Counter
from collections.abc import Iterator

from hlofuse.analysis.call_sites import with_changed_after
from hlofuse.analysis.elementwise import is_broadcast_of_constant, is_constant
from hlofuse.ir.fusing import computation_of, module_of
from hlofuse.ir.graph import Computation, Instruction, Module
from hlofuse.order.front_end import named_by_front_end, program_order
from hlofuse.order.names import calls_within, is_body_of_scan, is_of_program, number, stack_frame
from hlofuse.order.phases import Evidence, Phase, phase_of
from hlofuse.order.recreated import add_recreated, alone_in_layout, phases_by_number, split_rounds

# The order in which passes go through the computations of a module.
#
# `HloModule::MakeComputationPostOrder` reads off an order that is kept while computations are added
# (`TopologicalSort`, `xla/online_topsort.h`): callees first, and what is new comes last. A computation that
# calls something new goes after that, and so does all that it is called by. Those of the framework bear
# numbers in the order in which it created them. FlattenCallGraph is the first pass to add some, where a
# function is called again; CallInliner takes them away, but their callers keep their place. The last passes
# to add some are SplitkRewriter and those that create fusions of products.


_NUMBERED = re.compile(r"[^.]*\.(\d+)(?:\.clone.*)?(?:\.sunk.*)?")
_LATE_FUSION = "dynamic-slice-fusion"
_SOFTMAX = "triton_softmax"
_OF_PASSES = frozenset("bitcast fusion get-tuple-element tuple".split())


def processing_order(module: Module) -> list[Computation]:
    """All computations in XLA's processing order, the entry last."""
    later = [*_added_later(module.computations)]
    fresh = {c for added, _ in later for c in added}
    repeated = repeated_calls(module)
    written = {c: k for k, c in enumerate(module.computations)}
    since: dict[Computation, tuple[int, ...]] = {}
    for c in module.computation_post_order():
        times = [_first_place(c, written)]
        times += [
            (*since[x], 0) for i in c for x in i.called_computations if x not in fresh and since[x] > (0, 1)
        ]
        if c in repeated:
            times.append((0, 2, repeated[c]))
        since[c] = max(times)
    order = sorted(since, key=lambda c: (c is module.entry, since[c], written[c]))
    for added, is_backward in later:
        changed = {c for c in order if any(x in added for i in c for x in i.called_computations)}
        order = with_changed_after(order, changed, is_backward=is_backward)
    return sorted(order, key=lambda c: c is module.entry)


def _first_place(computation: Computation, written: dict[Computation, int]) -> tuple[int, ...]:
    """The place by number, or when a pass added it: loop bodies follow conditions
    (`WhileUtil::MakeCountedLoop`)."""
    if (match := _NUMBERED.fullmatch(computation.name)) is not None:
        return (0, 0, int(match[1]))
    caller = computation.first_caller
    if caller is None:
        return (0, 1, written[computation], 0)
    called = caller.called_computations
    is_body = caller.opcode == "while" and called[0] is computation
    return (0, 1, min(written[c] for c in called), int(is_body))


def _added_later(order: list[Computation]) -> Iterator[tuple[set[Computation], bool]]:
    """Computations called since passes after FlattenCallGraph; True for backward order, as for softmax."""
    fusions = {c for c in order if c.fusion is not None}
    softmax = {c for c in fusions if c.name.startswith(_SOFTMAX)}
    late = {c for c in fusions if c.name.startswith(_LATE_FUSION)}
    yield {c for c in order if _sums_split_product(c)}, False
    yield fusions - softmax - late, False
    yield softmax, True
    yield late, False


def _sums_split_product(x: Computation) -> bool:
    caller = x.first_caller
    if caller is None or caller.opcode != "reduce" or not x.name.endswith(".reduce_sub_computation"):
        return False
    return caller.operands[0].opcode == "fusion"


def repeated_calls(module: Module) -> dict[Computation, int]:
    """Loop bodies, conditions and branches that call a function that was called before.

    FlattenCallGraph leaves a function to its first caller and clones it for the others. Evidence is inlined
    code: each operation of a function called twice occurs twice. The value is the number of the first caller.
    """
    numbered = [
        (int(match[1]), c)
        for c in module.computations
        if (caller := c.first_caller) is not None and caller.opcode in {"while", "conditional"}
        if (match := _NUMBERED.match(c.name)) is not None
    ]
    ordered: dict[str, list[tuple[int, set[object]]]] = {}
    found: dict[Computation, int] = {}
    for first, computation in sorted(numbered, key=lambda pair: pair[0]):
        for path, operations in _functions(computation).items():
            function = path.rpartition("/")[2]
            callers = ordered.setdefault(function, [])
            before = next((n for n, others in callers if operations.keys() <= others), None)
            if not is_body_of_scan(path):
                callers.append((first, set(operations)))
            if before is None and min(operations.values()) > 1:
                before = first
            if before is not None:
                found[computation] = max(found.get(computation, 0), before)
    return found


def _functions(computation: Computation) -> dict[str, Counter[object]]:
    """The inlined operations, by the paths of their functions."""
    found: dict[str, Counter[object]] = {}
    for x in computation:
        is_value = is_constant(x) or is_broadcast_of_constant(x)
        if x.op_name and x.opcode not in _OF_PASSES | {"parameter"} and not is_value:
            for path, inner in calls_within(x.op_name):
                shapes = tuple(str(y.shape) for y in (x, *x.operands))
                found.setdefault(path, Counter())[(inner, x.opcode, shapes, _place(x))] += 1
    return found


def _place(x: Instruction) -> object:
    """Its source line: a stack frame would include the callers."""
    return module_of(computation_of(x)).stack_frames.location(stack_frame(x)) or stack_frame(x)


def estimate_order(module: Module) -> None:
    """Give the instructions outside of fusions ids in their estimated creation order, if the
    dump has op_names."""
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
            place[x] = (place[x.operands[0]][0], k)
    return sorted(order, key=place.__getitem__)


def _by_id(computation: Computation, named: frozenset[Instruction]) -> list[Instruction]:
    evidence = Evidence(computation, named)
    phases = {x: phase_of(evidence, x) for x in computation if x.opcode != "parameter"}
    phases.update(phases_by_number(phases))
    phases.update(dict.fromkeys(alone_in_layout(phases), Phase.SIMPLIFIED_AGAIN))
    add_recreated(phases)
    parameters = [x for x in computation if x not in phases]
    order = sorted(parameters, key=lambda x: x.parameter_number or 0)
    for phase in Phase:
        members = [x for x, p in phases.items() if p == phase]
        if phase == Phase.FRONT_END:
            members = program_order(members)
        elif phase == Phase.SIMPLIFIED_AGAIN:
            members = [x for one in split_rounds(members) for x in one]
        elif phase == Phase.BITCASTS:
            members.sort(key=number)
        order += members
    return order
