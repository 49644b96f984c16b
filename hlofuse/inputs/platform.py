"""Which backend a module was compiled for, by what is in it."""

from __future__ import annotations

from collections.abc import Iterable

from hlofuse.analysis.custom_calls import custom_call_target
from hlofuse.format.escape import printable
from hlofuse.ir.graph import Instruction, Module

_GPU_CALLS = tuple(
    """
    __cublas$ __cudnn$ __gpu$ __cub$ __triton$ __cusolver$ xla.gpu. triton_kernel_call mosaic_gpu
    cu_ cub_ cublas_ cudnn_ cusolver_ cusparse_ hip_ hipblas_ hipsolver_ hipsparse_ rocsolver_
    xla_ffi_python_gpu_callback
    """.split()
)
_CPU_CALLS = ("blas_", "lapack_", "__onednn$", "__xla_cpu_runtime_", "xla_ffi_python_cpu_callback")
_TPU_CALLS = ("tpu_custom_call", "X64SplitLow", "X64SplitHigh")


def platform_of(module: Module) -> tuple[str | None, str]:
    """The backend a module was compiled for, where its layouts, calls or configs tell."""
    for i in module.instructions():
        if _tiled(i):
            return "tpu", f"{printable(i.name)} has a tiled layout, {printable(str(i.shape)[:60])}"
        if i.opcode == "custom-call":
            target = custom_call_target(i)
            if target.startswith(_GPU_CALLS):
                return "gpu", f"it calls {printable(target)}"
            if target.startswith(_CPU_CALLS):
                return "cpu", f"it calls {printable(target)}"
            if target in _TPU_CALLS:
                return "tpu", f"it calls {printable(target)}"
        if i.fusion_kind == "kInput":
            return "gpu", f"{printable(i.name)} is a fusion of kind kInput, which only XLA:GPU makes"
        if i.opcode == "fusion" or i.opcode == "custom-call":
            config = i.attributes.raw("backend_config") or ""
            if '"__triton' in config or '"__cudnn' in config or '"operation_queue_id"' in config:
                return "gpu", f"{printable(i.name)} has the backend config of a GPU"
            if '"__ynn_fusion"' in config or '"__xnn_fusion"' in config or '"__onednn_fusion"' in config:
                return "cpu", f"{printable(i.name)} is a fusion for a CPU library"
    return None, ""


def _tiled(instruction: Instruction) -> bool:
    shapes: Iterable[object] = (leaf.layout for _, leaf in instruction.shape.leaves())
    return any(layout is not None and "T(" in str(layout) for layout in shapes)
