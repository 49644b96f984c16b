"""Visiting and rewriting one instruction after the other (`DfsHloRewriteVisitor`), and making new ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from hlofuse.analysis.side_effects import has_side_effect
from hlofuse.ir.attributes import Attributes
from hlofuse.ir.computation import Computation
from hlofuse.ir.fusing import computation_of
from hlofuse.ir.instruction import Instruction
from hlofuse.ir.module import Module
from hlofuse.ir.replacing import replace_instruction, set_attribute
from hlofuse.ir.shape import COMPLEX_TYPES, Layout, Shape


def visit_module(
    module: Module,
    opcodes: Iterable[str] | None,
    handle: Callable[[Instruction], bool],
    visited: set[Instruction] | None = None,
) -> bool:
    """Call `handle` on every instruction of these opcodes outside fusions; True if any call was."""
    wanted = frozenset(opcodes) if opcodes is not None else None
    visited = set() if visited is None else visited
    changed = False
    for computation in module.non_fusion_computations():
        changed |= visit_computation(computation, wanted, handle, visited)
    return changed


def visit_computation(
    computation: Computation,
    wanted: frozenset[str] | None,
    handle: Callable[[Instruction], bool],
    visited: set[Instruction],
) -> bool:
    """Operands before users, as the graph is at the time (`HloComputation::Accept`).

    What a handler puts in is visited too where a user not yet looked at reads it, unless the handler adds
    it to `visited`. No `wanted` opcodes are all of them.
    """
    changed = False
    visiting: set[Instruction] = set()
    unreachable = [
        i for i in computation if not i.users and i is not computation.root and not i.control_successors
    ]
    for start in (*unreachable, computation.root):
        stack = [start]
        while stack:
            current = stack[-1]
            if current in visited:
                stack.pop()
                continue
            if current in visiting:
                stack.pop()
                visited.add(current)
                if (wanted is None or current.opcode in wanted) and current.computation is not None:
                    changed |= handle(current)
                continue
            visiting.add(current)
            below = [o for o in (*current.operands, *current.control_predecessors) if o not in visited]
            stack.extend(reversed(below))
    return changed


def numbers(values: Iterable[int]) -> str:
    """`{0,1}`."""
    return "{" + ",".join(map(str, values)) + "}"


def row_major(element_type: str, dimensions: Iterable[int]) -> Shape:
    """An array shape with the default layout (`ShapeUtil::MakeShape`)."""
    sizes = tuple(dimensions)
    return Shape(element_type, sizes, Layout(tuple(range(len(sizes) - 1, -1, -1))))


def with_layout(element_type: str, dimensions: Iterable[int], minor_to_major: Iterable[int]) -> Shape:
    """An array shape with this layout (`ShapeUtil::MakeShapeWithDenseLayout`)."""
    return Shape(element_type, tuple(dimensions), Layout(tuple(minor_to_major)))


def added(
    at: Instruction,
    opcode: str,
    shape: Shape,
    operands: Sequence[Instruction],
    *,
    like: Instruction | None = None,
    called: Sequence[tuple[str, Computation]] = (),
    payload: str | None = None,
    name: str | None = None,
    said: Mapping[str, str] | None = None,
    **attributes: str,
) -> Instruction:
    """A new instruction in the computation of `at`, with the metadata of `like`."""
    raw = {**{name: f"%{c.name}" for name, c in called}, **(said or {}), **attributes}
    new = Instruction(
        name or opcode, shape, opcode, operands, Attributes(raw=raw), called=called, payload=payload
    )
    metadata = like.attributes.raw("metadata") if like is not None else None
    if metadata:
        set_attribute(new, "metadata", metadata)
    return computation_of(at).add_instruction(new)


def zero(at: Instruction, element_type: str) -> Instruction:
    """A scalar constant 0."""
    payload = "(0, 0)" if element_type in COMPLEX_TYPES else "false" if element_type == "pred" else "0"
    return added(at, "constant", Shape(element_type), [], payload=payload)


def bitcast(operand: Instruction, shape: Shape) -> Instruction:
    """A bitcast with the operand's metadata (`MakeBitcastHlo`)."""
    return added(operand, "bitcast", shape, [operand], like=operand)


def derived(
    source: Instruction, opcode: str, shape: Shape, operands: Sequence[Instruction], **attributes: str
) -> Instruction:
    """A new instruction that takes over what is said of `source` (`HloInstruction::AddInstruction`)."""
    new = added(source, opcode, shape, operands, like=source, said=attributes)
    keeps = source.shape.is_tuple == shape.is_tuple and opcode not in ("reshape", "transpose")
    for name in ("sharding", "frontend_attributes"):
        said = source.attributes.raw(name)
        if said is not None and (keeps or name != "sharding"):
            set_attribute(new, name, said)
    return new


def reshape(operand: Instruction, shape: Shape) -> Instruction:
    """`MakeReshapeHlo`."""
    return derived(operand, "reshape", shape, [operand])


def copy(operand: Instruction, shape: Shape) -> Instruction:
    """`MakeCopyHlo`."""
    return derived(operand, "copy", shape, [operand])


def transpose(operand: Instruction, permutation: Sequence[int], shape: Shape) -> Instruction:
    """`MakeTransposeHlo`, with a layout of one's own."""
    return derived(operand, "transpose", shape, [operand], dimensions=numbers(permutation))


def replaced(old: Instruction, new: Instruction) -> bool:
    """`new` takes the place of `old` (`DfsHloRewriteVisitor::ReplaceInstruction`)."""
    said = old.attributes.raw("frontend_attributes")
    if said is not None and new.attributes.raw("frontend_attributes") is None:
        set_attribute(new, "frontend_attributes", said)
    return replace_instruction(old, new, has_side_effect, relay_control_dependencies=True)
