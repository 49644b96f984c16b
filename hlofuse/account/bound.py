"""Lower bounds: over all choices of fusions, and over all programs with the same products and results."""

import math
import re
from collections.abc import Iterator

from hlofuse.analysis.convolution import dimension_numbers
from hlofuse.analysis.custom_calls import (
    calls_python,
    custom_call_target,
    is_library_convolution,
    is_radix_sort,
)
from hlofuse.analysis.elementwise import without_bitcasts
from hlofuse.analysis.in_place import Index, follow_tuples, in_place_pairs
from hlofuse.analysis.kernels import CONTROL_FLOW, computed_in, end_of, inside, is_small_call, iter_kernels
from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.cost.tpu import TpuDevice
from hlofuse.format.units import bytes_text, plural
from hlofuse.ir import Computation, Instruction, Module, Predicate, Record, Strings, grouped, replace, values
from hlofuse.passes.common.shapes import numbers_of, window_of
from hlofuse.releases import AROUND_FUSION
from .account import Account, Launched
from .floor import bytes_over_link, products, taps_of_one_channel
from .traffic import border_bytes

_VIEWS = values("bitcast get-tuple-element")
_Place = tuple[Instruction, Index]


class FusionFloor(Record):
    """The minimal traffic and time of a program over all choices of fusions."""

    bytes_accessed: int
    us: float | None  # Microseconds, with other instructions unchanged and launches; None without a device
    host_wait_us: float = 0.0  # The part of `us` in which a GPU waits for the host


def fusion_floor(
    account: Account, is_fused: Predicate, flops: int, device: DeviceDescription | TpuDevice | None
) -> FusionFloor:
    """The floor of a final module; `is_fused` is True for instructions that fusion can change. Fused kernels
    read values that enter a computation, or come from a library call, a copy or a collective. They write
    values that leave to those. The time is the memory time of both plus one launch, or the time of all
    arithmetic (`flops`) on all units, if longer."""
    fused = dict[Computation, list[Launched]]()
    moved, us, crossing, launches = 0, 0.0, 0, 0
    for row in account.rows:
        if is_small_call(row.instruction):
            for c, runs in account.costs.inside(row.instruction)[0].items():
                crossing += _border({i for i in iter_kernels(c) if not is_small_call(i)}) * runs * row.runs
        elif row.kind == "kernel" and row.instruction.computation is not None and is_fused(row.instruction):
            fused.setdefault(row.instruction.computation, []).append(row)
        else:
            moved += row.cost.bytes_accessed * row.runs
            us += row.busy_us * row.runs
    for rows in fused.values():
        runs = rows[0].runs
        crossing += _border({r.instruction for r in rows}) * runs
        launches += runs
    if device is None or isinstance(device, TpuDevice):  # another fusion may find its arrays in VMEM
        return FusionFloor(moved + crossing, None)
    peak = 2.0 * device.core_count * device.fpus_per_core * device.clock_rate_ghz * 1e3
    fused_us = max(crossing / device.memory_bandwidth * 1e6, flops / peak)
    started = {r.instruction.computation: r.runs for r in account.rows}
    waits = sum(account.host_wait_us(c, with_one_launch=True) * n for c, n in started.items() if c)
    us += fused_us + launches * device.launch_overhead_us + waits
    return FusionFloor(moved + crossing, us, waits)


def _border(kernels: set[Instruction]) -> int:
    """Bytes that a computation's kernels read from and write for others, without updates in place."""
    read = dict[_Place, int]()
    written = 0
    borders = {kernel: border_bytes(kernel) for kernel in kernels}
    updated = dict[_Place, tuple[_Place, int]]()
    for kernel, (_, writes) in borders.items():
        for pair in in_place_pairs(kernel, AROUND_FUSION):
            new = writes.get((*pair.output_index, 0)[0]) or sum(writes.values())
            updated[kernel, pair.output_index] = _place(kernel.operands[pair.operand_number]), new
    for kernel, (reads, writes) in borders.items():
        for operand, size in reads.items():
            place = _place(operand)
            while place in updated:
                place, new = updated[place]
                size -= new
            if place[0] not in kernels and not place[0].is_constant:
                read[place] = max(read.get(place, 0), size)
        leaving = _leaving(kernel, kernels)
        written += sum(size for k, size in writes.items() if leaving is None or k in leaving)
    return sum(read.values()) + written


