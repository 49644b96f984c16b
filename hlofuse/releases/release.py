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
    flipped: frozenset[str]
    """Codes of rules, texts of passes and names of knobs that it is taken to have though it has not, or the
    other way round; empty for XLA's own."""
    in_place_through_bitcasts: bool = _holds(
        "0.10", source="hlo/analysis/alias_info.cc: GetFusionInstructionInPlaceInputOutputPairs"
    )
    """In-place pairs of a fusion are traced through any number of bitcasts on both sides; before, through
    exactly one, and only on the input side."""
    bitcasts_keep_width: bool = _holds("0.7", source="service/gpu/gpu_fusible.cc: IsUniversallyLoopFusible")
    """On GPU, a bitcast to a type of another width is not fused; before, every bitcast was."""
    bitcasts_pass_use: bool = _holds(
        "0.7", source="service/gpu/model/gpu_hlo_cost_analysis.cc: FusionCalculateUtilizations"
    )
    """To the cost model a bitcast of unchanged dimensions is read as element-wise operations are."""
    mlir_emitters: bool = _holds("0.4.38", source="service/gpu/hlo_fusion_analysis.cc, fusions/fusions.cc")
    """Kernels come from the MLIR emitters; before, from those that write LLVM IR
    (`xla_gpu_mlir_emitter_level` is 0 in the plugin of jaxlib 0.4.35)."""
    merged_bodies_stay: bool = _holds(until="0.4.35", source="service/hlo_cse.cc")
    """CSE still takes the body of a fusion that has been merged into others for one."""
    compares_shardy: bool = _holds("0.4.38", source="service/hlo_cse.cc")
    """To CSE operations are equal only if Shardy's shardings (a frontend attribute) are."""
    embedded_computations_stay: bool = _holds(
        "0.10",
        source="service/instruction_fusion.cc: InstructionFusion::IsEmbeddedComputation",
        seen="2 of 56",
    )
    """Nothing is fused inside what a reduce, sort, map, scatter or custom call applies to each element."""
    cpu_inlined_computations_stay: bool = _holds(
        "0.7", source="service/cpu/cpu_options.cc: UseExperimentalLoopFusion", seen="2 of 56"
    )
    """On CPU the fusion emitters generate loops by default, and a computation that they inline holds no
    fusions; before, only those of scatters and custom calls held none."""
    cpu_own_expensive: bool = _holds(
        "0.9",
        source="service/cpu/cpu_instruction_fusion.cc: CpuInstructionFusion::IsExpensive",
        seen="2 of 56",
    )
    """CPU has its own list of expensive operations; before, the one that all backends share."""
    wraps_all_loops: bool = _holds(
        "0.11", source="service/cpu/fusion_wrapper.cc: FusionWrapper::MustWrapInstruction", seen="2 of 56"
    )
    """FusionWrapper wraps transposes, dynamic-update-slices and the inverse and hyperbolic functions."""
    tiles_narrow_types: bool = _holds(
        "0.11.2", source="backends/cpu/codegen/tiled/tiled_fusion_emitter.cc: IsSupportedTilingType (asked)"
    )
    """The tiled emitter of XLA:CPU takes types of fewer than 8 bits."""
    tiles_unsigned_and_complex: bool = _holds(
        "0.11", source="backends/cpu/codegen/tiled/tiled_fusion_emitter.cc: IsSupportedTilingType"
    )
    """The tiled emitter of XLA:CPU takes arrays of unsigned integers and of complex numbers."""
    knows_blackwell: bool = _holds("0.10", source="service/gpu/model/hlo_op_profiles_data.h")
    """There are tables of clock cycles for compute capability 10; before, the newest are those of 9.0."""

    def has(self, span: Span, name: str) -> bool:
        """True if what has that span and name (a rule's code, a pass's text) is part of this release."""
        return span.includes(self.name) is not (name in self.flipped)

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
    values: dict[str, Any] = {field: b.span.includes(name) for field, b in behaviours().items()}
    return Release(name, frozenset(), **values)


AROUND_FUSION = release_of(REFERENCE)
"""The release whose passes before and after fusion are repeated, whichever a module's own is."""
