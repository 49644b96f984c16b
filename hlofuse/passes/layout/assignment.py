"""The buffers of a module, and what is asked of their layouts, passed on (`PropagateConstraints`) from one
side of an operation to a good layout of the other (`ChooseOperandLayoutFromOutputLayout`)."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from hlofuse.analysis.custom_calls import custom_call_target
from hlofuse.cost.gpu.shapes import inverse
from hlofuse.ir import Computation, Instruction, Module, Record, Shape, values, with_trait
from hlofuse.passes.base import accept_order
from hlofuse.passes.common.shapes import aligned, descending, ones_moved, others, permute, relaid, without

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
_FEW_OPERANDS = 8


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
            defined_by_array = self.buffer.instruction.is_array
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
    is_set: bool = False
    operands: dict[tuple[Instruction, int], OperandConstraint] = {}
    mandatory: bool = True
    dfs: bool = True

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
    if a is b:
        return True
    leaves = zip(a.leaves(), b.leaves(), strict=True)
    return all(x.minor_to_major == y.minor_to_major for (_, x), (_, y) in leaves)


Aligned = Callable[[Shape, Shape], Order | None]
"""The layout of the second shape that makes a reshape between the two a bitcast."""

# What cannot give its result another layout than its operands have (`InstructionCanChangeLayout`).
_KEEPS_LAYOUT = with_trait("keeps-layout")


def can_change_layout(instruction: Instruction) -> bool:
    """`InstructionCanChangeLayout`; the target `__gpu$TopK` is named by XLA:GPU's own alone."""
    if instruction.opcode == "custom-call":
        return custom_call_target(instruction) not in ("LayoutConstraint", "__gpu$TopK")
    return instruction.opcode not in _KEEPS_LAYOUT


def goes_depth_first(instruction: Instruction) -> bool:
    """`InstructionShouldPropagateDepthFirst`."""
    opcode = instruction.opcode
    if opcode == "reshape":
        source = instruction.operand.shape
        return source.rank == 1 or ones_moved(source, instruction.shape) is not None
    return opcode in ("gather", "scatter", "transpose") or instruction.fusion_kind == "kCustom"


def matching_order(
    order: Order, x: Instruction, number: int, aligned: Aligned, *, of_result: bool
) -> Order | None:
    """The layout of the result that goes well with an operand's, or that of the operand with the result's."""
    operand, opcode = x.operands[number].shape, x.opcode
    if of_result and opcode == "reduce" and x.is_tuple:
        return without(relaid(operand, order), x.dimensions).minor_to_major
    if operand.rank and operand.rank == x.rank and not can_change_layout(x):
        return order
    if opcode == "reshape":
        if operand.true_rank == 1 and x.shape.true_rank == 1:
            return None
        given, wanted = (operand, x.shape) if of_result else (x.shape, operand)
        return aligned(relaid(given, order), wanted)
    if opcode == "transpose":
        return permute(inverse(x.dimensions) if of_result else x.dimensions, order)
    return None


