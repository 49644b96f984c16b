"""Collectives of a module: participants, bytes on the wire, time, and what runs meanwhile."""

import math
import re
from collections.abc import Collection, Container, Iterable, Mapping, Sequence, Set

from msgspec import Struct

from hlofuse.analysis.async_ops import (
    Groups,
    fused_collective,
    is_async_end,
    replica_groups,
    start_of,
    wrapped_operation,
)
from hlofuse.analysis.kernels import CONTROL_FLOW, runs_in, trip_count_of
from hlofuse.analysis.kernels import inside as inside_of
from hlofuse.ir import Computation, Instruction, Instructions, Module, Record, reach, values, with_trait

_KINDS = with_trait("collective") | {"send", "recv"}
_OF_ONE_OPERAND = values("collective-permute send")  # Further operands are buffers, places and contexts
_OF_PARTITIONS = values("all-to-all ragged-all-to-all collective-broadcast")
"""With a channel their groups are of partitions."""


class Exchange(Record):
    kind: str  # The opcode that is not asynchronous
    groups: Groups  # The devices that take part, by group; the source and target of each pair of a permute
    participants: int  # Devices of a group; of a permute, those in any pair
    bytes_on_wire: int | None
    """Bytes that a device sends by the ring algorithm; None where the sizes are known at run time only."""
    size: int  # Bytes that enter a device or leave it, whichever are more


