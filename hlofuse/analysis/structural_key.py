"""Instructions and computations that are identical but for names (`HloInstruction::Identical`)."""

from collections.abc import Hashable

from hlofuse.ir.attributes.attributes import Attributes
from hlofuse.ir.graph import Computation, Instruction

# Said about an instruction, but not part of what it computes.
_NOT_COMPARED = frozenset(
    """
    metadata frontend_attributes sharding control-predecessors origin original_value statistics calls
    to_apply body condition true_computation false_computation branch_computations select scatter
    called_computations
    """.split()
)


class StructuralKeys:
    """Numbers that are equal for equal computations, for as long as those do not change."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self._of: dict[Computation, int] = {}
        self._attributes: dict[int, tuple[Attributes, tuple[tuple[str, str], ...]]] = {}
        """What is compared of attributes, which many instructions share, by their identity."""

    def of_computation(self, computation: Computation) -> int:
        """Equal numbers: the same operations on the same operands, root included."""
        cached = self._of.get(computation)
        if cached is None:
            values: dict[Instruction, int] = {}
            for x in computation.post_order():
                key = (self.of_instruction(x), x.payload, tuple(values[o] for o in x.operands))
                values[x] = self._numbers.setdefault(key, len(self._numbers))
            cached = self._of[computation] = values[computation.root]
        return cached

    def forget(self, computation: Computation) -> None:
        """It may have changed, and with it whatever calls it."""
        if self._of.pop(computation, None) is not None:
            for caller in computation.callers:
                if caller.computation is not None:
                    self.forget(caller.computation)

    def of_instruction(self, instruction: Instruction, *, layouts: bool = True) -> Hashable:
        """What an instruction does, operands left out: opcode, shape, attributes, called computations."""
        shape = instruction.shape.key if layouts else instruction.shape.key_ignoring_layout
        return (shape, self.of_operation(instruction))

    def of_operation(self, instruction: Instruction) -> Hashable:
        """The same without the shape (`HloInstruction::SameOp`)."""
        found = instruction.attributes
        own = self._attributes.get(id(found))
        if own is None:
            compared = sorted((k, v) for k, v in found.raw_items.items() if k not in _NOT_COMPARED)
            own = self._attributes[id(found)] = (found, tuple(compared))
        if not instruction.called:
            return (instruction.opcode, own[1])
        called = tuple([(name, self.of_computation(c)) for name, c in instruction.called])
        return (instruction.opcode, own[1], called)
