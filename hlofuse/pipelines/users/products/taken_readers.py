"""What read a value for a matrix product, until GemmFusion took copies of both along.

GemmFusion (`xla/backends/gpu/transforms/gemm_fusion.cc`) goes through the dots in post-order. What a dot read
goes with it if nobody else reads that, and the last user of what that had read takes its place.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TypeAlias

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.ages_of_program import is_made_by_pass
from hlofuse.pipelines.calls_in_names import is_of_derivative
from hlofuse.pipelines.names import is_of_program
from hlofuse.pipelines.users.common.fusions import LAYOUT_ONLY, is_gemm, readers_past_layout
from hlofuse.pipelines.users.common.holes import without
from hlofuse.pipelines.users.products.taken_operands import originals_of

Taken: TypeAlias = "dict[Instruction, dict[Hashable, list[Instruction]]]"
"""By value the kinds and names of what read it and is gone, and the gemms that took that along, in order."""


def readers_in_gemms(order: Iterable[Instruction]) -> Taken:
    """What gemms among `order`, the post-order, took along of which there is no original any more.

    It is listed by the value outside that it read, of which the gemm computes a copy. DotMerger moved what
    had read a value that merged products read.
    """
    found: Taken = {}
    for gemm in filter(is_gemm, order):
        if any(map(_is_of_merged_products, readers_past_layout(gemm))):
            continue
        originals = originals_of(gemm)
        for inner, original in originals.items():
            if inner.opcode == "parameter" or inner.opcode in LAYOUT_ONLY:
                continue
            for reader in readers_past_layout(inner):
                if reader not in originals:
                    kind = (reader.opcode, reader.op_name, reader.shape.element_count)
                    found.setdefault(original, {}).setdefault(kind, []).append(gemm)
    return found


def with_last_in_place_of_taken(
    x: Instruction, users: list[Instruction], order: dict[Instruction, int], taken: Taken
) -> list[Instruction]:
    """The users of `x`, given that what gemms took along stood where `order` has the first of these.

    What passes made behind had been appended by then.
    """
    gone = taken.get(x)
    if not gone:
        return users
    behind = [u for u in users if _is_appended(u, x)]
    listed: list[tuple[Instruction, Hashable]] = [(u, None) for u in users if u not in behind]
    for kind, (gemm, *_) in gone.items():
        place = max((k for k, (u, _) in enumerate(listed, 1) if order[u] < order[gemm]), default=0)
        listed.insert(place, (gemm, kind))
    listed += [(u, None) for u in behind]
    kinds = sorted(gone, key=lambda kind: order[gone[kind][-1]])
    return [u for u, _ in without(listed, [(gone[kind][0], kind) for kind in kinds])]


def _is_of_merged_products(x: Instruction) -> bool:
    """Did DotMerger make the slice? Without metadata one that the program has is older than its root."""
    return x.opcode == "slice" and not is_of_program(x) and (bool(x.op_name) or is_made_by_pass(x))


def _is_appended(user: Instruction, x: Instruction) -> bool:
    """Did a pass make it, and not in the place of the first product that read `x`?

    What DotMerger concatenates of derivatives is for that which has the place of the last.
    """
    if is_of_program(user):
        return False
    if user.opcode == "concatenate":
        return is_of_derivative(x)
    return is_made_by_pass(user) and user.opcode != "bitcast"