def _place(value: Instruction) -> _Place:
    return follow_tuples(without_bitcasts(value), ())


def _leaving(kernel: Instruction, kernels: set[Instruction]) -> set[int] | None:
    """The indices of the results with other readers than these kernels; None for all."""
    if kernel.is_root:
        return None
    found = set[int]()
    for user in kernel.users:
        views = [user]
        index = user.tuple_index if user.is_get_tuple_element else 0
        while views:
            view = views.pop()
            if view.opcode in _VIEWS:
                if view.is_root:
                    found.add(index)
                views += view.users
            elif view not in kernels:
                found.add(index)
    return found


WORK = ("matmuls", "convolutions", "sorts", "custom kernels", "library calls")
"""Work that fusion cannot change."""


class ProgramFloor(Record):
    """The minimum of a program that keeps its products and library calls, however the rest is written."""

    moved_bytes: int  # Inputs as far as kernels read them, and results, each once
    moved_us: float | None = None  # The time of that; None without a device
    us: float | None = None  # The time of what `keeps` names, where that is longer; None for none
    keeps: Strings = ()  # Those of `WORK`, then `loops` where they run in one

    def below(self, bytes_accessed: int, us: float | None) -> "ProgramFloor | None":
        """The part that holds for another form of the program that moves so much and takes so long."""
        if us is None or self.moved_us is None:
            return self if self.moved_bytes <= bytes_accessed else None
        if max(self.us or 0.0, self.moved_us) <= us and self.moved_bytes <= bytes_accessed:
            return self
        return replace(self, us=None, keeps=()).below(bytes_accessed, us) if self.keeps else None


def program_floor(
    account: Account, is_fused: Predicate, device: DeviceDescription | TpuDevice | None
) -> ProgramFloor:
    """The floor of a final module: copies, collectives and launches do not count, as changes hide them."""
    moved = moved_once(account)
    if device is None:
        return ProgramFloor(moved)
    us, keeps, loops = 0.0, dict[str, None](), False
    for row in account.rows:
        kind = "" if row.kind == "kernel" and is_fused(row.instruction) else kind_of_work(row)
        if kind and row.runs and not row.is_open:
            us += max((row.us or 0.0) - row.launch_us, 0.0) * row.runs
            keeps[kind] = None
            loops |= row.runs > 1
    moved_us = moved / device.memory_bandwidth * 1e6
    if us <= moved_us:
        return ProgramFloor(moved, moved_us)
    names = [k for k in WORK if k in keeps]
    return ProgramFloor(moved, moved_us, us, (*names, *(["loops"] if loops else [])))


def kind_of_work(row: Launched) -> str:
    """The one of `WORK` that a kernel or library call does; empty for copies, collectives and host work."""
    x = row.instruction
    if row.kind not in ("kernel", "library"):
        return ""
    if x.opcode == "convolution" or is_library_convolution(x):
        return "convolutions"
    if products(x):
        return "matmuls"
    if is_radix_sort(x) or end_of(x).opcode == "sort":
        return "sorts"
    return "custom kernels" if row.kind == "kernel" else "library calls"


_OPEN = {
    "convolutions": "library convolution",
    "sorts": "sort",
    "custom kernels": "custom kernel",
    "library calls": "library call",
}


