"""Fusions whose backend config names who runs them: made before the fusion passes, or by Triton's check."""

from typing import Any

from hlofuse.cost.gpu import backend_config as config
from hlofuse.ir.graph import Instruction
from hlofuse.rules.gpu_emitters.candidate import GpuKernel
from hlofuse.rules.verdict import runner


@runner("EM030", "A fusion around a library call or a kernel of XLA's library", runs="custom fusion")
def custom(kernel: GpuKernel) -> dict[str, Any] | None:
    return {} if kernel.config_kind == config.CUSTOM else None


@runner("EM031", "A matrix product is a Triton kernel", runs="Triton (product)")
def triton_gemm(kernel: GpuKernel) -> dict[str, Any] | None:
    if kernel.config_kind not in ("__triton_gemm", "__triton_nested_gemm_fusion"):
        return None
    found: dict[str, Any] = {}
    if (dot := _dot_in(kernel.instruction)) is not None:
        found["product"] = " × ".join(o.shape.text_without_layout for o in dot.operands[:2])
    return found | _tile(kernel)


@runner("EM032", "A normalisation is a Triton kernel", runs="Triton (block)")
def triton(kernel: GpuKernel) -> dict[str, Any] | None:
    return _tile(kernel) if kernel.config_kind == config.TRITON else None


@runner("EM033", "A fusion is a cuDNN graph", runs="cuDNN graph")
def cudnn(kernel: GpuKernel) -> dict[str, Any] | None:
    return {} if kernel.config_kind == config.CUDNN else None


@runner("EM034", "A collective is a Triton kernel", runs="Triton (collective)")
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
