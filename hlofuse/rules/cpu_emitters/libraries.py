"""Library calls: chosen before fusion (library fusions), or by what an operation is."""

from typing import Any

from hlofuse.analysis.convolution import why_not_eigen
from hlofuse.analysis.cpu_predicates import EIGEN, NAIVE, VECTOR, dot_strategy
from hlofuse.analysis.custom_calls import custom_call_target
from hlofuse.ir.graph import Instruction
from hlofuse.rules.verdict import runner

_EMIT = "xla/service/cpu/thunk_emitter.cc: ThunkEmitter"
_DOT = "xla/service/cpu/dot_op_emitter.cc: GetDotImplementationStrategy"


@runner(
    code="EC001",
    title="A library fusion for YNNPACK",
    condition="The fusion's config has __ynn_fusion.",
    why="YNNPACK took a matmul, convolution or reduction with elementwise operations around it, before the"
    " fusion passes.",
    advice="XLA does not fuse into the call: its operands are written to memory first."
    " --xla_cpu_experimental_ynn_fusion_type= (empty) disables YNNPACK.",
    mirrors=f"{_EMIT}::EmitYnnFusionThunk",
    runs="YNNPACK",
)
def ynn(kernel: Instruction) -> dict[str, Any] | None:
    return _library_fusion(kernel, "__ynn_fusion")


@runner(
    code="EC002",
    title="A library call to oneDNN",
    condition="The fusion's config has __onednn_fusion, or the custom call's target starts with __onednn$.",
    why="XLA built with oneDNN uses it for matmuls, convolutions, softmax and normalizations.",
    mirrors=f"{_EMIT}::EmitOneDnnFusionThunk",
    runs="oneDNN",
)
def onednn(kernel: Instruction) -> dict[str, Any] | None:
    target = custom_call_target(kernel)
    return {"calls": target} if target.startswith("__onednn$") else _library_fusion(kernel, "__onednn_fusion")


@runner(
    code="EC003",
    title="A matmul in Eigen",
    condition="The dot multiplies two matrices (or batches of them) of f16, f32, f64, c64, c128 or s32. It"
    " has more than one row and column, and not both matrices have a side below 4.",
    why="Eigen's matmul is blocked for the caches and multithreaded.",
    mirrors=_DOT,
    runs="Eigen",
)
def eigen_dot(kernel: Instruction) -> dict[str, Any] | None:
    return _dot(kernel, EIGEN)


@runner(
    code="EC004",
    title="A matrix-vector product in XLA's own loop",
    condition="The dot's result has one row or one column, of real numbers or integers.",
    why="A matrix-vector product reads the matrix once and is memory-bound. A vectorized loop over tiles is"
    " as fast as a library, without the call, and an addition can be fused into it.",
    advice="To get a library call, batch the vectors into a matrix.",
    mirrors=_DOT,
    runs="matrix-vector loop",
)
def vector_dot(kernel: Instruction) -> dict[str, Any] | None:
    return _dot(kernel, VECTOR)


@runner(
    code="EC005",
    title="A dot in plain loops",
    condition="The dot multiplies tiny matrices (a side of at most 3 each), or Eigen does not support its"
    " type or form.",
    why="For tiny matrices a call costs more than the product; for other types there is no library.",
    advice="Convert bf16 and narrow integers, which no library supports, to f32 or s32.",
    mirrors=_DOT,
    runs="plain loops",
)
def naive_dot(kernel: Instruction) -> dict[str, Any] | None:
    return _dot(kernel, NAIVE)


@runner(
    code="EC006",
    title="A convolution in Eigen",
    condition="The convolution is f16 or f32 in NHWC and HWIO order (see FW004).",
    why="Eigen's code is faster than generated loops.",
    mirrors="xla/service/cpu/ir_emission_utils.cc: CanUseEigenConvolution",
    runs="Eigen",
)
def eigen_convolution(kernel: Instruction) -> dict[str, Any] | None:
    if kernel.opcode != "convolution" or why_not_eigen(kernel) is not None:
        return None
    return {"convolves": " × ".join(o.shape.text_without_layout for o in kernel.operands[:2])}


@runner(
    code="EC007",
    title="A custom call",
    condition="A custom call (LAPACK, a top-k, a function of the program).",
    why="XLA looks up the function by name and calls it.",
    mirrors=f"{_EMIT}::EmitCustomCallThunk",
    runs="custom call",
)
def custom_call(kernel: Instruction) -> dict[str, Any] | None:
    target = custom_call_target(kernel)
    return {"calls": target} if target else None


@runner(
    code="EC008",
    title="A Fourier transform in DUCC",
    condition="The operation is an fft.",
    why="XLA has no Fourier transform of its own.",
    mirrors=f"{_EMIT}::EmitFftThunk",
    runs="DUCC FFT",
)
def fft(kernel: Instruction) -> dict[str, Any] | None:
    if kernel.opcode != "fft":
        return None
    return {"length": (kernel.attributes.raw("fft_length") or "").strip("{}")}


def _library_fusion(kernel: Instruction, kind: str) -> dict[str, Any] | None:
    if kernel.opcode != "fusion" or f'"{kind}"' not in (kernel.attributes.raw("backend_config") or ""):
        return None
    heavy = next((i for i in kernel.fused_computation if i.opcode in ("dot", "convolution", "reduce")), None)
    if heavy is None:
        return {}
    return {"around": f"{heavy.opcode} of {heavy.operands[0].shape.text_without_layout}"}


def _dot(kernel: Instruction, wanted: str) -> dict[str, Any] | None:
    if kernel.opcode != "dot":
        return None
    strategy, because = dot_strategy(kernel)
    return {"because": because} if strategy == wanted else None


RULES = (ynn, onednn, eigen_dot, vector_dot, naive_dot, eigen_convolution, custom_call, fft)
