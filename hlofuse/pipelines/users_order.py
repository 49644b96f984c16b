"""The order in which XLA lists the users of an instruction, as the passes before fusion leave it.

FusionMerger and multi-output fusion go through users in list order, and a text does not carry it: what
is read back lists users in the order of the text. XLA's lists were last rebuilt by LayoutNormalization
(`xla/service/layout_normalization.cc`), which puts every operation behind bitcasts, and by
AlgebraicSimplifier (`xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`, `HandleBitcast`), which
takes those away again. `restore_users_order` plays one round of the two on a shadow of the graph, in
which nothing has a shape but everything has its users, and takes over the order that comes out.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable

from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.analysis.side_effects import has_side_effect
from hlofuse.ir.computation import Computation
from hlofuse.ir.instruction import Instruction
from hlofuse.ir.module import Module

_MADE_ANEW = frozenset(
    """
    broadcast concatenate dynamic-slice dynamic-update-slice iota pad reshape reverse scatter slice transpose
    """.split()
)
# Operands from this number on are taken as they stand, not in their normalised form.
_TAKEN_AS_THEY_STAND = {"dynamic-slice": 1, "dynamic-update-slice": 2, "pad": 1, "reduce-window": 1}


def restore_users_order(module: Module) -> None:
    """Bring the users of every instruction outside fusions into XLA's order, as far as it can be told."""
    for computation in module.computations:
        if computation.fusion is None:
            shadow = _Shadow(computation)
            shadow.normalize_layouts()
            shadow.remove_bitcasts()
            shadow.take_over()


class _Node:
    """An instruction of the shadow graph; `bitcast` for those the round itself puts in."""

    __slots__ = ("bitcast", "dead", "operands", "shape", "source", "users")

    def __init__(
        self, source: Instruction | None, shape: Hashable, operands: list[_Node], *, bitcast: bool = False
    ) -> None:
        self.source = source
        self.shape = shape
        self.operands = operands
        self.bitcast = bitcast
        self.dead = False
        self.users: list[_Node] = []
        for operand in operands:
            operand.add_user(self)

    def add_user(self, user: _Node) -> None:
        if user not in self.users:
            self.users.append(user)

    def remove_user(self, user: _Node) -> None:
        last = self.users.pop()
        if last is not user:
            self.users[self.users.index(user)] = last

    def give_user(self, user: _Node, to: _Node) -> None:
        """`user` reads `to` wherever it read this (`ReplaceUseWith`)."""
        user.operands = [to if o is self else o for o in user.operands]
        self.remove_user(user)
        to.add_user(user)


class _Shadow:
    def __init__(self, computation: Computation) -> None:
        order = computation.post_order()
        twins: dict[Instruction, _Node] = {}
        for x in order:
            twins[x] = _Node(x, x.shape.key, [twins[o] for o in x.operands])
        for x, twin in twins.items():
            twin.users = [twins[u] for u in x.users]
        self._nodes = list(twins.values())
        self._root = twins[computation.root]
        self._visited: set[_Node] = set()

    # ------------------------------------------------------------ the two passes

    def normalize_layouts(self) -> None:
        """`LayoutNormalizationVisitor`: every operation on row-major arrays, bitcasts around."""
        self._visit(self._normalize)

    def _normalize(self, node: _Node) -> None:
        source = node.source
        if source is None:
            self._put_bitcasts_behind(node)
        elif source.opcode == "constant":
            self._replace_uses(node, self._add_bitcast(node))
        elif _is_made_anew(source):
            first = _TAKEN_AS_THEY_STAND.get(source.opcode, len(node.operands))
            operands = [o.operands[0] if k < first else o for k, o in enumerate(node.operands)]
            anew = self._add(_Node(source, node.shape, operands))
            self._visited.add(anew)
            self._replace(node, self._add_bitcast(anew))
        elif source.shape.is_array or source.shape.element_type == "opaque":
            self._put_bitcasts_behind(node)

    def _put_bitcasts_behind(self, node: _Node) -> None:
        """`DefaultAction`: users read the node through a bitcast to row-major order and one back."""
        if not node.users:
            return
        users = list(node.users)
        there = self._add_bitcast(node)
        self._visited.add(there)
        back = self._add_bitcast(there)
        for user in users:
            node.give_user(user, back)

    def remove_bitcasts(self) -> None:
        """`AlgebraicSimplifierVisitor::HandleBitcast` for the bitcasts put in before."""
        self._visit(lambda node: self._simplify(node) if node.bitcast else None)

    def _simplify(self, node: _Node) -> None:
        if node.dead:
            return
        if node.operands[0].bitcast:
            self._simplify(node.operands[0])
        operand = node.operands[0]
        if operand.bitcast:
            merged = self._add(_Node(None, node.shape, [operand.operands[0]], bitcast=True))
            self._replace(node, merged)
            node, operand = merged, merged.operands[0]
        if operand.shape == node.shape:
            self._replace(node, operand)

    def take_over(self) -> None:
        """Give the instructions the order of users found, where it is complete."""
        for node in self._nodes:
            source = node.source
            if node.dead or source is None:
                continue
            users = [u.source for u in node.users if u.source is not None]
            if len(users) == len(source.users) and set(users) == set(source.users):
                source.users = users

    # ------------------------------------------------------------ the graph

    def _visit(self, action: Callable[[_Node], None]) -> None:
        """Depth first, operands before users; what is dead already first, then from the root."""
        visited = self._visited = set()
        visiting: set[_Node] = set()
        dead = [x for x in self._nodes if not x.dead and not x.users and x is not self._root]
        for start in (*dead, self._root):
            stack = [] if start.dead else [start]
            while stack:
                node = stack[-1]
                if node in visited:
                    stack.pop()
                elif node in visiting:
                    stack.pop()
                    visited.add(node)
                    if not node.dead:
                        action(node)
                else:
                    visiting.add(node)
                    stack += [o for o in reversed(node.operands) if o not in visited]

    def _add(self, node: _Node) -> _Node:
        self._nodes.append(node)
        return node

    def _add_bitcast(self, of: _Node) -> _Node:
        return self._add(_Node(None, of.shape, [of], bitcast=True))

    def _replace_uses(self, old: _Node, new: _Node) -> None:
        for user in list(old.users):
            if user is not new:
                user.operands = [new if o is old else o for o in user.operands]
                new.add_user(user)
        old.users = [new] if new in old.users else []
        if old is self._root:
            self._root = new

    def _replace(self, old: _Node, new: _Node) -> None:
        """`ReplaceInstruction`: the old one goes, and what only it used."""
        self._replace_uses(old, new)
        queue = deque([old])
        while queue:
            node = queue.popleft()
            source = node.source
            if node.dead or node.users or node is self._root:
                continue
            if source is not None and (
                source.opcode == "parameter" or (node is not old and has_side_effect(source))
            ):
                continue
            node.dead = True
            for operand in dict.fromkeys(node.operands):
                operand.remove_user(node)
            queue.extend(node.operands)
            node.operands = []


def _is_made_anew(source: Instruction) -> bool:
    opcode = source.opcode
    if opcode == "reduce-window":
        return not source.shape.is_tuple
    if opcode == "bitcast-convert":
        return source.shape.rank == source.operands[0].shape.rank
    return opcode in _MADE_ANEW or opcode in ELEMENTWISE_OPCODES