class Requests:
    """Layout constraints of one module (`LayoutAssignment::Set…Layout`)."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.buffers = Buffers(module)
        self.computations = dict[Computation, ComputationConstraint]()
        self.priority = 0  # Grows with each round
        self.of_buffer = dict[Buffer, BufferConstraint]()
        self.unconstrained = set[Buffer]()
        self.mismatched = dict[ComputationConstraint, Shape]()
        self._added = list[Constraint]()
        self.places = dict[Instruction, dict[Instruction, list[int]]]()
        """The numbers of operands, for instructions with many."""
        self.at_once = False  # All computations in one round

    def constraint_of(self, computation: Computation) -> ComputationConstraint:
        """`mutable_computation_constraints`."""
        found = self.computations.get(computation)
        if found is None:
            found = self.computations[computation] = ComputationConstraint.unset(computation)
        return found

    def set_buffer_layout(
        self,
        buffer: Buffer,
        order: Order,
        *,
        mandatory: bool = True,
        dfs: bool = True,
        priority: int | None = None,
    ) -> None:
        """`SetBufferLayout`."""
        self.unconstrained.discard(buffer)
        priority = self.priority if priority is None else priority
        new = BufferConstraint(buffer, order, mandatory, dfs, priority)
        constraint = self.of_buffer.setdefault(buffer, new)
        if constraint is not new and (not constraint.update(new) or buffer.shape.rank <= 1):
            return
        self.push(constraint)
        if buffer.instruction.opcode in ("custom-call", "fusion", "call"):
            for output, number, at in output_aliases(buffer.instruction):
                if output == buffer.index and not at:
                    self.set_array_operand_layout(
                        buffer.instruction, number, order, mandatory=mandatory, dfs=dfs, priority=priority
                    )

    def set_operand_layout(
        self,
        instruction: Instruction,
        number: int,
        shape: Shape,
        *,
        mandatory: bool = True,
        dfs: bool = True,
        priority: int | None = None,
    ) -> None:
        """`SetOperandLayout`."""
        if shape.is_array and not shape.rank:
            return
        priority = self.priority if priority is None else priority
        opcode = instruction.opcode
        if (opcode == "dynamic-update-slice" and number > 0 and not mandatory and priority > -2) or (
            opcode == "reshape" and not mandatory and instruction.operand.opcode == "dynamic-slice"
        ):
            dfs, priority = False, priority - 1
        new = OperandConstraint(instruction, number, shape, mandatory, dfs, priority)
        operands = self.computations[instruction.parent].operands
        constraint = operands.setdefault((instruction, number), new)
        if constraint is new or constraint.update(new):
            self.push(constraint)

    def set_array_operand_layout(
        self,
        instruction: Instruction,
        number: int,
        order: Order,
        *,
        mandatory: bool = True,
        dfs: bool = True,
        priority: int | None = None,
    ) -> None:
        """`SetArrayOperandLayout`."""
        found = self.computations[instruction.parent].operand_shape(instruction, number)
        if found is not None and found.is_array and found.minor_to_major == order:
            return  # as it has it, whoever asks; a concatenate of many parts is asked for all of them by each
        shape = relaid(instruction.operands[number].shape, order)
        self.set_operand_layout(instruction, number, shape, mandatory=mandatory, dfs=dfs, priority=priority)

    def set_instruction_layout(self, instruction: Instruction, shape: Shape) -> None:
        """`SetInstructionLayout`: of everything the instruction makes, and of operands that must agree."""
        found = self.buffers.of(instruction)
        for index, inner in shape.subshapes():
            if inner.is_array:
                self.set_buffer_layout(found[index], inner.minor_to_major)
        changes = instruction.opcode in ("while", "conditional") or can_change_layout(instruction)
        if shape.is_array and not changes:
            for number, operand in enumerate(instruction.operands):
                if operand.is_array and operand.rank == shape.rank:
                    self.set_array_operand_layout(instruction, number, shape.minor_to_major)

    def set_major(self, collective: Instruction) -> None:
        """The dimension along which it joins or divides is the most major one, as backends run it."""
        major, rank = collective.dimension, collective.rank
        order = (*(d for d in reversed(range(rank)) if d != major), major)
        self.set_instruction_layout(collective, relaid(collective.shape, order))

    def push(self, constraint: Constraint) -> None:
        """Add a constraint (`PushAddedConstraints`): depth-first ones last, others after higher priority."""
        if constraint.dfs:
            self._added.append(constraint)
            return
        at = len(self._added)
        while at and constraint.priority > self._added[at - 1].priority:
            at -= 1
        self._added.insert(at, constraint)


def output_aliases(instruction: Instruction) -> list[tuple[Index, int, Index]]:
    """Outputs that share memory with operands: output's place, the operand's number, the place in it."""
    aliases = instruction.attributes.get("output_to_operand_aliasing", ())
    return [(tuple(a.output_index), a.operand_number, tuple(a.operand_index)) for a in aliases]


class LayoutAssignment(Requests):
    """The layouts of one module. A target overrides the first three methods."""

    def add_backend_constraints(self, constraint: ComputationConstraint) -> None:
        """Add the constraints of the target's emitters and libraries."""

    def aligned_order(self, source: Shape, result: Shape) -> Order | None:
        """The layout of `result` that makes a reshape of `source` a bitcast."""
        found = aligned(source, result)
        return found.minor_to_major if found is not None else None

    def makes_rows(self, reduce: Instruction) -> bool:
        """True if a reduction's operand gets rows reduced (`PropagateReductionLayoutToOperand`)."""
        return False

    def propagate(self) -> None:
        """`PropagateConstraints`."""
        work = deque[Constraint]()
        while True:
            for added in self._added:
                if added.dfs:
                    work.appendleft(added)
                else:
                    work.append(added)
            self._added = []
            if not work:
                return
            constraint = work.popleft()
            if isinstance(constraint, BufferConstraint):
                self._to_operands(constraint)
                self._to_uses(constraint)
            elif isinstance(constraint, OperandConstraint):
                self._from_operand(constraint)
            else:
                root = constraint.computation.root
                self._to_definitions(constraint.result, root, self.priority)

    def _to_definitions(self, shape: Shape, instruction: Instruction, priority: int) -> None:
        """`PropagateUseConstraintToDefs`."""
        defined = self.buffers.of(instruction)
        for index, inner in shape.subshapes():
            if not inner.is_array:
                continue
            buffer = defined[index]
            creator = buffer.instruction
            if not creator.is_reduce or not creator.is_tuple:
                self.set_buffer_layout(buffer, inner.minor_to_major, mandatory=False, priority=priority)

    def _to_operands(self, constraint: BufferConstraint) -> None:
        """`PropagateBufferConstraintToOperands`."""
        buffer, order = constraint.buffer, constraint.order
        instruction = buffer.instruction
        if at_most_rank_1(instruction.shape):
            return
        if instruction.opcode == "all-reduce":
            number = buffer.index[0] if instruction.operand_count > 1 else 0
            self.set_array_operand_layout(instruction, number, order, priority=constraint.priority)
            return
        depth_first = goes_depth_first(instruction)
        for number, operand in enumerate(instruction.operands):
            if at_most_rank_1(operand.shape):
                continue
            if not can_change_layout(instruction):
                if operand.is_array and operand.rank == len(order):
                    self.set_array_operand_layout(instruction, number, order)
            elif instruction.is_broadcast:
                added = others(instruction.rank, instruction.dimensions)
                inner = without(relaid(instruction.shape, order), added).minor_to_major
                self.set_array_operand_layout(instruction, number, inner, dfs=depth_first)
            elif (
                not buffer.index
                and operand.is_array
                and (found := self._operand_order(order, instruction, number)) is not None
            ):
                self.set_array_operand_layout(instruction, number, found, mandatory=False, dfs=depth_first)

    def _operand_order(self, order: Order, instruction: Instruction, number: int) -> Order | None:
        """`ChooseOperandLayoutFromOutputLayout`."""
        if instruction.is_reduce and not instruction.is_tuple:
            remaining = others(instruction.operand.rank, instruction.dimensions)
            rows = (*reversed(instruction.dimensions), *(remaining[d] for d in order))
            return rows if self.makes_rows(instruction) else None
        return matching_order(order, instruction, number, self.aligned_order, of_result=False)

    def _to_uses(self, constraint: BufferConstraint) -> None:
        """`PropagateBufferConstraintToUses`, and through the back edge of a loop."""
        buffer, order = constraint.buffer, constraint.order
        for user, number in self.readers(buffer):
            if not self.buffers.forwards(user, number):
                self.set_array_operand_layout(
                    user, number, order, mandatory=False, priority=constraint.priority
                )
        computation = buffer.instruction.parent
        callers = list(computation.callers)
        if len(callers) != 1 or not callers[0].is_while or computation.root.opcode != "tuple":
            return
        if computation.root in buffer.instruction.users:
            at = computation.root.operands.index(buffer.instruction)
            carried = self.buffers.defined_by(computation.parameter)[at, *buffer.index]
            self.set_buffer_layout(carried, order, mandatory=False)

    def readers(self, buffer: Buffer) -> Iterator[tuple[Instruction, int]]:
        """Every operand that is this array (`GetArrayUsesOfBuffer`)."""
        for alias, _ in self.buffers.aliases(buffer):
            for user in alias.users if alias.is_array else ():
                for number in self._places(user, alias):
                    yield user, number

    def _places(self, user: Instruction, operand: Instruction) -> Sequence[int]:
        """The numbers under which it reads an operand."""
        if user.operand_count <= _FEW_OPERANDS:
            return [number for number, x in enumerate(user.operands) if x is operand]
        if user not in self.places:
            self.places[user] = {}
            for number, x in enumerate(user.operands):
                self.places[user].setdefault(x, []).append(number)
        return self.places[user].get(operand, ())

    def _from_operand(self, constraint: OperandConstraint) -> None:
        """`PropagateOperandConstraint`."""
        operand, user, number = constraint.operand, constraint.instruction, constraint.number
        if at_most_rank_1(operand.shape):
            return
        priority = constraint.priority
        self._to_definitions(constraint.shape, operand, priority)
        if user.opcode == "custom-call":
            self._to_aliased_output(constraint)
        if user.opcode == "all-reduce":
            index = (number,) if user.operand_count > 1 else ()
            self.set_buffer_layout(self.buffers.defined_by(user)[index], constraint.shape.minor_to_major)
        changes = can_change_layout(user)
        if not operand.is_array or (changes and not user.is_array and not user.is_reduce):
            return
        if self.buffers.forwards(user, number):
            return
        order, rank = constraint.shape.minor_to_major, operand.rank
        defined = [
            (inner, self.buffers.defined_by(user)[index])
            for index, inner in user.shape.subshapes()
            if inner.is_array and inner.rank > 1 and index in self.buffers.defined_by(user)
        ]
        if not changes or user.is_reduce:
            if user.is_concatenate:
                d = user.dimensions[0]
                if any(o.sizes[d] > operand.sizes[d] for o in user.operands):
                    return
            for k, sibling in enumerate(user.operands):
                if sibling is not operand and sibling.is_array and sibling.rank == rank:
                    self.set_array_operand_layout(user, k, order, priority=priority)
            for inner, buffer in defined:
                if inner.rank == rank:
                    must = not self._has_by_choice(buffer, order)
                    self.set_buffer_layout(buffer, order, mandatory=must, priority=priority)
            return
        for _, buffer in defined:
            found = matching_order(order, user, number, self.aligned_order, of_result=True)
            if found is not None:
                must = user.is_transpose and not self._has_by_choice(buffer, found)
                dfs = goes_depth_first(user)
                self.set_buffer_layout(buffer, found, mandatory=must, dfs=dfs, priority=priority)

    def _has_by_choice(self, buffer: Buffer, order: Order) -> bool:
        """True if it has this layout already and need not have it, which from 0.12 on stays so."""
        found = self.of_buffer.get(buffer) if self.at_once else None
        return found is not None and found.order == order and not found.mandatory

    def _to_aliased_output(self, constraint: OperandConstraint) -> None:
        """`PropagateOperandConstraintToResultForCustomCall`."""
        user = constraint.instruction
        for output, number, _ in output_aliases(user):
            buffer = self.buffers.defined_by(user).get(output)
            if number == constraint.number and constraint.shape.is_array:
                if buffer is not None:
                    order = constraint.shape.minor_to_major
                    must = not can_change_layout(user)
                    self.set_buffer_layout(
                        buffer, order, mandatory=must, dfs=False, priority=constraint.priority
                    )
                return


def at_most_rank_1(shape: Shape) -> bool:
    """`IsAtMostRank1`."""
    return all(leaf.rank <= 1 for leaf in shape.leaf_shapes)
