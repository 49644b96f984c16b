"""A graph of instructions with one root (`xla/hlo/ir/hlo_computation.h`)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from hlofuse.ir.attributes.attributes import NO_ATTRIBUTES
from hlofuse.ir.errors import HlofuseError
from hlofuse.ir.instruction import Instruction
from hlofuse.ir.names import PARAMETER_NAMES

if TYPE_CHECKING:
    from hlofuse.ir.module import Module
    from hlofuse.ir.shape import Shape


class Computation:
    """Instructions in the order they were added, and a root.

    An instruction's `id` is its slot in the list; a removed one leaves a hole, so that ids keep
    telling age as they do in XLA.
    """

    __slots__ = (
        "__weakref__",
        "_callers",
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
        self.parameters: list[Instruction] = []
        self._callers: Instruction | dict[Instruction, int] | None = None
        self.attributes_text = ""
        """What follows the closing brace: `, execution_thread="main"`."""

    def __repr__(self) -> str:
        return f"<computation {self.name}>"

    # ------------------------------------------------------------ reading

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

    @property
    def instructions(self) -> list[Instruction]:
        """The instructions, oldest first."""
        return list(filter(None, self._slots))

    def __iter__(self) -> Iterator[Instruction]:
        return filter(None, self._slots)  # lazily: it meets what is added on the way

    def __len__(self) -> int:
        return len(self._slots) - self._slots.count(None)

    @property
    def next_id(self) -> int:
        """The id that the next instruction gets."""
        return len(self._slots)

    @property
    def is_entry(self) -> bool:
        return self.module is not None and self.module.entry is self

    @property
    def fusion(self) -> Instruction | None:
        """The fusion instruction whose body this is (`FusionInstruction`)."""
        for caller in self.callers:
            if caller.opcode == "fusion":
                return caller
        return None

    def find(self, name: str) -> Instruction | None:
        """The instruction of that name; a linear search."""
        return next((i for i in self if i.name == name), None)

    def post_order(
        self,
        but_for: Iterable[Instruction] = (),
        starts: Iterable[Instruction | None] | None = None,
    ) -> list[Instruction]:
        """Operands and control predecessors before their users (`MakeInstructionPostOrder`).

        The order is XLA's to the last instruction, because passes and printing follow it.
        `but_for`: leaves that are left out. `starts`: what nobody uses, for who knows it.
        """
        order: list[Instruction] = []
        emit = order.append
        entered = set(but_for)
        enter = entered.add
        for start in self._slots if starts is None else starts:
            if start is None or start.users or start in entered:
                continue
            enter(start)
            current, left = start, _waits_for(start)
            waiting: list[tuple[Instruction, Iterator[Instruction]]] = []
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
        return order

    def unreachable_roots(self) -> list[Instruction]:
        """What nobody uses or waits for, but for the root (`CollectUnreachableRoots`)."""
        return [i for i in self if not i.users and i is not self.root and not i.control_successors]

    # ------------------------------------------------------------ changing

    def add_instruction(self, instruction: Instruction, name: str | None = None) -> Instruction:
        """Put `instruction` at the end, under a name made unique in the module."""
        if name is not None:
            instruction.name = name
        if self.module is not None:
            instruction.name = self.module.instruction_names.unique(instruction.name)
        self.append_parsed(instruction)
        return instruction

    def append_parsed(self, instruction: Instruction) -> None:
        """Put `instruction` at the end under the name it has."""
        self.append_unnumbered(instruction)
        if instruction.opcode == "parameter":
            self._number_parameter(instruction)

    def append_unnumbered(self, instruction: Instruction) -> None:
        """Put it at the end, where `replace_parameters` will say of a parameter which number it has."""
        instruction.computation = self
        slots = self._slots
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
        parameter.computation = self
        parameter.id = len(slots)
        parameter.operands = []
        parameter.users = []
        parameter._control = None
        parameter._places = None
        slots.append(parameter)
        return parameter

    def fill_parameter(self, number: int, source: Instruction) -> Instruction:
        """The parameter of that number becomes a copy of `source` that reads nothing yet.

        It is as if a copy had been added and had taken over the parameter's uses, for that to be removed.
        """
        filled = self.parameters[number]
        self.vacate(filled)
        filled.become(source)
        self.add_instruction(filled)
        self.drop_parameter(number)
        return filled

    def vacate(self, instruction: Instruction) -> None:
        """Leave a hole where it stands; it is about to be put at the end."""
        self._slots[instruction.id] = None

    def drop_parameter(self, number: int) -> None:
        """Let a parameter no longer be one: every later one gets a new number, name and id."""
        parameters = self.parameters
        del parameters[number]
        if number < len(parameters):
            self.renew_parameters(parameters, number)

    def renew_parameters(self, parameters: Sequence[Instruction | None], first: int) -> None:
        """Put those from number `first` on at the end under their numbers, as if they had just been made.

        None is one that will not stay: nobody sees the name it gets.
        """
        slots = self._slots
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
        """Take out an instruction nobody uses.

        Passes that fuse do not look at control dependencies and fail here, as XLA's do: `HlofuseError`.
        """
        if instruction.users or instruction is self.root:
            raise ValueError(f"{instruction.name} is still in use")
        control = instruction._control
        if control is not None and (control[0] or control[1]):
            raise HlofuseError(
                f"cannot remove instruction: {instruction.name} has been fused but has control "
                "dependencies; XLA stops here with the same error"
            )
        self._slots[instruction.id] = None
        instruction.computation = None
        operands = instruction.operands
        if operands:
            for operand in operands if len(operands) == 1 else dict.fromkeys(operands):
                operand.remove_user(instruction)
            instruction.operands = []
        if instruction.called:
            for _, callee in instruction.called:
                callee.callers.pop(instruction, None)

    def reorder(self, instructions: list[Instruction]) -> None:
        """Give the instructions ids in this order, oldest first; all of them have to be there."""
        self._slots = list(instructions)
        for number, instruction in enumerate(instructions):
            instruction.id = number

    def replace_parameters(self, parameters: list[Instruction]) -> None:
        """State which parameter has which number, after numbers changed."""
        self.parameters = parameters


def _waits_for(instruction: Instruction) -> Iterator[Instruction]:
    """What has to be done before it: control predecessors, the last one first, then operands."""
    if instruction._control is None:
        return iter(instruction.operands)
    return chain(reversed(instruction.control_predecessors), instruction.operands)
