"""The users of a matrix product in single precision that was one in less in the program.

FloatNormalization (`xla/hlo/transforms/simplifiers/float_normalization.cc`) put a convert back behind it, and
the program read that through a convert to f32. SimplifyFPConversions (`simplify_fp_conversions.cc`) gave the
users of the latter to the product, behind the convert back, which went then: the last took its place.
"""

from __future__ import annotations

from hlofuse.analysis.custom_calls import is_library_convolution
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.users.floats.inserted_converts import is_narrow, is_widening


def is_read_through_pair(producer: Instruction, wide: frozenset[Instruction]) -> bool:
    """Is it such a product, the users of which are not in `wide`, which read it narrow?"""
    return _is_widened_product(producer) and not any(u in wide or is_narrow(u) for u in producer.users)


def _is_widened_product(x: Instruction) -> bool:
    while x.opcode in {"bitcast", "get-tuple-element"}:
        x = x.operands[0]
    if x.opcode not in {"custom-call", "dot"} or len(x.operands) < 2 or is_library_convolution(x):
        return False  # convolutions were widened long before, in front of layout normalization
    return all(is_widening(_moved(o)) for o in x.operands[:2])


def _moved(x: Instruction) -> Instruction:
    """What bitcasts and transposes of `x` are of."""
    while x.opcode in {"bitcast", "transpose"}:
        x = x.operands[0]
    return x