def open_end(row: Launched) -> str:
    """The reason why a kernel may take far longer than its lower bound; empty where nothing suggests it."""
    x = row.instruction
    if not row.is_floor:
        return ""
    is_own = x.is_fusion and x.fusion_kind != "kCustom"
    if size := bytes_over_link(x):
        return f"{bytes_text(size)} to or from host memory"
    work, counted = kind_of_work(row), row.cost.bytes_accessed
    if work == "custom kernels" and not is_own and counted and x.shape.is_tiled:
        return f"XLA:TPU counts {bytes_text(counted)}, but no time"
    if blocks := re.findall(r"\bgrid_[xyz] = (\d+)", x.raw("backend_config") or ""):
        return f"custom kernel of {plural(math.prod(map(int, blocks)), 'block')}"
    if calls_python(x):
        given = [o for o in x.operands if o.opcode not in ("constant", "parameter")]
        chained = bool(given) and all(map(calls_python, given))
        often = "Python on the host" + ": time one call" * (row.runs > 1)
        return often + ", given what Python returned: call it once for both" * chained
    scatters = [i for i in inside(x) if i.opcode == "scatter"]
    if (each := max(map(_updates_of_a_place, scatters), default=0)) >= _MANY:
        wider = "add in 32 bits, or " if scatters[0].operand.element_type.endswith("16") else ""
        cure = f"{wider}multiply by one_hot if places are few"
        return f"{each:,} updates of each place wait for one another: {cure}"
    if any(map(_is_strided, scatters)):
        return "updates far apart in memory: put the indexed dimension first, as out_axes=1 of vmap"
    if any(i.raw("unique_indices") != "true" for i in scatters):
        return "atomic updates of one address wait"
    if work == "convolutions" and _copies_windows(x):
        return "library convolution that only copies windows: gather or slice them"
    groups = end_of(x).raw("feature_group_count") or "1"
    if work == "convolutions" and groups != "1":
        one = "one after another (jax.lax.map)" if len(groups) == 1 else "one of all"
        if all(w.size == 1 for w in window_of(end_of(x))):
            one = "jnp.einsum over groups"
        return f"library convolution in {groups} groups, may take longer than {one}"
    if taps := taps_of_one_channel(x):
        return f"convolution of one channel, {taps:,} taps: fftconvolve may take fewer operations"
    if work == "sorts" and not is_radix_sort(x):
        return f"XLA's own sort{_reason_against_cub(end_of(x))}"
    if custom_call_target(x) in _ONE_BY_ONE and (count := math.prod(x.operand.sizes[:-2])) > 1:
        return f"{count:,} matrices one after another: small ones run at once if jnp writes them out"
    return "" if is_own else _OPEN.get(work, "")


_MANY = 1_000  # updates of one place
_LONG = 131_072  # elements of a row that radix sorts take sooner than XLA's own on all devices
_ONE_BY_ONE = ("cusolver_orgqr_ffi", "cusolver_gesvd_ffi")
"""Targets that loop over matrices on the host (`jaxlib/gpu/solver_kernels_ffi.cc`)."""


def _reason_against_cub(sort: Instruction) -> str:
    """The cure for a long row that is sorted with its indices by signed keys of 64 bits."""
    key = sort.operand
    is_indexed = {o.opcode for o in sort.operands[1:]} == {"iota"}
    is_long = key.element_type == "s64" and key.sizes[0] == key.element_count >= _LONG
    return ": CUB takes s32 and u64 keys with indices, not s64" if is_indexed and is_long else ""


