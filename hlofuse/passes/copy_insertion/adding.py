"""More copies than are needed: wherever values might have to share a buffer.

Mirrors `AddCopiesToResolveInterference` of `xla/service/copy_insertion.cc` with the functions it calls, but
for the chains of send and recv that go around a loop (`AddCopiesForNonCopyableTransitions`).
"""

from collections.abc import Callable, Collection, Sequence

from hlofuse.analysis.alias_info import AliasInfo
from hlofuse.analysis.call_sites import is_asynchronous, non_fusion_computations
from hlofuse.analysis.custom_calls import is_flagged
from hlofuse.analysis.hlo_alias import HloAlias
from hlofuse.analysis.hlo_value import Index, shape_tree
from hlofuse.analysis.in_place import InPlacePair
from hlofuse.ir.graph import Computation, Instruction, Module
from hlofuse.ir.shape import Shape
from hlofuse.passes.common import make

Because = Callable[[Instruction, str], None]
"""Takes a copy and the reason why it is there."""

_NON_COPYABLE = frozenset({"send", "recv", "copy-start"})
_DISJOINT = ("xla_disjoint_read_write_regions", "xla.disjoint_read_write_regions")
_NO_COPIES = ("xla_disable_while_loop_copies", "xla.disable_while_loop_copies")


def add_copies(module: Module, alias_info: AliasInfo, because: Because) -> None:
    """Add copies to a module in which no computation has two callers."""
    alias = HloAlias(module, alias_info)
    for computation in non_fusion_computations(module):
        if is_asynchronous_body(computation):
            continue
        for x in computation.post_order():
            if x.opcode == "while":
                _add_for_loop(alias, x, because)
            elif x.opcode == "conditional":
                _add_for_conditional(alias, x, because)
            elif x.opcode not in _NON_COPYABLE:
                _add_for_in_place(x, _pairs(alias_info, x), because)
    _add_for_aliased_results(alias, module, because)


def is_asynchronous_body(computation: Computation) -> bool:
    """True for what an asynchronous call runs (`IsAsyncComputation`)."""
    caller = computation.first_caller
    return caller is not None and is_asynchronous(caller)


def has_no_loop_copies(loop: Instruction) -> bool:
    """`HasDisableWhileLoopCopiesAttr`."""
    return is_flagged(loop, _NO_COPIES)


def _add_for_loop(alias: HloAlias, loop: Instruction, because: Because) -> None:
    """Copy what goes in, what an iteration begins with and what it ends with (`AddCopiesForWhile`)."""
    init, dataflow = loop.operands[0], alias.dataflow
    if has_no_loop_copies(loop) or not dataflow.covers(loop):
        return
    indices: set[Index] = set()
    for index, before, after in zip(
        shape_tree(loop.shape).indices, dataflow.values_of(init), dataflow.values_of(loop), strict=True
    ):
        is_copyable = not index or not (
            index[0] < len(init.operands) and init.operands[index[0]].opcode in _NON_COPYABLE
        )
        if before is not after and is_copyable:
            indices.add(index)
    if not indices:
        return
    copies: dict[Index, Instruction] = {}
    init.replace_use_with(loop, deep_copy(init, indices, copies))
    _explain(copies, f"iterations of {loop.name} overwrite its initial value", because)
    body = dict(loop.called)["body"]
    parameter, root = body.parameters[0], body.root
    users = list(parameter.users)
    first: dict[Index, Instruction] = {}
    last: dict[Index, Instruction] = {}
    begins = deep_copy(parameter, indices, first)
    body.root = deep_copy(root, indices, last)
    for index, copy in first.items():
        copy.add_control_dependency_to(last[index])
    for user in users:
        parameter.replace_use_with(user, begins)
    _explain(first, f"an iteration of {loop.name} reads it after its buffer is written", because)
    _explain(last, f"the next iteration of {loop.name} overwrites its buffer", because)


def _add_for_conditional(alias: HloAlias, conditional: Instruction, because: Because) -> None:
    """Copy what the branches give where it is not the same (`AddCopiesForConditional`)."""
    if not alias.dataflow.covers(conditional):
        return
    values = alias.dataflow.values_of(conditional)
    indices = {
        index
        for index, value in zip(shape_tree(conditional.shape).indices, values, strict=True)
        if value is not None and value.is_phi and value.instruction is conditional
    }
    if not indices:
        return
    for _, branch in conditional.called:
        root, copies = branch.root, dict[Index, Instruction]()
        users = list(root.users)
        new = deep_copy(root, indices, copies)
        for user in users:
            root.replace_use_with(user, new)
        branch.root = new
        _explain(copies, f"the branches of {conditional.name} write their results to one buffer", because)


