"""Values, where they are and who uses them (`xla/service/hlo_value.cc`)."""

from collections import deque
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from msgspec import Struct

from hlofuse.ir.graph import Instruction, Instructions
from hlofuse.ir.grouping import grouped, numbered
from hlofuse.ir.opcodes import values
from hlofuse.ir.shape import Shape

Index: TypeAlias = tuple[int, ...]  # XLA's `ShapeIndex`: the element numbers that lead to a subshape


class ShapeTree:
    """The subshapes of a shape in order, with the index of each."""

    __slots__ = ("indices", "place", "shapes")

    indices: tuple[Index, ...]
    shapes: tuple[Shape, ...]
    place: dict[Index, int]

    def __init__(self, shape: Shape) -> None:
        indices = []
        shapes = []
        pending: list[tuple[Index, Shape]] = [((), shape)]
        while pending:
            index, subshape = pending.pop()
            indices.append(index)
            shapes.append(subshape)
            if subshape.is_tuple:
                elements = subshape.tuple_shapes
                pending += [((*index, k), elements[k]) for k in range(len(elements) - 1, -1, -1)]
        self.indices, self.shapes = tuple(indices), tuple(shapes)
        self.place = numbered(indices)

    def __len__(self) -> int:
        return len(self.indices)


_OF_AN_ARRAY = ShapeTree(Shape("opaque"))
_tree_of_tuple = lru_cache(maxsize=4096)(ShapeTree)


def shape_tree(shape: Shape) -> ShapeTree:
    """The tree of a shape, one for equal shapes. All that are no tuples share one, which has no shape."""
    return _tree_of_tuple(shape) if shape.is_tuple else _OF_AN_ARRAY


def subshape_at(shape: Shape, index: Index) -> Shape:
    """`ShapeUtil::GetSubshape`."""
    for k in index:
        shape = shape.tuple_shapes[k]
    return shape


class HloPosition(NamedTuple):
    """A place where a value is: in the result of an instruction, at an index."""

    instruction: Instruction
    shape_index: Index


class HloUse(NamedTuple):
    """An operand in which an instruction finds a value, at an index."""

    instruction: Instruction
    operand_number: int
    operand_index: Index


_ONLY_THE_OUTERMOST = values("get-tuple-element copy")
"""Operations that use only a tuple's table and forward its elements."""
_NOTHING = values("tuple domain")
_HAND_ON = _ONLY_THE_OUTERMOST | _NOTHING
_MANY_EDGES = 16


class Readers(Struct, eq=False):
    """Readers of tuples' elements, with operand numbers: tuples of a loop have thousands of both."""

    _of_elements: dict[Instruction, Instructions] = {}
    _numbers: dict[Instruction, dict[Instruction, list[int]]] = {}

    def uses_of(self, value: "HloValue") -> Sequence[HloUse]:
        """`ComputeUses`: roots count as users of what they hold."""
        roots = {p.instruction for p in value.positions if p.instruction.is_root}
        found = list[HloUse]()
        for source, index in value.positions:
            hand_on = _HAND_ON if index else _NOTHING
            for user in self._users(source) if index else source.users:
                if user.opcode in hand_on and user not in roots:
                    continue
                found += [HloUse(user, number, index) for number in self._operand_numbers(user, source)]
        return found

    def _users(self, source: Instruction) -> Instructions:
        """The users that may read its elements."""
        if source.user_count < _MANY_EDGES:
            return source.users
        users = self._of_elements.get(source)
        if users is None:
            users = [u for u in source.users if u.opcode not in _HAND_ON or u.is_root]
            self._of_elements[source] = users
        return users

    def _operand_numbers(self, user: Instruction, source: Instruction) -> list[int]:
        if user.operand_count < _MANY_EDGES:
            return [number for number, operand in enumerate(user.operands) if operand is source]
        numbers = self._numbers.get(user)
        if numbers is None:
            numbers = self._numbers[user] = grouped((o, number) for number, o in enumerate(user.operands))
        return numbers.get(source, [])


