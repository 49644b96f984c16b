"""Slices of what a loop carries which layout normalization made anew.

LayoutNormalization (`xla/service/layout_normalization.cc`) makes a slice of what has another layout anew: the
new one reads the same index, behind all that does, and takes the place of the old one, which goes. A scan
takes slices of the elements of its tuple in their order, so that the element tells where that was.
"""

from __future__ import annotations

from hlofuse.analysis.tuples import element_given
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.calls_in_names import SLICE_OF_SCAN
from hlofuse.pipelines.names import is_of_program

_OF_SCAN = (
    SLICE_OF_SCAN,
    "/body/jit(dynamic_update_index_in_dim)/dynamic_update_slice",
)
"""What the framework calls the slices that a scan takes and puts back, not those of the function it calls."""


def with_slices_made_anew_in_place(index: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The users of an `index`, with slices made anew among those that were there, by element."""
    anew = [u for u in users if _is_made_anew(u) and u.operands[0] is not index]
    listed = [u for u in users if u not in anew]
    for slice_ in sorted(anew, key=_element):
        before = [k for k, u in enumerate(listed, 1) if _is_before(u, slice_)]
        behind = [k for k, u in enumerate(listed) if _is_behind(u, slice_)]
        listed.insert(before[-1] if before else min(behind, default=len(listed)), slice_)
    return listed


def _is_made_anew(x: Instruction) -> bool:
    return _element(x) >= 0 and not is_of_program(x)


def _is_before(user: Instruction, slice_: Instruction) -> bool:
    """Does the slice come behind `user`, the same of an earlier element?"""
    return user.opcode == slice_.opcode and -1 < _element(user) < _element(slice_)


def _is_behind(user: Instruction, slice_: Instruction) -> bool:
    """Does `user` come behind the slice: one of a later element, or what puts a result back?"""
    if user.opcode == slice_.opcode:
        return _element(user) > _element(slice_)
    return user.opcode == "dynamic-update-slice"


def _element(x: Instruction) -> int:
    """Which element of the body's tuple a slice of the scan is of; -1 for anything else."""
    if not (x.op_name or "").endswith(_OF_SCAN) or not x.operands:
        return -1
    of = x.operands[0]
    while of.opcode in {"bitcast", "copy", "transpose"}:
        of = of.operands[0]
    element = element_given(of)
    return -1 if element is None else element
