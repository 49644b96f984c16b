"""Users that fusions which were there before took along."""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.holes import without

_LAYOUT_ONLY = frozenset({"bitcast", "copy", "reshape", "transpose"})


def with_gemms_behind(producer: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The users with those behind that lead to a Triton gemm which computes on `producer` before the dot.

    GemmFusion (`xla/backends/gpu/transforms/gemm_fusion.cc`) took that operation along, which had read
    `producer` until then; the bitcast in between was hoisted out again, in the same place.
    """
    late = [u for u in users if _leads_to_gemm_with_prologue(u, producer)]
    return [*(u for u in users if u not in late), *late] if late else users


def _leads_to_gemm_with_prologue(user: Instruction, producer: Instruction) -> bool:
    operand, gemm = producer, user
    while gemm.opcode == "bitcast" and len(gemm.users) == 1:
        operand, gemm = gemm, gemm.users[0]
    if gemm.opcode != "fusion" or gemm.fusion_kind != "kCustom" or operand not in gemm.operands:
        return False
    x = gemm.fused_computation.parameters[gemm.operands.index(operand)]
    while len(x.users) == 1 and x.users[0].opcode in _LAYOUT_ONLY:
        x = x.users[0]
    return any(u.opcode not in {"dot", *_LAYOUT_ONLY} for u in x.users)


def without_those_in_softmax(
    constant: Instruction, users: list[Instruction], order: dict[Instruction, int]
) -> list[Instruction]:
    """The users of a broadcast `constant`, given that softmax fusions took some others along.

    SoftmaxRewriterTriton (`xla/backends/gpu/transforms/softmax_rewriter_triton.cc`) clones the broadcast as
    well. What it took was among the users in front of those that come behind in `order`, the post-order.
    """
    taken = [
        (fusion, user)
        for fusion in order
        if fusion.opcode == "fusion" and fusion.fusion_kind == "kCustom"
        for x in fusion.fused_computation
        if x.opcode == "broadcast" and _is_like(x, constant)
        for user in x.users
    ]
    listed = list(users)
    for fusion, user in taken:
        place = next((k for k, u in enumerate(listed) if order.get(u, -1) > order[fusion]), len(listed))
        listed.insert(place, user)
    return without(listed, [user for _, user in taken])


def _is_like(x: Instruction, constant: Instruction) -> bool:
    value, other = x.operands[0], constant.operands[0]
    return (
        value.opcode == other.opcode == "constant"
        and x.shape.key == constant.shape.key
        and value.shape.key == other.shape.key
        and value.payload == other.payload
    )
