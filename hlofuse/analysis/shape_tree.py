"""A shape's subshapes numbered as XLA goes through them (`xla/shape_tree.h`): what holds something is before
what it holds. What is known of each subshape is then a plain list."""

from functools import lru_cache
from typing import TypeAlias

from hlofuse.ir.shape import Shape

Index: TypeAlias = tuple[int, ...]
"""XLA's `ShapeIndex`: the element numbers that lead to a subshape."""


class ShapeTree:
    """The subshapes of a shape in order, with the index of each."""

    __slots__ = ("indices", "place", "shapes")

    indices: tuple[Index, ...]
    shapes: tuple[Shape, ...]
    place: dict[Index, int]
    """Where each index stands."""

    def __init__(self, shape: Shape) -> None:
        indices: list[Index] = []
        shapes: list[Shape] = []
        pending: list[tuple[Index, Shape]] = [((), shape)]
        while pending:
            index, subshape = pending.pop()
            indices.append(index)
            shapes.append(subshape)
            if subshape.is_tuple:
                elements = subshape.tuple_shapes
                pending += [((*index, k), elements[k]) for k in range(len(elements) - 1, -1, -1)]
        self.indices, self.shapes = tuple(indices), tuple(shapes)
        self.place = {index: k for k, index in enumerate(indices)}

    def __len__(self) -> int:
        return len(self.indices)


_OF_AN_ARRAY = ShapeTree(Shape("opaque"))


@lru_cache(maxsize=4096)
def _tree_of_tuple(shape: Shape) -> ShapeTree:
    return ShapeTree(shape)


def shape_tree(shape: Shape) -> ShapeTree:
    """The tree of a shape, made once for equal shapes.

    All that are no tuples share one, which does not tell the shape.
    """
    return _tree_of_tuple(shape) if shape.is_tuple else _OF_AN_ARRAY


def subshape_at(shape: Shape, index: Index) -> Shape:
    """`ShapeUtil::GetSubshape`."""
    for k in index:
        shape = shape.tuple_shapes[k]
    return shape
