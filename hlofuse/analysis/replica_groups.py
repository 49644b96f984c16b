"""The groups of devices that a collective runs in (`xla/hlo/ir/replica_group.cc`)."""

import math
import re
from itertools import product

from hlofuse.ir.errors import HlofuseError

Groups = tuple[tuple[int, ...], ...]

_IOTA = re.compile(r"\[([\d,]+)\](?:T\(([\d,]+)\))?")
_MESH = re.compile(r"mesh\[([^\]]*)\](?:,\s*device_ids=\(([^)]*\)?[^)]*)\))?\s*\{([^}]*)\}")
_AXIS = re.compile(r"(?:'([^']*)'|\b(\d+))(?:=(\d+)|:\((\d+)\)(\d+))?")


def replica_groups(text: str) -> Groups:
    """The groups of devices that `replica_groups` names, in any of XLA's notations; () for all devices.

    `{{0,1},{2,3}}`, `[2,2]<=[4]`, `[2,2]<=[2,2]T(1,0)` (`IotaReplicaGroupList`) and
    `mesh['x'=2,'y'=2], device_ids=([2,2]T(1,0)) {'y'}` (`MeshAxesReplicaGroupList`); an axis may be a part of
    one, `'x':(1)2`. HlofuseError where it names no groups, since axes or numbers do not fit together.
    """
    try:
        return _groups(text)
    except (IndexError, KeyError, ValueError, ZeroDivisionError):
        raise HlofuseError(f"replica_groups={text!r} names no groups of devices") from None


def _groups(text: str) -> Groups:
    if (mesh := _MESH.match(text)) is not None:
        return _groups_of_axes(*mesh.groups())
    if text.startswith("maximal_mesh"):
        return (tuple(_integers(text)[:1]),)
    if "<=" in text:
        size = _integers(text[: text.index("]")])[-1]
        ids = _iota(text[text.index("<=") + 2 :])
        return tuple(tuple(ids[k : k + size]) for k in range(0, len(ids), size))
    return tuple(tuple(_integers(group)) for group in re.findall(r"\{([\d,\s]+)\}", text))


def _integers(text: str) -> list[int]:
    return [int(n) for n in re.findall(r"\d+", text)]


def _iota(text: str) -> list[int]:
    """The numbers 0, 1, … reshaped and transposed as `[4,2]T(1,0)` says, in order."""
    found = _IOTA.match(text)
    if found is None:
        return _integers(text)
    dims = _integers(found[1])
    order = _integers(found[2]) if found[2] else range(len(dims))
    strides = [math.prod(dims[d + 1 :]) for d in range(len(dims))]
    indices = product(*(range(dims[d]) for d in order))
    return [sum(i * strides[d] for i, d in zip(index, order, strict=True)) for index in indices]


def _groups_of_axes(axes: str, assignment: str | None, grouped: str) -> Groups:
    """The devices of a mesh that differ in the grouped axes only; an axis may be split into parts."""
    sizes = {name: int(size) for name, _, size, _, _ in _AXIS.findall(axes)}
    ids = _iota(assignment) if assignment else list(range(math.prod(sizes.values())))
    parts = [
        (name := given or list(sizes)[int(number)], int(before or 1), int(part or sizes[name]))
        for given, number, _, before, part in _AXIS.findall(grouped)
    ]
    groups: dict[tuple[int, ...], list[tuple[tuple[int, ...], int]]] = {}
    for place, index in enumerate(product(*map(range, sizes.values()))):
        at = dict(zip(sizes, index, strict=True))
        inside = []
        for name, before, part in parts:
            stride = sizes[name] // (before * part)
            inside.append(index[list(sizes).index(name)] // stride % part)
            at[name] -= inside[-1] * stride
        groups.setdefault(tuple(at.values()), []).append((tuple(inside), ids[place]))
    return tuple(tuple(device for _, device in sorted(group)) for group in groups.values())
