"""Fusions that turn out to be copies."""

from typing import Any

from hlofuse.analysis.slice_copies import copied_dynamic_slice, copied_slice
from hlofuse.rules.gpu_emitters.candidate import GpuKernel
from hlofuse.rules.gpu_fusible import outputs_of
from hlofuse.rules.verdict import runner

_NO_CODE = "A piece that lies together in memory needs no code: a device-to-device memcpy does it."


@runner(
    code="EM020",
    title="A slice of one piece is a memcpy",
    condition="Is the kernel one slice of its input, of the same layout, that lies in one run of memory?",
    why=_NO_CODE,
    advice="Slice along the slowest dimension to have it, or let the consumer read the slice itself.",
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
    condition="Does the kernel only read or write one piece of an array, at an offset that XLA worked "
    "out as a function of the loop's counter (dynamic_slice_config)?",
    why=_NO_CODE + " The offset is computed on the host, turn by turn.",
    advice="This is what a scan does with its inputs and outputs; nothing to do.",
    mirrors="xla/backends/gpu/transforms/dynamic_slice_copy.cc: AnalyzeDynamicSliceCopyFusion",
    runs="memcpy",
    history="Until 0.4.35: a loop, or an update in place.",
)
def dynamic_slice_copy(kernel: GpuKernel) -> dict[str, Any] | None:
    slice_ = copied_dynamic_slice(kernel.instruction) if kernel.modern and kernel.is_generated else None
    if slice_ is None:
        return None
    moved = slice_ if slice_.opcode == "dynamic-slice" else slice_.operands[1]
    return {"moves": f"{slice_.opcode} {slice_.name}", "bytes": moved.shape.byte_size}


@runner(
    code="EM022",
    title="A fusion of copies is a memcpy for each",
    condition="Is every output of the kernel a copy of one of its inputs, layout and all?",
    why=_NO_CODE,
    advice="These copies keep a loop's state apart; see EM012.",
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
