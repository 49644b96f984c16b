"""The buffers of a module, and what is demanded of their layouts."""

from msgspec import Struct

from hlofuse.ir import Computation, Instruction, Module, Record, Shape
from hlofuse.ir.opcodes import values
from hlofuse.passes.base import accept_order
from hlofuse.passes.common.shapes import descending

Index = tuple[int, ...]  # The way to an element of a tuple
_FORWARDING = values("add-dependency bitcast domain opt-barrier")


class Buffer(Record, eq=False):
    """An array or tuple at its origin (`LogicalBuffer`), `number` in order (`TuplePointsToAnalysis`)."""

    number: int
    instruction: Instruction
    index: Index
    shape: Shape


class Buffers:
    def __init__(self, module: Module) -> None:
        self.all = list[Buffer]()
        self._defined = dict[Instruction, dict[Index, Buffer]]()
        self._seen = dict[Instruction, dict[Index, Buffer]]()
        self._forwarded = dict[Instruction, frozenset[Buffer]]()
        self._aliases = dict[Buffer, list[tuple[Instruction, Index]]]()
        for computation in module.non_fusion_computations():
            for instruction in accept_order(computation):
                self._define(instruction)
            for instruction in computation:
                for index, buffer in self._seen[instruction].items():
                    self._aliases.setdefault(buffer, []).append((instruction, index))

    def arrays_defined_in(self, computation: Computation) -> list[Buffer]:
        """In the order XLA numbers them."""
        defined = (b for i in computation for b in self._defined[i].values() if b.shape.is_array)
        return sorted(defined, key=lambda b: b.number)

    def defined_by(self, instruction: Instruction) -> dict[Index, Buffer]:
        return self._defined[instruction]

    def of(self, instruction: Instruction) -> dict[Index, Buffer]:
        """The buffers of its value, its own and others."""
        return self._seen[instruction]

    def aliases(self, buffer: Buffer) -> list[tuple[Instruction, Index]]:
        """Every place where it can be seen."""
        return self._aliases[buffer]

    def forwards(self, instruction: Instruction, operand: int) -> bool:
        """True if the result contains any of the operand's buffers (`AnyOperandBufferForwarded`)."""
        result = self._forwarded.get(instruction)
        if result is None:
            seen, defined = self._seen[instruction], self._defined[instruction]
            result = frozenset() if seen == defined else frozenset(seen.values())
            self._forwarded[instruction] = result
        return bool(result) and not result.isdisjoint(self._seen[instruction.operands[operand]].values())

    def _define(self, instruction: Instruction) -> None:
        opcode = instruction.opcode
        defined = dict[Index, Buffer]()
        seen = dict[Index, Buffer]()
        if opcode == "get-tuple-element":
            at = instruction.tuple_index
            source = self._seen[instruction.operand]
            seen = {index[1:]: b for index, b in source.items() if index[:1] == (at,)}
        elif opcode in _FORWARDING:
            seen = dict(self._seen[instruction.operand])
        elif opcode == "tuple":
            seen[()] = defined[()] = self._new(instruction, (), instruction.shape)
            for k, operand in enumerate(instruction.operands):
                seen.update({(k, *index): b for index, b in self._seen[operand].items()})
        elif opcode == "copy":
            seen = dict(self._seen[instruction.operand])
            seen[()] = defined[()] = self._new(instruction, (), instruction.shape)
        else:
            for index, shape in instruction.shape.subshapes():
                seen[index] = defined[index] = self._new(instruction, index, shape)
        self._defined[instruction], self._seen[instruction] = defined, seen

    def _new(self, instruction: Instruction, index: Index, shape: Shape) -> Buffer:
        buffer = Buffer(len(self.all), instruction, index, shape)
        self.all.append(buffer)
        return buffer


Order = tuple[int, ...]  # Dimensions from minor to major
DEFAULT_PRIORITY, GIVEN_PRIORITY = -2, 3
ROUNDS = 2  # `kNumberOfPropagationRounds`
_MOST_UPDATES = 2


class BufferConstraint(Struct, eq=False):
    """The layout of what an instruction makes (`BufferLayoutConstraint`)."""

    buffer: Buffer
    order: Order
    mandatory: bool
    dfs: bool
    priority: int
    updates: int = 0

    def update(self, new: "BufferConstraint") -> bool:
        """Take in another request; True if it changes anything."""
        if new.order == self.order:
            before = self.mandatory, self.dfs, self.priority
            self.mandatory |= new.mandatory
            self.dfs |= new.dfs
            self.priority = max(self.priority, new.priority)
            return before != (self.mandatory, self.dfs, self.priority)
        if not new.mandatory:
            defined_by_array = self.buffer.instruction.shape.is_array
            if self.updates >= _MOST_UPDATES or not defined_by_array or new.priority <= self.priority:
                return False
        self.order = new.order
        self.mandatory = new.mandatory
        self.dfs = new.dfs
        self.priority = new.priority
        self.updates += 1
        return True


class OperandConstraint(Struct, eq=False):
    """The layout an instruction wants an operand in (`OperandLayoutConstraint`)."""

    instruction: Instruction
    number: int
    shape: Shape
    mandatory: bool
    dfs: bool
    priority: int

    @property
    def operand(self) -> Instruction:
        return self.instruction.operands[self.number]

    def update(self, new: "OperandConstraint") -> bool:
        """Another layout is taken in only if it has to be, and not from a lower priority."""
        if same_layouts(self.shape, new.shape) or not new.mandatory or self.priority > new.priority:
            return False
        self.shape = new.shape
        self.mandatory = True
        self.dfs = new.dfs
        self.priority = new.priority
        return True


class ComputationConstraint(Struct, eq=False):
    """Layouts of parameters and result (`LayoutConstraints`, `ComputationLayoutConstraint`)."""

    computation: Computation
    parameters: list[Shape]
    result: Shape
    priority: int = DEFAULT_PRIORITY
    parameters_set: bool = False
    result_set: bool = False
    operands: dict[tuple[Instruction, int], OperandConstraint] = {}
    mandatory: bool = True
    dfs: bool = True
    free: frozenset[Index] = frozenset()
    """Elements of the result that may have any layout."""

    @classmethod
    def unset(cls, computation: Computation) -> "ComputationConstraint":
        """Row-major everywhere, nothing asked yet."""
        parameters = [row_major_everywhere(p.shape) for p in computation.parameters]
        return cls(computation, parameters, row_major_everywhere(computation.root.shape))

    def operand_shape(self, instruction: Instruction, number: int) -> Shape | None:
        found = self.operands.get((instruction, number))
        return found.shape if found is not None else None


Constraint = BufferConstraint | OperandConstraint | ComputationConstraint


def row_major_everywhere(shape: Shape) -> Shape:
    if shape.is_tuple:
        return Shape.tuple_of([row_major_everywhere(s) for s in shape.tuple_shapes])
    return descending(shape) if shape.is_array else shape


def same_layouts(a: Shape, b: Shape) -> bool:
    leaves = zip(a.leaves(), b.leaves(), strict=True)
    return all(x.minor_to_major == y.minor_to_major for (_, x), (_, y) in leaves)
