"""Kernels whose outputs are dynamic-update-slices that write into the updated buffers.

Mirrors `CanEmitFusedDynamicUpdateSliceInPlace` (`xla/codegen/ir_emission_utils.cc`). Few kernels
ask, so this walks the graph of producer and consumer as XLA does, parameters being looked through.
"""

from collections.abc import Sequence

from hlofuse.analysis.elementwise import is_elementwise
from hlofuse.cost.gpu.kernel_graph import KernelGraph
from hlofuse.ir.graph import Instruction


def can_update_in_place(parts: Sequence[Instruction], bitcasts: int = 1 << 30) -> bool:
    """True if every output updates a buffer that nothing else in the kernel reads elsewhere.

    An update is looked for behind so many bitcasts at most.
    """
    kernel = KernelGraph(parts)
    updates = []
    roots = kernel.roots()
    for root in roots:
        left = bitcasts
        while root.opcode == "bitcast" and left:
            root, left = kernel.operand(root, 0), left - 1
        if root.opcode == "dynamic-update-slice":
            updates.append(root)
    if len(updates) != len(roots):
        return False
    shape = kernel.operand(updates[0], 1).shape
    return all(_one_in_place(kernel, update, shape.key, shape.element_count) for update in updates)


def _one_in_place(kernel: KernelGraph, update: Instruction, shape_key: object, elements: int) -> bool:
    last = update
    while users := kernel.users(last):
        if len(users) > 1 or users[0].opcode != "bitcast":
            return False
        last = users[0]
    target = kernel.operand(update, 0)
    buffer = target
    if kernel.holds(buffer) and buffer.opcode == "bitcast":
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
    return update.operands[1].shape.key == shape_key
