"""A graph of bare instructions, to find the use-list order that rewrites leave."""

from collections.abc import Callable, Iterator, Sequence

from hlofuse.ir import Computation, Instruction, Shape
from hlofuse.ir.removing import replace_instruction
from hlofuse.passes.base import visit


class ShadowGraph:
    """Bare copies of the instructions of one computation, users initially in text order."""

    def __init__(self, computation: Computation) -> None:
        self.computation = Computation(computation.name)
        self.source = dict[Instruction, Instruction]()
        """The instruction that a node stands for; a new one has none at first."""
        self.of = dict[Instruction, Instruction]()
        for x in computation.post_order():
            self.of[x] = self.add(x, x.shape, [self.of[o] for o in x.operands])
        for x, node in self.of.items():
            node.users[:] = [self.of[u] for u in x.users]
        self.computation.root = self.of[computation.root]
        self.visited = set[Instruction]()

    def add(
        self,
        source: Instruction | None,
        shape: Shape,
        operands: Sequence[Instruction],
        opcode: str = "bitcast",
    ) -> Instruction:
        """A new node that stands for `source`; for no instruction yet, one of `opcode`."""
        node = Instruction("", shape, opcode, operands)
        self.computation.append_unnumbered(node)
        if source is not None:
            self.source[node] = source
            node.opcode, node.attributes, node.called = source.opcode, source.attributes, source.called
        return node

    def add_bitcast(self, of: Instruction) -> Instruction:
        return self.add(None, of.shape, [of])

    def bypass(self, node: Instruction) -> None:
        """Let the users of `node` read its only operand, in its place among the users of that."""
        (operand,) = node.operands
        users = [u for user in operand.users for u in (node.users if user is node else [user])]
        node.replace_all_uses_with(operand)
        self.computation.remove_instruction(node)
        operand.users[:] = dict.fromkeys(users)

    def put_before(self, user: Instruction, new: Instruction) -> None:
        """Insert `new`, which stands for a bitcast, between `user` and its only operand, in its place."""
        user.replace_operand(0, self.add(new, new.shape, user.operands))

    def put_after(self, operand: Instruction, new: Instruction) -> None:
        """Insert `new`, which stands for a bitcast, between `operand` and all its users."""
        operand.replace_all_uses_with(self.add(new, new.shape, [operand]))

    def put_bitcasts_after(self, node: Instruction) -> None:
        """Insert two bitcasts between `node` and its users (`LayoutNormalizationVisitor::DefaultAction`,
        `xla/service/layout_normalization.cc`)."""
        users = list(node.users)
        if users:
            there = self.add_bitcast(node)
            self.visited.add(there)
            back = self.add_bitcast(there)
            for user in users:
                node.replace_use_with(user, back)

    def merged_chain(self, end: Instruction) -> Iterator[Instruction]:
        """The bitcasts of a chain up to `end`, each reading what the chain reads. The innermost comes first,
        without recursion, since chains can be long. Each rewrite changes the operand of the next."""
        chain = [end]
        while (link := chain[-1].operand).opcode == "bitcast":
            chain.append(link)
        for bitcast in reversed(chain):
            if bitcast.computation is None:
                continue
            operand = bitcast.operand
            if operand.opcode == "bitcast":
                source = self.source.get(bitcast) or self.source.get(operand)
                merged = self.add(source, bitcast.shape, operand.operands)
                self.replace(bitcast, merged)
                bitcast = merged
            yield bitcast

    def replace(self, old: Instruction, new: Instruction) -> None:
        """Replace all uses; then remove the old node and operands that die with it."""
        if old.computation is not None:
            replace_instruction(old, new)

    def visit(self, action: Callable[[Instruction], None]) -> None:
        """Visit operands before users; `action` may add nodes to `visited` to skip them."""
        self.visited = set()
        visit(self.computation, action, visited=self.visited)

    def post_order(self) -> list[Instruction]:
        """Operands before users, from nodes without users in id order (`MakeInstructionPostOrder`)."""
        last = self.computation.next_id
        place = lambda x: self.source[x].id if x in self.source else last  # noqa: E731
        return self.computation.post_order(starts=sorted(self.computation, key=place))

    def take_over(self) -> None:
        """Give the instructions the resulting use-list order, where it is complete."""
        for node in self.computation:
            if (source := self.source.get(node)) is not None:
                users = [self.source[u] for u in node.users if u in self.source]
                # What was found may miss a user or hold one twice: then the text's order stays.
                if len(users) == len(source.users) and set(users) == set(source.users):
                    source.users[:] = users
