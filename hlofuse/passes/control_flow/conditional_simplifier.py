"""Conditionals that choose less, or need not (`xla/hlo/transforms/simplifiers/conditional_simplifier.cc`)."""

from collections.abc import Sequence

from hlofuse.analysis.custom_calls import is_inlined
from hlofuse.analysis.elementwise import is_elementwise
from hlofuse.ir import Computation, Instruction, Ints, Module, Shape, callees, reach, values, with_trait
from hlofuse.ir.fusing import set_tuple_index
from hlofuse.ir.removing import has_side_effect, replace_instruction
from hlofuse.passes.base import Pass, RewritePass
from hlofuse.passes.common import make
from hlofuse.passes.common.calls import (
    chosen_branch,
    clone_computation,
    inline,
    replace_parameter,
    set_called,
)
from hlofuse.trace import Recorder

_CHEAP = values(
    "broadcast concatenate dynamic-slice get-tuple-element reduce reshape pad parameter slice tuple"
)
_CHANNELS = with_trait("collective") | with_trait("collective-start") | {"recv", "send"}
_FORWARDING = values("tuple get-tuple-element parameter")


class ConditionalSimplifier(Pass):
    """Conditionals whose branch is known or not worth a choice (`xla/service/conditional_simplifier.cc`)."""

    name = "simplify-conditional"

    def run(self, module: Module, recorder: Recorder) -> bool:
        changed = False
        every = [x for c in module.computations for x in c.post_order() if x.opcode == "conditional"]
        found = [x for x in every if x.raw("sharding") is None and not _exchanges(x)]
        for x in found:
            if x.computation is not None:
                changed |= _merge_duplicates(x)
                changed |= _remove_unused_results(x)
                changed |= _remove(x)
        remaining = [x for x in found if x.computation is not None]
        for branch in dict.fromkeys(b for x in remaining for b in x.called_computations):
            changed |= _remove_unused_operands(branch, remaining)
        return changed


def _exchanges(x: Instruction) -> bool:
    """True if a branch exchanges data with other devices (`InstructionCallsChannelInstructions`)."""
    inner = reach(x.called_computations, callees)
    return any(i.opcode in _CHANNELS for c in inner for i in c)


def _merge_duplicates(x: Instruction) -> bool:
    """`MergeDuplicateTupleElements`: results that are the same in every branch are read as the first."""
    roots = [branch.root for branch in x.called_computations]
    if not _gives_elements(x) or any(root.opcode != "tuple" for root in roots):
        return False
    columns = list(zip(*(root.operands for root in roots), strict=True))
    changed = False
    for user in x.users:
        first = columns.index(columns[user.tuple_index])
        changed |= first != user.tuple_index
        set_tuple_index(user, first)
    return changed


def _remove_unused_results(x: Instruction) -> bool:
    """`RemoveUnusedTupleElements`."""
    remaining = _read_elements(x)
    if not remaining or not _gives_elements(x) or len(remaining) == x.tuple_size:
        return False
    called = [(name, clone_computation(branch)) for name, branch in x.called]
    for _, branch in called:
        branch.root = _some_elements(branch.root, branch.root, remaining)
    set_called(x, called)
    _give_only(x, remaining)
    return True


def _remove_unused_operands(branch: Computation, conditionals: Sequence[Instruction]) -> bool:
    """`TryRemoveUnusedConditionalOperands`, for all that choose this branch."""
    parameter = branch.parameter
    remaining = _read_elements(parameter)
    if not _gives_elements(parameter) or len(remaining) == parameter.tuple_size:
        return False
    copy = clone_computation(branch)
    _give_only(copy.parameter, remaining)
    for x in conditionals:
        for number, chosen in enumerate(x.called_computations, 1):
            if chosen is branch:
                x.replace_operand(number, _some_elements(x, x.operands[number], remaining))
        set_called(x, [(name, copy if c is branch else c) for name, c in x.called])
    return True


def _gives_elements(x: Instruction) -> bool:
    is_tuple = x.is_tuple and not x.is_root
    return is_tuple and all(user.is_get_tuple_element for user in x.users)


def _read_elements(x: Instruction) -> list[int]:
    return sorted({user.tuple_index for user in x.users if user.is_get_tuple_element})


