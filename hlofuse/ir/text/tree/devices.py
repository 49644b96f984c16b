"""Handlers for devices: shardings, meshes, replica groups.

They are checked as in XLA and stay text, since no pass reads their values.
"""

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

from lark import Token

from hlofuse.ir.text.errors import Rejected
from hlofuse.ir.text.text import signed, unquote
from hlofuse.ir.text.tree.handlers import HANDLERS, Span, handler, place, spanning, values

_Reference = tuple[str, int]


class _Mesh(NamedTuple):
    axes: tuple[tuple[str, int], ...]
    is_maximal: bool = False
    """A mesh of one device."""

    def __str__(self) -> str:
        if self.is_maximal:
            return "maximal_mesh"
        return "mesh[" + ",".join(f"'{name}'={size}" for name, size in self.axes) + "]"


@spanning("iota")
def _iota(parts: list[Any]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    dimensions = parts[0].value
    where = parts[0].start
    if len(dimensions) == 1:
        if len(parts) > 1:
            raise Rejected(parts[1].start_pos, "an iota of one dimension has no permutation T(...)")
        return dimensions, (0,)
    if len(parts) == 1:
        raise Rejected(parts[0].end, "expected the permutation of the iota, for example T(1,0)")
    permutation = tuple(parts[3].value)
    if any(not 0 <= p < len(dimensions) for p in permutation):
        raise Rejected(where, f"the permutation must order the {len(dimensions)} dimensions of the iota")
    return dimensions, permutation


@spanning("mesh")
def _mesh(parts: list[Any]) -> _Mesh:
    axes = [p.value for p in parts if isinstance(p, Span)]
    if len({name for name, _ in axes}) != len(axes):
        raise Rejected(place(parts[0]), "the mesh has an axis twice")
    return _Mesh(tuple(axes))


@spanning("device_ids")
def _device_ids(parts: list[Any]) -> tuple[Any, int]:
    """A list of devices, an iota or nothing, and its place."""
    inner: Any = next((p.value for p in parts if isinstance(p, Span)), [])
    return inner, parts[1].start_pos


def _with_devices(mesh: _Mesh, device_ids: tuple[Any, int] | None) -> _Mesh:
    if device_ids is None:
        return mesh
    ids, where = device_ids
    if not mesh.axes:
        raise Rejected(where, "an empty mesh has no devices")
    count = math.prod(ids[0]) if isinstance(ids, tuple) else len(ids)
    room = math.prod(size for _, size in mesh.axes)
    if count != room:
        raise Rejected(where, f"the mesh has room for {room} devices, but {count} are given")
    return mesh


def _check_axes(mesh: _Mesh, references: Iterable[_Reference] | None) -> None:
    """Check that each is an axis of the mesh, by name or by number."""
    names = {name for name, _ in mesh.axes}
    for axis, where in references or ():
        number = int(axis) if axis.isascii() and axis.isdigit() else -1
        if axis not in names and not 0 <= number < len(mesh.axes):
            raise Rejected(where, f"{axis!r} is no axis of {mesh}")


@spanning("groups")
def _groups(parts: list[Any]) -> None:
    first = parts[0].value
    if len(parts) == 1:
        return
    if isinstance(first, _Mesh):
        _check_axes(first, parts[1].value)
        return
    dimensions, _ = parts[2].value
    if len(first) != 2:
        raise Rejected(parts[0].start, "expected the number of groups and their size, for example [2,4]<=[8]")
    if math.prod(first) != math.prod(dimensions):
        raise Rejected(
            parts[0].start, f"{math.prod(first)} devices in the groups, {math.prod(dimensions)} in the iota"
        )


@spanning("tile_sharding")
def _tile_sharding(parts: list[Any]) -> None:
    where = parts[0].start
    given: dict[str, Any] = dict(part.value for part in parts)
    tiles, listed, iota = given.get("devices", ((), None, None))
    if "device" in given:
        listed = (*(listed or ()), given["device"]) if not tiles else (given["device"],)
    for kind in ("replicated", "maximal", "manual", "unknown", "unreduced"):
        if kind in given:
            if kind == "maximal" and len(listed or ()) != 1:
                raise Rejected(where, "a maximal sharding has exactly one device: {maximal device=0}")
            if kind != "maximal" and listed:
                raise Rejected(where, f"a sharding that is {kind} has no devices")
            return
    if not tiles:
        raise Rejected(where, "expected the tiles of the sharding, for example devices=[2,2]0,1,2,3")
    count = math.prod(iota[0]) if iota is not None else len(listed)
    if iota is None and count <= 1:
        raise Rejected(where, "a tiled sharding has more than one device")
    if count != math.prod(tiles):
        raise Rejected(where, f"the sharding has {math.prod(tiles)} tiles and {count} devices")
    if iota is not None and len(iota[0]) != len(iota[1]):
        raise Rejected(where, f"the permutation must order the {len(iota[0])} dimensions of the iota")


@handler("tile_sharding_part")
def _tile_sharding_part(parts: list[Any]) -> tuple[str, Any]:
    key = parts[0].rstrip("=")
    if key == "devices":
        if len(parts) == 4:
            return key, (parts[1], None, parts[3])
        return key, (parts[1], tuple(parts[2]), None)
    return key, signed(parts[1]) if key in ("device", "shard_as", "shard_like") else None


@handler("named_sharding")
def _named_sharding(parts: list[Any]) -> None:
    mesh, *rest = values(parts)
    if mesh.is_maximal:
        return
    fields = rest.pop()
    _with_devices(mesh, rest[0] if rest else None)
    for references in fields:
        _check_axes(mesh, references)


@spanning("unreduced_sharding")
def _unreduced_sharding(parts: list[Any]) -> list[Any]:
    found = []
    for part in parts:
        if isinstance(part, Span) and isinstance(part.value, str):
            _check_reduction(part)
        elif isinstance(part, Span) and part.value and isinstance(part.value[0], tuple):  # no metadata
            found.append(part.value)
    return found


def _check_reduction(part: Span) -> None:
    if part.value.rstrip("=") not in ("sum", "max", "min"):
        raise Rejected(part.start, "expected sum, max or min")


@spanning("axes_field")
def _axes_field(parts: list[Any]) -> tuple[_Reference, ...]:
    if len(parts) == 3:
        _check_reduction(parts[1])
    return () if parts[0].type == "KEY_METADATA" else parts[-1].value


@handler("dimension_sharding")
def _dimension_sharding(parts: list[Any]) -> list[Any]:
    dimensions, *fields = values(parts)
    return [*fields, *dimensions]


@handler("axes_dimension")
def _axes_dimension(parts: list[Any]) -> list[_Reference]:
    items = [p for p in parts[1:-1] if not (isinstance(p, Token) and p.type == "COMMA")]
    marks = [p for p in items if isinstance(p, Token)]
    if marks and (len(marks) > 1 or items[-1] is not marks[0]):
        raise Rejected(marks[0].start_pos or 0, "? comes last in a dimension")
    return [i for i in items if not isinstance(i, Token)]


# Rules of one expression.
HANDLERS.update(
    {
        "bracketed": lambda parts: tuple(parts[1]),
        "axis": lambda parts: (unquote(parts[0]), signed(parts[2])),
        "axis_ref": lambda parts: (unquote(parts[0]), parts[0].start_pos),
        "maximal_mesh": lambda parts: _Mesh((), is_maximal=True),
        "any_mesh": lambda parts: _with_devices(parts[0], parts[1] if len(parts) > 1 else None),
        **dict.fromkeys(("axes", "axes_dimensions"), lambda parts: tuple(values(parts))),
        **dict.fromkeys(("sharding", "braced_sharding"), lambda parts: None),
        "sharding_type": lambda parts: str(parts[0]),
        "sharding_metadata": lambda parts: parts[2],
        "whole_sharding": lambda parts: [],
    }
)
