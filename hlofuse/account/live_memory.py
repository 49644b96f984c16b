"""The temporary memory that a module needs at most, from the live ranges of its buffers.

Buffers share memory as XLA's do (`xla/hlo/analysis/hlo_alias_analysis.cc`), one kernel runs after the other
in the order of the module, and nothing is lost between buffers. XLA's scheduler may find a better order, and
its heap lays buffers out with gaps.
"""

from __future__ import annotations

from itertools import accumulate

from hlofuse.analysis.alias_info import AliasInfo
from hlofuse.analysis.bitcasts import shape_size
from hlofuse.analysis.hlo_alias import HloAlias, HloBuffer
from hlofuse.analysis.hlo_value import Readers
from hlofuse.analysis.kernels import launched_computations
from hlofuse.analysis.shape_tree import subshape_at
from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.ir.graph import Computation, Instruction, Module
from hlofuse.passes.copy_insertion.gpu_alias_info import GpuAliasInfo
from hlofuse.releases import AROUND_FUSION


def peak_temporary_bytes(module: Module, alias_info: AliasInfo) -> int:
    """Bytes live at once at most, without arguments, results and constants."""
    alias, readers = HloAlias(module, alias_info), Readers()
    times = _times(module)
    entry = module.entry
    changes = [0] * (len(times) + 2)
    buffers = dict.fromkeys(map(alias.buffer_of, alias.dataflow.values))
    for buffer in buffers:
        found = _live_range(buffer, times, readers, entry)
        if found is not None:
            first, last, size = found
            changes[first] += size
            changes[last + 1] -= size
    return max(accumulate(changes))


def alias_info_of(device: DeviceDescription | None) -> AliasInfo:
    """What may share memory on a GPU, or, without one, on other backends."""
    return GpuAliasInfo(device, AROUND_FUSION) if device is not None else AliasInfo(AROUND_FUSION)


def _live_range(
    buffer: HloBuffer, times: dict[Instruction, int], readers: Readers, entry: Computation
) -> tuple[int, int, int] | None:
    """First and last moment, and bytes; None for what is no temporary."""
    moments: list[int] = []
    size = 0
    for value in buffer.values:
        source, index = value.instruction, value.index
        if source.opcode == "constant" or (source.opcode == "parameter" and source.computation is entry):
            return None
        if any(p.instruction is entry.root for p in value.positions):
            return None
        if source in times:
            shape = subshape_at(source.shape, index)
            size = max(size, shape_size(shape) if shape.is_array else 0)
        moments += [times[p.instruction] for p in value.positions if p.instruction in times]
        moments += [times[u.instruction] for u in readers.uses_of(value) if u.instruction in times]
    return (min(moments), max(moments), size) if moments and size else None


def _times(module: Module) -> dict[Instruction, int]:
    """When each instruction runs: what it calls first, each computation once."""
    within = set(launched_computations(module))
    scheduled = module.attributes.raw("is_scheduled") == "true"

    def order(computation: Computation) -> list[Instruction]:
        return list(computation) if scheduled else list(computation.post_order())

    times: dict[Instruction, int] = {}
    seen: set[Computation] = {module.entry}
    stack = [iter(order(module.entry))]
    waiting: list[Instruction] = []
    while stack:
        instruction = next(stack[-1], None)
        if instruction is None:
            stack.pop()
            if waiting:
                times[waiting.pop()] = len(times)
            continue
        called = [c for _, c in instruction.called if c in within and c not in seen]
        if not called:
            times[instruction] = len(times)
            continue
        seen.update(called)
        waiting.append(instruction)
        stack.append(iter([i for c in called for i in order(c)]))
    return times