def _pairs(alias_info: AliasInfo, x: Instruction) -> list[InPlacePair]:
    """The operands overwritten by it, or by the computation that an asynchronous call starts."""
    if x.opcode == "async-start" and x.called and x.attributes.raw("output_to_operand_aliasing") is None:
        return alias_info.in_place_pairs(x.called[0][1].root)
    return alias_info.in_place_pairs(x)


def _add_for_in_place(x: Instruction, pairs: list[InPlacePair], because: Because) -> None:
    """Copy what is overwritten (`AddCopiesForInPlaceOperation`)."""
    copied: set[int] = set()
    for pair in pairs:
        number = pair.operand_number
        if number in copied or number >= len(x.operands):
            continue
        if is_flagged(x, _DISJOINT) and all(
            u is x or is_flagged(u, _DISJOINT) for u in x.operands[number].users
        ):
            continue
        copied.add(number)
        copies: dict[Index, Instruction] = {}
        x.replace_operand(number, deep_copy(x.operands[number], None, copies))
        _explain(copies, f"{x.name} overwrites it", because)


def _add_for_aliased_results(alias: HloAlias, module: Module, because: Because) -> None:
    """Copy arguments and the results that lie in their memory (`AddCopiesForAliasedInputOutputs`)."""
    entry, aliases = module.entry, alias.config.aliases
    if not aliases:
        return
    copied: dict[int, dict[Index, Instruction]] = {}
    for parameter in list(entry.parameters):
        number = parameter.parameter_number
        indices = {index for n, index in aliases.values() if n == number}
        if not indices:
            continue
        users = list(parameter.users)
        copies = copied[number] = {}
        new = deep_copy(parameter, indices, copies)
        replace_users(users, parameter, new)
        _explain(copies, f"a result overwrites {parameter.name}", because)
    if not copied:
        return
    results: dict[Index, Instruction] = {}
    root = deep_copy(entry.root, set(aliases), results)
    for output, (number, index) in sorted(aliases.items()):
        before, after = copied.get(number, {}).get(index), results.get(output)
        if before is not None and after is not None:
            before.add_control_dependency_to(after)
    entry.root = root
    _explain(results, "the result uses an argument's buffer", because)


def _explain(copies: dict[Index, Instruction], reason: str, because: Because) -> None:
    for copy in copies.values():
        because(copy, reason)


def deep_copy(
    x: Instruction, indices: Collection[Index] | None = None, added: dict[Index, Instruction] | None = None
) -> Instruction:
    """A tuple of copies of the leaves of `x` at `indices` (None: all) and of the others as they are
    (`HloComputation::DeepCopyInstruction`).

    `added` learns of the copies.
    """
    if not x.shape.is_tuple:
        return _leaf(x, (), indices, added)
    levels: list[tuple[Instruction, Index, list[Instruction]]] = [(x, (), [])]
    while True:
        source, index, elements = levels[-1]
        shapes = source.shape.tuple_shapes
        if len(elements) < len(shapes):
            k = len(elements)
            element = make.added(source, "get-tuple-element", shapes[k], [source], index=str(k))
            if element.shape.is_tuple:
                levels.append((element, (*index, k), []))
            else:
                elements.append(_leaf(element, (*index, k), indices, added))
            continue
        levels.pop()
        whole = make.added(source, "tuple", Shape.tuple_of([e.shape for e in elements]), elements)
        if not levels:
            return whole
        levels[-1][2].append(whole)


def replace_users(users: Sequence[Instruction], old: Instruction, new: Instruction) -> None:
    """`new` is read where these users read `old`; as a root it takes its place too."""
    for user in users:
        old.replace_use_with(user, new)
    if old.is_root and old.computation is not None:
        old.computation.root = new


def _leaf(
    leaf: Instruction, index: Index, indices: Collection[Index] | None, added: dict[Index, Instruction] | None
) -> Instruction:
    if not leaf.shape.is_array or (indices is not None and index not in indices):
        return leaf
    copy = make.added(leaf, "copy", leaf.shape, [leaf])
    if added is not None:
        added[index] = copy
    return copy
