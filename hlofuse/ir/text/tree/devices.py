"""Handlers for what names devices: shardings, meshes, replica groups."""

import math
from collections.abc import Iterable
from typing import Any

from lark import Token

from hlofuse.ir.attributes.sharding import (
    Axis,
    DimensionSharding,
    IotaGroups,
    Mesh,
    MeshGroups,
    NamedSharding,
    ReplicaGroups,
    TileSharding,
    TupleSharding,
)
from hlofuse.ir.text.errors import Rejected
from hlofuse.ir.text.text import signed, unquote
from hlofuse.ir.text.tree.handlers import HANDLERS, Span, handler, place, spanning, values


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
def _mesh(parts: list[Any]) -> Mesh:
    axes = [p.value for p in parts if isinstance(p, Span)]
    if len({name for name, _ in axes}) != len(axes):
        raise Rejected(place(parts[0]), "the mesh has an axis twice")
    return Mesh(tuple(axes))


@spanning("device_ids")
def _device_ids(parts: list[Any]) -> tuple[Any, int]:
    """A list of devices, an iota or nothing, and where it stands."""
    inner: Any = next((p.value for p in parts if isinstance(p, Span)), [])
    return inner, parts[1].start_pos


def _with_devices(mesh: Mesh, device_ids: tuple[Any, int] | None) -> Mesh:
    if device_ids is None:
        return mesh
    ids, where = device_ids
    if not mesh.axes:
        raise Rejected(where, "an empty mesh has no devices")
    count = math.prod(ids[0]) if isinstance(ids, tuple) else len(ids)
    if count != mesh.device_count:
        raise Rejected(where, f"the mesh has room for {mesh.device_count} devices, but {count} are given")
    if isinstance(ids, tuple):
        return Mesh(mesh.axes, None, *ids)
    return Mesh(mesh.axes, tuple(ids))


@spanning("axis_ref")
def _axis_ref(parts: list[Any]) -> tuple[Axis, int]:
    name = unquote(parts[0])
    axis = Axis(name) if len(parts) == 1 else Axis(name, signed(parts[3]), signed(parts[5]))
    return axis, parts[0].start_pos


def _resolved(mesh: Mesh, references: Iterable[tuple[Axis, int]]) -> tuple[Axis, ...]:
    """The axes, once each is known to be one of the mesh, by name or by number."""
    names = {name for name, _ in mesh.axes}
    out = []
    for axis, where in references:
        number = int(axis.name) if axis.name.isascii() and axis.name.isdigit() else -1
        if axis.name not in names and not 0 <= number < len(mesh.axes):
            raise Rejected(where, f"{axis.name!r} is no axis of {mesh}")
        out.append(axis)
    return tuple(out)


@spanning("groups")
def _groups(parts: list[Any]) -> ReplicaGroups | IotaGroups | MeshGroups:
    first = parts[0].value
    if len(parts) == 1:
        return ReplicaGroups(first)
    if isinstance(first, Mesh):
        return MeshGroups(first, _resolved(first, parts[1].value))
    dimensions, permutation = parts[2].value
    if len(first) != 2:
        raise Rejected(parts[0].start, "expected the number of groups and their size, for example [2,4]<=[8]")
    if math.prod(first) != math.prod(dimensions):
        raise Rejected(
            parts[0].start, f"{math.prod(first)} devices in the groups, {math.prod(dimensions)} in the iota"
        )
    return IotaGroups(first[0], first[1], dimensions, permutation)


@handler("sharding")
def _sharding(parts: list[Any]) -> TileSharding | NamedSharding | TupleSharding:
    inner = values(parts)
    if inner and not isinstance(inner[0], list):
        return inner[0]  # type: ignore[no-any-return]
    return TupleSharding(tuple(i[0] for i in inner))


@spanning("tile_sharding")
def _tile_sharding(parts: list[Any]) -> TileSharding:
    where = parts[0].start
    names: set[str] = set()
    given: dict[str, Any] = {"metadata": ()}
    for part in parts:
        key, value = part.value
        if value is None:
            names.add(key)
        elif key == "metadata":
            given["metadata"] += value
        else:
            given[key] = value
    common: dict[str, Any] = {k: given.get(k) for k in ("shard_as", "shard_like", "metadata")}
    tiles, listed, iota = given.get("devices", ((), None, None))
    if "device" in given:
        listed = (*(listed or ()), given["device"]) if not tiles else (given["device"],)
    for kind in ("replicated", "maximal", "manual", "unknown", "unreduced"):
        if kind in names:
            if kind == "maximal" and len(listed or ()) != 1:
                raise Rejected(where, "a maximal sharding has exactly one device: {maximal device=0}")
            if kind != "maximal" and listed:
                raise Rejected(where, f"a sharding that is {kind} has no devices")
            return TileSharding(kind, devices=listed if kind == "maximal" else None, **common)
    if not tiles:
        raise Rejected(where, "expected the tiles of the sharding, for example devices=[2,2]0,1,2,3")
    types = given.get("last_tile_dims", ())
    if "last_tile_dim_replicate" in names:
        types = (*types, "replicated")
    count = math.prod(iota[0]) if iota is not None else len(listed)
    if iota is None and count <= 1:
        raise Rejected(where, "a tiled sharding has more than one device")
    if count != math.prod(tiles):
        raise Rejected(where, f"the sharding has {math.prod(tiles)} tiles and {count} devices")
    if iota is not None:
        if len(iota[0]) != len(iota[1]):
            raise Rejected(where, f"the permutation must order the {len(iota[0])} dimensions of the iota")
        return TileSharding("tiled", tiles, None, iota[0], iota[1], types, **common)
    return TileSharding("tiled", tiles, listed, last_tile_dims=types, **common)