def _some_elements(at: Instruction, source: Instruction, remaining: Ints) -> Instruction:
    return make.tuple_of(at, [make.get_tuple_element(at, source, k) for k in remaining])


def _give_only(x: Instruction, remaining: list[int]) -> None:
    x.shape = Shape.tuple_of([x.shape.tuple_shapes[k] for k in remaining])
    for user in x.users:
        set_tuple_index(user, remaining.index(user.tuple_index))


def _remove(x: Instruction) -> bool:
    """`TryRemoveConditional`"""
    if x.has_control_dependencies or has_side_effect(x):
        return False
    count = len(x.called_computations)
    if count == 1:
        return _replace(x, _call(x, 0))
    if x.operand.is_constant:
        branch = chosen_branch(x)
        return branch is not None and _replace(x, _call(x, branch))
    if count != 2 or x.operand.element_type != "pred":
        return False
    others = (i for branch in x.called_computations for i in branch if i.opcode not in _CHEAP)
    if any(not is_elementwise(i) and not i.is_constant for i in others):
        return False
    if any(_is_empty(branch) for branch in x.called_computations):
        return False
    calls = [_call(x, 0), _call(x, 1)]
    return _replace(x, _chosen_branch(x, *calls), *reversed(calls))


def _call(x: Instruction, branch: int) -> Instruction:
    called, given = x.called_computations[branch], x.attributes.given("frontend_attributes")
    return make.add(x, "call", x.shape, [x.operands[1 + branch]], called=called, copied_attributes=given)


def _replace(x: Instruction, new: Instruction, *calls: Instruction) -> bool:
    changed = replace_instruction(x, new)
    for call in calls or (new,):
        if is_inlined(call):
            inline(call)
    return changed


def _is_empty(branch: Computation) -> bool:
    """True if it only passes arrays on (`ComputationIsEmptyWithArrayRoot`)."""
    if any(i.opcode not in _FORWARDING for i in branch.post_order()):
        return False
    return any(s.is_array for _, s in branch.root.shape.subshapes())


def _chosen_branch(x: Instruction, yes: Instruction, no: Instruction) -> Instruction:
    shape: Shape = no.shape
    if shape.is_array:
        predicate = x.operand
        if shape.dimensions:
            predicate = make.broadcast(x, shape.with_element_type("pred"), predicate)
        return make.select(x, predicate, yes, no)
    if not shape.is_tuple:
        return make.add(x, "after-all", shape, [yes, no])
    pairs = [
        [make.get_tuple_element(x, side, k) for side in (yes, no)] for k in range(len(shape.tuple_shapes))
    ]
    return make.tuple_of(x, [_chosen_branch(x, a, b) for a, b in pairs])


class ConditionalCanonicalizer(RewritePass):
    """Conditionals take and give tuples (`xla/hlo/transforms/simplifiers/conditional_canonicalizer.cc`)."""

    name = "conditional-canonicalizer"
    opcodes = ("conditional",)

    def handle(self, x: Instruction) -> bool:
        called = []
        changed = False
        for name, branch in x.called:
            has_tuples = branch.parameter.is_tuple and branch.root.is_tuple
            if not has_tuples and any(c.opcode != "conditional" for c in branch.callers):
                branch = clone_computation(branch)
            changed |= _give_tuples(branch)
            called.append((name, branch))
        set_called(x, called)
        for number, operand in enumerate(x.operands):
            if number and not operand.is_tuple:
                x.replace_operand(number, make.tuple_of(x, [operand]))
                changed = True
        if not x.is_tuple:
            new = make.copy_of(x, x.operands, Shape.tuple_of([x.shape]))
            replace_instruction(x, make.get_tuple_element(x, new, 0))
            changed = True
        return changed


def _give_tuples(branch: Computation) -> bool:
    changed = False
    if not branch.parameter.is_tuple:
        shape = Shape.tuple_of([branch.parameter.shape])
        replace_parameter(branch, shape, lambda new: make.get_tuple_element(new, new, 0))
        changed = True
    if not branch.root.is_tuple:
        branch.root = make.tuple_of(branch.root, [branch.root])
        changed = True
    return changed
