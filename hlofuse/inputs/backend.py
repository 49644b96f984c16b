"""Which backend a module was compiled for, by what stands in it."""

from __future__ import annotations

import re
from collections.abc import Iterable

from hlofuse.analysis.custom_calls import custom_call_target
from hlofuse.format.escape import printable
from hlofuse.ir.graph import Instruction, Module
from hlofuse.pipelines.identity import Fact

_CALLS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "gpu",
        tuple(
            """
            __cublas$ __cudnn$ __gpu$ __cub$ __triton$ __cusolver$ xla.gpu. triton_kernel_call mosaic_gpu
            cu_ cub_ cublas_ cudnn_ cusolver_ cusparse_ cuda_ __cuda$ cutedsl te_ hip_ hipblas_ hipsolver_
            hipsparse_ rocsolver_ xla_ffi_python_gpu_callback
            """.split()
        ),
    ),
    ("cpu", ("blas_", "lapack_", "__onednn$", "__xla_cpu_runtime_", "xla_ffi_python_cpu_callback")),
    ("tpu", ("tpu_custom_call", "x64splitlow", "x64splithigh")),
    ("neuron", ("awsneuron",)),
    ("poplar", ("poputil", "popops", "popnn", "poplin")),
)
"""How the targets of custom calls begin, in small letters, that one backend alone has."""

_CONFIGS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "gpu",
        (
            '"__triton',
            '"__cudnn',
            '"operation_queue_id"',
            '"collective_backend_config"',
            '"fusion_backend_config"',
            '"gemm_backend_config"',
            '"is_pipelined"',
        ),
    ),
    ("cpu", ('"__ynn_fusion"', '"__xnn_fusion"', '"__onednn_fusion"', '"outer_dimension_partitions"')),
)
"""What stands in the backend_config of one backend alone."""

_GPU_FUSION = re.compile(r"(?:loop|input)(?:_\w+)?_fusion(?:[._]\d+)*")
"""XLA:GPU's `rename_fusions` names fusions by their emitter, no other backend does."""
_GPU_RENAMED = re.compile(r".*\.\d+\.\d+")
"""XLA:GPU gives every instruction a suffix before priority fusion, from 0.6 on."""

FRONT_ENDS = {"neuron": "Neuron", "poplar": "Poplar"}
"""Backends with a compiler of their own, which take a module before optimizations from XLA's front ends."""
NO_TARGET = frozenset({"tpu", *FRONT_ENDS})
"""Backends whose fusion passes are not repeated: their compilers are closed, or others than XLA's."""


def backend_of(module: Module) -> Fact | None:
    """The backend that layouts, calls, configs or names of the module tell; None where none does.

    A module is looked through once: it is asked for several times before the first report line.
    """
    if "backend" not in module.findings:
        module.findings["backend"] = _look_through(module)
    found: Fact | None = module.findings["backend"]
    return found


def _look_through(module: Module) -> Fact | None:
    named: Fact | None = None
    for i in module.instructions():
        found = _of_instruction(i)
        if found is not None:
            return found
        if named is None:
            named = _by_name(i)
    if named is not None:
        return named
    if "neff_" in str(module.attributes.raw("frontend_attributes")):
        return Fact("neuron", "text", "its frontend attributes are Neuron's")
    return None


def _of_instruction(i: Instruction) -> Fact | None:
    name = printable(i.name)
    if _is_tiled(i):
        return Fact("tpu", "text", f"{name} has a tiled layout, {printable(str(i.shape)[:60])}")
    if i.opcode == "custom-call":
        call = custom_call_target(i)
        for backend, prefixes in _CALLS:
            if call.lower().startswith(prefixes):
                return Fact(backend, "text", f"it calls {printable(call)}")
    elif i.opcode == "parameter":
        if "neff_" in (i.attributes.raw("frontend_attributes") or ""):
            return Fact("neuron", "text", f"{name} has frontend attributes of Neuron")
        return None
    config = i.attributes.raw("backend_config")
    if config:
        for backend, keys in _CONFIGS:
            if any(key in config for key in keys):
                return Fact(backend, "text", f"{name} has the backend_config of a {backend.upper()}")
    if i.fusion_kind == "kInput":
        return Fact("gpu", "text", f"{name} is a fusion of kind kInput, which only XLA:GPU makes")
    return None


def _by_name(i: Instruction) -> Fact | None:
    if i.opcode == "fusion" and _GPU_FUSION.fullmatch(i.name):
        return Fact("gpu", "text", f"only XLA:GPU names a fusion {printable(i.name)}")
    if i.opcode not in ("parameter", "constant") and _GPU_RENAMED.fullmatch(i.name):
        return Fact("gpu", "text", f"only XLA:GPU names an operation {printable(i.name)} before fusion")
    return None


def _is_tiled(instruction: Instruction) -> bool:
    shapes: Iterable[object] = (leaf.layout for _, leaf in instruction.shape.leaves())
    return any(layout is not None and "T(" in str(layout) for layout in shapes)
