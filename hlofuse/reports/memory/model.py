"""The memory of a module by XLA's buffer assignment."""

from __future__ import annotations

from dataclasses import dataclass, field

from hlofuse.analysis.kernels import kernel_source
from hlofuse.format.paths import source_text
from hlofuse.ir.graph import Instruction, Module
from hlofuse.memory import Assignment, LiveArray
from hlofuse.reports.memory.changes import MemoryChange


@dataclass(frozen=True, slots=True)
class AliveArray:
    """A temporary array that is alive when the most bytes are."""

    name: str
    """The instruction that writes it; of a value that a loop carries, the loop or its parameter."""
    index: tuple[int, ...]
    """The element of its result; empty for the whole."""
    opcode: str
    shape: str
    bytes: int
    """The bytes of its place."""
    source: str | None
    """The line of the user's program, where the dump has it."""
    last_reader: str | None
    """The last instruction that reads it, None where it is only handed on."""
    last_reader_source: str | None


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """Bytes of one run, as `memory_analysis()` of XLA's executable has them."""

    name: str
    arguments: int
    results: int
    temporary: int
    aliased: int
    """Bytes of results that lie in donated arguments."""
    constants: int
    vmem: int
    """Bytes of temporary arrays in a TPU's VMEM, at least; the others are of HBM."""
    total: int
    peak: int
    """Bytes of temporary arrays alive at once, at most; `temporary` has room for them."""
    alive: tuple[AliveArray, ...] = field(repr=False)
    """The largest first."""
    available: int | None = None
    """Bytes of memory that there are; None where they are not known."""
    device: str = ""
    """The device that has them; empty where the user says it."""
    is_estimated: bool = False
    """True for a replayed module, whose instructions XLA may run in another order."""
    changes: tuple[MemoryChange, ...] = field(default=(), repr=False)
    """Changes that need less temporary memory, the largest saving first."""

    @property
    def fits(self) -> bool | None:
        """True if there is as much memory; None where it is not known."""
        return None if self.available is None else self.total <= self.available


def memory_use(module: Module, assigned: Assignment) -> MemoryUse:
    """The memory of a final module and its arrays at the peak."""

    def line(x: Instruction | None) -> str | None:
        source = kernel_source(x, module) if x is not None else None
        return source_text(source) if source is not None else None

    def alive(array: LiveArray) -> AliveArray:
        x, last = array.instruction, array.readers[-1] if array.readers else None
        name = last.name if last is not None else None
        shape = array.shape.text_without_layout
        return AliveArray(x.name, array.index, x.opcode, shape, array.bytes, line(x), name, line(last))

    return MemoryUse(
        module.name,
        assigned.arguments,
        assigned.outputs,
        assigned.temporary,
        assigned.aliased,
        assigned.constants,
        assigned.vmem,
        assigned.total,
        max(assigned.over_time),
        tuple(map(alive, assigned.peak)),
    )
