"""What a custom call calls."""

from __future__ import annotations

from hlofuse.ir.graph import Instruction


def custom_call_target(instruction: Instruction) -> str:
    """The target of a custom call; empty for anything else."""
    if instruction.opcode != "custom-call":
        return ""
    return str(instruction.attributes.get("custom_call_target") or "")


def is_library_convolution(instruction: Instruction) -> bool:
    """Does cuDNN compute it, a convolution (`IsCustomCallToDnnConvolution` of `cublas_cudnn.cc`)?"""
    return custom_call_target(instruction).startswith("__cudnn$conv")


def is_library_matmul(instruction: Instruction) -> bool:
    """Does cuBLAS compute it, a matrix product (`IsCublasGemm` of `cublas_cudnn.cc`)?"""
    return custom_call_target(instruction).startswith(("__cublas$gemm", "__cublas$lt$"))


def is_radix_sort(instruction: Instruction) -> bool:
    """A sort by CUB; the last element of its tuple is memory to work in."""
    return custom_call_target(instruction).startswith("xla.gpu.ext.cub_sort_")
