"""Running all that a target does ahead of fusion, whatever the module holds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.ir.copy import copy_module
from hlofuse.ir.errors import HlofuseError
from hlofuse.ir.module import Module
from hlofuse.passes.base import FixedPoint, Pass, Pipeline
from hlofuse.pipelines.lowering import pipelines_of


@dataclass(frozen=True)
class Prepared:
    """A module as it may look ahead of the fusion passes."""

    module: Module
    skipped: tuple[str, ...] = ()
    """Passes that the module was beyond: they were left out."""


def prepare(
    module: Module,
    target: str,
    device: DeviceDescription | None = None,
    without: Iterable[str] = (),
) -> Prepared:
    """What `target` does ahead of fusion, done to a copy.

    A pass that fails is left out like those it is to be done `without`, and everything is done again.
    HlofuseError only where calls would multiply beyond reason.
    """
    skipped = list(without)
    while True:
        out = copy_module(module)
        try:
            for pipeline in pipelines_of(target, device):
                _run(pipeline, out, skipped)
        except _Failed as failed:
            skipped.append(failed.name)
        else:
            out.has_played_order = True
            return Prepared(out, tuple(skipped))


class _Failed(Exception):
    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


def _run(step: Pass, module: Module, skipped: list[str]) -> bool:
    """Run it without the passes that are skipped; _Failed names the innermost one that fails."""
    if step.name in skipped:
        return False
    if isinstance(step, Pipeline):
        changed = False
        for inner in step.steps:
            changed |= _run(inner, module, skipped)
        return changed
    if isinstance(step, FixedPoint):
        for times in range(step.limit):
            if not _run(step.of, module, skipped):
                return times > 0
        return True
    try:
        return step.run(module)
    except HlofuseError:
        raise
    except Exception as error:
        raise _Failed(step.name) from error
