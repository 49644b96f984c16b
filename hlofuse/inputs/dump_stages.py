"""Where in a compilation each target's fusion passes stand, told by dump file names: data."""

from __future__ import annotations

from dataclasses import dataclass


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
    also_before: tuple[str, ...] = ()
    """Passes that a replay may as well start before: what comes ahead of them finds nothing left to do."""


FUSION_STAGES: dict[str, FusionStage] = {
    "cpu": FusionStage(
        "HLO_passes_after_layout_assignment",
        ("fusion", "fusion-wrapper", "cpu_multi_output_fusion"),
        "simplification_after_layout_assignment",
        "--xla_dump_to=DIR --xla_dump_hlo_pass_re=.*",
    ),
    "gpu": FusionStage(
        "fusion",
        (
            "variadic-op-splitter",
            "sort-iota-fusion",
            "priority-fusion",
            "cse",
            "dce",
            "multi_output_fusion",
        ),
        "post-fusion_optimization",
        "--xla_dump_to=DIR --xla_dump_hlo_pass_re=.* --xla_dump_hlo_as_text --xla_dump_hlo_as_proto",
        ("sort-iota-fusion", "priority-fusion"),
    ),
}
