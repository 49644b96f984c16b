"""What a TPU's tiled layouts cost: padding that kernels move, and copies that only change a layout."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from hlofuse.account.account import Account
from hlofuse.account.traffic import border_bytes
from hlofuse.format.escape import printable
from hlofuse.format.fields import fields
from hlofuse.format.units import bytes_text
from hlofuse.ir.graph import Instruction
from hlofuse.ir.shape import COMBINED, Shape
from hlofuse.reports.common.model import Place

_LANES = 128
_LEAST = 0.02
"""The part of all bytes from which padding is worth a line."""


@dataclass(frozen=True, slots=True)
class PaddedArray:
    place: Place
    shape: str
    padded: str
    """The dimensions that tiles lengthen: `100 → 128 lanes`."""
    share: float
    """Padding relative to the elements: 0.28."""
    bytes: int
    """Padding that kernels read and write in one run of the program."""


@dataclass(frozen=True, slots=True)
class LayoutCopy:
    place: Place
    layouts: tuple[str, str]
    between: tuple[str, str]
    """The instruction that made the first layout, and one that reads the second; empty for none."""
    bytes: int


@dataclass(frozen=True, slots=True)
class Tiles:
    moved: int
    """All bytes that kernels read and write in one run."""
    padding: int
    arrays: tuple[PaddedArray, ...]
    """Most padding first."""
    copies: tuple[LayoutCopy, ...]
    """Most bytes first."""


def tiles_of(account: Account, place_of: Callable[[Instruction], Place]) -> Tiles:
    """The padding and the layout copies of a final module of XLA:TPU."""
    padding: dict[Instruction, float] = {}
    copies = []
    for row in account.rows:
        x = row.instruction
        reads, writes = border_bytes(x)
        moved = [*reads.items(), *([(x, sum(writes.values()))] if x.shape.is_array else [])]
        for value, size in moved:
            extra = 1 - 1 / (1 + padding_share(value.shape))
            padding[value] = padding.get(value, 0.0) + size * extra * row.runs
        if x.opcode == "copy" and x.shape.minor_to_major != x.operands[0].shape.minor_to_major:
            layouts = _order(x.operands[0].shape), _order(x.shape)
            between = x.operands[0].name, x.users[0].name if x.users else ""
            copies.append(LayoutCopy(place_of(x), layouts, between, row.cost.bytes_accessed * row.runs))
    arrays = [
        PaddedArray(place_of(x), x.shape.text_without_layout, _lengthened(x.shape), padding_share(x.shape), n)
        for x, size in padding.items()
        if (n := round(size))
    ]
    arrays.sort(key=lambda a: -a.bytes)
    copies.sort(key=lambda c: -c.bytes)
    total = account.totals.cost.bytes_accessed
    return Tiles(total, sum(a.bytes for a in arrays), tuple(arrays), tuple(copies))


def padding_share(shape: Shape) -> float:
    """Elements that tiles add, relative to those of the array; 0 for a scalar, a tuple and an empty array."""
    count = shape.element_count if shape.is_array else 0
    return shape.padded_count / count - 1 if count > 1 else 0.0


def _lengthened(shape: Shape) -> str:
    tile = shape.layout.tiles[0] if shape.layout is not None and shape.layout.tiles else ()
    sizes = [shape.dimensions[d] for d in shape.minor_to_major]
    found = []
    for place, (size, length) in enumerate(zip(sizes, reversed(tile), strict=False)):
        if length != COMBINED and size % length:
            kind = ("lanes" if length % _LANES == 0 else "elements") if place == 0 else "sublanes"
            found.append(f"{size:,} → {-(-size // length) * length:,} {kind}")
    return ", ".join(found)


def _order(shape: Shape) -> str:
    return "{" + ",".join(map(str, shape.minor_to_major)) + "}"


def tile_lines(t: Tiles) -> Iterator[str]:
    """The padding with its worst array, and the largest copy that only changes a layout."""
    if t.padding > _LEAST * t.moved:
        a, share = t.arrays[0], f"{100 * t.padding / t.moved:.0f}% of bytes moved"
        yield f"Padding: {share}; most: {a.shape}, {a.padded} (+{100 * a.share:.0f}%){_where(a.place)}"
    if t.copies:
        c, total = t.copies[0], bytes_text(sum(c.bytes for c in t.copies))
        wanted = f"{' → '.join(c.layouts)} for {printable(c.between[1] or 'the result')}"
        yield f"Layout copies: {len(t.copies):,}, {total}; most: {wanted}{_where(c.place)}"


def _where(place: Place) -> str:
    line = (place.called_from or place.source or "").split(" ")[0]
    return f" at {printable(line or place.name)}"


def tiles_json(t: Tiles | None) -> dict[str, Any]:
    if t is None:
        return {}
    arrays = [{"name": a.place.name} | fields(a, "shape padded share bytes") for a in t.arrays]
    copies = [{"name": c.place.name} | fields(c, "layouts between bytes") for c in t.copies]
    return {"padding": {"bytes": t.padding, "arrays": arrays}, "layout_copies": copies}
