"""Products that became a multiply and a reduce before fusion, told by what their metadata still says."""

from __future__ import annotations

from typing import Any

from hlofuse.ir.graph import Instruction

_PRODUCTS = ("dot_general", "dot")


def product_as_reduce(kernel: Instruction) -> dict[str, Any] | None:
    """The reduce that was a dot in the program, if the kernel has one and no dot."""
    inside = list(kernel.fused_computation) if kernel.opcode == "fusion" else [kernel]
    if any(i.opcode == "dot" for i in inside):
        return None
    born = [i for i in inside if (i.op_name or "").rpartition("/")[2] in _PRODUCTS]
    made = next((i for i in born if i.opcode == "reduce"), None)
    if made is None or not any(i.opcode == "multiply" for i in born):
        return None
    return {"product": made.name}