def exchange_of(instruction: Instruction, module: Module) -> Exchange | None:
    """The communication that an instruction performs or starts; None for any other. A device in a ring of n
    sends 2(n−1)/n of an array for an all-reduce, (n−1)/n of the whole for an all-gather, a reduce-scatter and
    an all-to-all, and the whole for a permute."""
    fused = fused_collective(instruction)[0]
    operation = fused or wrapped_operation(instruction) or instruction
    kind = operation.opcode.removesuffix("-start")
    if kind not in _KINDS:
        return None
    if fused is not None and instruction.fused_root.opcode == "dynamic-slice":
        kind = "reduce-scatter"  # XLA:TPU sums only what each device keeps
    groups, n = _participants(operation, kind, module)
    operands = operation.operands[:1] if kind in _OF_ONE_OPERAND else operation.operands
    size = sum(leaf.buffer_size for o in operands for leaf in o.shape.leaf_shapes if leaf.is_array)
    if kind == "ragged-all-to-all":
        return Exchange(kind, groups, n, None, size)
    if kind in ("all-gather", "recv"):
        size = size * n if kind == "all-gather" else 0  # a recv is the other side of a send
    wire = {"all-reduce": 2 * size * (n - 1) // n, "collective-broadcast": size if n > 1 else 0}
    if kind in ("collective-permute", "send"):
        wire[kind] = size if kind == "send" or any(a != b for a, b in groups) else 0
    return Exchange(kind, groups, n, wire.get(kind, size * (n - 1) // n), size)


def _participants(operation: Instruction, kind: str, module: Module) -> tuple[Groups, int]:
    """The groups, or pairs, and the number of devices in one (`GetCollectiveOpGroupMode`)."""
    raw = operation.attributes.raw
    replicas, partitions = _divisions(module)
    if (pairs := raw("source_target_pairs")) is not None:
        found = tuple((int(a), int(b)) for a, b in re.findall(r"\{(\d+),\s*(\d+)\}", pairs))
        return found, max(len({d for pair in found for d in pair}), 1)
    groups = replica_groups(raw("replica_groups") or "{}")
    has_channel = raw("channel_id") is not None
    is_global = raw("use_global_device_ids") == "true"
    if has_channel and is_global:
        every, factor = replicas * partitions, 1
    elif has_channel and kind not in _OF_PARTITIONS:
        every, factor = replicas, partitions  # each group holds all partitions of its replicas
    else:
        every, factor = partitions if has_channel else replicas, 1
    groups = groups or (tuple(range(every)),)
    if factor > 1:
        groups = tuple(tuple(r * partitions + p for r in g for p in range(partitions)) for g in groups)
    return groups, max(map(len, groups))


def _divisions(module: Module) -> list[int]:
    """The numbers of replicas and of partitions."""
    return [int(module.attributes.raw(name) or 1) for name in ("replica_count", "num_partitions")]


# The schedule: what runs between a start and its done.
class Overlap(Struct):
    """A collective in a schedule."""

    is_asynchronous: bool
    between: Instructions = []  # The launches, loops and calls between its start and its done
    exposed_us: float | None = None  # Microseconds of one run that no kernel hides; None without a time


def overlaps(
    computations: Iterable[Computation],
    launches: Mapping[Instruction, float | None],
    exchanges: Collection[Instruction],
    overhead_us: float,
    copies: Container[Instruction] = (),
) -> dict[Instruction, Overlap]:
    """The overlap of each of `exchanges` in the schedule of these computations, callees first. `launches` has
    the microseconds of what is launched, `overhead_us` of each included. Kernels run one after the other, and
    so do asynchronous collectives, and the `copies` among the exchanges; a done waits for its start."""
    found = dict[Instruction, Overlap]()
    lengths = dict[Computation, float]()
    for computation in computations:
        now = 0.0
        free = {False: 0.0, True: 0.0}
        pending = dict[Instruction | str | None, tuple[Instruction, float]]()
        for instruction in computation:
            fused, stage = fused_collective(instruction)
            channel = fused.raw("channel_id") if fused is not None else None
            if is_async_end(instruction.opcode) or stage == "done":
                start = channel or start_of(instruction)
                if start in pending and not instruction.opcode.endswith("-update"):
                    collective, end = pending.pop(start)
                    overlap = found[collective]
                    if overlap.exposed_us is not None:
                        overlap.exposed_us = max(end - now, 0.0)
                        now = max(now, end)
                continue
            inside = _collective_in(instruction, exchanges)
            if inside is None:
                if instruction in launches or instruction.opcode in CONTROL_FLOW:
                    now += _length(instruction, launches, lengths)
                    for running, _ in pending.values():
                        found[running].between.append(instruction)
                continue
            us = launches[inside]
            exposed = None if us is None else us - overhead_us
            overlap = found[inside] = Overlap(_is_asynchronous(instruction), exposed_us=exposed)
            now += overhead_us
            if overlap.is_asynchronous:
                queue = inside in copies
                free[queue] = max(now, free[queue]) + (exposed or 0.0)
                pending[channel or instruction] = inside, free[queue]
            else:
                now += exposed or 0.0
        for collective, _ in pending.values():  # it ends elsewhere, as in the next iteration
            del found[collective]
        lengths[computation] = now
    return found


def _length(
    instruction: Instruction,
    launches: Mapping[Instruction, float | None],
    lengths: Mapping[Computation, float],
) -> float:
    if instruction in launches:
        return launches[instruction] or 0.0
    called = [lengths.get(c, 0.0) for name, c in instruction.called if runs_in(instruction, name)]
    if instruction.is_while:
        trips = trip_count_of(instruction)
        return sum(called) * (1 if trips is None else trips)
    return max(called, default=0.0)


def _collective_in(instruction: Instruction, exchanges: Collection[Instruction]) -> Instruction | None:
    if instruction in exchanges:
        return instruction
    inside = (i for _, c in instruction.called for i in c) if instruction.opcode == "async-start" else ()
    return next((i for i in inside if i in exchanges), None)


def started_by(collective: Instruction) -> Instruction:
    """The `async-start` that runs a collective, or itself."""
    return collective.called_by("async-start") or collective


def _is_asynchronous(instruction: Instruction) -> bool:
    """True for a start that does not block the kernels after it (`is_sync` of `CollectiveBackendConfig`)."""
    if fused_collective(instruction)[1] == "start":
        return True
    if not instruction.opcode.endswith("-start") and instruction.opcode not in ("send", "recv"):
        return False
    return re.search(r'"is_sync"\s*:\s*true', instruction.raw("backend_config") or "") is None


# The cause: the sharding of arguments, and arrays that are gathered to keep a part.
class Resharding(Record):
    """Gathers whose result each device reads only a part of, chosen by its number."""

    gathers: tuple[Instruction, ...]  # One after the other, the last with the largest result
    gathered_bytes: int
    is_whole: bool  # True if all devices of the program contribute
    share: int  # Each device reads at most one in so many elements
    work: str = ""  # What each device computes of all that was gathered


class Collective(Record):
    """A collective of a final module."""

    instruction: Instruction
    exchange: Exchange
    runs: int  # Launches in one run of the program
    us: float | None  # Microseconds of one run if nothing hides it, without its launch; None without a time
    is_floor: bool  # True if `us` is a lower bound
    overlap: Overlap | None  # None where the module has no schedule, or it ends in another computation
    hides_exactly: bool  # False if a kernel that hides it has only a lower bound for a time
    sharding: str | None
    """The sharding of the arguments that it is computed from, if all have the same; None where not known."""
    resharding: Resharding | None

    @property
    def exposed(self) -> tuple[float, bool] | None:
        """Microseconds of all runs that no kernel hides, or None; True for an estimate, False for a bound."""
        if self.overlap is None or self.overlap.exposed_us is None:
            return None
        us = self.overlap.exposed_us if self.hides_exactly else 0.0
        return us * self.runs, self.hides_exactly and not self.is_floor


def exposed_us(collectives: Sequence[Collective]) -> tuple[float, bool] | None:
    """The sum of `Collective.exposed`; a lower bound if one of them is, None if nothing is known."""
    found = [c.exposed for c in collectives]
    total = sum(e[0] for e in found if e is not None)
    is_estimate = all(e is not None and e[1] for e in found)
    return (total, is_estimate) if is_estimate or total else None


def collectives_of(
    module: Module,
    runs: Mapping[Instruction, int],
    exchanges: Mapping[Instruction, Exchange],
    overlapped: Mapping[Instruction, Overlap],
    times: Mapping[Instruction, float | None],
    floors: Set[Instruction],
) -> tuple[Collective, ...]:
    """The collectives among the launches, of which `runs` has all and `floors` those with a lower bound."""
    if not exchanges:
        return ()
    starts = {c: started_by(c) for c in exchanges}
    shardings = argument_shardings(module.entry)
    devices = math.prod(_divisions(module))
    found = dict[Instruction, Resharding]()
    for start in starts.values():
        if (resharding := resharding_of(start, exchanges, devices)) is not None:
            for gather in resharding.gathers:  # the longest chain is that of the first
                if gather not in found or len(resharding.gathers) > len(found[gather].gathers):
                    found[gather] = resharding
    return tuple(
        Collective(
            c,
            exchange,
            runs[c],
            times[c],
            c in floors,
            (overlap := overlapped.get(c)),
            overlap is None or not any(i in floors or (floors and i not in runs) for i in overlap.between),
            shardings.get(starts[c]),
            found.get(c),
        )
        for c, exchange in exchanges.items()
    )


def argument_shardings(entry: Computation) -> dict[Instruction, str | None]:
    """The sharding of the arguments of each instruction, if all that are not replicated have the same."""
    found = dict[Instruction, set[str]]()
    for i in entry.post_order():
        own = {i.raw("sharding") or ""} if i.is_parameter else set()
        found[i] = set(sorted(own.union(*(found[o] for o in i.operands)) - {"{replicated}"})[:2])
    return {i: (next(iter(s)) or None) if len(s) == 1 else None for i, s in found.items()}


_MOVES = values("bitcast copy transpose reshape convert get-tuple-element")
_WORK = values("custom-call convolution dot sort fft cholesky triangular-solve")
_DEVICE_NUMBERS = values("partition-id replica-id")


def resharding_of(
    gather: Instruction, exchanges: Mapping[Instruction, Exchange], devices: int
) -> Resharding | None:
    """The resharding that a gather, or the start of one, begins; None if anything reads its whole result."""
    chain, largest, smallest_share, contributing, work = [], 0, 0, 1, ""
    pending = [gather]
    while pending:
        value = pending.pop()
        inside = _collective_in(value, exchanges)
        if inside is not None:
            if exchanges[inside].kind != "all-gather":
                return None
            chain.append(inside)
            contributing *= exchanges[inside].participants
            largest = max(largest, exchanges[inside].size)
        if value.is_root:
            return None
        for user in value.users:
            hands_on = user.opcode in _MOVES or is_async_end(user.opcode) or _is_move(user)
            if user.opcode in _WORK or user.fusion_kind == "kCustom":
                hands_on, work = True, user.name
            if hands_on or _collective_in(user, exchanges) is not None:
                pending.append(user)
                continue
            share = _share_read_by(user, value)
            if share is None:
                return None
            if any(i.opcode == "reduce-window" for i in inside_of(user)):
                work = user.name
            smallest_share = min(share, smallest_share or share)
    if smallest_share < 2:
        return None
    return Resharding(tuple(chain), largest, contributing == devices, smallest_share, work)


def _is_move(fusion: Instruction) -> bool:
    """True for a fusion that only brings one array into another order."""
    if not fusion.is_fusion or fusion.operand_count != 1:
        return False
    return all(i.opcode in _MOVES or i.is_parameter for i in fusion.fused_computation)


def _share_read_by(user: Instruction, value: Instruction) -> int | None:
    """One in how many elements of `value` its user reads by the device's number; None if it reads others."""
    pending, is_fused = [(value, [user])], user.is_fusion
    if is_fused:
        read = zip(user.fused_computation.parameters, user.operands, strict=True)
        pending = [(p, p.users) for p, o in read if o is value]
    largest = 0
    while pending:
        source, users = pending.pop()
        if is_fused and source.is_root:
            return None
        for reader in users:
            if (reader.opcode in _MOVES or reader.opcode == "pad") and is_fused:
                pending.append((reader, reader.users))
                continue
            if reader.opcode != "dynamic-slice" or reader.operand is not source:
                return None
            if not _is_of_device(reader.operands[1:]):
                return None
            windows = [u for u in reader.users if u.opcode == "reduce-window"]
            results = windows if 0 < len(windows) == reader.user_count else [reader]
            largest = max(largest, *(i.element_count for i in results))
    return value.element_count // largest if largest and value.is_array else None


def sources(x: Instruction) -> Sequence[Instruction]:
    """The operands of `x`; for a parameter of a fusion, what the fusion reads by it."""
    fusion = x.fusion_around if x.is_parameter else None
    return x.operands if fusion is None else [fusion.operands[x.parameter_number]]


def _is_of_device(indices: Sequence[Instruction]) -> bool:
    """True if the indices depend on the number of the device and on constants only."""
    ends = {x.opcode for x in reach(indices, sources) if not sources(x)} - {"constant"}
    return bool(ends) and ends <= _DEVICE_NUMBERS
