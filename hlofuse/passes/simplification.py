"""What every simplification is: a small value with XLA's name that rewrites a module."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from hlofuse.ir.module import Module
from hlofuse.passes.base import Pass
from hlofuse.trace import Recorder


class Simplification(Protocol):
    """A rewrite that fusion depends on. Unlike a fusion pass it records nothing."""

    @property
    def name(self) -> str:
        """XLA's name, as in its dump files."""

    def run(self, module: Module) -> bool:
        """Rewrite `module`; True if anything changed."""


@dataclass(frozen=True)
class NotRepeated:
    """The place of a pass of XLA's that is not repeated: it leaves every module as it is."""

    name: str

    def run(self, module: Module) -> bool:
        return False


@dataclass(frozen=True)
class Unrecorded:
    """A pass of `hlofuse.passes` that also runs ahead of fusion."""

    of: Pass

    @property
    def name(self) -> str:
        return self.of.name

    def run(self, module: Module) -> bool:
        return self.of.run(module, Recorder())


@dataclass(frozen=True)
class Pipeline:
    """Simplifications in order (`xla/hlo/pass/hlo_pass_pipeline.cc`); `name` as dump files write it."""

    name: str
    steps: Sequence[Simplification]

    def run(self, module: Module) -> bool:
        changed = False
        for step in self.steps:
            changed |= step.run(module)
        return changed


@dataclass(frozen=True)
class FixedPoint:
    """A simplification until it changes nothing, `limit` times at most (`xla/hlo/pass/hlo_pass_fix.h`)."""

    of: Simplification
    limit: int = 25

    @property
    def name(self) -> str:
        return self.of.name

    def run(self, module: Module) -> bool:
        for times in range(self.limit):
            if not self.of.run(module):
                return times > 0
        return True


def pipelines_in(step: Simplification) -> Iterator[Pipeline]:
    """`step`, if it is a pipeline, and all pipelines inside it."""
    if isinstance(step, FixedPoint):
        yield from pipelines_in(step.of)
    elif isinstance(step, Pipeline):
        yield step
        for inner in step.steps:
            yield from pipelines_in(inner)


class NotRepeatedHere(Exception):
    """Something in a module that XLA's pass rewrites and ours does not: the pass is left out there."""
