"""What differs between XLA releases: one behaviour a line, with its span, its source and what shows it."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import Any

from hlofuse.releases.named import NAMES, REFERENCE, Span


@dataclass(frozen=True, slots=True)
class Behaviour:
    """Where a behaviour holds, and how that is known."""

    span: Span
    source: str
    """XLA's file and function."""
    seen: str
    """What shows it: the programs that fuse otherwise without it, or a test."""


def _holds(since: str = "", until: str = "", *, source: str, seen: str = "") -> Any:
    return field(metadata={"behaviour": Behaviour(Span(since, until), source, seen)})


@dataclass(frozen=True, slots=True)
class Release:
    """One XLA release, as far as its fusion passes and cost models differ."""

    name: str
    """As jaxlib counts, such as `0.8.3`."""
    in_place_through_bitcasts: bool = _holds(
        "0.4.38", source="hlo/analysis/alias_info.cc: GetFusionInstructionInPlaceInputOutputPairs"
    )
    """In-place pairs of a fusion are traced through any number of bitcasts on both sides; before, through
    exactly one, and only on the input side."""
    bitcasts_keep_width: bool = _holds(
        "0.7",
        source="gpu_fusible.cc: IsUniversallyLoopFusible, priority_fusion.cc: IsFusible",
    )
    """On GPU, a bitcast to a type of another width is not fused; before, every bitcast was."""
    only_fusible_bitcasts_first: bool = _holds(
        "0.8", source="service/gpu/transforms/priority_fusion.cc: IsFusibleBitcast"
    )
    """PriorityFusion takes only bitcasts that keep the width ahead of all else, and passes over only those
    until then; before, every bitcast."""
    bitcasts_pass_use: bool = _holds(
        "0.7", source="service/gpu/model/gpu_hlo_cost_analysis.cc: FusionCalculateUtilizations"
    )
    """To the cost model a bitcast of unchanged dimensions is read as element-wise operations are."""
    mlir_emitters: bool = _holds("0.4.38", source="service/gpu/hlo_fusion_analysis.cc, fusions/fusions.cc")
    """Kernels come from the MLIR emitters; before, from those that write LLVM IR
    (`xla_gpu_mlir_emitter_level` is 0 in the plugin of jaxlib 0.4.35)."""
    packed_transposes: bool = _holds(
        "0.6", source="service/gpu/ir_emission_utils.cc: GetDescriptionForTiledTransposeEmitter"
    )
    """Tiled transposes of narrow elements put several into a word of shared memory, and one kernel does only
    transposes of equally wide elements."""
    reductions_exchange_vectors: bool = _holds(
        "0.6", source="service/gpu/gpu_fusible.cc: SharedMemoryUsageNoCache"
    )
    """The shared memory of a reduction is estimated for vectors, and by the type of each input; before, as if
    all inputs were like the first."""
    priority_fusion_renames: bool = _holds(
        until="0.5", source="service/gpu/transforms/priority_fusion.cc: PriorityFusion::Run"
    )
    """PriorityFusion itself appends .0 to every name; since then, a pass ahead of the fusion passes does."""
    merged_bodies_stay: bool = _holds(until="0.4.35", source="service/hlo_cse.cc")
    """CSE still takes the body of a fusion that has been merged into others for one."""
    compares_shardy: bool = _holds("0.4.38", source="service/hlo_cse.cc")
    """To CSE operations are equal only if Shardy's shardings (a frontend attribute) are."""
    whole_flops_per_ns: bool = _holds(
        until="0.7", source="service/gpu/model/gpu_performance_model_base.cc: CalculateEffectiveFlopsPerNs"
    )
    """Flops of an FPU in a nanosecond are rounded down: 3 for a clock of 1.98 GHz, not 3.96."""
    knows_blackwell: bool = _holds("0.10", source="service/gpu/model/hlo_op_profiles_data.h")
    """There are tables of clock cycles for compute capability 10; before, the newest are those of 9.0."""

    @property
    def title(self) -> str:
        """As reports name it: `jaxlib 0.8.3`."""
        return f"jaxlib {self.name}"


def behaviours() -> dict[str, Behaviour]:
    """All, by the name of the field of `Release`."""
    return {f.name: f.metadata["behaviour"] for f in fields(Release) if f.metadata}


@lru_cache(maxsize=len(NAMES))
def release_of(name: str) -> Release:
    """The release of that name (`NAMES`)."""
    return Release(name, **{field: b.span.includes(name) for field, b in behaviours().items()})


OUTSIDE_FUSION = release_of(REFERENCE)
"""The release whose passes before and after fusion are repeated, whichever a module's own is."""
