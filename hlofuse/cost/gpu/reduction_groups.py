"""Which outputs of a reduction kernel are computed by blocks of their own.

Mirrors `GroupDisjointReductions` (`xla/backends/gpu/codegen/emitters/reduction_base.cc`).
"""

from collections.abc import Sequence

from hlofuse.cost.gpu.heroes import Root
from hlofuse.cost.gpu.kernel_graph import KernelGraph
from hlofuse.ir.graph import Instruction


def reduction_groups(
    parts: Sequence[Instruction], roots: Sequence[Root], *, in_one_traversal: bool = False
) -> int:
    """The number of groups; outputs that share work beyond constants and scalars are in one.

    `parts` is a fusion, or a producer and its consumer; `roots` are the roots of the whole, in order.
    `in_one_traversal`: as until 0.4.35 what each output reaches is propagated in one traversal from all of
    them, and does not get everywhere.
    """
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

    traverse = _reached_in_one_traversal if in_one_traversal else _reached
    for node, reached in traverse(graph, outputs).items():
        joined = reached
        if _is_constant_or_scalar(node):
            first = next((k for k in reached if reduces[k]), -1)
            joined = [k for k in reached if not reduces[k] or k == first]
        for k in joined[1:]:
            group[find(k)] = find(joined[0])
    return len({find(k) for k in range(len(outputs))})


def _reached(graph: KernelGraph, outputs: Sequence[Instruction]) -> dict[Instruction, list[int]]:
    """For what outputs depend on, their numbers."""
    reaches: dict[Instruction, list[int]] = {}
    for k, output in enumerate(outputs):
        queue, seen = [output], {output}
        for node in queue:
            reaches.setdefault(node, []).append(k)
            for operand in _operands(graph, node):
                if operand not in seen:
                    seen.add(operand)
                    queue.append(operand)
    return reaches


def _reached_in_one_traversal(
    graph: KernelGraph, outputs: Sequence[Instruction]
) -> dict[Instruction, list[int]]:
    reaches: dict[Instruction, set[int]] = {}
    for k, output in enumerate(outputs):
        reaches.setdefault(output, set()).add(k)
    queue = list(dict.fromkeys(outputs))
    seen = set(queue)
    for node in queue:
        for operand in _operands(graph, node):
            reaches.setdefault(operand, set()).update(reaches[node])
            if operand not in seen:
                seen.add(operand)
                queue.append(operand)
    return {node: sorted(reached) for node, reached in reaches.items()}


def _operands(graph: KernelGraph, node: Instruction) -> list[Instruction]:
    return [graph.operand(node, k) for k in range(len(node.operands))] if graph.holds(node) else []


def _is_constant_or_scalar(instruction: Instruction) -> bool:
    """`IsBroadcastedConstantOrScalar`."""
    if instruction.opcode == "constant" or _is_scalar(instruction):
        return True
    if instruction.opcode != "broadcast":
        return False
    operand = instruction.operands[0]
    return operand.opcode == "constant" or _is_scalar(operand)


def _is_scalar(instruction: Instruction) -> bool:
    return instruction.shape.is_array and instruction.shape.rank == 0
