"""A graph of bare nodes, to find the use-list order that rewrites leave."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterator

from msgspec import Struct

from hlofuse.analysis.custom_calls import has_side_effect
from hlofuse.ir.graph import Computation, Instruction


class Node(Struct, eq=False):
    """An instruction of the shadow graph; a new one has no source at first."""

    source: Instruction | None
    shape: Hashable
    operands: list[Node]
    is_bitcast: bool = False
    dead: bool = False
    users: list[Node] = []

    def __post_init__(self) -> None:
        for operand in self.operands:
            operand.add_user(self)

    def add_user(self, user: Node) -> None:
        """Append `user` unless it is there (`HloInstruction::Users::AddUser`)."""
        if user not in self.users:
            self.users.append(user)

    def remove_user(self, user: Node) -> None:
        """Take `user` out; the last user takes its place (`HloInstruction::Users::RemoveUser`)."""
        last = self.users.pop()
        if last is not user:
            self.users[self.users.index(user)] = last

    def reads(self, old: Node, new: Node) -> None:
        """Read `new` wherever this read `old`."""
        self.operands = [new if o is old else o for o in self.operands]

    def give_user(self, user: Node, to: Node) -> None:
        """`user` reads `to` wherever it read this (`ReplaceUseWith`)."""
        user.reads(self, to)
        self.remove_user(user)
        to.add_user(user)


class ShadowGraph:
    """The nodes of one computation, users initially in text order."""

    def __init__(self, computation: Computation) -> None:
        order = computation.post_order()
        self.of = {x: Node(x, x.shape.key, [], is_bitcast=x.opcode == "bitcast") for x in order}
        for x, node in self.of.items():
            node.operands = [self.of[o] for o in x.operands]
            node.users = [self.of[u] for u in x.users]
        self.nodes = list(self.of.values())
        self.root = self.of[computation.root]
        self.visited = set[Node]()

    def add(self, node: Node) -> Node:
        self.nodes.append(node)
        return node

    def add_bitcast(self, of: Node) -> Node:
        return self.add(Node(None, of.shape, [of], is_bitcast=True))

    def bypass(self, node: Node) -> None:
        """Let the users of `node` read its only operand."""
        (operand,) = node.operands
        place = operand.users.index(node)
        operand.users[place : place + 1] = node.users
        for user in node.users:
            user.reads(node, operand)
        node.dead, node.operands, node.users = True, [], []

    def put_before(self, user: Node, new: Node) -> None:
        """Insert `new` between `user` and its only operand, in the user's place."""
        (operand,) = user.operands
        self.add(new)
        operand.users[operand.users.index(user)] = new
        user.operands, new.operands, new.users = [new], [operand], [user]

    def put_after(self, operand: Node, new: Node) -> None:
        """Insert `new` between `operand` and all its users."""
        self.add(new)
        new.operands, new.users, operand.users = [operand], operand.users, [new]
        for user in new.users:
            user.reads(operand, new)

    def put_bitcasts_after(self, node: Node, between: Hashable) -> None:
        """Insert a bitcast to the shape `between` and one back between `node` and its users. As
        `LayoutNormalizationVisitor::DefaultAction` (`xla/service/layout_normalization.cc`)."""
        users = node.users
        if not users:
            return
        node.users = []
        there = self.add(Node(None, between, [node], is_bitcast=True))
        self.visited.add(there)
        back = self.add(Node(None, node.shape, [there], is_bitcast=True))
        back.users = users
        for user in users:
            user.reads(node, back)

    def merged_chain(self, end: Node, is_link: Callable[[Node], bool]) -> Iterator[Node]:
        """The bitcasts of a chain up to `end`, each reading what the chain reads. The innermost comes first,
        without recursion, since chains can be long. Each rewrite changes the operand of the next."""
        chain, link = [end], end
        while link.operands and is_link(link.operands[0]):
            link = link.operands[0]
            chain.append(link)
        for bitcast in reversed(chain):
            if bitcast.dead:
                continue
            operand = bitcast.operands[0]
            if is_link(operand):
                source = bitcast.source or operand.source
                merged = self.add(Node(source, bitcast.shape, [operand.operands[0]], is_bitcast=True))
                self.replace(bitcast, merged)
                bitcast = merged
            yield bitcast

    def replace_uses(self, old: Node, new: Node) -> None:
        """Users other than `new` itself, and the root role, go over (`ReplaceAllUsesWith`)."""
        for user in list(old.users):
            if user is not new:
                user.reads(old, new)
                new.add_user(user)
        old.users = [new] if new in old.users else []
        if old is self.root:
            self.root = new

    def replace(self, old: Node, new: Node) -> None:
        """Replace all uses; then remove the old node and operands that die with it (`ReplaceInstruction`)."""
        self.replace_uses(old, new)
        queue = deque([old])
        while queue:
            node = queue.popleft()
            source = node.source
            if node.dead or node.users or node is self.root:
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

    def visit(self, action: Callable[[Node], None]) -> None:
        """Visit depth first, operands before users: dead nodes first, then from the root. Mirrors
        `DfsHloRewriteVisitor`: `action` may add nodes to `visited` to skip them."""
        unused = [x for x in self.nodes if not x.dead and not x.users and x is not self.root]
        self._traverse([*unused, self.root], action)

    def post_order(self) -> list[Node]:
        """Operands before users, from nodes without users in id order (`MakeInstructionPostOrder`)."""
        order = list[Node]()
        starts = [x for x in self.nodes if not x.dead and not x.users]
        starts.sort(key=lambda x: len(self.nodes) if x.source is None else x.source.id)
        self._traverse(starts, order.append)
        return order

    def _traverse(self, starts: list[Node], action: Callable[[Node], None]) -> None:
        visited = self.visited = set()
        visiting = set()
        for start in starts:
            stack = [] if start.dead else [start]
            while stack:
                node = stack[-1]
                if node in visited:
                    stack.pop()
                    continue
                if node not in visiting:
                    visiting.add(node)
                    if left := [o for o in reversed(node.operands) if o not in visited]:
                        stack += left
                        continue
                stack.pop()
                visited.add(node)
                if not node.dead:
                    action(node)

    def take_over(self) -> None:
        """Give the instructions the resulting use-list order, where it is complete."""
        for node in self.nodes:
            if not node.dead and node.source is not None:
                users = [u.source for u in node.users if u.source is not None]
                # What was found may miss a user or hold one twice: then the text's order stays.
                if len(users) == len(node.source.users) and set(users) == set(node.source.users):
                    node.source.users[:] = users
