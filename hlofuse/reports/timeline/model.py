"""A timeline as data. Reports are made from this and from nothing else."""

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from hlofuse.analysis.loops import Loop


@dataclass(frozen=True, slots=True)
class PassDump:
    """One dump of a module and where in the compilation it was written."""

    path: Path
    number: int | None = None
    """Counts a module's dumps; None for `before_optimizations` and others."""
    pipeline: str = ""
    after: str = ""
    """The pass that had just run, `pipeline-start`, or `before_optimizations` and others."""
    text: str | None = field(default=None, repr=False)
    """The module where hlofuse repeated the pass; `path` is then what it began with."""

    @property
    def name(self) -> str:
        """`0058 fusion.priority-fusion`, or `before_optimizations`."""
        where = f"{self.pipeline}.{self.after}" if self.pipeline else self.after
        return where if self.number is None else f"{self.number:04d} {where}"


@dataclass(frozen=True, slots=True)
class Replacement:
    """Groups of instructions that were replaced, removed or added alike."""

    kind: str
    """`replaced`, `removed` or `added`."""
    removed: tuple[str, ...]
    """Opcodes of one group, the telling first."""
    added: tuple[str, ...]
    count: int
    """How many groups."""
    example: str
    """The first instruction of the first group."""


@dataclass(frozen=True, slots=True)
class Size:
    """A module in figures."""

    instructions: int
    kernels: int
    fusions: int
    loops: tuple[Loop, ...] = ()
    """The outermost that launch kernels."""


@dataclass(frozen=True, slots=True)
class Step:
    """From one dump to the next that could be read."""

    dump: PassDump
    since: PassDump | None
    """The dump it is compared with; None for the first."""
    problem: str | None = None
    """Why the dump could not be read; then nothing else is known of it."""
    before: Size | None = None
    after: Size | None = None
    opcodes: tuple[tuple[str, int, int], ...] = field(default=(), repr=False)
    """Opcodes whose number changed: before and after, the largest change first."""
    rewrites: tuple[Replacement, ...] = field(default=(), repr=False)
    fusions: tuple[tuple[str, int], ...] = ()
    """What became of fusions: `new`, `merged`…, and how many."""
    changes: tuple[tuple[str, int], ...] = ()
    """What else changed on instructions that stayed: `layout`, `type`, `operand`…, and on how many."""
    header: tuple[str, ...] = ()
    """Attributes of the module that changed."""
    weight: int = 0
    """Instructions touched: what steps are ranked by."""
    changed: bool = False
    seconds: float | None = None
    """From the time the dump ahead was written to the time this was; None where file times do not tell."""


@dataclass(frozen=True)
class PassTimeline:
    """One module's way through a compilation."""

    label: str
    steps: tuple[Step, ...] = field(repr=False)
    """One for each dump, in order."""
    notes: tuple[str, ...] = ()
    """What is missing, damaged or doubtful."""
    times: str = ""
    """Why there are no times; empty where there are."""

    @cached_property
    def changed(self) -> tuple[Step, ...]:
        return tuple(s for s in self.steps if s.changed)

    @cached_property
    def largest(self) -> tuple[Step, ...]:
        """The steps that changed something, the largest change first."""
        return tuple(sorted(self.changed, key=lambda s: -s.weight))

    @cached_property
    def first(self) -> Size | None:
        return next((s.after for s in self.steps if s.after is not None), None)

    @cached_property
    def last(self) -> Size | None:
        return next((s.after for s in reversed(self.steps) if s.after is not None), None)

    @cached_property
    def seconds(self) -> float | None:
        """All the times together; None where there are none."""
        seconds = [s.seconds for s in self.steps if s.seconds is not None]
        return sum(seconds) if seconds else None
