"""What every pass is: a small value whose fields are its options. Lists of passes are passes too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING

from hlofuse.ir.errors import HlofuseError
from hlofuse.ir.graph import Instruction, Module
from hlofuse.rules.settings import AS_XLA, Settings
from hlofuse.trace import Recorder

if TYPE_CHECKING:
    from hlofuse.cost.gpu.device import DeviceDescription
    from hlofuse.releases import Release


def any_change(changes: Iterable[bool]) -> bool:
    """True if any of them is one; all are made (`any` would end at the first)."""
    return sum(changes) > 0


@dataclass(frozen=True, kw_only=True)
class Pass:
    """A rewrite of a module. `str(pass)` is its text in a pipeline.

    No pass raises on a well-formed module. Where it cannot express what XLA would write, it leaves the
    instruction as it is and records that (`Recorder.skipped`).
    """

    if TYPE_CHECKING:

        @property
        def name(self) -> str:
            """XLA's name, as in its dump files; most passes have it as a class variable."""

    settings: Settings = field(default=AS_XLA, compare=False, repr=False)
    """What a what-if run changes."""

    def run(self, module: Module, recorder: Recorder) -> bool:
        """Rewrite `module`; True if anything changed."""
        raise NotImplementedError

    def run_with(self, run: Callable[[Pass], bool]) -> bool:
        """Run the single passes in it by calling `run`; True if any changed anything."""
        return run(self)

    def flattened(self) -> Iterator[Pass]:
        """This pass and all inside it."""
        yield self

    def __str__(self) -> str:
        options = []
        for f in fields(self):
            value = getattr(self, f.name)
            if f.compare and value != f.default:
                options.append(f"{f.name}={str(value).lower() if isinstance(value, bool) else value}")
        return self.name + (f"({', '.join(options)})" if options else "")


@dataclass(frozen=True, kw_only=True)
class DevicePass(Pass):
    """A pass that a list may name without a device, and that cannot run so."""

    device: DeviceDescription | None = field(default=None, compare=False, repr=False)
    release: Release = field(compare=False, repr=False)

    def required_device(self) -> DeviceDescription:
        """HlofuseError where there is none."""
        if self.device is None:
            raise HlofuseError(f"{self.name} needs a device")
        return self.device


@dataclass(frozen=True)
class _Combined(Pass):
    """Passes that run as one."""

    def run(self, module: Module, recorder: Recorder) -> bool:
        def single(step: Pass) -> bool:
            recorder.begin_pass(step.name)
            return step.run(module, recorder)

        return self.run_with(single)


@dataclass(frozen=True)
class Pipeline(_Combined):
    """Passes in order (`xla/hlo/pass/hlo_pass_pipeline.cc`); `name` as dump files write it."""

    name: str
    steps: Sequence[Pass]

    def run_with(self, run: Callable[[Pass], bool]) -> bool:
        return any_change(step.run_with(run) for step in self.steps)

    def flattened(self) -> Iterator[Pass]:
        yield self
        for step in self.steps:
            yield from step.flattened()


@dataclass(frozen=True)
class FixedPoint(_Combined):
    """A pass until it changes nothing (`xla/hlo/pass/hlo_pass_fix.h`)."""

    of: Pass
    limit: int = 25
    """XLA's. Passes that undo each other's work would never end."""
    must_end: bool = False
    """HlofuseError at the limit: XLA goes on, but a user who lists passes wants to know."""

    @property
    def name(self) -> str:
        return self.of.name

    def run_with(self, run: Callable[[Pass], bool]) -> bool:
        for iteration in range(self.limit):
            if not self.of.run_with(run):
                return iteration > 0
        if self.must_end:
            raise HlofuseError(f"{self.name} still changes the module after {self.limit} rounds")
        return True

    def flattened(self) -> Iterator[Pass]:
        yield self
        yield from self.of.flattened()


@dataclass(frozen=True)
class UnimplementedPass(Pass):
    """The place of one of XLA's passes that is not implemented: it leaves every module as it is.

    It records the instructions outside fusions that XLA's pass would work on.
    """

    name: str
    opcodes: tuple[str, ...] = field(default=(), compare=False)
    """What the pass works on; none where no such instruction reaches it by default."""
    where: Callable[[Instruction], bool] | None = field(default=None, compare=False)
    """True for those instructions of `opcodes` that it works on; None for all."""

    def run(self, module: Module, recorder: Recorder) -> bool:
        if self.opcodes:
            found = Counter(
                i.opcode
                for c in module.computations
                for i in c
                if i.opcode in self.opcodes and (self.where is None or self.where(i))
            )
            if found:
                recorder.unimplemented(found)
        return False
