"""Fusions whose backend config names who runs them: made before the fusion passes, or by Triton's check."""

from typing import Any

from hlofuse.cost.gpu import backend_config as config
from hlofuse.ir.graph import Instruction
from hlofuse.rules.gpu_emitters.candidate import GpuKernel
from hlofuse.rules.verdict import runner

_KIND = "xla/service/gpu/hlo_fusion_analysis.cc: GetEmitterFusionKind"


@runner(
    code="EM030",
    title="A fusion around a library call or a kernel of XLA's library",
    condition="The backend config has __custom_fusion.",
    why="The call reads from or writes to a slice directly (dynamic-slice fusion), or one of XLA's CUTLASS"
    " kernels computes the matmul.",
    mirrors=_KIND,
    runs="custom fusion",
)
def custom(kernel: GpuKernel) -> dict[str, Any] | None:
    return {} if kernel.config_kind == config.CUSTOM else None


@runner(
    code="EM031",
    title="A matmul in Triton",
    condition="The backend config has __triton_gemm (or __triton_nested_gemm_fusion).",
    why="GemmFusion moved the dot and the cheap operations on its inputs to Triton before the fusion passes."
    " The autotuner, on the device, can still choose cuBLASLt or cuDNN. Without a device a default tiling is"
    " used.",
    advice="Matmuls in bf16 or f16 gain most. --xla_gpu_enable_triton_gemm=false uses cuBLASLt for all.",
    mirrors="xla/backends/gpu/transforms/gemm_fusion.cc: GemmFusion; " + _KIND,
    runs="Triton GEMM",
)
def triton_gemm(kernel: GpuKernel) -> dict[str, Any] | None:
    if kernel.config_kind not in ("__triton_gemm", "__triton_nested_gemm_fusion"):
        return None
    found: dict[str, Any] = {}
    if (dot := _dot_in(kernel.instruction)) is not None:
        found["product"] = " × ".join(o.shape.text_without_layout for o in dot.operands[:2])
    return found | _tile(kernel)


@runner(
    code="EM032",
    title="A normalization in Triton",
    condition="The backend config has __triton.",
    why="SoftmaxRewriterTriton found a row that is reduced and used again (softmax, layer norm), which one"
    " kernel can hold in registers. PriorityFusion fuses into it what Triton supports and what saves time.",
    advice="Keep operations on the row (mask, scale, bias) next to it; PF020 and PF021 describe what Triton"
    " does not support.",
    mirrors="xla/backends/gpu/transforms/softmax_rewriter_triton.cc: SoftmaxRewriterTriton; " + _KIND,
    runs="Triton block-level",
)
def triton(kernel: GpuKernel) -> dict[str, Any] | None:
    return _tile(kernel) if kernel.config_kind == config.TRITON else None


@runner(
    code="EM033",
    title="A cuDNN graph fusion",
    condition="The backend config has __cudnn$fusion.",
    why="The autotuner chose cuDNN's graph API for the matmul and its neighbours.",
    mirrors=_KIND,
    runs="cuDNN graph",
)
def cudnn(kernel: GpuKernel) -> dict[str, Any] | None:
    return {} if kernel.config_kind == config.CUDNN else None


@runner(
    code="EM034",
    title="A collective in Triton",
    condition="The backend config has __triton_collective.",
    why="A small all-reduce on directly connected GPUs is faster as one kernel than through NCCL.",
    mirrors=_KIND,
    runs="Triton (collective)",
)
def triton_collective(kernel: GpuKernel) -> dict[str, Any] | None:
    return {} if kernel.config_kind == "__triton_collective" else None


def _tile(kernel: GpuKernel) -> dict[str, Any]:
    found = kernel.summary.config
    if found is None or not found.tile_sizes:
        return {}
    return {"tile": "×".join(map(str, found.tile_sizes[0])), "warps": found.num_warps}


def _dot_in(fusion: Instruction) -> Instruction | None:
    """The dot; in a nested fusion it lies one level deeper."""
    pending = [fusion]
    for kernel in pending:
        for inner in kernel.fused_computation:
            if inner.opcode == "dot":
                return inner
            if inner.opcode == "fusion":
                pending.append(inner)
    return None


RULES = (custom, triton_gemm, triton, cudnn, triton_collective)
