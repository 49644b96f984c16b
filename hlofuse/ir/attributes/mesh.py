"""Meshes of devices with named axes (`xla/hlo/ir/mesh_and_axis.h`)."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis of a mesh by name, or a part of one: `"a":(2)4` is the 4 after the first 2 (`AxisRef`)."""

    name: str
    pre_size: int | None = None
    size: int | None = None

    def __str__(self) -> str:
        return f"'{self.name}'" if self.size is None else f"'{self.name}':({self.pre_size}){self.size}"


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
