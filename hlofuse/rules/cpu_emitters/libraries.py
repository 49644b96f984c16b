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
    title="A library fusion is YNNPACK's",
    condition="Does the fusion's config say __ynn_fusion?",
    why="YNNPACK took a matrix product, a convolution or a reduction, with element-wise operations "
    "around it, before the fusion passes.",
    advice="What feeds it is stored first: XLA fuses nothing into it. "
    "--xla_cpu_experimental_ynn_fusion_type= (empty) leaves everything to XLA.",
    mirrors=f"{_EMIT}::EmitYnnFusionThunk",
    runs="YNNPACK",
)
def ynn(kernel: Instruction) -> dict[str, Any] | None:
    return _library_fusion(kernel, "__ynn_fusion")


@runner(
    code="EC002",
    title="A library call is oneDNN's",
    condition="Does the fusion's config say __onednn_fusion, or the custom call's target start with "
    "__onednn$?",
    why="XLA built with oneDNN gives it products, convolutions, softmax and normalisations.",
    mirrors=f"{_EMIT}::EmitOneDnnFusionThunk",
    runs="oneDNN",
)
def onednn(kernel: Instruction) -> dict[str, Any] | None:
    target = custom_call_target(kernel)
    return {"calls": target} if target.startswith("__onednn$") else _library_fusion(kernel, "__onednn_fusion")


@runner(
    code="EC003",
    title="A matrix product is Eigen's",
    condition="Is it a dot of two matrices (each one of a batch) of f16, f32, f64, c64, c128 or s32, "
    "with more than one row and column, and not both smaller than 4 on a side?",
    why="Eigen's product is blocked for the caches and runs on several threads.",
    mirrors=_DOT,
    runs="Eigen",
)
def eigen_dot(kernel: Instruction) -> dict[str, Any] | None:
    return _dot(kernel, EIGEN)


@runner(
    code="EC004",
    title="A product with a vector is a loop of XLA's own",
    condition="Is it a dot whose result has one row or one column, of real numbers or integers?",
    why="A product with a vector reads the matrix once and is bound by memory: a vectorised loop over "
    "tiles does as well as a library, without the call, and an addition can be fused with it.",
    advice="To have a library call, batch the vectors into a matrix.",
    mirrors=_DOT,
    runs="matrix-vector loop",
)
def vector_dot(kernel: Instruction) -> dict[str, Any] | None:
    return _dot(kernel, VECTOR)


@runner(
    code="EC005",
    title="A product in plain loops",
    condition="Is it a dot of tiny matrices (a side of at most 3 each), or of a type or form Eigen has "
    "no product for?",
    why="For tiny matrices a call costs more than the product; for other types there is no library.",
    advice="bf16 and narrow integers that no library takes: convert to f32, or to s32.",
    mirrors=_DOT,
    runs="plain loops",
)
def naive_dot(kernel: Instruction) -> dict[str, Any] | None:
    return _dot(kernel, NAIVE)


@runner(
    code="EC006",
    title="A convolution is Eigen's",
    condition="Is it a convolution of f16 or f32 in the order NHWC and HWIO (see FW004)?",
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
    condition="Is it a custom call (LAPACK, a top-k, a function of the program's own)?",
    why="XLA looks the function up by its name and calls it.",
    mirrors=f"{_EMIT}::EmitCustomCallThunk",
    runs="custom call",
)
def custom_call(kernel: Instruction) -> dict[str, Any] | None:
    target = custom_call_target(kernel)
    return {"calls": target} if target else None


@runner(
    code="EC008",
    title="A Fourier transform is DUCC's",
    condition="Is it an fft?",
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
