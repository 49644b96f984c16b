"""How an array is spread over devices (`xla/hlo/ir/hlo_sharding.h`, `named_sharding.h`)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from hlofuse.ir.attributes.metadata import OpMetadata


@dataclass(frozen=True, slots=True)
class ReplicaGroups:
    """Groups listed one by one: `{{0,1},{2,3}}` (`CollectiveDeviceList`)."""

    groups: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class IotaGroups:
    """Groups by formula: `[2,4]<=[4,2]T(1,0)` (`IotaReplicaGroupList`)."""

    group_count: int
    group_size: int
    dimensions: tuple[int, ...]
    permutation: tuple[int, ...]

    @property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """The groups written out."""
        strides = [math.prod(self.dimensions[i + 1 :]) for i in range(len(self.dimensions))]
        devices = [0]
        for p in self.permutation:
            devices = [d + i * strides[p] for d in devices for i in range(self.dimensions[p])]
        n = self.group_size
        return tuple(tuple(devices[i * n : (i + 1) * n]) for i in range(self.group_count))


@dataclass(frozen=True, slots=True)
class MeshGroups:
    """Groups along axes of a mesh: `mesh['a'=2,'b'=2] {'a'}` (`MeshAxesReplicaGroupList`)."""

    mesh: Mesh
    axes: tuple[Axis, ...]

    @property
    def group_size(self) -> int:
        return math.prod(self.mesh.size_of(a) for a in self.axes)


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis of a mesh by name, or a part of one: `"a":(2)4` is the 4 after the first 2 (`AxisRef`)
    (`xla/hlo/ir/mesh_and_axis.h`)."""

    name: str
    pre_size: int | None = None
    size: int | None = None


@dataclass(frozen=True, slots=True)
class Mesh:
    """Named axes with their sizes and the devices in them (`Mesh`); `maximal` is a mesh of one device.

    Devices are listed, or given as an iota by `iota_dimensions` and `permutation`, or all in order.
    """

    axes: tuple[tuple[str, int], ...] = ()
    device_ids: tuple[int, ...] | None = None
    iota_dimensions: tuple[int, ...] | None = None
    permutation: tuple[int, ...] = ()
    maximal: int | None = None

    @property
    def device_count(self) -> int:
        return 1 if self.maximal is not None else math.prod(size for _, size in self.axes)

    def size_of(self, axis: Axis) -> int:
        """Devices along an axis or part of one."""
        if axis.size is not None:
            return axis.size
        sizes = dict(self.axes)
        return sizes[axis.name] if axis.name in sizes else self.axes[int(axis.name)][1]

    def __str__(self) -> str:
        if self.maximal is not None:
            return f"maximal_mesh[device_id={self.maximal}]"
        text = "mesh[" + ",".join(f"'{name}'={size}" for name, size in self.axes) + "]"
        if self.device_ids is not None:
            text += f", device_ids=({','.join(map(str, self.device_ids))})"
        elif self.iota_dimensions is not None:
            text += f", device_ids=([{','.join(map(str, self.iota_dimensions))}]"
            text += f"T({','.join(map(str, self.permutation))})" if len(self.iota_dimensions) > 1 else ""
            text += ")"
        return text


@dataclass(frozen=True, slots=True)
class TileSharding:
    """The older notation (`OpSharding`): a kind, or tiles over an array of devices.

    `kind` is replicated, maximal, manual, unknown, unreduced, or tiled.
    """

    kind: str
    tile_dimensions: tuple[int, ...] = ()
    devices: tuple[int, ...] | None = None
    iota_dimensions: tuple[int, ...] | None = None
    permutation: tuple[int, ...] = ()
    last_tile_dims: tuple[str, ...] = ()
    shard_as: int | None = None
    shard_like: int | None = None
    metadata: tuple[OpMetadata, ...] = ()


@dataclass(frozen=True, slots=True)
class DimensionSharding:
    """Axes that split one dimension; an open one (`?`) may be split further (`DimensionSharding`)."""

    axes: tuple[Axis, ...] = ()
    is_closed: bool = True


@dataclass(frozen=True, slots=True)
class NamedSharding:
    """The newer notation over a mesh (`NamedSharding`); `whole` says replicated or manual altogether."""

    mesh: Mesh
    dimensions: tuple[DimensionSharding, ...] = ()
    replicated: tuple[Axis, ...] = ()
    unreduced: tuple[Axis, ...] = ()
    manual: tuple[Axis, ...] = ()
    reduction: str = "sum"
    whole: str | None = None
    metadata: tuple[OpMetadata, ...] = ()


@dataclass(frozen=True, slots=True)
class TupleSharding:
    """One sharding a leaf of a tuple."""

    elements: tuple[TileSharding | NamedSharding, ...] = ()
