"""A kernel's instructions as one graph, fused or about to be fused. Mirrors `HloFusionAdaptor`
(`xla/hlo/utils/hlo_traversal.cc`): parameters and the tuple of outputs are transparent, so that an
instruction's operand may lie in the producer. Updates in place and groups of reductions need this graph."""

from collections.abc import Sequence
from functools import partial

from hlofuse.analysis.elementwise import is_elementwise
from hlofuse.analysis.kernels import end_of
from hlofuse.ir.graph import Instruction, Instructions, InstructionSequence
from hlofuse.ir.grouping import grouped, reach
from .heroes import Root


class KernelGraph:
    """The instructions of one kernel seen as one graph (`HloFusionAdaptor`)."""

    def __init__(self, parts: InstructionSequence) -> None:
        """`parts`: an instruction, or a producer and its consumer; fusions stand for their bodies."""
        self.parts = parts
        self.bodies = {p.fused_computation: p for p in parts if p.is_fusion}

    def holds(self, instruction: Instruction) -> bool:
        if instruction.computation in self.bodies:
            return True
        return not instruction.is_fusion and instruction in self.parts

    def resolve(self, instruction: Instruction) -> Instruction:
        """The instruction read through parameters and fusions of the kernel."""
        while True:
            if instruction.is_parameter and instruction.computation in self.bodies:
                fusion = self.bodies[instruction.computation]
                instruction = fusion.operands[instruction.parameter_number]
            elif instruction.is_fusion and instruction in self.parts:
                instruction = instruction.fused_root
            else:
                return instruction

    def operand(self, instruction: Instruction, number: int) -> Instruction:
        return self.resolve(instruction.operands[number])

    def users(self, instruction: Instruction) -> Instructions:
        """Users inside the kernel, without a root tuple."""
        users = Instructions()
        pending = [(instruction, u) for u in instruction.users]
        fusion = self.bodies.get(instruction.computation) if instruction.computation is not None else None
        if fusion is not None and instruction.is_root:
            pending += [(fusion, u) for u in fusion.users]
        for source, user in pending:
            if user.is_fusion and user in self.parts:
                users += user.parameter_of(source).users
            elif self.holds(user):
                users.append(user)
        return [u for u in users if not (u.opcode == "tuple" and u.is_root)]

    def roots(self) -> Instructions:
        outputs = end_of(self.parts[-1]).outputs
        return [self.resolve(o) if o.is_parameter else o for o in outputs]


def leaves(root: Instruction) -> Instructions:
    """The elements of a tuple, and of tuples in it; of another root itself."""
    return [x for o in root.operands for x in leaves(o)] if root.opcode == "tuple" else [root]


def can_update_in_place(parts: InstructionSequence, bitcasts: int = 1 << 30) -> bool:
    """True if every output updates, below at most `bitcasts` bitcasts, a buffer read nowhere else."""
    kernel = KernelGraph(parts)
    updates = []
    roots = kernel.roots()
    for root in roots:
        left = bitcasts
        while root.is_bitcast and left:
            root, left = kernel.operand(root, 0), left - 1
        if root.opcode == "dynamic-update-slice":
            updates.append(root)
    if len(updates) != len(roots):
        return False
    shape = kernel.operand(updates[0], 1).shape
    return all(_one_in_place(kernel, update, shape.key, shape.element_count) for update in updates)


def _one_in_place(
    kernel: KernelGraph,
    update: Instruction,
    shape_key: object,
    elements: int,
) -> bool:
    last = update
    while users := kernel.users(last):
        if len(users) > 1 or not users[0].is_bitcast:
            return False
        last = users[0]
    target = kernel.operand(update, 0)
    buffer = target
    if kernel.holds(buffer) and buffer.is_bitcast:
        buffer = kernel.operand(buffer, 0)
    if kernel.holds(buffer):
        return False
    queue, seen = [buffer], {buffer, update}
    for node in queue:
        for user in kernel.users(node):
            same_slice = (
                user.opcode == "dynamic-slice"
                and kernel.operand(user, 0) is target
                and user.shape.key == shape_key
            )
            if same_slice:
                if elements != 1 and user.operands[1:] != update.operands[2:]:
                    return False
            elif user is not update and not (user.opcode in ("bitcast", "tuple") or is_elementwise(user)):
                return False
            if user not in seen:
                seen.add(user)
                queue.append(user)
    return update.second.shape.key == shape_key


def reduction_groups(
    parts: InstructionSequence,
    roots: Sequence[Root],
    *,
    in_one_traversal: bool,
) -> int:
    """The number of groups; outputs that share work beyond constants and scalars are in one. `parts` is a
    fusion, or a producer and its consumer; `roots` are the roots of the whole, in order. With
    `in_one_traversal`, as until 0.4.35, one traversal from all outputs propagates sets incompletely."""
    graph = KernelGraph(parts)
    outputs = graph.roots()
    reduces = [root.is_reduction for root in roots]
    group = list(range(len(outputs)))

    def find(k: int) -> int:
        while group[k] != k:
            k = group[k]
        return k

    others = [k for k, reduce in enumerate(reduces) if not reduce]
    for k in others[1:]:
        group[find(k)] = find(others[0])

    traverse = _reached_in_one_traversal if in_one_traversal else _outputs_reached
    for node, reached in traverse(graph, outputs).items():
        joined = reached
        if _is_constant_or_scalar(node):
            first = next((k for k in reached if reduces[k]), -1)
            joined = [k for k in reached if not reduces[k] or k == first]
        for k in joined[1:]:
            group[find(k)] = find(joined[0])
    return len({find(k) for k in range(len(outputs))})


def _outputs_reached(graph: KernelGraph, outputs: InstructionSequence) -> dict[Instruction, list[int]]:
    """For the instructions that outputs depend on, the numbers of these outputs."""
    onwards = partial(_operands, graph)
    return grouped((node, k) for k, output in enumerate(outputs) for node in reach([output], onwards))


def _reached_in_one_traversal(
    graph: KernelGraph, outputs: InstructionSequence
) -> dict[Instruction, list[int]]:
    reaches = dict[Instruction, set[int]]()
    for k, output in enumerate(outputs):
        reaches.setdefault(output, set()).add(k)
    queue = list(reaches)
    for node in queue:
        for operand in _operands(graph, node):
            if operand not in reaches:
                queue.append(operand)
            reaches.setdefault(operand, set()).update(reaches[node])
    return {node: sorted(reached) for node, reached in reaches.items()}


def _operands(graph: KernelGraph, node: Instruction) -> Instructions:
    return [graph.operand(node, k) for k in range(node.operand_count)] if graph.holds(node) else []


def _is_constant_or_scalar(instruction: Instruction) -> bool:
    """`IsBroadcastedConstantOrScalar`."""
    x = instruction.past("broadcast")
    return x.is_constant or (x.is_array and x.rank == 0)
