"""Bitcasts around matrix products: whose batch dimensions were joined, and in which order those came."""

from __future__ import annotations

from hlofuse.analysis.custom_calls import is_library_matmul
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.likely_ids.order_of_pass import in_order_of_pass

_TRITON = "__triton"
"""How the kinds of fusions begin in their configurations that Triton compiles."""

_CALLS = ("custom-call", "dot")

_BATCHED = 3
"""Dimensions of a product that has batches; DotDimensionMerger leaves one for those."""


def is_of_matmul(x: Instruction) -> bool:
    """Is it between a product that is no fusion and the rest of the program?"""
    return reads_matmul(x) or any(_is_product(u) for u in x.users)


def reads_matmul(x: Instruction) -> bool:
    """Does it read such a product?"""
    return _is_product(_call_read(x))


def is_of_fusion(x: Instruction) -> bool:
    """Is it in front of a fusion or behind one, as products are where Triton may be used?"""
    return x.operands[0].opcode == "fusion" or any(u.opcode == "fusion" for u in x.users)


def has_no_batches(x: Instruction) -> bool:
    """Is it one around a product of matrices, or does it make matrices of all that is multiplied?"""
    return is_of_matmul(x) and min(x.shape.rank, x.operands[0].shape.rank) < _BATCHED


def joins_batches(x: Instruction) -> bool:
    """Does it make one batch dimension of those that the operand of a product has?

    So DotDimensionMerger does (`xla/hlo/transforms/simplifiers/dot_dimension_merger.cc`).
    """
    if not any(u.opcode in _CALLS for u in x.users) or x.shape.rank != _BATCHED:
        return False
    batch, joined = x.operands[0].shape.dimensions[:1], x.shape.dimensions[0]
    return bool(batch) and joined != batch[0] and joined % batch[0] == 0


def reads_joined(x: Instruction, around: set[Instruction]) -> bool:
    """Does it read a product of which DotDimensionMerger made operands anew, those of `around`?

    The reshape that it put there was merged with it.
    """
    call = _call_read(x)
    is_call = call.opcode in _CALLS and x.operands[0].shape.rank >= _BATCHED
    return is_call and not around.isdisjoint(call.operands)


def in_order_behind_merger(bitcasts: list[Instruction], named: frozenset[Instruction]) -> list[Instruction]:
    """Those around products, given in the order of the text; other passes had given some their names.

    AlgebraicSimplifier makes a bitcast of each reshape. If that reads a bitcast itself, the two are merged
    when it goes through the computation again.
    """
    rounds: tuple[list[Instruction], list[Instruction]] = ([], [])
    for x in bitcasts:
        rounds[_is_merged_again(x)].append(x)
    return [x for members in rounds for x in in_order_of_pass(members, [], named)]


def _is_merged_again(x: Instruction) -> bool:
    """Does an operand of a product have more done to it than that its two batch dimensions are joined?"""
    if not any(u.opcode in _CALLS for u in x.users):
        return False
    sizes = x.operands[0].shape.dimensions
    return len(sizes) != _BATCHED + 1 or sizes[2:] != x.shape.dimensions[1:]


def _is_product(x: Instruction) -> bool:
    """Is it a product that a library computes, or one too small for that?"""
    return x.opcode == "dot" or is_library_matmul(x)


def _call_read(x: Instruction) -> Instruction:
    source = x.operands[0]
    return source.operands[0] if source.opcode == "get-tuple-element" else source


def may_use_triton(x: Instruction) -> bool:
    """Is any product of its module left to Triton, or none to a library?"""
    calls = _calls(x)
    return _is_triton_used(calls) or not any(is_library_matmul(y) for y in calls)


def uses_triton(x: Instruction) -> bool:
    """Is any product of its module left to Triton?"""
    return _is_triton_used(_calls(x))


def _is_triton_used(calls: list[Instruction]) -> bool:
    return any(_TRITON in (y.attributes.raw("backend_config") or "") for y in calls)


def _calls(x: Instruction) -> list[Instruction]:
    module = x.computation.module if x.computation is not None else None
    computations = module.computations if module is not None else []
    return [y for c in computations for y in c if y.opcode in ("custom-call", "fusion")]
