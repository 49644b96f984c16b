"""Where in a compilation each target's fusion passes stand, told by dump file names: data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hlofuse.pipelines.targets import TARGETS


@dataclass(frozen=True, slots=True)
class FusionStage:
    """The files around the fusion passes of one target."""

    pipeline: str
    """The pipeline the passes belong to."""
    passes: tuple[str, ...]
    """The passes whose results are compared, in order. The first one's input is the pass's input."""
    next_pipeline: str | None
    """The pipeline that starts right after them; it ends the stage where no pass changed anything."""
    flags: str
    """XLA_FLAGS that write everything needed."""
    more_pipelines: tuple[tuple[str, str], ...] = ()
    """Pipelines right behind the first whose passes are compared, too, each with its first pass."""
    also_before: tuple[str, ...] = ()
    """Passes that a replay may as well start before: what comes ahead of them finds nothing left to do."""
    next_follows: bool = True
    """No other pass runs between the last of these and the next pipeline."""

    @property
    def pipelines(self) -> tuple[str, ...]:
        """All pipelines whose passes are compared."""
        return (self.pipeline, *(name for name, _ in self.more_pipelines))

    @property
    def first_passes(self) -> tuple[str, ...]:
        """The first passes of the pipelines behind the first."""
        return tuple(name for _, name in self.more_pipelines)

    def name_of_run(self, passes: Sequence[str], pipeline: str, name: str, number: int) -> str:
        """How the `number`th run of a pass within a pipeline is called among all: `cse-3`.

        `passes` are those of all pipelines in order; a pass that runs once is called by its name.
        """
        first = dict(self.more_pipelines).get(pipeline, "")
        before = list(passes).index(first) if first in passes else 0
        return f"{name}-{passes[:before].count(name) + number}" if passes.count(name) > 1 else name


def _passes(target: str, elsewhere: Sequence[str] = ()) -> tuple[str, ...]:
    """The names of a target's passes, each once and without options; those of other pipelines left out."""
    known = TARGETS[target]
    runs = [*known.passes, *(p for passes in known.options.values() for p in passes)]
    names = dict.fromkeys(run.partition("(")[0] for run in runs)
    return tuple(name for name in names if name not in elsewhere)


FUSION_STAGES: dict[str, FusionStage] = {
    "cpu": FusionStage(
        "HLO_passes_after_layout_assignment",
        _passes("cpu", elsewhere=("tuple-simplifier",)),
        "simplification_after_layout_assignment",
        "--xla_dump_to=DIR --xla_dump_hlo_pass_re=.*",
        next_follows=False,
    ),
    "gpu": FusionStage(
        "fusion",
        _passes("gpu"),
        "post-fusion_optimization",
        "--xla_dump_to=DIR --xla_dump_hlo_pass_re=.* --xla_dump_hlo_as_text --xla_dump_hlo_as_proto",
        also_before=("sort-iota-fusion", "priority-fusion"),
    ),
    "gpu-legacy": FusionStage(
        "fusion",
        _passes("gpu-legacy"),
        "post-fusion_optimization",
        "--xla_gpu_enable_priority_fusion=false --xla_dump_to=DIR --xla_dump_hlo_pass_re=.* "
        "--xla_dump_hlo_as_text",
        more_pipelines=(("horizontal_fusion", "horizontal_loop_fusion"),),
        also_before=("fusion",),
    ),
}

TPU_PIPELINES = ("Main_fusion", "multi_output_fusion_and_bf16_folding")
"""Where XLA:TPU fuses; its passes are closed, so there is no target for it."""
