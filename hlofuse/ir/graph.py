"""XLA's graph: instructions in computations in a module (`hlo_{instruction,computation,module}.h`)."""

from __future__ import annotations

import typing
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, TypeAlias

from hlofuse.ir.attributes.metadata import SourceLocation, StackFrames
from .attributes.attributes import NO_ATTRIBUTES, UNREAD, Attributes
from .errors import HlofuseError
from .grouping import numbered, post_order
from .literal import Literal
from .names import NO_ORIGIN, PARAMETER_NAMES, NameUniquer, Origin, joined
from .native import mypyc_attr
from .opcodes import PrintOptions
from .shape import Dims, Shape
from .unknown import OPAQUE, Unknown

OrderSource: TypeAlias = typing.Literal["xla", "replayed", "estimated", "text"]
"""XLA's ids; its earlier passes, repeated; an estimate; the order of the text."""
_MANY = 64
_FEW_SLOTS = 1024  # from so many users on looking for one in the list costs more than keeping their places


class ComputationOrder(typing.Protocol):
    """Follows what computations are added, removed and called (`hlofuse.ir.computation_order`)."""

    def add(self, computation: Computation) -> None: ...

    def remove(self, computation: Computation) -> None: ...

    def add_edge(self, caller: Computation, callee: Computation) -> None: ...

    def post_order(self) -> Computations: ...

    def copy(self, computations: dict[Computation, Computation]) -> ComputationOrder: ...


class GraphListener(typing.Protocol):
    """Is called when an instruction takes the place of another one (`Module.listeners`)."""

    def replaced(self, old: Instruction, new: Instruction) -> None:
        """`new` is read where `old` was."""

    def copied(self, old: Instruction, new: Instruction) -> None:
        """`new`, in no computation yet, does what `old` does."""

    def removed(self, old: Instruction) -> None:
        """`old` is no longer in the module."""