def _updates_of_a_place(x: Instruction) -> int:
    """Updates of each place of a scatter that adds, on average; 0 where they do not wait."""
    if x.raw("indices_are_sorted") == "true" or x.to_apply.root.through("convert").opcode != "add":
        return 0  # a thread sums equal places that follow each other; no product is another reduction
    table, indices = x.operand.shape, x.operands[x.operand_count // 2].shape
    indexed = numbers_of(x, "scatter_dims_to_operand_dims")
    places = math.prod(table.dimensions[d] for d in indexed)
    return indices.element_count // max(places * len(indexed), 1)


def _copies_windows(x: Instruction) -> bool:
    """True for one 1 in each filter, where two iotas are equal, as in `conv_general_dilated_patches`."""
    filters, names = without_bitcasts(x.second), dimension_numbers(x)
    test = end_of(filters).through("bitcast", "broadcast", "convert", "copy", "reshape", "transpose")
    if names is None or test.raw("direction") != "EQ":
        return False
    is_eye = all(o.through("convert").opcode == "iota" for o in test.operands)
    ones = filters.element_count // max((1, *test.sizes))
    return is_eye and ones == x.second.sizes[names.rhs.index("o")]


def _is_strided(x: Instruction) -> bool:
    """True if the windows of a scatter as `ScatterSimplifier` writes it are elements apart in memory."""
    table, sizes = x.operand.shape, x.operands[-1].sizes[1:]
    is_simple = numbers_of(x, "update_window_dims") == (*range(1, table.rank + 1),)
    minor = {*table.minor_to_major[:1]} & {*numbers_of(x, "scatter_dims_to_operand_dims")}
    return is_simple and max(sizes, default=1) > 1 and any(sizes[d] == 1 for d in minor)


def moved_once(account: Account) -> int:
    """Bytes of the inputs that kernels read, and of the results; each once. Different slices of an input are
    different parts of it. A result that holds an input, changed in place or not, does not count."""
    entry, read, passed = account.module.entry, 0, set[Index]()
    flow = _Flow(account.module)
    for parameter in entry.parameters:
        for index, leaf in parameter.shape.leaves():
            whole = leaf.buffer_size if leaf.is_array else 0
            parts = dict[tuple[str | None, ...], int]()
            for x, operand, is_changed in flow.readers(parameter, index, passed):
                if not is_changed and sum(parts.values()) < whole:
                    part = tuple(i.raw("slice") for i in inside(x) if i.is_slice)
                    parts[part] = max(parts.get(part, 0), _bytes_read(account, x, operand))
            read += min(sum(parts.values()), whole)
    values = dict[object, int]()
    for index, leaf in entry.root.shape.leaves():
        if index not in passed and leaf.is_array:
            values[follow_tuples(entry.root, index)] = leaf.buffer_size
    return read + sum(values.values())


def _bytes_read(account: Account, kernel: Instruction, operand: Instruction) -> int:
    size = border_bytes(kernel)[0].get(operand, 0)
    if kernel.is_fusion and any(i.opcode == "dynamic-slice" for i in computed_in(kernel)):
        size *= max(account.runs(kernel.computation), 1) if kernel.computation is not None else 1
    return size


_SAME = values("bitcast copy copy-start copy-done opt-barrier reshape")


class _Flow:
    """The places that a value reaches unchanged, or changed in place."""

    def __init__(self, module: Module) -> None:
        self.entry = module.entry
        self._elements = dict[Instruction, dict[int, list[Instruction]]]()

    def readers(
        self, source: Instruction, at: Index, results: set[Index]
    ) -> Iterator[tuple[Instruction, Instruction, bool]]:
        """Instructions that compute with the value, their operand, and whether it was changed before. Indices
        of the program's results that hold the value are added to `results`."""
        stack, seen = [(source, at, False)], set[tuple[Instruction, Index, bool]]()
        while stack:
            place = stack.pop()
            if place in seen:
                continue
            seen.add(place)
            x, index, is_changed = place
            if x is self.entry.root:
                results.add(index)
            elif x.is_root and x.computation is not None:
                stack += [(to, index, is_changed) for to in _after(x.computation)]
            for user in self._users(x, index):
                into = list(_into(user, x, index))
                if not into and user.opcode not in CONTROL_FLOW:
                    yield user, x, is_changed
                    pairs = in_place_pairs(user, AROUND_FUSION) if not index else []
                    into = [(user, p.output_index) for p in pairs if user.operands[p.operand_number] is x]
                    stack += [(*to, True) for to in into]
                else:
                    stack += [(*to, is_changed) for to in into]

    def _users(self, x: Instruction, index: Index) -> list[Instruction]:
        """The users of the element; of a long tuple only those that take it out or take all."""
        if not index:
            return list(x.users)
        if x not in self._elements:
            keys = (u.tuple_index if u.is_get_tuple_element else -1 for u in x.users)
            self._elements[x] = grouped(zip(keys, x.users, strict=True))
        groups = self._elements[x]
        return groups.get(index[0], []) + groups.get(-1, [])


def _into(user: Instruction, x: Instruction, index: Index) -> Iterator[tuple[Instruction, Index]]:
    """The places of the same value after `user`, which does not compute with it."""
    opcode = user.opcode
    if opcode == "get-tuple-element":
        yield user, index[1:]
    elif opcode == "tuple":
        yield from ((user, (k, *index)) for k, o in enumerate(user.operands) if o is x)
    elif opcode == "copy-start":
        yield user, (0,)
    elif opcode == "copy-done":
        yield user, ()
    elif opcode in _SAME:
        yield user, index
    elif opcode == "while":
        yield from ((c.parameter, index) for c in user.called_computations)
    elif opcode == "conditional":
        branches = zip(user.operands[1:], user.called, strict=True)
        yield from ((c.parameter, index) for o, (_, c) in branches if o is x)
    elif opcode == "call":
        passed = zip(user.operands, user.to_apply.parameters, strict=True)
        yield from ((p, index) for o, p in passed if o is x)


def _after(computation: Computation) -> Iterator[Instruction]:
    """The places of a computation's result: its callers, and the next iteration of a loop."""
    for caller in computation.callers:
        if caller.opcode in CONTROL_FLOW and ("condition", computation) not in caller.called:
            yield caller
            if caller.is_while:
                yield from (c.parameter for c in caller.called_computations)
