"""Passes on sorts."""

from hlofuse.ir import Computation, Instruction, Module, Shape, computation_of, replace
from hlofuse.passes.base import Pass, RewritePass, any_change, find_each, replaced
from hlofuse.passes.common.calls import clone_computation, set_called
from hlofuse.passes.common.make import added
from hlofuse.trace import Recorder


class SortSimplifier(Pass):
    name = "simplify-sorts"

    def run(self, module: Module, recorder: Recorder) -> bool:
        return any_change(map(_without_unread, find_each(module, lambda x: x.opcode == "sort")))


def _without_unread(sort: Instruction) -> bool:
    if not sort.shape.is_tuple or sort.is_root:
        return False
    if any(user.opcode != "get-tuple-element" for user in sort.users):
        return False
    compare = sort.to_apply
    read = {user.tuple_index for user in sort.users}
    read |= {p.parameter_number // 2 for p in compare if p.opcode == "parameter" and p.users}
    if len(read) == len(sort.operands) or not read:
        return False
    remaining = sorted(read)
    operands = [sort.operands[k] for k in remaining]
    new = sort.clone(operands, shape=Shape.maybe_tuple_of([o.shape for o in operands]))
    clone = clone_computation(compare)
    for parameter in list(clone.parameters):
        operand, side = divmod(parameter.parameter_number, 2)
        if operand in read:
            parameter.payload = str(2 * remaining.index(operand) + side)
        else:
            clone.remove_instruction(parameter)
    clone.parameters[:] = [p for p in clone.parameters if p.computation is clone]
    new.called = [("to_apply", clone)]
    new.attributes = new.attributes.without("to_apply").updated(to_apply=f"%{clone.name}")
    computation_of(sort).add_instruction(new)
    results = {remaining[0]: new}
    if len(remaining) > 1:
        results = {
            k: added(sort, "get-tuple-element", o.shape, [new], index=place)
            for place, (k, o) in enumerate(zip(remaining, operands, strict=True))
        }
    for user in list(sort.users):
        user.replace_all_uses_with(results[user.tuple_index])
        computation_of(user).remove_instruction(user)
    return True


class StableSortExpander(RewritePass):
    """`stable-sort-expander`: by an operand that counts along the sorted dimension, a new one if need be
    (`xla/hlo/transforms/expanders/stable_sort_expander.cc`)."""

    name = "stable-sort-expander"
    opcodes = ("sort",)

    def handle(self, sort: Instruction) -> bool:
        return sort.raw("is_stable") == "true" and _expand(sort)


def _expand(sort: Instruction) -> bool:
    dimension = sort.dimensions[0]
    place = next((k for k, o in enumerate(sort.operands) if _counts(o, dimension)), None)
    compare = sort.to_apply
    if place is not None:
        if len(compare.callers) > 1:
            compare = clone_computation(compare)
            set_called(sort, [("to_apply", compare)])
        sort.attributes = sort.attributes.without("is_stable")
        _break_ties(compare, place)
        return True
    place = len(sort.operands)
    compare = _with_parameters(compare, place)
    shape = replace(sort.operand.shape, element_type="s32")
    counter = added(sort, "iota", shape, [], iota_dimension=dimension)
    new = sort.clone([*sort.operands, counter], shape=Shape.tuple_of([*sort.shape.results, shape]))
    new.called = [("to_apply", compare)]
    new.attributes = new.attributes.without("is_stable", "sharding", "to_apply").updated(
        to_apply=f"%{compare.name}"
    )
    computation_of(sort).add_instruction(new)
    elements = [
        added(sort, "get-tuple-element", o.shape, [new], index=k) for k, o in enumerate(sort.operands)
    ]
    result = elements[0] if len(elements) == 1 else added(sort, "tuple", sort.shape, elements)
    replaced(sort, result)
    _break_ties(compare, place)
    return True


def _counts(operand: Instruction, dimension: int) -> bool:
    if operand.opcode != "iota" or operand.element_type != "s32":
        return False
    return int(operand.attributes["iota_dimension"]) == dimension


def _with_parameters(compare: Computation, place: int) -> Computation:
    clone = clone_computation(compare)
    for k, side in enumerate(("lhs", "rhs")):
        parameter = Instruction(f"p.{place}.{side}", Shape("s32"), "parameter", payload=str(2 * place + k))
        clone.add_instruction(parameter)
    return clone


def _break_ties(compare: Computation, place: int) -> None:
    """Let the smaller place be first where the comparison is the same both ways."""
    root = compare.root
    other = {parameter: compare.parameters[k ^ 1] for k, parameter in enumerate(compare.parameters)}
    for i in compare.post_order():
        if i.operands:
            clone = i.clone([other.get(o, o) for o in i.operands])
            other[i] = compare.add_instruction(clone)
    same = added(root, "compare", root.shape, [root, other[root]], direction="EQ")
    sides = [compare.parameters[2 * place], compare.parameters[2 * place + 1]]
    tie = added(root, "compare", root.shape, sides, direction="LT")
    compare.root = added(root, "select", root.shape, [same, tie, root])