@mypyc_attr(allow_interpreted_subclasses=True)  # with it, __new__ alone makes a bare one there too
class Instruction:
    """An operation with its operands and users. `operands` and `users` are read freely but changed only
    through the methods here and in `Computation`, which keep both ends in step. `users` is ordered and holds
    each user once, as XLA's decisions need it (a removed user is replaced by the last one)."""

    __slots__ = (
        "__weakref__",
        "_control",
        "_places",
        "attributes",
        "called",
        "computation",
        "id",
        "name",
        "opcode",
        "operands",
        "origin",
        "payload",
        "shape",
        "users",
    )

    name: str
    opcode: str
    shape: Shape
    operands: Instructions
    users: Instructions
    attributes: Attributes
    called: Sequence[tuple[str, Computation]]
    """Called computations with the attribute that names each, in XLA's order of `called_computations()`."""
    computation: Computation | None
    id: int
    """XLA's local id: the slot in the computation's list. Later additions have greater ids."""
    origin: Origin
    """Names of the instructions of the run's input that it comes from; a fusion has that of its result."""
    payload: str | None
    """The text in the parentheses of a parameter or constant; the opcode as written of an opaque one."""
    _control: tuple[Instructions, Instructions] | None
    """Control predecessors and successors; hardly any instruction has them."""
    _places: dict[Instruction, int] | None
    """The last place of each of very many users in the list; None or too short until needed."""

    def __init__(
        self,
        name: str,
        shape: Shape,
        opcode: str,
        operands: Iterable[Instruction] = (),
        attributes: Attributes = NO_ATTRIBUTES,
        *,
        called: Sequence[tuple[str, Computation]] = (),
        payload: str | None = None,
    ) -> None:
        self.name = name
        self.shape = shape
        self.opcode = opcode
        self.attributes = attributes
        self.called = called
        self.payload = payload
        self.origin = NO_ORIGIN
        self.computation = None
        self.id = -1
        self.users = []
        self._control = None
        self._places = None
        self.operands = list(operands)
        for operand in self.operands:
            operand.add_user(self)

    def __repr__(self) -> str:
        return f"<{self.opcode} {self.name}>"

    @property
    def is_root(self) -> bool:
        return self.computation is not None and self.computation.root is self

    @property
    def computation_name(self) -> str:
        """The name of the computation it is in; empty for a removed one."""
        return self.computation.name if self.computation is not None else ""

    @property
    def fusion_around(self) -> Instruction | None:
        """The fusion in whose body it is."""
        return self.computation.fusion if self.computation is not None else None

    def called_by(self, *opcodes: str) -> Instruction | None:
        """The first caller of the computation it is in, if that has one of these opcodes."""
        caller = self.computation.first_caller if self.computation is not None else None
        return caller if caller is not None and caller.opcode in opcodes else None

    @property
    def element_type(self) -> str:
        """`f32`, the type of the elements of an array."""
        return self.shape.element_type

    @property
    def rank(self) -> int:
        return self.shape.rank

    @property
    def sizes(self) -> Dims:
        """The sizes of the dimensions of an array (`shape().dimensions()`)."""
        return self.shape.dimensions

    @property
    def element_count(self) -> int:
        return self.shape.element_count

    @property
    def is_array(self) -> bool:
        return self.shape.is_array

    @property
    def is_tuple(self) -> bool:
        return self.shape.is_tuple

    @property
    def byte_size(self) -> int:
        return self.shape.byte_size

    @property
    def minor_to_major(self) -> Dims:
        return self.shape.minor_to_major

    @property
    def parent(self) -> Computation:
        """The computation that it is in; ValueError for none."""
        if self.computation is None:
            raise ValueError(f"{self.name} is in no computation")
        return self.computation

    @property
    def operand(self) -> Instruction:
        """The first operand: what a unary operation acts on, and a slice, pad, reduce or gather reads."""
        return self.operands[0]

    @property
    def is_parameter(self) -> bool:
        return self.opcode == "parameter"

    @property
    def is_constant(self) -> bool:
        return self.opcode == "constant"

    @property
    def is_broadcast(self) -> bool:
        return self.opcode == "broadcast"

    @property
    def is_get_tuple_element(self) -> bool:
        return self.opcode == "get-tuple-element"

    @property
    def is_bitcast(self) -> bool:
        return self.opcode == "bitcast"

    @property
    def is_dot(self) -> bool:
        return self.opcode == "dot"

    @property
    def is_reduce(self) -> bool:
        return self.opcode == "reduce"

    @property
    def is_while(self) -> bool:
        return self.opcode == "while"

    @property
    def is_transpose(self) -> bool:
        return self.opcode == "transpose"

    @property
    def is_slice(self) -> bool:
        return self.opcode == "slice"

    @property
    def is_concatenate(self) -> bool:
        return self.opcode == "concatenate"

    @property
    def is_reshape(self) -> bool:
        return self.opcode == "reshape"

    @property
    def is_fusion(self) -> bool:
        return self.opcode == "fusion"

    @property
    def second(self) -> Instruction:
        """The second operand."""
        return self.operands[1]

    @property
    def operand_count(self) -> int:
        return len(self.operands)

    @property
    def tuple_size(self) -> int:
        """The number of elements of a tuple."""
        return len(self.shape.tuple_shapes)

    @property
    def user_count(self) -> int:
        return len(self.users)

    @property
    def user(self) -> Instruction:
        """The first user; the only one of an operation with one."""
        return self.users[0]

    def raw(self, name: str, default: str | None = None) -> str | None:
        """The text of an attribute as written, see `Attributes.raw`."""
        return self.attributes.raw(name, default)

    @property
    def called_computations(self) -> Computations:
        return [c for _, c in self.called]

    @property
    def to_apply(self) -> Computation:
        """The function of a reduction, scatter, sort, call or start of one (`HloInstruction::to_apply`)."""
        return self.called[0][1]

    @property
    def fused_computation(self) -> Computation:
        """The computation of a fusion (`fused_instructions_computation`)."""
        return self.called[0][1]

    @property
    def fused_root(self) -> Instruction:
        """The root inside a fusion (`fused_expression_root`)."""
        return self.called[0][1].root

    def parameter_of(self, operand: Instruction) -> Instruction:
        """The parameter by which a fusion reads an operand, the first of several."""
        return self.called[0][1].parameters[self.operands.index(operand)]

    def past(self, *opcodes: str) -> Instruction:
        """The operand of an operation that is one of these; another one itself."""
        return self.operands[0] if self.opcode in opcodes else self

    def through(self, *opcodes: str) -> Instruction:
        """`past` until it is none of these."""
        x = self
        while x.opcode in opcodes:
            x = x.operands[0]
        return x

    @property
    def outputs(self) -> Instructions:
        """The elements of a tuple; of another root itself."""
        return list(self.operands) if self.opcode == "tuple" else [self]

    @property
    def is_opaque(self) -> bool:
        """True for an unknown opcode: a custom call with a side effect; `payload` is the written opcode."""
        return self.opcode == "custom-call" and self.payload is not None

    @property
    def written_attributes(self) -> Attributes:
        """The attributes as printed: of an unknown opcode, without those of a custom call."""
        attributes = self.attributes
        if self.is_opaque and attributes.raw(OPAQUE[0]) == f'"{self.payload}"':
            return attributes.without(*OPAQUE)
        return attributes

    @property
    def fusion_kind(self) -> str | None:
        """kLoop, kInput, kOutput, kCustom; None for what is not a fusion."""
        return self.raw("kind") if self.is_fusion else None

    @property
    def is_multi_output_fusion(self) -> bool:
        return self.is_fusion and self.fused_root.opcode == "tuple"

    @property
    def parameter_number(self) -> int:
        return int(self.payload or 0)

    @property
    def literal(self) -> Literal:
        return Literal(self.shape, self.payload or "")

    @property
    def dimensions(self) -> Dims:
        """The `dimensions` attribute; empty where it has none."""
        value: Any = self.attributes.get("dimensions", ())
        return tuple(value)

    @property
    def dimension(self) -> int:
        """The first of them; the only one of a concatenate, a sort or a scan."""
        return self.dimensions[0]

    @property
    def frontend_attributes(self) -> dict[str, str]:
        """The values of `frontend_attributes` by name; empty where it has none."""
        found: dict[str, str] = self.attributes.get("frontend_attributes")
        return found or {}

    @property
    def tuple_index(self) -> int:
        return int(self.raw("index") or 0)

    @property
    def op_name(self) -> str | None:
        """The framework's name for the operation, from the metadata."""
        op_name = self.attributes.op_name
        return op_name if op_name is not UNREAD else self.attributes.read_op_name()

    def add_user(self, user: Instruction) -> None:
        """Append `user` unless it is there (`HloInstruction::Users::AddUser`)."""
        users = self.users
        if not users:
            users.append(user)
        elif len(users) < _MANY:
            if users[-1] is not user and user not in users:
                users.append(user)
        else:
            places = self._user_places()
            if user not in places:
                places[user] = len(users)
                users.append(user)

    def remove_user(self, user: Instruction) -> None:
        """Take `user` out; the last user takes its place (`HloInstruction::Users::RemoveUser`)."""
        users = self.users
        if len(users) < _MANY:
            last = users.pop()
            if last is not user:
                users[users.index(user)] = last
            return
        places = self._user_places()
        place = places.pop(user)
        if place >= len(users) or users[place] is not user:  # somebody has put them in another order
            place = users.index(user)
        last = users.pop()
        if last is not user:
            users[place] = last
            places[last] = place
        if len(users) < _MANY:
            self._places = None

    def _user_places(self) -> dict[Instruction, int]:
        places = self._places
        if places is None or len(places) != len(self.users):
            places = self._places = numbered(self.users)
        return places

    def replace_operand(self, number: int, new: Instruction) -> None:
        """Make `new` the operand at `number` (`HloInstruction::ReplaceOperandWith`)."""
        old = self.operands[number]
        if old is new:
            return
        self.operands[number] = new
        if old not in self.operands:
            old.remove_user(self)
        new.add_user(self)
        self._forget_order()

    def append_operand(self, operand: Instruction) -> None:
        self.operands.append(operand)
        operand.add_user(self)
        self._forget_order()

    def remove_operand(self, number: int) -> None:
        """Drop the operand at `number`, later ones move down."""
        old = self.operands.pop(number)
        if old not in self.operands:
            old.remove_user(self)
        self._forget_order()

    def replace_use_with(self, user: Instruction, new: Instruction) -> None:
        """`user` uses `new` wherever it used this (`HloInstruction::ReplaceUseWith`)."""
        self.remove_user(user)
        operands = user.operands
        for i, operand in enumerate(operands):
            if operand is self:
                operands[i] = new
        new.add_user(user)
        user._forget_order()

    def replace_all_uses_with(self, new: Instruction) -> None:
        """All users but `new` itself, and the root role, go over to `new` (`ReplaceAllUsesWith`)."""
        users = self.users
        self.users, self._places = [], None
        # Where it has none yet, as nearly always, they become its users as they stand.
        at_once = not new.users and new not in users
        if at_once:
            new.users, new._places = users, None
        for user in users:
            if user is new:
                self.users.append(user)
                continue
            operands = user.operands
            for _ in range(operands.count(self)):
                operands[operands.index(self)] = new
            if not at_once:
                new.add_user(user)
        if (computation := self.computation) is not None:
            computation._order = None
            if computation.root is self:
                computation.root = new
            if computation.module is not None:
                computation.module.note_replacement(self, new)

    @property
    def control_predecessors(self) -> InstructionSequence:
        """Instructions that must run before this one without being operands."""
        return self._control[0] if self._control is not None else ()

    @property
    def control_successors(self) -> InstructionSequence:
        """Instructions that must run after this one without being users."""
        return self._control[1] if self._control is not None else ()

    @property
    def predecessors(self) -> InstructionSequence:
        """All that has to run before: the operands, then those of control edges."""
        return *self.operands, *self.control_predecessors

    @property
    def successors(self) -> InstructionSequence:
        """All that waits for it: the users, then those of control edges."""
        return *self.users, *self.control_successors

    @property
    def has_control_dependencies(self) -> bool:
        return self._control is not None and any(self._control)

    def add_control_dependency_to(self, successor: Instruction) -> None:
        """This must run before `successor` (`HloInstruction::AddControlDependencyTo`)."""
        if successor not in self.control_successors:
            self._control = self._control or ([], [])
            successor._control = successor._control or ([], [])
            self._control[1].append(successor)
            successor._control[0].append(self)
            self._forget_order()

    def drop_all_control_dependencies(self) -> None:
        """Forget what must run before and after this one (`DropAllControlDeps`)."""
        for p in self.control_predecessors:
            assert p._control is not None
            p._control[1].remove(self)
        for s in self.control_successors:
            assert s._control is not None
            s._control[0].remove(self)
        self._control = None
        self._forget_order()

    def clone(
        self,
        operands: Iterable[Instruction] | None = None,
        *,
        name: str | None = None,
        shape: Shape | None = None,
    ) -> Instruction:
        """A free-standing copy that calls the same computations (`CloneWithNewOperands`)."""
        copy = self.bare_copy()
        copy.name, copy.shape = name or self.name, shape or self.shape
        for operand in self.operands if operands is None else operands:
            copy.append_operand(operand)
        return copy

    def _forget_order(self) -> None:
        if self.computation is not None:
            self.computation._order = None

    def _note_copy(self, copy: Instruction) -> None:
        module = self.computation.module if self.computation is not None else None
        if module is not None:
            for listener in module.listeners:
                listener.copied(self, copy)

    def bare_copy(self) -> Instruction:
        """A free-standing copy that has no operands yet and calls the same computations."""
        copy = Instruction.__new__(Instruction)
        copy.computation = None
        copy.id = -1
        copy.operands = []
        copy.users = []
        copy._control = None
        copy._places = None
        copy.become(self)
        return copy

    def become(self, other: Instruction) -> None:
        """Do what `other` does, under its name; who reads this and what it reads stays."""
        attributes = other.attributes
        # What must run before an instruction does not hold for its copy.
        if other._control is not None and attributes.raw("control-predecessors") is not None:
            attributes = attributes.without("control-predecessors")
        self.name = other.name
        self.shape = other.shape
        self.opcode = other.opcode
        self.attributes = attributes
        self.called = other.called
        self.payload = other.payload
        self.origin = other.origin
        other._note_copy(self)
        if not self.operands:
            self.operands = []  # the parameters and constants of a text share one empty list


