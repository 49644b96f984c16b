"""What XLA:GPU launches (`xla/service/gpu/thunk_emitter.cc`, `xla/backends/gpu/codegen/fusions.cc`)."""

import json

from hlofuse.analysis.async_ops import wrapped_opcode
from hlofuse.analysis.custom_calls import custom_call_target, is_annotation
from hlofuse.analysis.kernels import is_kernel
from hlofuse.analysis.launches.launch import Launch
from hlofuse.analysis.slice_copies import copied_dynamic_slice, copied_slice
from hlofuse.ir.graph import Instruction

_KERNEL = Launch("kernel")
_COPY = Launch("copy")
_COLLECTIVE = Launch("collective")
_SORT = Launch("kernel", "several sorting kernels, after copies of operands that stay")
_BY_OPCODE = {
    "sort": _SORT,
    "copy": _COPY,
    "copy-start": _COPY,
    "fft": Launch("library", "cuFFT"),
    "cholesky": Launch("library", "cuSOLVER"),
    "infeed": Launch("host"),
    "outfeed": Launch("host"),
    # The number of the device is written by a memset.
    "partition-id": Launch("memset"),
    "replica-id": Launch("memset"),
}
_COLLECTIVES = frozenset(
    """
    all-gather all-gather-start all-reduce all-reduce-start all-to-all collective-broadcast
    collective-permute collective-permute-start ragged-all-to-all reduce-scatter
    """.split()
)
_NOT_LAUNCHED = frozenset({"AllocateBuffer", "CreateBuffer", "Pin", "Unpin"})
"""Custom calls whose meaning is in how buffers are assigned."""
_OWN_KERNELS = frozenset(
    {"__gpu$TopK", "__gpu$xla.gpu.triton", "__gpu$xla.gpu.ptx", "PadToStatic", "SliceToDynamic"}
)
_LIBRARIES = {
    "__cublas$triangularSolve": "cuBLAS, after a copy of the right-hand side",
    "__cublas$": "cuBLAS",
    "__cudnn$": "cuDNN",
    "__cub$": "CUB",
    "xla.gpu.ext.cub_": "CUB",
    "cusolver_": "cuSOLVER",
}
_CALLBACKS = frozenset(
    {"xla_python_gpu_callback", "xla_ffi_python_gpu_callback", "xla_ffi_partitioned_python_gpu_callback"}
)


def launch_of(instruction: Instruction) -> Launch | None:
    """What the instruction launches; None for nothing."""
    opcode = instruction.opcode
    if opcode == "fusion":
        return _fusion(instruction)
    if opcode == "custom-call":
        return _custom_call(instruction)
    if opcode in _BY_OPCODE:
        return _BY_OPCODE[opcode]
    if opcode in _COLLECTIVES or wrapped_opcode(opcode) in _COLLECTIVES:
        return _COLLECTIVE
    if opcode in ("send", "recv"):
        to_host = instruction.attributes.raw("is_host_transfer") == "true"
        return Launch("host") if to_host else _COLLECTIVE
    return _KERNEL if is_kernel(instruction) else None


def _fusion(fusion: Instruction) -> Launch:
    if fusion.fusion_kind == "kCustom":
        return _SORT if fusion.fused_root.opcode == "sort" else _custom_fusion(fusion)
    if copied_slice(fusion) is not None:
        return _COPY
    if copied_dynamic_slice(fusion) is not None:
        return Launch("copy", "of a slice whose place the host works out")
    if fusion.fused_root.opcode == "sort":
        return _SORT
    copies = _plain_copies(fusion)
    return Launch("copy", f"{copies} copies" if copies > 1 else "") if copies else _KERNEL


def _plain_copies(fusion: Instruction) -> int:
    """The results, where each is a copy of an input with the same layout; 0 for any other fusion."""
    root = fusion.fused_root
    outputs = root.operands if root.opcode == "tuple" else [root]
    for output in outputs:
        if output.opcode != "copy" or output.operands[0].opcode != "parameter":
            return 0
        if output.operands[0].shape.minor_to_major != output.shape.minor_to_major:
            return 0
    return len(outputs)


def _custom_fusion(fusion: Instruction) -> Launch:
    config = _fusion_config(fusion)
    kind = config.get("kind")
    if kind == "__cudnn$fusion":
        return Launch("library", "cuDNN")
    if kind == "__custom_fusion":
        # A library call that reads or writes slices in place.
        for inner in fusion.fused_computation:
            if inner.opcode == "custom-call":
                return _custom_call(inner) or _KERNEL
    return _KERNEL


def _fusion_config(fusion: Instruction) -> dict[str, object]:
    try:
        config = json.loads(fusion.attributes.raw("backend_config") or "{}")
    except ValueError:
        return {}
    found = config.get("fusion_backend_config") if isinstance(config, dict) else None
    return found if isinstance(found, dict) else {}


def _custom_call(call: Instruction) -> Launch | None:
    target = custom_call_target(call)
    if target in _NOT_LAUNCHED or is_annotation(call):
        return None
    if target in _OWN_KERNELS:
        return _KERNEL
    if target in _CALLBACKS or target == "GetRngSeed":
        return Launch("host", target)
    for prefix, name in _LIBRARIES.items():
        if target.startswith(prefix):
            return Launch("library", name)
    return Launch("library", target)
