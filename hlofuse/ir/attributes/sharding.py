"""How an array is spread over devices (`xla/hlo/ir/hlo_sharding.h`, `named_sharding.h`)."""

from __future__ import annotations

from dataclasses import dataclass

from hlofuse.ir.attributes.groups import Axis, Mesh
from hlofuse.ir.attributes.metadata import OpMetadata


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

    def __str__(self) -> str:
        return "{" + self._body() + "}"

    def _body(self) -> str:
        if self.kind == "maximal":
            text = f"maximal device={(self.devices or (0,))[0]}"
        elif self.kind != "tiled":
            text = self.kind
        else:
            text = f"devices=[{','.join(map(str, self.tile_dimensions))}]"
            if self.iota_dimensions is not None:
                text += f"<=[{','.join(map(str, self.iota_dimensions))}]"
                text += f"T({','.join(map(str, self.permutation))})" if len(self.iota_dimensions) > 1 else ""
            else:
                text += ",".join(map(str, self.devices or ()))
            if self.last_tile_dims == ("replicated",):
                text += " last_tile_dim_replicate"
            elif self.last_tile_dims:
                text += f" last_tile_dims={{{', '.join(self.last_tile_dims)}}}"
        if self.shard_as is not None:
            text += f" shard_as {self.shard_as}"
        if self.shard_like is not None:
            text += f" shard_like {self.shard_like}"
        return text + _metadata(self.metadata, " ")


@dataclass(frozen=True, slots=True)
class DimensionSharding:
    """Axes that split one dimension; an open one (`?`) may be split further (`DimensionSharding`)."""

    axes: tuple[Axis, ...] = ()
    is_closed: bool = True

    def __str__(self) -> str:
        return "{" + ", ".join([*map(str, self.axes), *([] if self.is_closed else ["?"])]) + "}"


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

    def __str__(self) -> str:
        return "{" + self._body() + "}"

    def _body(self) -> str:
        if self.mesh.maximal is not None:
            return str(self.mesh) + _metadata(self.metadata, ", ")
        if self.whole is not None:
            return f"{self.mesh}, {self.whole}" + _metadata(self.metadata, ", ")
        text = f"{self.mesh}, [{', '.join(map(str, self.dimensions))}]"
        for key, axes in (
            ("replicated", self.replicated),
            ("unreduced", self.unreduced),
            ("manual", self.manual),
        ):
            if axes:
                operation = self.reduction if key == "unreduced" and self.reduction != "sum" else ""
                text += f", {key}={operation}{{{', '.join(map(str, axes))}}}"
        return text + _metadata(self.metadata, ", ")


@dataclass(frozen=True, slots=True)
class TupleSharding:
    """One sharding a leaf of a tuple."""

    elements: tuple[TileSharding | NamedSharding, ...] = ()

    def __str__(self) -> str:
        return "{" + ", ".join(map(str, self.elements)) + "}"


def _metadata(entries: tuple[OpMetadata, ...], separator: str) -> str:
    if not entries:
        return ""
    text = ", ".join(map(str, entries))
    return f"{separator}metadata={text if len(entries) == 1 else '{' + text + '}'}"
