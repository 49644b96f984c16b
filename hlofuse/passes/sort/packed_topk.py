"""The greatest k of bf16, each packed with its index into one s32: one array to sort, no two of it equal.

Mirrors `DecomposeTopKWithSorting` (`xla/service/topk_rewriter.cc`).
"""

from hlofuse.ir.attributes.window import SliceRange, SliceRanges
from hlofuse.ir.graph import Computation, Instruction
from hlofuse.ir.shape import Shape
from hlofuse.passes.common import make
from hlofuse.passes.common.rewriting import substituted
from hlofuse.passes.common.shapes import array

_INDEX = (1 << 16) - 1
"""The bits of an index; those of the value are the others."""
_ALL_BUT_SIGN = (1 << 31) - 1


def is_packed(x: Instruction) -> bool:
    """True for a topk of the greatest bf16 values whose indices fit into half of an s32."""
    if x.opcode != "topk" or x.attributes.raw("largest", "true") != "true":
        return False
    data = x.operands[0].shape
    return data.element_type == "bf16" and data.dimensions[-1] <= _INDEX


def decompose_packed(topk: Instruction, greater: Computation) -> None:
    """Put the sort in the place of `topk`; `greater` compares two s32."""
    packed = _Packed(topk)
    (data,) = topk.operands
    values, indices = topk.shape.tuple_shapes
    whole = data.shape.with_element_type("s32")
    bits = packed.add("bitcast-convert", whole, packed.add("convert", whole.with_element_type("f32"), data))
    keys = packed.masked("or", packed.with_sign_flipped(bits), _INDEX)
    last = whole.rank - 1
    keys = packed.add("xor", whole, keys, packed.add("iota", whole, iota_dimension=str(last)))
    ordered = make.added(
        topk, "sort", whole, [keys], called=[("to_apply", greater)], dimensions=make.numbers([last])
    )
    first = packed.add("slice", indices, ordered, slice=str(_first(indices)))
    high = packed.masked("and", packed.with_sign_flipped(first), ~_INDEX)
    single = packed.add("bitcast-convert", indices.with_element_type("f32"), high)
    value = packed.add("convert", values, single)
    index = packed.masked("and", packed.masked("xor", first, _INDEX), _INDEX)
    new = packed.add("tuple", topk.shape, value, index)
    substituted(topk, new)


class _Packed:
    """Operations beside `at`, of which nothing is said."""

    def __init__(self, at: Instruction) -> None:
        self._at = at

    def add(self, opcode: str, shape: Shape, *operands: Instruction, **attributes: str) -> Instruction:
        return make.added(self._at, opcode, shape, operands, raw_attributes=attributes)

    def masked(self, opcode: str, x: Instruction, bits: int) -> Instruction:
        """`x` and the same `bits` everywhere."""
        return self.add(opcode, x.shape, x, self._everywhere(bits, x.shape))

    def with_sign_flipped(self, x: Instruction) -> Instruction:
        """From sign and magnitude to ones' complement, or back, so that integers compare as the floats do."""
        magnitude = self.masked("and", x, _ALL_BUT_SIGN)
        return self.add("xor", x.shape, magnitude, self.masked("shift-right-arithmetic", x, 31))

    def _everywhere(self, number: int, shape: Shape) -> Instruction:
        constant = make.added(self._at, "constant", array("s32"), [], payload=str(number))
        return self.add("broadcast", shape, constant, dimensions="{}")


def _first(shape: Shape) -> SliceRanges:
    """The part of a larger array, from its beginning, that has this shape."""
    return SliceRanges(SliceRange(0, size, 1) for size in shape.dimensions)
