"""Fusions that turn out to be copies."""

from typing import Any

from hlofuse.analysis.slice_copies import copied_dynamic_slice, copied_slice
from hlofuse.rules.gpu_emitters.candidate import GpuKernel
from hlofuse.rules.gpu_fusible import outputs_of
from hlofuse.rules.verdict import runner

_NO_CODE = "A contiguous slice needs no code: a device-to-device memcpy copies it."


@runner(
    code="EM020",
    title="A contiguous slice is a memcpy",
    condition="The kernel is one slice of its input, in the same layout and contiguous in memory.",
    why=_NO_CODE,
    advice="To get it, slice along the slowest dimension, or let the consumer read the slice itself.",
    mirrors="xla/backends/gpu/transforms/dynamic_slice_copy.cc: AnalyzeStaticSliceCopyFusion",
    runs="memcpy",
    history="Until 0.4.35: a loop.",
)
def slice_copy(kernel: GpuKernel) -> dict[str, Any] | None:
    slice_ = copied_slice(kernel.instruction) if kernel.modern and kernel.is_generated else None
    return None if slice_ is None else {"slice": slice_.name, "bytes": slice_.shape.byte_size}


@runner(
    code="EM021",
    title="A slice at a loop's counter is a memcpy",
    condition="The kernel only reads or writes one slice of an array, at an offset that XLA derived from the"
    " loop counter (dynamic_slice_config).",
    why=_NO_CODE + " The host computes the offset in each iteration.",
    advice="A scan reads its inputs and writes its outputs this way.",
    mirrors="xla/backends/gpu/transforms/dynamic_slice_copy.cc: AnalyzeDynamicSliceCopyFusion",
    runs="memcpy",
    history="Until 0.4.35: a loop, or an in-place update.",
)
def dynamic_slice_copy(kernel: GpuKernel) -> dict[str, Any] | None:
    slice_ = copied_dynamic_slice(kernel.instruction) if kernel.modern and kernel.is_generated else None
    if slice_ is None:
        return None
    moved = slice_ if slice_.opcode == "dynamic-slice" else slice_.operands[1]
    return {"moves": f"{slice_.opcode} {slice_.name}", "bytes": moved.shape.byte_size}


@runner(
    code="EM022",
    title="A fusion of copies is one memcpy each",
    condition="Every output of the kernel is a copy of one of its inputs, with the same layout.",
    why=_NO_CODE,
    advice="These copies separate a loop's state from its results; see EM012.",
    mirrors="xla/backends/gpu/codegen/fusions.cc: HloFusionInfo::GetCopyFusion",
    runs="memcpy",
)
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
