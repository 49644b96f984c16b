"""Which devices take part together in a collective, in XLA's three notations."""

from __future__ import annotations

import math
from dataclasses import dataclass

from hlofuse.ir.attributes.mesh import Axis, Mesh


@dataclass(frozen=True, slots=True)
class ReplicaGroups:
    """Groups listed one by one: `{{0,1},{2,3}}` (`CollectiveDeviceList`)."""

    groups: tuple[tuple[int, ...], ...] = ()

    def __str__(self) -> str:
        return "{" + ",".join("{" + ",".join(map(str, g)) + "}" for g in self.groups) + "}"


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

    def __str__(self) -> str:
        text = f"[{self.group_count},{self.group_size}]<=[{','.join(map(str, self.dimensions))}]"
        if len(self.dimensions) > 1:
            text += f"T({','.join(map(str, self.permutation))})"
        return text


@dataclass(frozen=True, slots=True)
class MeshGroups:
    """Groups along axes of a mesh: `mesh['a'=2,'b'=2] {'a'}` (`MeshAxesReplicaGroupList`)."""

    mesh: Mesh
    axes: tuple[Axis, ...]

    @property
    def group_size(self) -> int:
        return math.prod(self.mesh.size_of(a) for a in self.axes)

    def __str__(self) -> str:
        return f"{self.mesh} {{{','.join(map(str, self.axes))}}}"
