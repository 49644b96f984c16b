"""Bytes a shape takes in memory, as cost analysis counts them."""

from __future__ import annotations

from hlofuse.ir.shape import Shape

POINTER_SIZE = 8


def shape_size(shape: Shape) -> int:
    """Bytes of one buffer of this shape (`CpuExecutable::ShapeSizeBytes`, `ShapeUtil::ByteSizeOf`).

    A tuple is its table of pointers, without what they point at. A packed array (`E(4)` in the
    layout) takes whole bytes in sum only; a dynamic one carries an int32 for each dimension.
    """
    if shape.is_tuple:
        return POINTER_SIZE * len(shape.tuple_shapes)
    if shape.element_type == "opaque":
        return POINTER_SIZE
    if shape.element_type == "buffer":
        return shape_size(shape.tuple_shapes[0])
    if not shape.is_array:
        return 0
    packed = shape.layout.element_size_in_bits if shape.layout is not None else 0
    count = max(shape.element_count, 0)  # an unbounded dimension has no size
    size = (count * packed + 7) // 8 if packed else count * ((shape.bit_width + 7) // 8)
    return size + 4 * shape.rank if shape.dynamic_dimensions else size


def leaves_size(shape: Shape) -> int:
    """Bytes of all buffers inside a shape, tables of pointers left out."""
    return sum(shape_size(leaf) for _, leaf in shape.leaves()) if shape.is_tuple else shape_size(shape)
