"""The memory of a module by XLA's buffer assignment, and the reasons why arrays have places of their own."""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from hlofuse.analysis.kernels import kernel_source, source_bearer
from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.format import fields
from hlofuse.format.paths import source_text
from hlofuse.ir import Instruction, Json, Module, Record, values
from hlofuse.memory import Assignment, LiveArray
from .changes import LARGE, MemoryChange, Untried, argument_name, ideas, loops_of, opcodes_in

_ORDER = values("transpose copy reshape bitcast")
_GATHERED = values("all-gather all-gather-start all-gather-done bitcast get-tuple-element")


class AliveArray(Record):
    """A temporary array that is alive when the most bytes are."""

    name: str  # The instruction that writes it; of a value that a loop carries, the loop or its parameter
    index: tuple[int, ...]  # The element of its result; empty for the whole
    opcode: str
    shape: str
    bytes: int  # The bytes of its place
    source: str | None  # The line of the user's program, where the dump has it
    last_reader: str | None  # The last instruction that reads it, None where it is only handed on
    last_reader_source: str | None
    reason: str = ""  # The reason for a place of its own; empty where the module shows none


class MemoryUse(Record):
    """Bytes of one run, as `memory_analysis()` of XLA's executable has them."""

    name: str
    arguments: int
    results: int
    temporary: int
    aliased: int  # Bytes of results that lie in donated arguments
    constants: int
    vmem: int  # Bytes of temporary arrays in a TPU's VMEM, at least; the others are of HBM
    total: int
    host: int  # Bytes in the memory of the host, none of them part of the others
    peak: int  # Bytes of temporary arrays alive at once, at most; `temporary` has room for them
    alive: tuple[AliveArray, ...]  # The largest first
    by_argument: Mapping[str, int]  # Bytes of each name, the most first
    available: int | None = None  # Bytes of memory that there are; None where they are not known
    device: str = ""  # The device that has them; empty where the user says it
    devices: int = 1  # Devices that the program is yet to be divided over; `available` are of one
    is_estimated: bool = False  # True for a replayed module, whose instructions XLA may run in another order
    recorded_temporary: int | None = None  # `temporary` by the dump of XLA's buffer assignment, if any
    recorded_total: int | None = None  # `total` by XLA's memory usage report; None without one
    rematerialized: tuple[int, float | None] = (0, None)
    """Kernels that XLA computes again to save memory, and the microseconds of all launches, or None."""
    changes: tuple[MemoryChange, ...] = ()  # Fitting ones first, then the largest saving first
    untried: Sequence[Untried] = ()  # Changes of the program that no replay can show, of most bytes first

    @property
    def fits(self) -> bool | None:
        """True if there is as much memory; None where it is not known for one device."""
        return None if self.available is None or self.devices > 1 else self.total <= self.available


def memory_use(
    module: Module,
    assigned: Assignment,
    gpu: DeviceDescription | None = None,
) -> MemoryUse:
    """The memory of a final module and its arrays at the peak."""

    def line(x: Instruction | None) -> str | None:
        found = [] if x is None else [module.called_from(source_bearer(x, module)), kernel_source(x, module)]
        text = next(map(source_text, filter(None, found)), None)
        if text is None and x is not None and x.opcode in _GATHERED:  # by the partitioner, for what reads it
            return next(filter(None, map(line, x.users)), None)
        return text

    def at(x: Instruction) -> str:
        return f" at {found}" if (found := line(x)) else ""

    def alive(array: LiveArray) -> AliveArray:
        x, last = array.instruction, array.readers[-1] if array.readers else None
        name = last.name if last is not None else None
        shape = array.shape.text_without_layout
        why = reason(array, assigned, at) if array.bytes >= LARGE * largest else ""
        return AliveArray(x.name, array.index, x.opcode, shape, array.bytes, line(x), name, line(last), why)

    largest = max((a.bytes for a in assigned.peak), default=0)
    return MemoryUse(
        module.name,
        assigned.arguments,
        assigned.outputs,
        assigned.temporary,
        assigned.aliased,
        assigned.constants,
        assigned.vmem,
        assigned.total,
        assigned.host,
        max(assigned.over_time),
        tuple(map(alive, assigned.peak)),
        _by_argument(module, LARGE * assigned.total),
        untried=ideas(module, assigned, line, gpu),
        devices=module.devices,
    )


def _by_argument(module: Module, least: float) -> dict[str, int]:
    """The bytes of arguments by name, `least` and more, the most first: `state.mu` for all its elements."""
    alone, sizes = Counter[str](), Counter[str]()
    for p in module.entry.parameters:
        alone[argument_name(p).partition("['")[0]] += p.byte_size
    for name, size in alone.items():
        sizes[name if size >= least else re.sub(r"(\[\d+\])+$", "", name)] += size
    return {name: size for name, size in sizes.most_common() if size >= least}


def reason(
    array: LiveArray,
    assigned: Assignment,
    at: Callable[[Instruction], str],
) -> str:
    """A clause about the array; empty where the module shows no reason. `at` is the line of a reader."""
    x = source = array.instruction
    while source.operand_count == 1 and opcodes_in(source) <= _ORDER:
        source = source.operand
    if source.is_parameter and source.parent.is_entry:
        is_same = source.shape == x.shape and "transpose" not in opcodes_in(x)
        return f"a copy of {argument_name(source)}{'' if is_same else ' in another order'}"
    start = assigned.live.ranges[array.value][0]
    found = []
    for value, size in assigned.donated:
        readers = [r for r in assigned.readers(value) if r is not x]
        same = value.shape.dimensions == array.shape.dimensions and size >= array.bytes
        if same and readers and assigned.live.moment(readers[-1]) > start:
            found.append((size, value.id, value, readers[-1]))
    if found:
        _, _, argument, reader = min(found)
        name = argument_name(argument.instruction)
        return f"not in donated {name}: still read by {reader.name}{at(reader)}"
    loops = loops_of(array, assigned)
    return f"each iteration keeps a part for the backward loop {loops[1].name}" if loops is not None else ""


_FIGURES = "arguments results temporary aliased constants vmem total host peak available device? devices fits"
_ALIVE = "name opcode shape bytes source last_reader last_reader_source reason? index"
_CHANGE = (
    "text flag? recipe? sources temporary_bytes=trial.totals.peak_temporary_bytes"
    " saved_bytes=trial.temporary_saved memory_bytes=trial.totals.memory_bytes"
    " memory_saved_bytes=trial.memory_saved time_us=trial.totals.us~ time_saved_us=trial.us_saved~"
)


def memory_json(m: MemoryUse) -> Json:
    return {
        "schema": "hlofuse.memory/3",
        "module": m.name,
        "memory": {
            **fields(m, f"{_FIGURES} recorded_temporary recorded_total estimated=is_estimated by_argument"),
            "rematerialized": {"kernels": m.rematerialized[0], "time_us": m.rematerialized[1]},
        },
        "alive": [fields(a, _ALIVE) for a in m.alive],
        "changes": [fields(c, _CHANGE) for c in m.changes],
        "not_simulated": [fields(u, "text sources bytes") for u in m.untried],
    }
