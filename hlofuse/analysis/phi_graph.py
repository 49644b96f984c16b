"""Phis that stand for a single value (`xla/service/hlo_phi_graph.cc`)."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from hlofuse.analysis.hlo_value import HloValue


class _Node:
    __slots__ = ("is_dead", "is_phi", "operands", "stands_for", "users", "value")

    def __init__(self, value: HloValue) -> None:
        self.value = value
        self.is_phi = False
        self.is_dead = False
        self.operands: list[_Node] = []
        self.users: list[_Node] = []
        self.stands_for = [value]


class PhiGraph:
    """Phis with the values that meet in them."""

    def __init__(self) -> None:
        self._node: dict[HloValue, _Node] = {}
        self._all: list[_Node] = []

    def register(self, phi: HloValue, inputs: Sequence[HloValue]) -> None:
        """`inputs` meet in `phi`; what met there before no longer does (`RegisterPhi`)."""
        node = self._node_of(phi)
        node.is_phi = True
        node.operands = [self._node_of(value) for value in inputs]

    def has_inputs(self, phi: HloValue, inputs: Sequence[HloValue]) -> bool:
        """True if just these values meet in it (`InputsEqualTo`)."""
        return {node.value for node in self._node[phi].operands} == set(inputs)

    def optimized(self, phi: HloValue) -> HloValue:
        """What it stands for after `optimize` (`FindOptimizedValue`)."""
        return self._node[phi].value

    def optimize(self) -> None:
        """Put the only value that reaches it in the place of every phi that has one (`Optimize`)."""
        for node in self._all:
            for operand in node.operands:
                operand.users.append(node)
        changed = True
        while changed:
            changed = False
            checked: set[_Node] = set()
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
        closure: dict[_Node, None] = {}
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
