"""Readers of broadcast constants that Triton gemms took along."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import NamedTuple, TypeAlias

from hlofuse.analysis.bitcasts import without_bitcasts
from hlofuse.analysis.constants import is_broadcast_of_constant
from hlofuse.ir.instruction import Instruction
from hlofuse.ir.shape import Shape
from hlofuse.pipelines.calls_in_names import outermost_call
from hlofuse.pipelines.users.common.constants import literal_of
from hlofuse.pipelines.users.common.fusions import is_gemm
from hlofuse.pipelines.users.common.holes import without

GemmReaders: TypeAlias = "dict[Hashable, dict[Hashable, _Taken]]"
"""By the constant that is broadcast and what is computed with it: where gemms took that along."""


class _Taken(NamedTuple):
    reader: Instruction
    first: Instruction
    last: Instruction


def gemm_readers(order: Iterable[Instruction]) -> GemmReaders:
    """What the gemms among `order`, the post-order, compute with each constant that is broadcast in them."""
    found: GemmReaders = {}
    for fusion in order:
        if not is_gemm(fusion):
            continue
        for x in fusion.fused_computation:
            if is_broadcast_of_constant(x):
                readers = found.setdefault(_value_of(x), {})
                for user in x.users:
                    kind = _computed(user, fusion)
                    first = readers[kind].first if kind in readers else fusion
                    readers[kind] = _Taken(user, first, fusion)
    return found


def without_those_in_gemms(
    constant: Instruction,
    users: list[Instruction],
    order: dict[Instruction, int],
    readers: GemmReaders,
    passes: int,
) -> list[Instruction]:
    """The users of a broadcast `constant`, given that Triton gemms took some others along.

    GemmFusion (`xla/backends/gpu/transforms/gemm_fusion.cc`) clones what a dot reads into the fusion, the
    broadcast as well; the original goes with the last dot it fed, and the last user takes its place. Where
    it had stood tells the walk, `order`, but what is read in a called function came behind what is not
    (`merged_constants`). `passes` is the first id that a pass gave.
    """
    merged = constant.id < passes and not outermost_call(constant)
    behind = outermost_call if merged else None
    listed, gone = with_those_in_gemms(constant, users, order, readers, is_behind=behind)
    return without(listed, gone)


def with_those_in_gemms(
    constant: Instruction,
    users: list[Instruction],
    order: dict[Instruction, int],
    readers: GemmReaders,
    *,
    is_behind: Callable[[Instruction], object] | None = None,
) -> tuple[list[Instruction], list[Instruction]]:
    """The users of a broadcast `constant` with what gemms took along where it stood, and what that is.

    What `is_behind` stood behind all others.
    """
    if not is_broadcast_of_constant(constant):
        return users, []
    here = {_computed(u, None) for u in users} | {_named(u) for u in users}
    alike = readers.get(_value_of(constant), {}).items()
    taken = [t for kind, t in alike if kind not in here and _is_split(constant.shape, t.reader.shape)]
    listed = list(users)
    for reader, first, _ in taken:
        if is_behind is not None and is_behind(reader):
            listed.append(reader)
            continue
        place = next((k for k, u in enumerate(listed) if order.get(u, -1) > order[first]), len(listed))
        listed.insert(place, reader)
    taken.sort(key=lambda t: order[t.last])
    return listed, [t.reader for t in taken]


def is_first_reader_in_gemm(constant: Instruction, readers: GemmReaders) -> bool:
    """Did a gemm take along what a broadcast `constant` was made for, which bears the same name?"""
    if not is_broadcast_of_constant(constant):
        return False
    alike = readers.get(_value_of(constant), {}).values()
    return any(taken.reader.op_name == constant.op_name for taken in alike)


def _value_of(broadcast: Instruction) -> Hashable:
    """The same for equal broadcasts, of whatever dimensions: gemms take bitcasts behind them along."""
    return broadcast.shape.element_count, literal_of(broadcast)


def _is_split(shape: Shape, other: Shape) -> bool:
    """Has `other` the dimensions of `shape`, or parts of these?"""
    sizes = [d for d in reversed(other.dimensions) if d != 1]
    for dimension in shape.dimensions:
        while dimension > 1:
            if not sizes or dimension % sizes[-1]:
                return False
            dimension //= sizes.pop()
    return not sizes


def _computed(x: Instruction, fusion: Instruction | None) -> Hashable:
    """What is computed: the operation and the values it reads, constants left aside."""
    values = [_value(o, fusion) for o in x.operands if not is_broadcast_of_constant(o)]
    return (x.opcode, x.op_name, *values)


def _named(x: Instruction) -> Hashable:
    """The same for what reads values that are computed in the fusion as well."""
    values = [(o.opcode, o.op_name) for o in x.operands if not is_broadcast_of_constant(o)]
    return (x.opcode, x.op_name, *values)


def _value(x: Instruction, fusion: Instruction | None) -> Hashable:
    x = without_bitcasts(x)
    if fusion is not None and x.opcode == "parameter":
        return _value(fusion.operands[x.parameter_number], None)
    return x if fusion is None else (x.opcode, x.op_name)
