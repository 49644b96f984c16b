"""Shapes and layouts (`xla/shape.h`, `xla/layout.h`), immutable and equal by value."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import TypeAlias

from hlofuse.ir.opcodes import values
from .record import Record, replace

Dims: TypeAlias = tuple[int, ...]  # Sizes or numbers of dimensions
Ints: TypeAlias = Sequence[int]


class _BitWidths(dict[str, int]):
    """The bits of a type that is not known are the number in its name, as in other names; else a byte."""

    def __missing__(self, name: str) -> int:
        digits = re.search("[1-9][0-9]{0,2}", name)
        return int(digits[0]) if digits is not None else 8


_WIDTHS: dict[str, int] = {
    "pred": 8,
    **{f"s{n}": n for n in (1, 2, 4, 8, 16, 32, 64)},
    **{f"u{n}": n for n in (1, 2, 4, 8, 16, 32, 64)},
    "bf16": 16,
    "f16": 16,
    "f32": 32,
    "f64": 64,
    "c64": 64,
    "c128": 128,
    "f4e2m1fn": 4,
    "f6e2m3fn": 6,
    "f6e3m2fn": 6,
    **dict.fromkeys(
        "f8e3m4 f8e4m3 f8e4m3b11fnuz f8e4m3fn f8e4m3fnuz f8e5m2 f8e5m2fnuz f8e8m0fnu".split(),
        8,
    ),
}
BIT_WIDTH = _BitWidths(_WIDTHS)
"""Bits of one element (`primitive_util::BitWidth`); pred occupies a byte in memory."""
ARRAY_TYPES: frozenset[str] = frozenset(BIT_WIDTH)
OTHER_TYPES: frozenset[str] = values("buffer invalid opaque token tuple")
"""Types of what has no elements; any other name is an array's, of a newer XLA where it is not known."""
FLOATING_TYPES: frozenset[str] = frozenset(t for t in BIT_WIDTH if t[0] in "fb")
INTEGER_TYPES: frozenset[str] = frozenset(t for t in BIT_WIDTH if t[0] in "su" and t[1:].isdigit())
COMPLEX_TYPES: frozenset[str] = values("c64 c128")
ELEMENT_TYPES = """
    invalid pred s8 s16 s32 s64 u8 u16 u32 u64 f16 f32 f64 tuple opaque c64 bf16 token c128 f8e5m2 f8e4m3fn
    s4 u4 f8e4m3b11fnuz f8e5m2fnuz f8e4m3fnuz s2 u2 f8e4m3 f8e3m4 s1 u1 f4e2m1fn f8e8m0fnu buffer f6e3m2fn
    f6e2m3fn
    """.split()
"""Ordered by number (`xla/xla_data.proto: PrimitiveType`)."""


def type_number(element_type: str) -> int:
    """The number of a type in XLA's order; one that is not known comes last."""
    return ELEMENT_TYPES.index(element_type) if element_type in ELEMENT_TYPES else len(ELEMENT_TYPES)


POINTER_SIZE = 8
HBM, VMEM, _SEMAPHORES, HOST = 0, 1, 2, 5  # Numbers of memory spaces
_TPU_UNIT = 512  # The least bytes of a buffer on a TPU
UNBOUNDED = -1  # The size of an unbounded dimension, written `?`


class Layout(Record):
    """Memory layout of an array (`xla::Layout`): dimension numbers from minor to major, and extras. `suffix`
    has every further property in XLA's notation and order, without the leading colon: `T(8,128)(2,1)S(1)`."""

    minor_to_major: Dims
    suffix: str = ""

    @property
    def is_default(self) -> bool:
        """True for row-major order without further properties (`LayoutUtil::IsMonotonicWithDim0Major`)."""
        n = len(self.minor_to_major)
        return not self.suffix and self.minor_to_major == tuple(range(n - 1, -1, -1))

    def _call(self, letter: str) -> str | None:
        """The argument of `letter(...)` in the suffix."""
        found = re.search(rf"(?<![A-Z]){letter}\(([^)]*)", self.suffix)
        return found[1] if found is not None else None

    @property
    def element_size_in_bits(self) -> int:
        """The packed size E(n) of one element in bits; 0 when none is written."""
        return int(self._call("E") or 0)

    @property
    def tiles(self) -> tuple[Dims, ...]:
        """The sizes of each tile, `COMBINED` for `*`; empty for a layout without tiles."""
        return _tiles(self.suffix) if "T(" in self.suffix else ()

    @property
    def memory_space(self) -> int:
        """The number in `S(n)`: on TPU 0 is HBM and 1 is VMEM."""
        return int(self._call("S") or 0)

    def __str__(self) -> str:
        order = ",".join(map(str, self.minor_to_major))
        return f"{{{order}:{self.suffix}}}" if self.suffix else f"{{{order}}}"


