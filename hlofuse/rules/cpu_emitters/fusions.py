"""Fusions for which XLA:CPU writes the code."""

from typing import Any

from hlofuse.analysis.cpu_predicates import dot_strategy, product_as_reduce, why_not_tiled
from hlofuse.analysis.elementwise import is_elementwise
from hlofuse.cost.gpu.atoms import is_intermediate
from hlofuse.cost.gpu.in_place import can_update_in_place
from hlofuse.ir.graph import Instruction
from hlofuse.rules.verdict import runner


@runner("EC020", "A product with what is added to it", runs="matrix-vector loop")
def output_fusion(kernel: Instruction) -> dict[str, Any] | None:
    if kernel.opcode != "fusion" or kernel.fusion_kind != "kOutput":
        return None
    dot = next((i for i in kernel.fused_computation if i.opcode == "dot"), None)
    return {} if dot is None else {"product": dot.name, "because": dot_strategy(dot)[1]}


@runner("EC021", "The tiled emitter", runs="tiled emitter")
def tiled(kernel: Instruction) -> dict[str, Any] | None:
    if not _is_loop(kernel) or why_not_tiled(kernel) is not None:
        return None
    return {"result": _result(kernel)}


@runner("EC022", "The scatter emitter", runs="scatter emitter")
def scatter(kernel: Instruction) -> dict[str, Any] | None:
    is_scatter = kernel.opcode == "fusion" and kernel.fused_root.opcode == "scatter"
    return {"hero": kernel.fused_root.name} if is_scatter else None


@runner("EC023", "The concatenate emitter", runs="concatenate emitter")
def concatenate(kernel: Instruction) -> dict[str, Any] | None:
    hero = _concatenate_hero(kernel) if _is_loop(kernel) else None
    if hero is None:
        return None
    return {"hero": hero.name, "joins": f"{len(hero.operands)} along dimension {hero.dimensions[0]}"}


@runner("EC024", "The update in place", runs="in-place update")
def in_place_update(kernel: Instruction) -> dict[str, Any] | None:
    if not _is_loop(kernel):
        return None
    root = kernel.fused_root
    outputs = root.operands if root.opcode == "tuple" else [root]
    updates = [o.operands[0] if o.opcode == "bitcast" else o for o in outputs]
    if any(u.opcode != "dynamic-update-slice" for u in updates) or not can_update_in_place([kernel]):
        return None
    update = updates[0]
    sizes = update.operands[1].shape.text_without_layout
    return {"update": sizes, "of": update.shape.text_without_layout}


@runner("EC025", "The loop emitter", runs="loop emitter")
def loop(kernel: Instruction) -> dict[str, Any] | None:
    if kernel.opcode != "fusion":
        return None
    found = {"result": _result(kernel)}
    because = why_not_tiled(kernel) if _is_loop(kernel) else None
    return found | {"not tiled because": because} if because else found


@runner("EC060", "A product with a vector is a multiply and a reduce", runs="multiply and reduce")
def strength_reduced(kernel: Instruction) -> dict[str, Any] | None:
    return product_as_reduce(kernel)


def _is_loop(kernel: Instruction) -> bool:
    return kernel.opcode == "fusion" and kernel.fusion_kind == "kLoop"


def _result(kernel: Instruction) -> str:
    root = kernel.fused_root
    more = f" and {len(root.operands) - 1} more" if root.opcode == "tuple" else ""
    first = root.operands[0] if root.opcode == "tuple" else root
    return f"{first.name} {first.shape.text_without_layout}{more}"


def _concatenate_hero(kernel: Instruction) -> Instruction | None:
    """`FindNonTrivialHero` of XLA:CPU: up the chain of one-operand operations, then a bit further."""
    start = kernel.fused_root
    if start.opcode == "tuple":
        return None
    while _is_intermediate(start, 1) and start.operands[0].opcode != "parameter":
        start = start.operands[0]
    found: list[Instruction] = []
    queue, seen = [start], {start}
    for node in queue:
        if node.opcode == "concatenate":
            found.append(node)
        elif _is_intermediate(node, 3):
            for operand in node.operands:
                if operand not in seen:
                    seen.add(operand)
                    queue.append(operand)
    if len(found) != 1:
        return None
    queue = list(found[0].users)
    for user in queue:
        if user.opcode != "tuple" and not _is_intermediate(user, 3):
            return None
        queue += [u for u in user.users if u not in queue]
    return found[0]


def _is_intermediate(instruction: Instruction, most_operands: int) -> bool:
    count = len(instruction.operands)
    return 0 < count <= most_operands and is_intermediate(instruction, is_elementwise(instruction))


RULES = (output_fusion, tiled, scatter, concatenate, in_place_update, loop)
