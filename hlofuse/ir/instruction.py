"""One operation of the graph (`xla/hlo/ir/hlo_instruction.h`)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from hlofuse.ir.attributes.attributes import NO_ATTRIBUTES, UNREAD, Attributes
from hlofuse.ir.native import mypyc_attr
from hlofuse.ir.shape import Shape

if TYPE_CHECKING:
    from hlofuse.ir.computation import Computation
    from hlofuse.ir.literal import Literal

_MANY = 64
"""From so many users on looking for one in the list costs more than keeping their places."""


@mypyc_attr(allow_interpreted_subclasses=True)  # with it, __new__ alone makes a bare one there too
class Instruction:
    """An operation with its operands and users.

    `operands` and `users` are read freely but changed only through the methods here and in
    `Computation`, which keep both ends in step. `users` is ordered and holds each user once; its
    order follows XLA's bookkeeping (a removed user is replaced by the last one), because XLA's
    decisions depend on it.
    """

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
        "payload",
        "shape",
        "users",
    )

    name: str
    opcode: str
    shape: Shape
    operands: list[Instruction]
    users: list[Instruction]
    attributes: Attributes
    called: Sequence[tuple[str, Computation]]
    """Called computations with the attribute that names each, in XLA's order of `called_computations()`."""
    computation: Computation | None
    id: int
    """XLA's local id: the slot in the computation's list. Later additions have greater ids."""
    payload: str | None
    """What stands between the parentheses of a parameter or constant, as written."""
    _control: tuple[list[Instruction], list[Instruction]] | None
    """Control predecessors and successors; hardly any instruction has them."""
    _places: dict[Instruction, int] | None
    """Where each of very many users was last seen in the list; None or too short until it is needed."""

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

    # ------------------------------------------------------------ facts

    @property
    def is_root(self) -> bool:
        """True for the root of the computation it is in."""
        return self.computation is not None and self.computation.root is self

    @property
    def called_computations(self) -> list[Computation]:
        return [c for _, c in self.called]

    @property
    def fused_computation(self) -> Computation:
        """The computation of a fusion (`fused_instructions_computation`)."""
        return self.called[0][1]

    @property
    def fused_root(self) -> Instruction:
        """The root inside a fusion (`fused_expression_root`)."""
        return self.called[0][1].root

    @property
    def fusion_kind(self) -> str | None:
        """kLoop, kInput, kOutput, kCustom; None for what is not a fusion."""
        return self.attributes.raw("kind") if self.opcode == "fusion" else None

    @property
    def is_multi_output_fusion(self) -> bool:
        return self.opcode == "fusion" and self.fused_root.opcode == "tuple"

    @property
    def parameter_number(self) -> int:
        """The number of a parameter."""
        return int(self.payload or 0)

    @property
    def literal(self) -> Literal:
        """The value of a constant."""
        from hlofuse.ir.literal import Literal

        return Literal(self.shape, self.payload or "")

    @property
    def dimensions(self) -> tuple[int, ...]:
        """The `dimensions` attribute; empty where it has none."""
        value: Any = self.attributes.get("dimensions", ())
        return tuple(value)

    @property
    def tuple_index(self) -> int:
        """The index of a get-tuple-element."""
        return int(self.attributes.raw("index") or 0)

    @property
    def op_name(self) -> str | None:
        """The framework's name for the operation, from the metadata."""
        op_name = self.attributes.op_name
        return op_name if op_name is not UNREAD else self.attributes.read_op_name()

    # ------------------------------------------------------------ edges

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
            places = self._places = {user: place for place, user in enumerate(self.users)}
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

    def append_operand(self, operand: Instruction) -> None:
        self.operands.append(operand)
        operand.add_user(self)

    def remove_operand(self, number: int) -> None:
        """Drop the operand at `number`, later ones move down."""
        old = self.operands.pop(number)
        if old not in self.operands:
            old.remove_user(self)

    def replace_use_with(self, user: Instruction, new: Instruction) -> None:
        """`user` uses `new` wherever it used this (`HloInstruction::ReplaceUseWith`)."""
        self.remove_user(user)
        operands = user.operands
        for i, operand in enumerate(operands):
            if operand is self:
                operands[i] = new
        new.add_user(user)

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
            for i, operand in enumerate(operands):
                if operand is self:
                    operands[i] = new
            if not at_once:
                new.add_user(user)
        if self.computation is not None and self.computation.root is self:
            self.computation.root = new

    @property
    def control_predecessors(self) -> Sequence[Instruction]:
        """Instructions that must run before this one without being operands."""
        return self._control[0] if self._control is not None else ()

    @property
    def control_successors(self) -> Sequence[Instruction]:
        """Instructions that must run after this one without being users."""
        return self._control[1] if self._control is not None else ()

    def add_control_dependency_to(self, successor: Instruction) -> None:
        """This must run before `successor` (`HloInstruction::AddControlDependencyTo`)."""
        if successor not in self.control_successors:
            self._control = self._control or ([], [])
            successor._control = successor._control or ([], [])
            self._control[1].append(successor)
            successor._control[0].append(self)

    def drop_all_control_dependencies(self) -> None:
        """Forget what must run before and after this one (`DropAllControlDeps`)."""
        for p in self.control_predecessors:
            assert p._control is not None
            p._control[1].remove(self)
        for s in self.control_successors:
            assert s._control is not None
            s._control[0].remove(self)
        self._control = None

    def clone(
        self,
        operands: Iterable[Instruction] | None = None,
        *,
        name: str | None = None,
        shape: Shape | None = None,
    ) -> Instruction:
        """A free-standing copy that calls the same computations (`CloneWithNewOperands`)."""
        return Instruction(
            name or self.name,
            shape or self.shape,
            self.opcode,
            self.operands if operands is None else operands,
            self.attributes,
            called=list(self.called),
            payload=self.payload,
        )

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
        if not self.operands:
            self.operands = []  # the parameters and constants of a text share one empty list