Predicate: TypeAlias = Callable[[Instruction], bool]
Instructions: TypeAlias = list[Instruction]
InstructionSequence: TypeAlias = Sequence[Instruction]
InstructionMap: TypeAlias = dict[Instruction, Instruction]


class Computation:
    """Instructions in the order they were added, and a root. An instruction's `id` is its slot in the list; a
    removed one leaves a hole, so that ids keep telling age as they do in XLA."""

    __slots__ = (
        "__weakref__",
        "_callers",
        "_most_slots",
        "_order",
        "_slots",
        "attributes_text",
        "module",
        "name",
        "parameters",
        "root",
    )

    root: Instruction
    """Set once the last instruction is in; asking before is an AttributeError."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.module: Module | None = None
        self._slots: list[Instruction | None] = []
        self._most_slots = _FEW_SLOTS
        """With more, the holes among them are closed when parameters get new ones."""
        self._order: Instructions | None = None
        """The post order, until something changes that it depends on."""
        self.parameters: Instructions = []
        self._callers: Instruction | dict[Instruction, int] | None = None
        self.attributes_text = ""
        """The text after the closing brace: `, execution_thread="main"`."""

    def __repr__(self) -> str:
        return f"<computation {self.name}>"

    @property
    def callers(self) -> dict[Instruction, int]:
        """Instructions that call this computation, in the order they came to do so, with how often."""
        callers = self._callers
        if not isinstance(callers, dict):
            # Nearly every computation has one caller: a dict is made when somebody looks.
            callers = self._callers = {} if callers is None else {callers: 1}
        return callers

    @callers.setter
    def callers(self, callers: dict[Instruction, int]) -> None:
        self._callers = callers

    @property
    def first_caller(self) -> Instruction | None:
        """The first of the callers; of a body of a loop or a branch the only one. None for the entry."""
        callers = self._callers
        return next(iter(callers), None) if isinstance(callers, dict) else callers

    def add_caller(self, instruction: Instruction) -> None:
        """Note that `instruction` calls this, once more."""
        if self._callers is None:
            self._callers = instruction
        else:
            callers = self.callers
            callers[instruction] = callers.get(instruction, 0) + 1
        order = self.module.computation_order if self.module is not None else None
        if order is not None and instruction.computation is not None:
            order.add_edge(instruction.computation, self)

    @property
    def parent(self) -> Module:
        """The module that it is in; ValueError for none."""
        if self.module is None:
            raise ValueError(f"{self.name} is in no module")
        return self.module

    @property
    def parameter(self) -> Instruction:
        """The first parameter; the only one of a branch, and of a loop's body and condition."""
        return self.parameters[0]

    @property
    def instructions(self) -> Instructions:
        """The instructions, oldest first."""
        return list(filter(None, self._slots))

    def __iter__(self) -> Iterator[Instruction]:
        return filter(None, self._slots)  # lazily: it meets what is added on the way

    def __len__(self) -> int:
        return len(self._slots) - self._slots.count(None)

    @property
    def next_id(self) -> int:
        return len(self._slots)

    def added_since(self, first: int) -> Instructions:
        """Remaining instructions added since `next_id` was `first`."""
        return [i for i in self._slots[first:] if i is not None]

    @property
    def is_entry(self) -> bool:
        return self.module is not None and self.module.entry is self

    @property
    def fusion(self) -> Instruction | None:
        """The fusion instruction whose body this is (`FusionInstruction`)."""
        callers = self._callers
        for caller in callers if isinstance(callers, dict) else (callers,):
            if caller is not None and caller.is_fusion:
                return caller
        return None

    def find(self, name: str) -> Instruction | None:
        """The instruction of that name; a linear search."""
        return next((i for i in self if i.name == name), None)

    def post_order(
        self,
        but_for: Iterable[Instruction] = (),
        starts: Iterable[Instruction | None] | None = None,
    ) -> Instructions:
        """Operands and control predecessors before their users (`MakeInstructionPostOrder`). The order is
        XLA's to the last instruction, because passes and printing follow it. `but_for`: leaves to omit.
        `starts`: the instructions without users, if known."""
        whole = not but_for and starts is None
        if whole and self._order is not None:
            return self._order.copy()
        order: Instructions = []
        emit = order.append
        entered = set(but_for)
        enter = entered.add
        for start in self._slots if starts is None else starts:
            if start is None or start.users or start in entered:
                continue
            enter(start)
            current, left = start, _waits_for(start)
            waiting = []
            while True:
                for earlier in left:
                    if earlier in entered:
                        continue
                    enter(earlier)
                    if earlier.operands or earlier._control is not None:
                        waiting.append((current, left))
                        current = earlier
                        left = iter(earlier.operands) if earlier._control is None else _waits_for(earlier)
                        break
                    emit(earlier)
                else:
                    emit(current)
                    if not waiting:
                        break
                    current, left = waiting.pop()
        if whole:
            self._order = order.copy()
        return order

    def unreachable_roots(self) -> Instructions:
        """Instructions without users and control successors, except the root (`CollectUnreachableRoots`)."""
        return [i for i in self if not i.users and i is not self.root and not i.control_successors]

    def add_instruction(self, instruction: Instruction, name: str | None = None) -> Instruction:
        """Put `instruction` at the end, under a name made unique in the module."""
        if name is not None:
            instruction.name = name
        if self.module is not None:
            instruction.name = self.module.instruction_names.unique(instruction.name)
        self.append_parsed(instruction)
        return instruction

    def append_parsed(self, instruction: Instruction) -> Instruction:
        """Put `instruction` at the end under the name it has."""
        self.append_unnumbered(instruction)
        if instruction.is_parameter:
            self._number_parameter(instruction)
        return instruction

    def append_parameter(self, name: str, shape: Shape) -> Instruction:
        """A new parameter at the end, with the next number."""
        number = str(len(self.parameters))
        return self.append_parsed(Instruction(name, shape, "parameter", payload=number))

    def append_unnumbered(self, instruction: Instruction) -> None:
        """Put it at the end, where the caller will say in `parameters` which number a parameter has."""
        instruction.computation = self
        slots = self._slots
        self._order = None
        instruction.id = len(slots)
        slots.append(instruction)
        if instruction.called:
            for _, callee in instruction.called:
                callee.add_caller(instruction)

    def _number_parameter(self, parameter: Instruction) -> None:
        # Parameters may come in any order. A text may also name a number far too high, so room for the
        # missing ones is never made: the list is kept in order of numbers and its reader checks for gaps.
        parameters, number = self.parameters, parameter.parameter_number
        if not parameters or parameters[-1].parameter_number < number:
            parameters.append(parameter)
            return
        place = number
        if number >= len(parameters) or parameters[number].parameter_number != number:
            place = bisect_left(parameters, number, key=lambda p: p.parameter_number)
        if place < len(parameters) and parameters[place].parameter_number == number:
            parameters[place] = parameter
        else:
            parameters.insert(place, parameter)

    def add_parameter(self, shape: Shape, number: int) -> Instruction:
        """A new parameter at the end, named as XLA names those of fusions; not in `parameters` yet."""
        module = self.module
        name = module.instruction_names.parameter(number) if module is not None else PARAMETER_NAMES[number]
        slots = self._slots
        # `Instruction(…)` takes twice as long, and there are thousands.
        parameter = Instruction.__new__(Instruction)
        parameter.name = name
        parameter.shape = shape
        parameter.opcode = "parameter"
        parameter.attributes = NO_ATTRIBUTES
        parameter.called = ()
        parameter.payload = str(number)
        parameter.origin = NO_ORIGIN
        parameter.computation = self
        parameter.id = len(slots)
        parameter.operands = []
        parameter.users = []
        parameter._control = None
        parameter._places = None
        slots.append(parameter)
        self._order = None
        return parameter

    def fill_parameter(self, number: int, source: Instruction) -> Instruction:
        """The parameter of that number becomes a copy of `source` that reads nothing yet. It is as if a copy
        had been added and had taken over the parameter's uses, for that to be removed."""
        filled = self.parameters[number]
        self.vacate(filled)
        filled.become(source)
        self.add_instruction(filled)
        self.drop_parameter(number)
        return filled

    def vacate(self, instruction: Instruction) -> None:
        """Leave a hole where it stands; it is about to be put at the end."""
        self._slots[instruction.id] = None
        self._order = None

    def drop_parameter(self, number: int) -> None:
        """Let a parameter no longer be one: every later one gets a new number, name and id."""
        parameters = self.parameters
        del parameters[number]
        if number < len(parameters):
            self.renew_parameters(parameters, number)

    def renew_parameters(self, parameters: Sequence[Instruction | None], first: int) -> None:
        """Move the parameters from number `first` on to the end under their numbers, like new ones. None is a
        parameter that will be removed, whose name is never visible."""
        slots = self._slots
        if len(slots) > self._most_slots:
            self.reorder(self.instructions)
            self._most_slots, slots = 2 * len(self._slots) + _FEW_SLOTS, self._slots
        self._order = None
        names = self.module.instruction_names if self.module is not None else None
        for k in range(first, len(parameters)):
            parameter = parameters[k]
            if parameter is None:
                if names is not None:
                    names.skip_parameter(k)
                continue
            parameter.payload = str(k)
            parameter.name = names.parameter(k) if names is not None else PARAMETER_NAMES[k]
            slots[parameter.id] = None
            parameter.id = len(slots)
            slots.append(parameter)

    def remove_instruction(self, instruction: Instruction) -> None:
        """Remove an instruction without users. `HlofuseError` where control dependencies stand, as in XLA."""
        if instruction.users or instruction is self.root:
            raise ValueError(f"{instruction.name} is still in use")
        control = instruction._control
        if control is not None and (control[0] or control[1]):
            raise HlofuseError(
                f"cannot remove instruction: {instruction.name} has been fused but has control "
                "dependencies; XLA stops here with the same error"
            )
        self._slots[instruction.id] = None
        self._order = None
        instruction.computation = None
        if self.module is not None:
            for listener in self.module.listeners:
                listener.removed(instruction)
        if operands := instruction.operands:
            for operand in operands if len(operands) == 1 else dict.fromkeys(operands):
                operand.remove_user(instruction)
            instruction.operands = []
        if instruction.called:
            for _, callee in instruction.called:
                callee.callers.pop(instruction, None)

    def reorder(self, instructions: Instructions) -> None:
        """Give the instructions ids in this order, oldest first; all of them have to be there."""
        self._slots = list(instructions)
        self._order = None
        for number, instruction in enumerate(instructions):
            instruction.id = number


