"""What a TPU's tiled layouts cost: padding that kernels move, and copies that only change a layout; and
products that its matrix units compute in several passes."""

from collections import Counter
from collections.abc import Callable, Iterator

from hlofuse.account.account import Account
from hlofuse.account.floor import products
from hlofuse.account.tpu import mxu_passes
from hlofuse.account.traffic import border_bytes
from hlofuse.format import bytes_text, plural, printable
from hlofuse.ir import Instruction, Json, Record
from hlofuse.ir.shape import COMBINED, Shape
from hlofuse.reports.common.model import Place

_LANES = 128
_VIEWS = ("bitcast", "get-tuple-element", "tuple")
_LEAST = 0.02  # the part of all bytes from which padding or copies are worth a line
_Row = Json


class Tiles(Record):
    share: float  # The part of padding in all bytes that kernels read and write
    arrays: list[_Row]
    """`name`, `source`, `shape`, `padded` (`100 → 128 lanes`), `share` of elements, `bytes` of all runs."""
    copies: list[_Row]
    """`name`, `source` (the reader's where it has none), `layouts`, `reader` and `bytes`; most first."""
    products: list[_Row]
    """`name`, `source`, `passes` of the matrix units if several, `time_us` of all runs; slowest first."""


def tiles_of(account: Account, place_of: Callable[[Instruction], Place]) -> Tiles:
    """The padding and the layout copies of a final module of XLA:TPU."""
    padding: Counter[Instruction] = Counter()
    copies: list[_Row] = []
    precise: list[_Row] = []
    total = account.totals.us or 0.0
    for row in account.rows:
        x = row.instruction
        passes, us = max((mxu_passes(p) for _, p in products(x)), default=1), row.total_us
        if passes > 1 and (us is None or us > _LEAST * total):
            precise.append(_named(place_of(x)) | {"passes": passes, "time_us": us})
        reads, writes = border_bytes(x)
        moves = dict(reads)
        if x.shape.is_array:
            moves[x] = sum(writes.values())
        for value, size in moves.items():
            share = padding_share(value.shape)
            padding[value] += round(size * row.runs * share / (1 + share))
        if x.opcode == "copy" and x.shape.minor_to_major != x.operand.shape.minor_to_major:
            shapes = x.operand.shape, x.shape
            layouts = [f"{{{','.join(map(str, s.minor_to_major))}}}" for s in shapes]
            reader, copied = _reader(x), _named(place_of(x))
            copied["source"] = copied["source"] or (reader and _named(place_of(reader))["source"])
            moved = row.cost.bytes_accessed * row.runs
            copies.append(copied | {"layouts": layouts, "reader": reader and reader.name, "bytes": moved})
    arrays = [
        _named(place_of(x))
        | {"shape": x.shape.text_without_layout, "padded": _lengthened(x.shape)}
        | {"share": padding_share(x.shape), "bytes": size}
        for x, size in padding.most_common()
        if size
    ]
    share = padding.total() / (account.totals.cost.bytes_accessed or 1)
    copies.sort(key=lambda c: -c["bytes"])
    return Tiles(share, arrays, copies, sorted(precise, key=lambda p: -(p["time_us"] or p["passes"])))


def _reader(x: Instruction) -> Instruction | None:
    """The first instruction that reads a value, also through views and tuples; None for a result."""
    user = x.users[0] if x.users else None
    return _reader(user) if user is not None and user.opcode in _VIEWS else user


def _named(place: Place) -> _Row:
    return {"name": place.name, "source": place.line or None}


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
            kind = "sublanes" if place else "elements" if length % _LANES else "lanes"
            found.append(f"{size:,} → {-(-size // length) * length:,} {kind}")
    return ", ".join(found)


def tile_lines(t: Tiles, moved: int) -> Iterator[str]:
    """The padding with its worst array, and the largest copy that only changes a layout, of bytes `moved`."""
    if t.share > _LEAST:
        a = t.arrays[0]
        part = f"{100 * t.share:.0f}% of bytes"
        yield f"Padding: {part}; most{_where(a)}: {a['shape']}, {a['padded']} (+{100 * a['share']:,.0f}%)"
    copied = sum(c["bytes"] for c in t.copies)
    if copied > _LEAST * moved:
        c, total = t.copies[0], bytes_text(copied)
        wanted = f"{' → '.join(c['layouts'])} for {printable(c['reader'] or 'the result')}"
        yield f"Layout copies: {len(t.copies):,}, {total}; most{_where(c)}: {wanted}"
    if t.products:
        p, count = t.products[0], plural(len(t.products), "product")
        less = "high 3, default 1" if p["passes"] > 3 else "default 1"
        yield f"Precision: {count} in {p['passes']} MXU passes ({less}); most{_where(p)}"


def _where(row: _Row) -> str:
    return f" at {printable(row['source'] or row['name'])}"
