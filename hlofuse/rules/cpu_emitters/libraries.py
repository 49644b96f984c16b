"""Library calls: chosen before fusion (library fusions), or by what an operation is."""

from typing import Any

from hlofuse.analysis.convolution import why_not_eigen
from hlofuse.analysis.cpu_predicates import EIGEN, NAIVE, VECTOR, dot_strategy
from hlofuse.analysis.custom_calls import custom_call_target
from hlofuse.ir.graph import Instruction
from hlofuse.rules.verdict import runner


@runner("EC001", "A library fusion is YNNPACK's", runs="YNNPACK")
def ynn(kernel: Instruction) -> dict[str, Any] | None:
    return _library_fusion(kernel, "__ynn_fusion")


@runner("EC002", "A library call is oneDNN's", runs="oneDNN")
def onednn(kernel: Instruction) -> dict[str, Any] | None:
    target = custom_call_target(kernel)
    return {"calls": target} if target.startswith("__onednn$") else _library_fusion(kernel, "__onednn_fusion")


@runner("EC003", "A matrix product is Eigen's", runs="Eigen")
def eigen_dot(kernel: Instruction) -> dict[str, Any] | None:
    return _dot(kernel, EIGEN)


@runner("EC004", "A product with a vector is a loop of XLA's own", runs="matrix-vector loop")
def vector_dot(kernel: Instruction) -> dict[str, Any] | None:
    return _dot(kernel, VECTOR)


@runner("EC005", "A product in plain loops", runs="plain loops")
def naive_dot(kernel: Instruction) -> dict[str, Any] | None:
    return _dot(kernel, NAIVE)


@runner("EC006", "A convolution is Eigen's", runs="Eigen")
def eigen_convolution(kernel: Instruction) -> dict[str, Any] | None:
    if kernel.opcode != "convolution" or why_not_eigen(kernel) is not None:
        return None
    return {"convolves": " × ".join(o.shape.text_without_layout for o in kernel.operands[:2])}


@runner("EC007", "A custom call", runs="custom call")
def custom_call(kernel: Instruction) -> dict[str, Any] | None:
    target = custom_call_target(kernel)
    return {"calls": target} if target else None


@runner("EC008", "A Fourier transform is DUCC's", runs="DUCC FFT")
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
