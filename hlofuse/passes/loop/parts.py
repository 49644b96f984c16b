"""The parts of a loop, and loops that carry other values."""

from collections.abc import Iterable, Mapping

from msgspec import Struct

from hlofuse.ir import Computation, Instruction, Instructions, Ints, Shape, grouped, has_side_effect, numbered
from hlofuse.ir.fusing import set_tuple_index
from hlofuse.passes.base import substituted
from hlofuse.passes.common import make
from hlofuse.passes.common.calls import clone_computation

_COPIED_ATTRIBUTES = ("backend_config", "frontend_attributes", "metadata")


def body_of(loop: Instruction) -> Computation:
    return dict(loop.called)["body"]


def condition_of(loop: Instruction) -> Computation:
    return dict(loop.called)["condition"]


def loops_of(computations: Iterable[Computation]) -> Instructions:
    return [i for c in computations for i in c if i.is_while]


def is_element(x: Instruction, source: Instruction, index: int) -> bool:
    return x.is_get_tuple_element and x.operand is source and x.tuple_index == index


def elements_read(source: Instruction) -> Instructions:
    return [u for u in source.users if u.is_get_tuple_element]


def carried_unchanged(body: Computation) -> Instructions:
    """Elements that the body passes on as it got them (`GetInvariantGTEsForWhileBody`)."""
    parameter = body.parameter
    return [o for k, o in enumerate(body.root.operands) if is_element(o, parameter, k)]


def gathers_again(x: Instruction) -> bool:
    """True for an all-gather in each iteration of an array that none changes."""
    body = x.parent
    caller = body.first_caller
    if caller is None or not caller.is_while or body.root.opcode != "tuple":
        return False
    return not {*carried_unchanged(body)}.isdisjoint(o.through("bitcast", "copy") for o in x.operands)


def only_elements_are_read(loop: Instruction) -> bool:
    """`AllWhileParamConsumersGte`."""
    parts = (body_of(loop), condition_of(loop))
    return all(u.is_get_tuple_element for c in parts for u in c.parameter.users)


def new_loop(
    old: Instruction,
    init: Instruction,
    condition: Computation,
    body: Computation,
) -> Instruction:
    """A loop like `old` over other computations and another tuple."""
    called = [("body", body), ("condition", condition)]
    new = make.add(old, "while", init.shape, [init], called=called, condition="", body="")
    raw = old.attributes.given(*_COPIED_ATTRIBUTES)
    new.attributes = new.attributes.without(*_COPIED_ATTRIBUTES).updated(**raw)
    return new


def drop_unused(computation: Computation) -> None:
    """Take out all that nothing reads and that does nothing else."""
    for i in reversed(computation.post_order()):
        if i.users or i.is_root or i.is_parameter or has_side_effect(i):
            continue
        if not i.has_control_dependencies:
            computation.remove_instruction(i)


def remove_dead(loop: Instruction) -> bool:
    """`TryRemoveDeadWhileParams`."""
    body = body_of(loop)
    if loop.has_control_dependencies or not loop.is_tuple or body.root.opcode != "tuple":
        return False
    size = loop.tuple_size
    if not size or not only_elements_are_read(loop):
        return False
    used = _used_elements(loop, size)
    if len(used) == size:
        return False
    keep(loop, sorted(used))
    return True


def _used_elements(loop: Instruction, size: int) -> set[int]:
    """Elements with an effect outside of themselves and of other unused elements."""
    body, condition = body_of(loop), condition_of(loop)
    after = set(range(size))
    if not loop.is_root and all(u.is_get_tuple_element for u in loop.users):
        after = {u.tuple_index for u in loop.users}
    groups = _Groups()
    depends = {}  # The elements that an instruction is computed from, one bit each
    acting_bits = 0
    for part in (body, condition):
        parameter = part.parameter
        for i in part.post_order():
            if i is parameter or i is body.root:
                continue
            if i.is_get_tuple_element and i.operand is parameter:
                depends[i] = 1 << i.tuple_index
                groups.join(body.root.operands[i.tuple_index], i)
            else:
                bits = 0
                for o in i.operands:
                    bits |= depends.get(o, 0)
                    groups.join(o, i)
                depends[i] = bits
            if has_side_effect(i) or i is condition.root:
                acting_bits |= depends[i]
    acting = _places(acting_bits)
    outputs = body.root.operands
    affecting_bits = 0
    for k, o in enumerate(outputs):
        affecting_bits |= depends.get(o, 0) & ~(1 << k)
    affecting = _places(affecting_bits)
    used = {k for k in range(size) if k in affecting or k in after or k in acting}
    members = dict[Instruction, set[int]]()
    for k, o in enumerate(outputs):
        members.setdefault(groups.find(o), set()).add(k)
    for part in (body, condition):
        for element in part.parameter.users:
            members.setdefault(groups.find(element), set()).add(element.tuple_index)
    for group in members.values():
        if not any(
            k in acting or (k in after and not is_element(outputs[k], body.parameter, k)) for k in group
        ):
            used -= group
    return used


