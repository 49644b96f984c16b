"""What a text says of the results of matrix products, which it may read without naming them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from hlofuse.ir.instruction import Instruction
from hlofuse.ir.module import Module
from hlofuse.pipelines.names import operation
from hlofuse.pipelines.users.common.holes import last_in_front
from hlofuse.pipelines.users.products.side_inputs import is_library_product

_RESULT = 0


@contextmanager
def results_told_of(module: Module) -> Iterator[None]:
    """Within it, results of matrix products say of the program what the products do.

    GemmRewriter (`xla/backends/gpu/transforms/gemm_rewriter.cc`) puts a library call and an element of it in
    the place of a dot, whose users the element gets as they were. It has the metadata of the dot, too; a text
    that reads it as `%call#0` does not say so.
    """
    as_read = {x: x.attributes for c in module.computations if c.fusion is None for x in c if _is_untold(x)}
    for x, attributes in as_read.items():
        told = x.operands[0].attributes.raw("metadata")
        if told is not None:
            x.attributes = attributes.updated(metadata=told)
    try:
        yield
    finally:
        for x, attributes in as_read.items():
            x.attributes = attributes


def with_last_in_place_of_widening(x: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The users of the result `x` of a matrix product that was narrow, and widened by the program.

    What is reshaped bears the name of that convert. The product is as wide by then: SimplifyFPConversions
    (`xla/hlo/transforms/simplifiers/simplify_fp_conversions.cc`) gave it what read the convert, and the last
    took its place.
    """
    if x.opcode != "get-tuple-element" or not is_library_product(x.operands[0]):
        return users
    if not any(u.opcode == "bitcast" and operation(u) == "convert_element_type" for u in users):
        return users
    return last_in_front(users)


def _is_untold(x: Instruction) -> bool:
    if x.opcode != "get-tuple-element" or x.tuple_index != _RESULT or "metadata" in x.attributes:
        return False
    return is_library_product(x.operands[0])