COMBINED = 0  # In a tile: this dimension is combined with the next one (`Tile::kCombineDimension`)


@cache
def _tiles(suffix: str) -> tuple[Dims, ...]:
    found = re.search(r"(?<![A-Z])T((?:\([^)]*\))+)", suffix)
    texts = re.findall(r"\(([^)]*)\)", found[1]) if found is not None else []
    return tuple(tuple(int(n) if n.isdigit() else COMBINED for n in re.findall(r"\d+|\*", t)) for t in texts)


def padded_dimensions(dimensions: Ints, tiles: Sequence[Ints]) -> list[int]:
    """Sizes in memory, most major first, once each tile divides the last ones (`Tile` in `xla/layout.h`).
    `dimensions` are in the order of the layout, most major first."""
    sizes = list(dimensions)
    for tile in tiles:
        sizes = [1] * (len(tile) - len(sizes)) + sizes
        start = len(sizes) - len(tile)
        combined, inner = 1, list[int]()
        outer = sizes[:start]
        for size, length in zip(sizes[start:], tile, strict=True):
            if length == COMBINED:
                combined *= size
                continue
            outer.append(-(-combined * size // length))
            inner.append(length)
            combined = 1
        sizes = outer + inner
    return sizes


@dataclass(frozen=True, slots=False, eq=True)
class Shape:
    """An array, tuple, token, opaque or buffer shape (`xla::Shape`). Arrays have `dimensions` (a bound for
    dynamic ones, `UNBOUNDED` for unknown sizes), maybe a layout; tuples and buffers `tuple_shapes`."""

    element_type: str
    dimensions: Dims = ()
    layout: Layout | None = None
    tuple_shapes: tuple[Shape, ...] = ()
    dynamic_dimensions: Dims = field(default=())
    """Numbers of the dimensions whose size is only bounded, written `<=N` (or `?` when unbounded)."""

    @cached_property
    def _hash(self) -> int:
        return hash(
            (self.element_type, self.dimensions, self.layout, self.tuple_shapes, self.dynamic_dimensions)
        )

    def __hash__(self) -> int:
        return self._hash

    @classmethod
    def tuple_of(cls, shapes: list[Shape] | tuple[Shape, ...]) -> Shape:
        """The tuple shape over `shapes` (`ShapeUtil::MakeTupleShape`)."""
        return cls("tuple", tuple_shapes=tuple(shapes))

    @classmethod
    def maybe_tuple_of(cls, shapes: list[Shape] | tuple[Shape, ...]) -> Shape:
        """The tuple of several shapes, or the only shape itself (`ShapeUtil::MakeMaybeTupleShape`)."""
        return shapes[0] if len(shapes) == 1 else cls.tuple_of(shapes)

    @property
    def results(self) -> tuple[Shape, ...]:
        """The shapes of a tuple's elements; of anything else, that itself."""
        return self.tuple_shapes if self.is_tuple else (self,)

    @cached_property
    def is_array(self) -> bool:
        return self.element_type not in OTHER_TYPES

    @cached_property
    def is_tuple(self) -> bool:
        return self.element_type == "tuple"

    @cached_property
    def rank(self) -> int:
        return len(self.dimensions)

    @property
    def is_row_major(self) -> bool:
        return self.minor_to_major == tuple(range(self.rank - 1, -1, -1))

    @cached_property
    def true_rank(self) -> int:
        """Number of dimensions whose size is not 1 (`ShapeUtil::TrueNumDimensions`)."""
        return sum(d != 1 for d in self.dimensions)

    @cached_property
    def element_count(self) -> int:
        """Elements of an array (`ShapeUtil::ElementsIn`); of a tuple, those of all its leaves."""
        if self.tuple_shapes:
            return sum(s.element_count for s in self.tuple_shapes)
        return math.prod(self.dimensions) if self.is_array else 0

    @property
    def is_tiled(self) -> bool:
        """True if the layout of an array in it has tiles, as on a TPU."""
        return any(leaf.layout is not None and leaf.layout.tiles for leaf in self.leaf_shapes)

    @property
    def padded_count(self) -> int:
        """Elements of an array with those that its layout's tiles add."""
        tiles = self.layout.tiles if self.layout is not None else ()
        if not tiles or not self.element_count:
            return self.element_count
        return math.prod(
            padded_dimensions([self.dimensions[d] for d in reversed(self.minor_to_major)], tiles)
        )

    @property
    def is_effective_scalar(self) -> bool:
        """True for an array of exactly one element by its dimensions (`ShapeUtil::IsEffectiveScalar`)."""
        return self.is_array and self.true_rank == 0

    @property
    def bit_width(self) -> int:
        """Bits of one element; 0 for what is not an array."""
        return BIT_WIDTH[self.element_type] if self.is_array else 0

    @cached_property
    def has_unknown_type(self) -> bool:
        """True if it, or an element of the tuple, is of a type that is not known: nor are its bytes."""
        if self.tuple_shapes:
            return any(s.has_unknown_type for s in self.tuple_shapes)
        return self.is_array and self.element_type not in BIT_WIDTH

    @cached_property
    def byte_size(self) -> int:
        """Bytes of the array, whole bytes for each element (`ShapeUtil::ByteSizeOf`). A tuple counts as the
        sum of its leaves, without XLA's table of pointers. An unbounded array has no size."""
        if self.tuple_shapes:
            return sum(s.byte_size for s in self.tuple_shapes)
        return max(self.element_count, 0) * ((self.bit_width + 7) // 8)

    @cached_property
    def buffer_size(self) -> int:
        """Bytes of one buffer of this shape (`CpuExecutable::ShapeSizeBytes`, `ShapeUtil::ByteSizeOf`). A
        tuple is its table of pointers, without the arrays. A packed array (`E(4)` in the layout) takes whole
        bytes in sum only; a dynamic one has an int32 for each dimension. A tiled one is padded,
        and a semaphore of a TPU takes a tile of 8 by 128."""
        if self.is_tuple:
            size = POINTER_SIZE * len(self.tuple_shapes)
            return -(-size // _TPU_UNIT) * _TPU_UNIT if self.is_tiled else size
        if self.element_type == "opaque":
            return POINTER_SIZE
        if self.element_type == "buffer":
            return self.tuple_shapes[0].buffer_size
        if not self.is_array:
            return 0
        packed = self.layout.element_size_in_bits if self.layout is not None else 0
        count = max(self.padded_count, 0)  # an unbounded dimension has no size
        if not self.rank and self.layout is not None and self.layout.memory_space == _SEMAPHORES:
            count = 8 * 128
        size = (count * packed + 7) // 8 if packed else count * ((self.bit_width + 7) // 8)
        return size + 4 * self.rank if self.dynamic_dimensions else size

    @cached_property
    def leaves_size(self) -> int:
        """Bytes of all leaves, without tables of pointers."""
        return sum(s.leaves_size for s in self.tuple_shapes) if self.is_tuple else self.buffer_size

    @cached_property
    def minor_to_major(self) -> Dims:
        """The layout's order, row-major where no layout is written."""
        if self.layout is not None:
            return self.layout.minor_to_major
        return tuple(range(len(self.dimensions) - 1, -1, -1))

    @cached_property
    def key_ignoring_element_type(self) -> tuple[object, ...]:
        """A key equal for shapes equal up to element type, layouts compared (`EqualIgnoringElementType`)."""
        if self.tuple_shapes or self.is_tuple:
            return ("tuple", *(s.key_ignoring_element_type for s in self.tuple_shapes))
        return (
            self.dimensions,
            self.dynamic_dimensions,
            self.minor_to_major,
            (self.layout and self.layout.suffix) or "",
        )

    @cached_property
    def key(self) -> tuple[object, ...]:
        """A key equal for equal shapes, an absent layout being row-major (`ShapeUtil::Equal`)."""
        if self.tuple_shapes or self.is_tuple:
            return (self.element_type, *(s.key for s in self.tuple_shapes))
        return (self.element_type, *self.key_ignoring_element_type)

    @cached_property
    def key_ignoring_layout(self) -> tuple[object, ...]:
        """A key equal for compatible shapes (`ShapeUtil::Compatible`)."""
        if self.tuple_shapes or self.is_tuple:
            return (self.element_type, *(s.key_ignoring_layout for s in self.tuple_shapes))
        return (self.element_type, self.dimensions, self.dynamic_dimensions)

    def with_element_type(self, element_type: str) -> Shape:
        """The same array of another element type (`ShapeUtil::ChangeElementType`)."""
        return replace(self, element_type=element_type)

    def leaves(self, index: Dims = ()) -> Iterator[tuple[Dims, Shape]]:
        """Every leaf with its index path (`ShapeUtil::GetLeafShapes`)."""
        if not self.is_tuple:
            yield index, self
        for i, s in enumerate(self.tuple_shapes if self.is_tuple else ()):
            yield from s.leaves((*index, i))

    @property
    def leaf_shapes(self) -> list[Shape]:
        """Every leaf, without its index path."""
        return [leaf for _, leaf in self.leaves()]

    def subshapes(self, index: Dims = ()) -> Iterator[tuple[Dims, Shape]]:
        """The shape and its subshapes with their index paths, outermost first (`ForEachSubshape`)."""
        yield index, self
        for i, s in enumerate(self.tuple_shapes):
            yield from s.subshapes((*index, i))

    def has_index(self, index: Iterable[int]) -> bool:
        """True if the tuples in it have the elements of an index path."""
        shape = self
        for i in index:
            if not shape.is_tuple or not 0 <= i < len(shape.tuple_shapes):
                return False
            shape = shape.tuple_shapes[i]
        return True

    @cached_property
    def _text(self) -> str:
        return self._print(layouts=True)

    @cached_property
    def text_without_layout(self) -> str:
        """The text with no layouts, as in a computation's signature (`ShapeUtil::HumanString`)."""
        return self._print(layouts=False)

    def _print(self, layouts: bool) -> str:
        if self.is_tuple:
            parts = [s._text if layouts else s.text_without_layout for s in self.tuple_shapes]
            # XLA numbers every fifth element of a long tuple.
            marked = [f"/*index={i}*/{t}" if i and i % 5 == 0 else t for i, t in enumerate(parts)]
            return "(" + ", ".join(marked) + ")"
        if self.element_type == "buffer":
            inner = self.tuple_shapes[0]
            return f"b({inner._text if layouts else inner.text_without_layout})"
        dims = []
        for i, d in enumerate(self.dimensions):
            dims.append("?" if d == UNBOUNDED else f"<={d}" if i in self.dynamic_dimensions else str(d))
        text = f"{self.element_type}[{','.join(dims)}]"
        # A scalar's empty layout is not printed.
        if layouts and self.layout is not None and (self.dimensions or self.layout.suffix):
            text += str(self.layout)
        return text

    def __str__(self) -> str:
        return self._text


def sizes_agree(a: Ints, b: Ints) -> bool:
    """True for dimensions of equal sizes, as far as they are bounded."""
    if a == b:
        return True
    return len(a) == len(b) and all(x == y or UNBOUNDED in (x, y) for x, y in zip(a, b, strict=True))


def compatible(a: Shape, b: Shape, *, types: bool = True) -> bool:
    """Equal up to layouts, dynamic dimensions (`ShapeUtil::Compatible`) and, without `types`, types."""
    if a is b:
        return True
    if a.element_type != b.element_type and (types or a.is_tuple or b.is_tuple):
        return False
    pairs = zip(a.tuple_shapes, b.tuple_shapes, strict=False)
    return (
        len(a.tuple_shapes) == len(b.tuple_shapes)
        and sizes_agree(a.dimensions, b.dimensions)
        and all(compatible(x, y, types=types) for x, y in pairs)
    )
