"""The groups of devices that a collective runs in, from each form that XLA prints
(`xla/hlo/ir/replica_group.cc`)."""

import re
from collections.abc import Sequence
from functools import cache
from itertools import pairwise, product
from math import prod

Groups = tuple[tuple[int, ...], ...]

_LIST = re.compile(r"\{\s*(?:\{[\d,\s]*\}\s*,?\s*)*\}")
_IOTA = re.compile(r"\[([\d,]+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?")
_MESH = re.compile(r"mesh\[(.*?)\](?:,\s*device_ids=\(\[([\d,]+)\]T\(([\d,]+)\)\))?\s*\{(.*)\}")
_AXIS = re.compile(r"'(.*?)'=(\d+)")
_PART = re.compile(r"'([^']*)'(?::\((\d+)\)(\d+))?")


@cache
def replica_groups(text: str) -> Groups | None:
    """The groups in an attribute's text, in order; empty for one group of all devices.

    None for a form that is not known.
    """
    if _LIST.fullmatch(text):
        return tuple(tuple(map(int, re.findall(r"\d+", g))) for g in re.findall(r"\{([\d,\s]+)\}", text))
    if m := _IOTA.fullmatch(text):
        (_, *sizes), dimensions = _integers(m[1]), _integers(m[2])
        devices = _transposed(range(prod(dimensions)), dimensions, _integers(m[3]) or range(len(dimensions)))
        return _split(devices, prod(sizes))
    if m := _MESH.fullmatch(text):
        axes = [(name, int(size)) for name, size in _AXIS.findall(m[1])]
        devices = list(range(prod(size for _, size in axes)))
        if m[2]:
            devices = _transposed(devices, _integers(m[2]), _integers(m[3]))
        return _mesh_groups(axes, devices, _PART.findall(m[4]))
    return None


def _mesh_groups(
    axes: list[tuple[str, int]], devices: list[int], parts: list[tuple[str, str, str]]
) -> Groups:
    """The groups along the named axes of a mesh, or along parts of axes: `(before, size)`."""
    sizes = dict(axes)
    chosen = [(name, int(before or 1), int(size or sizes[name])) for name, before, size in parts]
    dimensions: list[tuple[str, int, int]] = []
    for name, size in axes:
        cuts = {1, size, *(c for n, before, count in chosen if n == name for c in (before, before * count))}
        places = sorted(cuts)
        dimensions += [(name, a, b // a) for a, b in pairwise(places)]
    grouped = [
        k
        for name, before, count in chosen
        for k, (axis, start, size) in enumerate(dimensions)
        if axis == name and before <= start and start * size <= before * count
    ]
    order = [k for k in range(len(dimensions)) if k not in grouped] + grouped
    extents = [size for _, _, size in dimensions]
    return _split(_transposed(devices, extents, order), prod(extents[k] for k in grouped))


def _integers(text: str | None) -> list[int]:
    return [int(w) for w in (text or "").split(",") if w]


def _transposed(devices: Sequence[int], dimensions: Sequence[int], order: Sequence[int]) -> list[int]:
    """An array of these dimensions with its dimensions in another order, flat."""
    strides = [prod(dimensions[k + 1 :]) for k in range(len(dimensions))]
    steps = [[i * strides[k] for i in range(dimensions[k])] for k in order]
    return [devices[sum(place)] for place in product(*steps)]


def _split(devices: list[int], size: int) -> Groups:
    return tuple(tuple(devices[k : k + size]) for k in range(0, len(devices), size))
