"""Asynchronous operations: a start is the work, its update and done only hand the result on. XLA writes them
in three ways: with opcodes of their own (`all-reduce-start`), around a computation (`async-start(…),
calls=…`), and as short forms of the latter (`all-to-all-start`). Groups: `xla/hlo/ir/replica_group.cc`."""

import math
import re
from collections.abc import Iterator
from functools import cache
from itertools import islice, product

from hlofuse.ir.errors import HlofuseError
from hlofuse.ir.graph import Instruction
from hlofuse.ir.grouping import reach
from hlofuse.ir.opcodes import with_trait
from hlofuse.ir.text.signatures import split_async


@cache
def is_async_end(opcode: str) -> bool:
    """True for what goes on with an operation that was counted when it started."""
    return opcode in _ENDS or split_async(opcode)[1] in ("update", "done")


_ENDS = with_trait("async-end")
_COLLECTIVES = with_trait("collective")


@cache
def wrapped_opcode(opcode: str) -> str | None:
    """The operation that a short form such as `all-to-all-start` starts; None for any other opcode."""
    wrapped, stage = split_async(opcode)
    return wrapped if stage == "start" else None


def wrapped_operation(start: Instruction) -> Instruction | None:
    """The operation that a short form starts, free-standing, with the same operands; None for any other. The
    shape of a start is a tuple of the operands, the result and a context."""
    opcode = wrapped_opcode(start.opcode)
    if opcode is None or not start.is_tuple or start.tuple_size < 2:
        return None
    operation = start.bare_copy()
    operation.opcode, operation.shape = opcode, start.shape.tuple_shapes[1]
    operation.operands = list(start.operands)  # which do not learn of this reader
    return operation


def start_of(end: Instruction) -> Instruction | None:
    """The start that an update or a done goes on with; None where it is in another computation."""
    while is_async_end(end.opcode) and end.operands:
        end = end.operand
    return end if end.opcode in ("send", "recv") or end.opcode.endswith("-start") else None


def ends_of(start: Instruction) -> Iterator[Instruction]:
    """The updates and dones that go on with a start."""
    ends = reach([start], lambda x: [u for u in x.users if is_async_end(u.opcode)])
    return islice(ends, 1, None)


_STAGES = {"AsyncCollectiveStart": "start", "AsyncCollectiveDone": "done"}


def fused_collective(fusion: Instruction) -> tuple[Instruction | None, str]:
    """The collective in an XLA:TPU fusion and its stage: `start`, `update`, `done` or `whole`; else None."""
    inside = fusion.fused_computation if fusion.is_fusion and fusion.called else ()
    found = next((x for x in inside if x.opcode in _COLLECTIVES), None)
    if found is None:
        return None, ""
    target = fusion.fused_root.raw("custom_call_target") or ""
    continues = "continuation_config" in (fusion.raw("backend_config") or "")
    return found, _STAGES.get(target.strip('"'), "update" if continues else "whole")


Groups = tuple[tuple[int, ...], ...]
_IOTA = re.compile(r"\[([\d,]+)\](?:T\(([\d,]+)\))?")
_MESH = re.compile(r"mesh\[([^\]]*)\](?:,\s*device_ids=\(([^)]*\)?[^)]*)\))?\s*\{([^}]*)\}")
_AXIS = re.compile(r"(?:'([^']*)'|\b(\d+))(?:=(\d+)|:\((\d+)\)(\d+))?")


def replica_groups(text: str) -> Groups:
    """The groups of devices that `replica_groups` names, in any of XLA's notations; () for all devices.
    `{{0,1},{2,3}}`, `[2,2]<=[4]`, `[2,2]<=[2,2]T(1,0)` (`IotaReplicaGroupList`) and `mesh['x'=2,'y'=2],
    device_ids=([2,2]T(1,0)) {'y'}` (`MeshAxesReplicaGroupList`); an axis may be a part of one, `'x':(1)2`.
    HlofuseError where it names no groups, since axes or numbers do not fit together."""
    try:
        if (mesh := _MESH.match(text)) is not None:
            return _groups_of_axes(*mesh.groups())
        if text.startswith("maximal_mesh"):
            return (tuple(_integers(text)[:1]),)
        if "<=" in text:
            size = _integers(text[: text.index("]")])[-1]
            ids = _iota(text[text.index("<=") + 2 :])
            return tuple(tuple(ids[k : k + size]) for k in range(0, len(ids), size))
        return tuple(tuple(_integers(group)) for group in re.findall(r"\{([\d,\s]+)\}", text))
    except (IndexError, KeyError, ValueError, ZeroDivisionError):
        raise HlofuseError(f"replica_groups={text!r} names no groups of devices") from None


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
    groups = dict[tuple[int, ...], list[tuple[tuple[int, ...], int]]]()
    for place, index in enumerate(product(*map(range, sizes.values()))):
        at = dict(zip(sizes, index, strict=True))
        inside = []
        for name, before, part in parts:
            stride = sizes[name] // (before * part)
            inside.append(index[list(sizes).index(name)] // stride % part)
            at[name] -= inside[-1] * stride
        groups.setdefault(tuple(at.values()), []).append((tuple(inside), ids[place]))
    return tuple(tuple(device for _, device in sorted(group)) for group in groups.values())
