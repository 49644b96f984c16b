"""Fusions that turn out to be copies."""

from typing import Any

from hlofuse.analysis.slice_copies import copied_dynamic_slice, copied_slice
from hlofuse.rules.gpu_emitters.candidate import GpuKernel
from hlofuse.rules.gpu_fusible import outputs_of
from hlofuse.rules.verdict import runner


@runner("EM020", "A slice of one piece is a memcpy", runs="memcpy")
def slice_copy(kernel: GpuKernel) -> dict[str, Any] | None:
    slice_ = copied_slice(kernel.instruction) if kernel.modern and kernel.is_generated else None
    return None if slice_ is None else {"slice": slice_.name, "bytes": slice_.shape.byte_size}


@runner("EM021", "A slice at a loop's counter is a memcpy", runs="memcpy")
def dynamic_slice_copy(kernel: GpuKernel) -> dict[str, Any] | None:
    slice_ = copied_dynamic_slice(kernel.instruction) if kernel.modern and kernel.is_generated else None
    if slice_ is None:
        return None
    moved = slice_ if slice_.opcode == "dynamic-slice" else slice_.operands[1]
    return {"moves": f"{slice_.opcode} {slice_.name}", "bytes": moved.shape.byte_size}


@runner("EM022", "A fusion of copies is a memcpy for each", runs="memcpy")
def copy_fusion(kernel: GpuKernel) -> dict[str, Any] | None:
    if kernel.instruction.opcode != "fusion" or kernel.instruction.fusion_kind == "kCustom":
        return None
    roots = outputs_of(kernel.instruction)
    for root in roots:
        if root.opcode != "copy" or root.operands[0].opcode != "parameter":
            return None
        if root.operands[0].shape.minor_to_major != root.shape.minor_to_major:
            return None
    return {"copies": len(roots), "bytes": sum(r.shape.byte_size for r in roots)}


RULES = (slice_copy, dynamic_slice_copy, copy_fusion)
