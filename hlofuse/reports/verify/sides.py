"""A kernel as the report of a difference shows it."""

from __future__ import annotations

from typing import overload

from hlofuse.ir.graph import Instruction
from hlofuse.reports.verify.model import KernelSide

_QUIET = ("parameter", "constant", "tuple")


@overload
def side_of(i: Instruction) -> KernelSide: ...
@overload
def side_of(i: Instruction | None) -> KernelSide | None: ...
def side_of(i: Instruction | None) -> KernelSide | None:
    """Its name, shape and operands, and the operations inside a fusion; None for no kernel."""
    if i is None:
        return None
    contents: tuple[str, ...] = ()
    if i.opcode == "fusion":
        contents = tuple(x.opcode for x in i.fused_computation.post_order() if x.opcode not in _QUIET)
    side = i.computation.name if i.computation is not None else ""
    return KernelSide(
        i.name, i.opcode, i.fusion_kind, str(i.shape), side, tuple(o.name for o in i.operands), contents
    )
