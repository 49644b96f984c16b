"""The producer that saves most is fused first (`xla/backends/gpu/transforms/priority_fusion.cc`)."""

from collections.abc import Sequence
from dataclasses import field
from typing import ClassVar

from hlofuse.cost.combined import CombinedModel
from hlofuse.cost.gpu.summary_table import SharedTables
from hlofuse.ir.graph import Module
from hlofuse.passes.base import DevicePass
from hlofuse.rules.gpu_fusible import fusible_computations
from hlofuse.trace import Recorder
from .driver import Driver
from .legality import Legality
from .observers import Observer, TieBreaker


class PriorityFusion(DevicePass, kw_only=True):
    """`priority-fusion`, for one device."""

    name: ClassVar[str] = "priority-fusion"
    tie_breaker: TieBreaker | None = field(default=None, compare=False, repr=False)
    """Settles ties in another way than by unique ids."""
    observers: Sequence[Observer] = field(default=(), compare=False, repr=False)
    tables: SharedTables | None = field(default=None, compare=False, repr=False)
    triton_multi_output: bool = False
    """XLA's `xla_gpu_unsupported_enable_triton_multi_output_fusion`: Triton fusions with several results."""

    def run(self, module: Module, recorder: Recorder) -> bool:
        model = CombinedModel(self.required_device(), self.release, tables=self.tables)
        observers = self.observers if self.tie_breaker is None else (*self.observers, self.tie_breaker)
        for observer in observers:
            observer.begin(model)
        legality = Legality(module, model, self.settings)
        computations = fusible_computations(module, self.release)
        if self.release.priority_fusion_renames:
            # `add.3` becomes `add.3.0`, so that its copies have names of their own.
            for x in (x for computation in computations for x in computation):
                x.name = module.instruction_names.unique(f"{x.name}.0")
        changed = False
        for computation in computations:
            driver = Driver(
                computation,
                model,
                legality,
                recorder,
                self.tie_breaker,
                observers,
                extra_outputs=self.triton_multi_output,
            )
            changed |= driver.run()
        return changed