@handler("tile_sharding_part")
def _tile_sharding_part(parts: list[Any]) -> tuple[str, Any]:
    key = parts[0].rstrip("=")
    if len(parts) == 1:
        return key, None
    if key == "devices":
        if len(parts) == 4:
            return key, (parts[1], None, parts[3])
        return key, (parts[1], tuple(parts[2]), None)
    if key == "last_tile_dims":
        return key, tuple(values(parts))
    return key, signed(parts[1]) if isinstance(parts[1], Token) else parts[1]


@handler("named_sharding")
def _named_sharding(parts: list[Any]) -> NamedSharding:
    mesh, *rest = values(parts)
    if mesh.maximal is not None:
        return NamedSharding(mesh, metadata=rest[0] if rest else ())
    fields = rest.pop()
    mesh = _with_devices(mesh, rest[0] if rest else None)
    out: dict[str, Any] = {**fields}
    for key in ("replicated", "unreduced", "manual"):
        if key in fields:
            wanted = fields[key]
            out[key] = tuple(Axis(n) for n, _ in mesh.axes) if wanted is None else _resolved(mesh, wanted)
    if "dimensions" in fields:
        out["dimensions"] = tuple(
            DimensionSharding(_resolved(mesh, axes), closed) for axes, closed in fields["dimensions"]
        )
    return NamedSharding(mesh, **out)


@spanning("unreduced_sharding")
def _unreduced_sharding(parts: list[Any]) -> dict[str, Any]:
    out: dict[str, Any] = {"unreduced": None}
    for part in parts:
        if isinstance(part, Span):
            if isinstance(part.value, str):
                out["reduction"] = _reduction(part)
            elif part.value and not isinstance(part.value[0], tuple):
                out["metadata"] = part.value
            else:
                out["unreduced"] = part.value
    return out


def _reduction(part: Span) -> str:
    operation = part.value.rstrip("=")
    if operation not in ("sum", "max", "min"):
        raise Rejected(part.start, "expected sum, max or min")
    return operation  # type: ignore[no-any-return]


@spanning("axes_field")
def _axes_field(parts: list[Any]) -> dict[str, Any]:
    key = parts[0][:-1]
    out = {key: parts[-1].value}
    if len(parts) == 3:
        out["reduction"] = _reduction(parts[1])
    return out


@handler("dimension_sharding")
def _dimension_sharding(parts: list[Any]) -> dict[str, Any]:
    dimensions, *fields = values(parts)
    out: dict[str, Any] = {"dimensions": dimensions}
    for field in fields:
        for key, value in field.items():
            out[key] = (*out.get(key, ()), *value) if isinstance(value, tuple) else value
    return out


@handler("axes_dimension")
def _axes_dimension(parts: list[Any]) -> tuple[list[tuple[Axis, int]], bool]:
    items = [p for p in parts[1:-1] if not (isinstance(p, Token) and p.type == "COMMA")]
    marks = [p for p in items if isinstance(p, Token)]
    if marks and (len(marks) > 1 or items[-1] is not marks[0]):
        raise Rejected(marks[0].start_pos or 0, "? comes last in a dimension")
    return [i for i in items if not isinstance(i, Token)], not marks


# Rules of one expression.
HANDLERS.update(
    {
        "bracketed": lambda parts: tuple(parts[1]),
        "axis": lambda parts: (unquote(parts[0]), signed(parts[2])),
        "maximal_mesh": lambda parts: Mesh(maximal=signed(parts[3])),
        "any_mesh": lambda parts: _with_devices(parts[0], parts[1] if len(parts) > 1 else None),
        **dict.fromkeys(("axes", "axes_dimensions"), lambda parts: tuple(values(parts))),
        "braced_sharding": lambda parts: [parts[1]],
        "sharding_type": lambda parts: str(parts[0]),
        "sharding_metadata": lambda parts: parts[2],
        "whole_sharding": lambda parts: {
            "whole": str(parts[0]),
            "metadata": parts[1] if len(parts) > 1 else (),
        },
    }
)