def _waits_for(instruction: Instruction) -> Iterator[Instruction]:
    """Its predecessors: control predecessors, the last one first, then operands."""
    if instruction._control is None:
        return iter(instruction.operands)
    return chain(reversed(instruction.control_predecessors), instruction.operands)


Computations: TypeAlias = list[Computation]


class Module:
    """Computations, one of them the entry, with the header's attributes and the source tables. `computations`
    is XLA's processing order for a freshly read dump (callees first), later additions at the end;
    `computation_post_order` works the order out again."""

    entry: Computation
    """Set by the reader; reading it earlier is an AttributeError."""

    def __init__(self, name: str, attributes: Attributes = NO_ATTRIBUTES) -> None:
        self.name = name
        self.attributes = attributes
        """Header attributes: `is_scheduled`, `entry_computation_layout`, `input_output_alias`…"""
        self.computations = list[Computation]()
        self._stack_frames: StackFrames | Callable[[], StackFrames] = StackFrames()
        self.instruction_names = NameUniquer()
        self.computation_names = NameUniquer()
        self.filename: str | None = None
        self.findings = dict[str, Any]()
        """Cached facts about the input, by key; a copy begins without."""
        self.lowered_from: str | None = None
        """The form of a program that it was lowered from (StableHLO); None for a module that XLA wrote."""
        self.text_note: str | None = None
        """The place of the module in a longer text, and its truncation; None for a text of its own."""
        self.unknown: Unknown | None = None
        """The parts of the text that the grammar does not know; None where it knows all."""
        self.print_options = PrintOptions()
        """The form in which the module was written, also the default for printing."""
        self.computation_order: ComputationOrder | None = None
        """XLA's order of the computations, where it is known from the front end on."""
        self.processing_order = list[Computation]()
        """The order in which passes go through computations, where it is known to be another one."""
        self.order_source: OrderSource | None = None
        """The source of ids and use-lists; None until it is decided (`hlofuse.order`)."""
        self.schedules = dict[Computation, Instructions]()
        """Orders of execution that no longer follow from the graph."""
        self.devices = 1
        """Devices that a partitioner is yet to divide the module over, as far as a replay knows; else 1."""
        self.listeners = list[GraphListener]()
        """Are called for replacements and copies; a copy of the module has none."""

    def __repr__(self) -> str:
        return f"<module {self.name}>"

    @property
    def stack_frames(self) -> StackFrames:
        """The source tables of the dump; empty where it has none."""
        frames = self._stack_frames
        if not isinstance(frames, StackFrames):
            frames = self._stack_frames = frames()
        return frames

    def defer_stack_frames(self, read: Callable[[], StackFrames]) -> None:
        """Have the tables made by `read` when they are first looked at."""
        self._stack_frames = read

    @property
    def is_scheduled(self) -> bool:
        return self.attributes.raw("is_scheduled") == "true"

    def instructions(self) -> Iterator[Instruction]:
        """Every instruction of every computation."""
        for computation in self.computations:
            yield from computation

    @property
    def instruction_count(self) -> int:
        """The instructions of all computations."""
        return sum(map(len, self.computations))

    def begin_run(self) -> None:
        """Make every instruction its own origin: a run begins with this module as its input."""
        for instruction in self.instructions():
            instruction.origin = instruction.name

    def note_replacement(self, old: Instruction, new: Instruction) -> None:
        """`new` is read where `old` was: it takes over the origin, and listeners are called."""
        new.origin = joined(new.origin, old.origin)
        for listener in self.listeners:
            listener.replaced(old, new)

    def find_computation(self, name: str) -> Computation | None:
        return next((c for c in self.computations if c.name == name), None)

    def find(self, name: str) -> Instruction | None:
        """The instruction of that name (a leading % is ignored); a linear search."""
        name = name.lstrip("%")
        return next((i for i in self.instructions() if i.name == name), None)

    def add_computation(self, computation: Computation) -> Computation:
        """Take in a computation; its name and its instructions' names are made unique."""
        computation.name = self.computation_names.unique(computation.name)
        for instruction in computation:
            instruction.name = self.instruction_names.unique(instruction.name)
        computation.module = self
        self.computations.append(computation)
        if self.computation_order is not None:
            self.computation_order.add(computation)
        return computation

    def remove_computation(self, *removed: Computation) -> None:
        """Remove computations that only these call."""
        for computation in removed:
            for instruction in computation:
                for _, callee in instruction.called:
                    callee.callers.pop(instruction, None)
                for listener in self.listeners:
                    listener.removed(instruction)
            computation.module = None
            if self.computation_order is not None:
                self.computation_order.remove(computation)
        if removed and removed[0] is self.computations[-1]:  # as where a fusion was only tried
            self.computations.pop()
            removed = removed[1:]
        if len(removed) == 1:
            self.computations.remove(*removed)
        elif removed:
            self.computations[:] = [c for c in self.computations if c.module is not None]

    def non_fusion_computations(self) -> Computations:
        """Computations other than fusions' bodies, callees first (`MakeNonfusionComputations`)."""
        return [c for c in self.computation_post_order() if c.fusion is None]

    def computation_post_order(self) -> Computations:
        """Callees before callers, as XLA's passes go through them (`MakeComputationPostOrder`) and prints."""
        if self.computation_order is not None:
            return self.computation_order.post_order()
        return self.printed_order()

    def printed_order(self) -> Computations:
        """Callees before callers, in the order of their callers (the same with `dfs_postorder`)."""
        roots = [c for c in self.computations if not c.callers]
        return callees_first((*roots, *self.computations))

    def source_of(self, instruction: Instruction) -> SourceLocation | None:
        """The line of the user's program the instruction came from, where the dump says."""
        metadata = instruction.attributes.get("metadata")
        if metadata is None:
            return None
        if metadata.stack_frame_id:
            return self.stack_frames.location(metadata.stack_frame_id)
        if metadata.source_file and metadata.source_file != "-":  # MLIR's name for a text in memory
            return SourceLocation(metadata.source_file, metadata.source_line or 0)
        return None

    def called_from(self, instruction: Instruction) -> SourceLocation | None:
        """The user's own line, where the instruction came from one of an installed package."""
        metadata = instruction.attributes.get("metadata")
        if metadata is None or not metadata.stack_frame_id:
            return None
        frames = self.stack_frames.trace(metadata.stack_frame_id)
        innermost = next(frames, None)
        if innermost is None or not innermost.installed:
            return None
        return next((frame for frame in frames if not frame.installed), None)


def callees_first(starts: Iterable[Computation]) -> Computations:
    """Some computations and all that they call, callees before callers."""
    return post_order(starts, callees)


def callees(computation: Computation) -> Iterator[Computation]:
    """The computations that its instructions call, as often as they are."""
    for instruction in computation:
        for _, callee in instruction.called:
            yield callee
