"""What kind of fusion it is that came ahead of the fusion passes."""

from __future__ import annotations

from collections.abc import Iterator

from hlofuse.ir.instruction import Instruction

LAYOUT_ONLY = frozenset({"bitcast", "copy", "reshape", "transpose"})
"""What a fusion may do to the operands of its dot and compute nothing."""


def has_dot(fusion: Instruction) -> bool:
    return any(x.opcode == "dot" for x in fusion.fused_computation)


def is_gemm(x: Instruction) -> bool:
    """Is it a matrix product that Triton computes, with what it took along?"""
    return x.opcode == "fusion" and x.fusion_kind == "kCustom" and has_dot(x)


def readers_past_layout(x: Instruction) -> Iterator[Instruction]:
    """What computes with `x`, whatever layouts it was given on the way."""
    for user in x.users:
        if user.opcode in LAYOUT_ONLY:
            yield from readers_past_layout(user)
        else:
            yield user