def _places(bits: int) -> set[int]:
    return {k for k in range(bits.bit_length()) if bits >> k & 1}


class _Groups(Struct):
    """Instructions connected by use (`UnionFind`)."""

    _parent: dict[Instruction, Instruction] = {}

    def find(self, x: Instruction) -> Instruction:
        root = x
        while self._parent.get(root, root) is not root:
            root = self._parent[root]
        while x is not root:
            self._parent[x], x = root, self._parent.get(x, x)
        return root

    def join(self, a: Instruction, b: Instruction) -> None:
        self._parent[self.find(a)] = self.find(b)


def keep(loop: Instruction, indices: Ints, instead: Mapping[int, int] | None = None) -> Instruction:
    """A loop of these elements; others are read as at first, or `instead` (`RemoveDeadTupleIndices`)."""
    init = loop.operand
    place = numbered(indices)
    shape = Shape.tuple_of([init.shape.tuple_shapes[k] for k in indices])
    parts = [clone_computation(c) for c in (condition_of(loop), body_of(loop))]
    body = parts[1]
    body.root = make.tuple_of(body.root, [body.root.operands[k] for k in indices])
    for part in parts:
        parameter = part.parameter
        parameter.shape = shape
        for reader in elements_read(parameter):
            if reader.tuple_index in place:
                set_tuple_index(reader, place[reader.tuple_index])
        drop_unused(part)
    if init.opcode == "tuple":
        values = [init.operands[k] for k in indices]
    else:
        values = [make.get_tuple_element(loop, init, k) for k in indices]
    new = new_loop(loop, make.tuple_of(loop, values), parts[0], body)
    where = {k: (new, at) for k, at in place.items()}
    where |= {k: (new, place[other]) for k, other in (instead or {}).items()}
    sources = [where.get(k, (init, k)) for k in range(init.tuple_size)]
    substituted(loop, make.tuple_of(loop, [make.get_tuple_element(loop, *source) for source in sources]))
    return new


def remove_duplicates(loop: Instruction) -> bool:
    """`TryRemoveRepeatedWhileTupleIndices`: the same value carried twice."""
    init, body = loop.operand, body_of(loop)
    if loop.has_control_dependencies or init.opcode != "tuple" or body.root.opcode != "tuple":
        return False
    if not only_elements_are_read(loop):
        return False
    unchanged = grouped((init.operands[x.tuple_index], x.tuple_index) for x in carried_unchanged(body))
    first = _merge(loop, unchanged.values(), from_init=True)
    init, body = first.operand, body_of(first)
    updated = grouped(
        ((init.operands[k], *o.operands[1:]), k)
        for k, o in enumerate(body.root.operands)
        if o.opcode == "dynamic-update-slice" and is_element(o.operand, body.parameter, k)
    )
    return _merge(first, updated.values(), from_init=False) is not loop


def _merge(loop: Instruction, duplicates: Iterable[list[int]], *, from_init: bool) -> Instruction:
    duplicate_of = {k: indices[0] for indices in duplicates for k in indices[1:]}
    if not duplicate_of:
        return loop
    for part in (body_of(loop), condition_of(loop)):
        parameter = part.parameter
        survivors = {}
        for reader in elements_read(parameter):
            if reader.tuple_index not in duplicate_of:
                continue
            index = duplicate_of[reader.tuple_index]
            if index not in survivors:
                survivors[index] = make.get_tuple_element(parameter, parameter, index)
            reader.replace_all_uses_with(survivors[index])
            part.remove_instruction(reader)
    retained = [k for k in range(loop.tuple_size) if k not in duplicate_of]
    return keep(loop, retained, None if from_init else duplicate_of)
