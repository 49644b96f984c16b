"""Handlers for shapes (with the depth of tuples), layouts, and tables inside attributes."""

from typing import Any

from lark import Token

from hlofuse.ir.attributes.metadata import DonorEntry, InputAlias, OutputAlias
from hlofuse.ir.shape import UNBOUNDED, Layout, Shape
from hlofuse.ir.text.errors import Rejected, counted_dimensions
from hlofuse.ir.text.text import signed
from .handlers import HANDLERS, Span, handler, place, spanning, values

# Deeper tuples than any program has; far below what would trouble the recursive printing of a shape.
MAX_SHAPE_DEPTH = 100


@spanning("tuple")
def _tuple(parts: list[Any]) -> tuple[Shape, int]:
    inner = [p.value for p in parts if isinstance(p, Span)]
    depth = 1 + max((d for _, d in inner), default=0)
    if depth > MAX_SHAPE_DEPTH:
        raise Rejected(place(parts[0]), f"tuples nested more than {MAX_SHAPE_DEPTH} deep")
    return Shape.tuple_of([s for s, _ in inner]), depth


@spanning("buffer")
def _buffer(parts: list[Any]) -> tuple[Shape, int]:
    shape = parts[2].value[0]
    if shape.is_tuple or shape.element_type in ("token", "opaque", "buffer"):
        raise Rejected(parts[2].start, "a buffer holds an array, for example b(f32[8])")
    return Shape("buffer", tuple_shapes=(shape,)), 2


@spanning("array")
def _array(parts: list[Any]) -> Shape:
    primitive = parts[0]
    sizes, dynamic = parts[1].value
    if sizes and primitive in ("token", "opaque"):
        raise Rejected(parts[1].start, f"{primitive} has no dimensions")
    layout = parts[2].value if len(parts) > 2 else None
    if layout is not None and len(layout.minor_to_major) != len(sizes):
        ordered = counted_dimensions(len(layout.minor_to_major))
        raise Rejected(parts[2].start, f"the layout orders {ordered} but the shape has {len(sizes)}")
    return Shape(str(primitive), sizes, layout, (), dynamic)


@handler("dimensions")
def _dimensions(parts: list[Any]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    items = [p for p in parts if isinstance(p, tuple)]
    return tuple(i[0] for i in items), tuple(n for n, i in enumerate(items) if i[1])


@handler("dimension")
def _dimension(parts: list[Any]) -> tuple[int, bool]:
    token = parts[-1]
    if token.type == "QMARK":
        return UNBOUNDED, True
    size = signed(token)
    if size < 0:
        raise Rejected(token, "a dimension cannot be negative; unknown sizes are written ?")
    return size, len(parts) == 2


@handler("layout")
def _layout(parts: list[Any]) -> Layout:
    order: tuple[int, ...] = ()
    suffix = ""
    for part in parts[1:-1]:
        if isinstance(part, str):
            suffix = part
        else:
            order = tuple(part)
    return Layout(order, suffix)


# Kinds of property in the order they must come; layout_integer is recognized by its letter.
_ORDER = {kind: k for k, kind in enumerate("D T L # * E S SC P M".split())}


@handler("layout_properties")
def _layout_properties(parts: list[Any]) -> str:
    last = -1
    texts = list[str]()
    for letter, where, text in parts[1:]:
        if letter == "P" and not any(t.startswith("D(") and set(t) & {"C", "H"} for t in texts):
            raise Rejected(where, "only a sparse array has a physical shape, such as f32[8]{0:D(C)P(...)}")
        if _ORDER[letter] <= last:
            raise Rejected(where, f"{letter} comes too late in the layout: the order is D T L # * E S SC P M")
        last = _ORDER[letter]
        texts.append(text)
    return "".join(texts)


@handler("levels", "type_property", "physical_shape", "layout_integer")
def _layout_property(parts: list[Any]) -> tuple[str, int, str]:
    """Letter, place, and text of the property, closed where it was cut short."""
    letter = parts[0]
    where: int = letter.start_pos
    properties = [p for p in parts[1:] if not (isinstance(p, Token) and p.type in ("LPAR", "RPAR", "COMMA"))]
    inner = "".join(str(p[0]) if isinstance(p, tuple) else str(p) for p in properties)
    return str(letter), where, f"{letter}({inner})" if inner or letter == "D" else ""


@handler("tiles", "splits")
def _layout_list(parts: list[Any]) -> tuple[str, int, str]:
    items = "".join(f"({p})" for p in parts[1:])
    return str(parts[0]), parts[0].start_pos, parts[0] + items if items else ""


@handler("tile", "open_tile", "split", "open_split")
def _parenthesized(parts: list[Any]) -> str:
    texts = [",".join(map(str, p)) if isinstance(p, list) else str(p) for p in parts]
    return "".join(t for t in texts if t not in ("(", ")")).rstrip(",")


def _number_and_index(parts: list[Any]) -> tuple[int, tuple[int, ...]]:
    number = next((signed(p) for p in parts if isinstance(p, Token) and p.type == "INT"), 0)
    return number, next(p for p in reversed(parts) if isinstance(p, tuple))


@handler("input_alias")
def _input_alias(parts: list[Any]) -> InputAlias:
    last = parts[-2]
    kind = "may-alias"
    if isinstance(last, Token):
        kind = last.strip("%:")
        if kind not in ("may-alias", "must-alias"):
            raise Rejected(last, "expected may-alias or must-alias")
    return InputAlias(parts[0], *_number_and_index(parts[1:]), kind)


@handler("entry_layout")
def _entry_layout(parts: list[Any]) -> tuple[tuple[Any, ...], Any]:
    shapes = [s for s, _ in values(parts)]
    return tuple(shapes[:-1]), shapes[-1]


# Rules of one expression.
HANDLERS.update(
    {
        "shape": lambda parts: (parts[0], 1),
        **dict.fromkeys(
            ("level_list", "tile_sizes", "level", "tile_size"), lambda parts: "".join(map(str, parts))
        ),
        "shape_index": lambda parts: tuple(parts[1]) if len(parts) > 2 else (),
        **dict.fromkeys(("input_aliases", "donors", "output_aliases"), lambda parts: tuple(values(parts))),
        "donor": lambda parts: DonorEntry(*_number_and_index(parts)),
        "output_alias": lambda parts: OutputAlias(parts[0], *_number_and_index(parts[1:])),
    }
)
