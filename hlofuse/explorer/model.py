"""Data of the page: `collect` creates it and `page` encodes it. A *box* is one node of the module at one
step: a single operation, or a fusion with its operations. The boxes of a replay are numbered: box n <
len(instructions) starts as instruction n, the replay adds others. `Op`s are steps forward and back."""

from enum import IntEnum
from pathlib import Path
from typing import TypeAlias

from msgspec import field

from hlofuse.account import KernelTime, Launched, Totals
from hlofuse.diff import ModuleDiff
from hlofuse.ir import HlofuseError, Instruction, Json, Module, Progress, Record, Strings
from hlofuse.reports.common.model import Place, Refusal
from hlofuse.reports.explain.model import FusedStep
from hlofuse.reports.timeline import DumpSequence, PassTimeline, dump_sequences, timeline
from hlofuse.reports.timeline.model import StepDetails, step_details
from hlofuse.trace import Event


class Passes(Record):
    """Every pass of a compilation, and what it changed line by line."""

    timeline: PassTimeline
    closeups: dict[int, StepDetails] = field(default_factory=dict)  # By the step's number
    start: int = -1  # The step whose dump was replayed; -1 if it is none of them


def sequence_of(module: Module) -> DumpSequence | None:
    """The dumps of a module that was read from a directory; None where it is the only one."""
    path = Path(module.filename or "")
    try:
        found = dump_sequences(path.parent)
    except HlofuseError:
        return None
    own = next((r for r in found if any(f.path.name == path.name for f in r.dumps)), None)
    return own if own is not None and len(own.dumps) > 1 else None


def passes_of(
    sequence: DumpSequence,
    module: Module | None = None,
    progress: Progress | None = None,
) -> Passes:
    """Compare every dump with the one ahead; `module` is the one that was replayed."""
    closeups = {}

    def watch(step: int, found: ModuleDiff) -> None:
        if not found.same:
            closeups[step] = step_details(found)

    pass_timeline = timeline(sequence, progress, watch)
    name = Path(module.filename or "").name if module is not None else ""
    start = next((n for n, s in enumerate(pass_timeline.steps) if s.dump.path.name == name), -1)
    return Passes(pass_timeline, closeups, start)


class Change(IntEnum):
    """A change of a box; each takes the box and a second number."""

    MOVE = 0  # The content of the box moves into the second, and the box is removed
    COPY = 1  # The second box gets a copy of everything in the box, which lives on
    REMOVE = 2  # The box is removed; second number unused
    REPLACE = 3  # The box is replaced by the second, also for its readers
    RENAME = 4  # The box is a fusion of another name from here on: the second is an index into `Run.names`
    APPEAR = 5  # The box comes to be, empty; the second is its name's index into `Run.names`


Op: TypeAlias = tuple[Change, int, int]
Line: TypeAlias = tuple[int, int]  # A line of the user's program: index into `Page.files`, and its number
NOWHERE: Line = (-1, 0)
Value: TypeAlias = tuple[int, str, str, int]
"""A value read by a kernel: index into `Run.kernels` (-1 for a parameter), name, shape, bytes."""
KernelPair: TypeAlias = tuple[int, int, bool]
"""Kernels of two runs that compute the same results (-1 for none); True if both have the same operations."""
RulePage: TypeAlias = tuple[str, str, tuple[tuple[str, str], ...]]
"""A catalogue entry: code, title, headings with their text."""


class Operation(Record):
    """An instruction of the input, outside of fusions."""

    instruction: Instruction
    computation: int  # Index into `Run.computations`
    operands: tuple[int, ...]
    calls: tuple[int, ...]  # Computations it runs: of a while, a conditional, a call
    launched: bool  # It is a kernel when it stands alone
    source: str  # `file:line function`; empty where the dump does not say
    row: Launched | None = None  # Its figures as a kernel of its own
    line: Line = NOWHERE
    path: str = ""  # The functions and scopes around it, `/` between them


class Decision(Record):
    """One event of the trace, names resolved to boxes; -1 stands for none."""

    event: Event
    pass_index: int
    producer: int
    consumer: int
    names: Strings  # Producer, consumer and result as in the trace, for what is no box (inside of a fusion)
    others: tuple[int, ...]  # priority: the consumers; rewrite: boxes that went
    fused: FusedStep | None
    ops: tuple[Op, ...]
    kernels: int  # Kernels of the module after it


class Kernel(Record):
    row: Launched
    place: Place  # Its final name, its name at the end of fusion, its line
    box: int  # -1 for what came with a rewrite that names no predecessor
    line: Line
    reads: tuple[Value, ...]
    is_result: bool  # The program returns what it writes
    us_floor: float | None  # The lower bound, its launch included; None without a device
    time: KernelTime | None  # The estimate in parts; None where XLA has none
    bound_by: str
    text: str  # HLO of the final module: the instruction, then the computations that it calls
    measured_us: float | None = None  # Microseconds of one run, from a profile


class RefusedEdge(Record):
    """A pair of kernels that a rule forbids to fuse."""

    decision: int  # The last one about the pair, index into `Run.decisions`; -1 if not found
    refusal: Refusal


class Region(Record):
    """A part of a computation small enough to be drawn at once; whole kernels only."""

    computation: int
    kernels: tuple[tuple[int, tuple[int, ...]], ...]
    """Boxes at the last step, and the operations that each contains then."""


class Run(Record):
    """One replay: a target, a device, settings."""

    label: str  # The label that distinguishes it from the page's other run
    headline: str  # The first line of a report: stage, backend, device, release, order
    before: Totals
    after: Totals
    notes: Strings
    verdict: Strings  # The answer, line by line: the totals, the bounds, and what to change
    slowest: tuple[Strings, ...]
    """Cells of the verdict's table of kernels, after the final name of the first kernel of each row."""
    functions: Json
    memory: Json  # As in the JSON of `hlofuse memory`
    memory_plot: str  # The SVG of `hlofuse plot --kind memory`
    computations: Strings
    operations: tuple[Operation, ...]
    passes: Strings
    decisions: tuple[Decision, ...]
    names: Strings  # Names of boxes: those of the operations first, then new names in order of appearance
    boxes: int
    ends_as: tuple[int, ...]  # For each box, one that contains its operations at the last step
    regions: tuple[Region, ...]
    final_names: tuple[tuple[str, str], ...]
    """Pairs of names of kernels renamed after fusion: at the end of fusion, and final."""
    kernels: tuple[Kernel, ...]
    refused_edges: tuple[RefusedEdge, ...]
    kernels_before: int


class SourceFile(Record):
    name: str
    text: str = ""  # Empty where it is not embedded
    note: str = ""


class Page(Record):
    title: str
    runs: tuple[Run, ...]
    rules: tuple[RulePage, ...] = ()
    passes: Passes | None = None  # The whole compilation, where its dumps are at hand
    files: tuple[SourceFile, ...] = ()
    pairs: tuple[KernelPair, ...] = ()
    """Kernels of the first run and of the second: those that compute the same, then those of one run only."""
