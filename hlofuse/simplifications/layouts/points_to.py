"""Which instruction made the array that another one only passes on (`TuplePointsToAnalysis`)."""

from __future__ import annotations

from dataclasses import dataclass, field

from hlofuse.ir.computation import Computation
from hlofuse.ir.instruction import Instruction
from hlofuse.ir.module import Module
from hlofuse.ir.shape import Shape
from hlofuse.simplifications.rewriting import visit

Index = tuple[int, ...]
_FORWARDING = frozenset({"bitcast", "domain", "add-dependency", "opt-barrier"})


@dataclass(eq=False)
class Buffer:
    """What an instruction makes at one place of its result (`LogicalBuffer`)."""

    instruction: Instruction
    index: Index
    shape: Shape
    number: int
    aliases: list[Instruction] = field(default_factory=list)
    """Instructions of which it is the whole result."""


class PointsTo:
    """The buffers of a module; each place of a result points to one."""

    def __init__(self, module: Module) -> None:
        self._of: dict[Instruction, dict[Index, Buffer]] = {}
        self._count = 0
        for computation in module.non_fusion_computations():
            visit(computation, self._look)

    def of(self, instruction: Instruction) -> dict[Index, Buffer]:
        """Buffers by index, outermost first."""
        found = self._of.get(instruction)
        if found is None:
            self._look(instruction)
            found = self._of[instruction]
        return found

    def defined_by(self, instruction: Instruction) -> list[Buffer]:
        return [b for b in self.of(instruction).values() if b.instruction is instruction]

    def is_forwarded(self, instruction: Instruction, number: int) -> bool:
        """Does the result contain anything of that operand? (`AnyOperandBufferForwarded`)"""
        mine = set(self.of(instruction).values())
        return any(b in mine for b in self.of(instruction.operands[number]).values())

    def of_computation(self, computation: Computation) -> list[Buffer]:
        """Every array made in it, in the order XLA numbers them."""
        found = {b for i in computation for b in self.defined_by(i) if b.shape.is_array}
        return sorted(found, key=lambda b: b.number)

    def _new(self, instruction: Instruction, index: Index, shape: Shape) -> Buffer:
        self._count += 1
        return Buffer(instruction, index, shape, self._count)

    def _look(self, i: Instruction) -> None:
        if i in self._of:
            return
        found: dict[Index, Buffer] = {}
        if i.opcode == "tuple":
            found[()] = self._new(i, (), i.shape)
            for k, operand in enumerate(i.operands):
                for index, buffer in self.of(operand).items():
                    found[(k, *index)] = buffer
        elif i.opcode == "get-tuple-element":
            for index, buffer in self.of(i.operands[0]).items():
                if index[:1] == (i.tuple_index,):
                    found[index[1:]] = buffer
        elif i.opcode in _FORWARDING:
            found = dict(self.of(i.operands[0]))
        else:
            shared = self.of(i.operands[0]) if i.opcode == "copy" else {}
            for index, shape in _places(i.shape):
                found[index] = shared[index] if index and index in shared else self._new(i, index, shape)
        self._of[i] = found
        if i.shape.is_array:
            found[()].aliases.append(i)


def _places(shape: Shape, index: Index = ()) -> list[tuple[Index, Shape]]:
    out = [(index, shape)]
    if shape.is_tuple:
        for k, s in enumerate(shape.tuple_shapes):
            out += _places(s, (*index, k))
    return out
