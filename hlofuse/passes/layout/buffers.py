"""Which instruction makes each array, and by which names it is passed on (`TuplePointsToAnalysis`)."""

from __future__ import annotations

from dataclasses import dataclass

from hlofuse.ir.graph import Computation, Instruction, Module
from hlofuse.ir.shape import Shape
from hlofuse.passes.common.rewriting import visit

Index = tuple[int, ...]
"""The way to an element of a tuple."""

_FORWARDING = frozenset({"add-dependency", "bitcast", "domain", "opt-barrier"})


@dataclass(frozen=True, eq=False, slots=True)
class Buffer:
    """An array or tuple where it is made (`LogicalBuffer`); `number` tells the order."""

    number: int
    instruction: Instruction
    index: Index
    shape: Shape


class Buffers:
    """The buffers of a module as it stands."""

    def __init__(self, module: Module) -> None:
        self.all: list[Buffer] = []
        self._made: dict[Instruction, dict[Index, Buffer]] = {}
        self._seen: dict[Instruction, dict[Index, Buffer]] = {}
        self._aliases: dict[Buffer, list[tuple[Instruction, Index]]] = {}
        for computation in module.non_fusion_computations():
            visit(computation, self._define)
            for instruction in computation:
                for index, buffer in self._seen[instruction].items():
                    self._aliases.setdefault(buffer, []).append((instruction, index))

    def arrays_made_in(self, computation: Computation) -> list[Buffer]:
        """In the order XLA numbers them."""
        made = (b for i in computation for b in self._made[i].values() if b.shape.is_array)
        return sorted(made, key=lambda b: b.number)

    def made_by(self, instruction: Instruction) -> dict[Index, Buffer]:
        """What it makes itself."""
        return self._made[instruction]

    def of(self, instruction: Instruction) -> dict[Index, Buffer]:
        """What its value consists of, made by it or by others."""
        return self._seen[instruction]

    def aliases(self, buffer: Buffer) -> list[tuple[Instruction, Index]]:
        """Every place where it can be seen."""
        return self._aliases[buffer]

    def forwards(self, instruction: Instruction, operand: int) -> bool:
        """Is any of the operand's buffers also part of the result? (`AnyOperandBufferForwarded`)."""
        result = set(self._seen[instruction].values())
        return any(b in result for b in self._seen[instruction.operands[operand]].values())

    def _define(self, instruction: Instruction) -> bool:
        opcode = instruction.opcode
        made: dict[Index, Buffer] = {}
        seen: dict[Index, Buffer] = {}
        if opcode == "get-tuple-element":
            at = instruction.tuple_index
            source = self._seen[instruction.operands[0]]
            seen = {index[1:]: b for index, b in source.items() if index[:1] == (at,)}
        elif opcode in _FORWARDING:
            seen = dict(self._seen[instruction.operands[0]])
        elif opcode == "tuple":
            seen[()] = made[()] = self._new(instruction, (), instruction.shape)
            for k, operand in enumerate(instruction.operands):
                seen.update({(k, *index): b for index, b in self._seen[operand].items()})
        elif opcode == "copy":
            seen = dict(self._seen[instruction.operands[0]])
            seen[()] = made[()] = self._new(instruction, (), instruction.shape)
        else:
            for index, shape in subshapes(instruction.shape):
                seen[index] = made[index] = self._new(instruction, index, shape)
        self._made[instruction], self._seen[instruction] = made, seen
        return False

    def _new(self, instruction: Instruction, index: Index, shape: Shape) -> Buffer:
        buffer = Buffer(len(self.all), instruction, index, shape)
        self.all.append(buffer)
        return buffer


def subshapes(shape: Shape, index: Index = ()) -> list[tuple[Index, Shape]]:
    """The shape and all inside it, outermost first."""
    found = [(index, shape)]
    if shape.is_tuple:
        for k, inner in enumerate(shape.tuple_shapes):
            found += subshapes(inner, (*index, k))
    return found