class HloValue(Struct, eq=False):
    """The value that one instruction defines at one index of its result."""

    id: int
    instruction: Instruction
    index: Index
    is_phi: bool  # True where several values meet: a loop's or a branch's
    _readers: Readers
    _positions: list[HloPosition] | None = None
    _uses: Sequence[HloUse] | None = None

    @property
    def shape(self) -> Shape:
        """The shape of its array, or of its table of pointers."""
        return subshape_at(self.instruction.shape, self.index)

    @property
    def bytes(self) -> int:
        return self.shape.buffer_size

    @property
    def positions(self) -> list[HloPosition]:
        """Its positions; the first one is the definition."""
        positions = self._positions
        if positions is None:
            positions = self._positions = [HloPosition(self.instruction, self.index)]
        return positions

    @property
    def uses(self) -> Sequence[HloUse]:
        """Its uses, computed on the first call."""
        if self._uses is None:
            self._uses = self._readers.uses_of(self)
        return self._uses

    def is_at_root_of(self, computation: object) -> bool:
        """True if the computation's root holds it (`IsRootOf`)."""
        return any(p.instruction.computation is computation and p.instruction.is_root for p in self.positions)


# Phis that stand for a single value (`xla/service/hlo_phi_graph.cc`).
class _Node:
    __slots__ = ("is_dead", "is_phi", "operands", "stands_for", "users", "value")

    def __init__(self, value: HloValue) -> None:
        self.value = value
        self.is_phi = False
        self.is_dead = False
        self.operands = list[_Node]()
        self.users = list[_Node]()
        self.stands_for = [value]


class PhiGraph(Struct, eq=False):
    """Phis with the values that meet in them."""

    _node: "dict[HloValue, _Node]" = {}
    _all: "list[_Node]" = []

    def register(self, phi: HloValue, inputs: Sequence[HloValue]) -> None:
        """`inputs` meet in `phi`; what met there before no longer does (`RegisterPhi`)."""
        node = self._node_of(phi)
        node.is_phi = True
        node.operands = [self._node_of(value) for value in inputs]

    def has_inputs(self, phi: HloValue, inputs: Sequence[HloValue]) -> bool:
        """True if just these values meet in it (`InputsEqualTo`)."""
        return {node.value for node in self._node[phi].operands} == set(inputs)

    def optimized(self, phi: HloValue) -> HloValue:
        """The value that replaces `phi` after `optimize` (`FindOptimizedValue`)."""
        return self._node[phi].value

    def optimize(self) -> None:
        """Put the only value that reaches it in the place of every phi that has one (`Optimize`)."""
        for node in self._all:
            for operand in node.operands:
                operand.users.append(node)
        changed = True
        while changed:
            changed = False
            checked = set[_Node]()
            for node in self._all:
                if not node.is_phi or node.is_dead:
                    continue
                node.operands = [o for o in node.operands if o is not node]
                node.users = [u for u in node.users if u is not node]
                first = node.operands[0] if node.operands else None
                if first is None:
                    continue
                if all(o is first for o in node.operands):
                    self._replace(node, first)
                    changed = True
                elif node not in checked:
                    changed |= self._replace_closure(node, checked)

    def _replace_closure(self, start: _Node, checked: set[_Node]) -> bool:
        """Phis that only reach each other and one value all stand for that value."""
        closure = dict[_Node, None]()
        only: _Node | None = None
        queue = deque([start])
        while queue:
            node = queue.popleft()
            if node in closure:
                continue
            closure[node] = None
            checked.add(node)
            queue.extend(node.operands)
            if not node.is_phi:
                if only is not None:
                    return False
                only = node
        if only is None:
            return False
        for node in closure:
            if node.is_phi:
                self._replace(node, only)
        return True

    def _node_of(self, value: HloValue) -> _Node:
        node = self._node.get(value)
        if node is None:
            node = self._node[value] = _Node(value)
            self._all.append(node)
        return node

    def _replace(self, node: _Node, new: _Node) -> None:
        """`ReplaceNodeWith`."""
        if node.is_dead:
            return
        while new.is_dead:
            new = self._node[new.value]
        for user in node.users:
            user.operands = [new if o is node else o for o in user.operands]
        for operand in node.operands:
            operand.users = [new if u is node else u for u in operand.users]
        for value in node.stands_for:
            self._node[value] = new
        new.stands_for += node.stands_for
        node.stands_for = []
        node.is_dead = True
