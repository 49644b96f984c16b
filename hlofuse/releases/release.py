"""What differs between XLA releases: one behaviour a line, with its span and its source."""

from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import Any

from hlofuse.releases.named import NAMES, REFERENCE, Span


@dataclass(frozen=True, slots=True)
class Behaviour:
    """Where a behaviour holds, and where XLA has it."""

    text: str
    """What XLA does, and what it did before or does since."""
    span: Span
    source: str
    """XLA's file and function."""


def _holds(text: str, *, since: str = "", until: str = "", source: str) -> Any:
    return field(metadata={"behaviour": Behaviour(text, Span(since, until), source)})


_MAX_UNROLL = "service/gpu/gpu_fusible.cc: MaxUnrollFactor"
_PROBED = "probes of the binary"
_TRITON_SUPPORT = "backends/gpu/codegen/triton/support.cc: IsTritonSupportedInstruction"


@dataclass(frozen=True, slots=True)
class Release:
    """One XLA release, as far as its fusion passes and cost models differ."""

    name: str
    """As jaxlib counts, such as `0.8.3`."""
    flipped: frozenset[str]
    """Codes of rules, texts of passes and names of knobs that it is taken to have though it has not, or the
    other way round; empty for XLA's own."""
    in_place_through_bitcasts: bool = _holds(
        "In-place pairs of a fusion are traced through any number of bitcasts on both sides; "
        "before, through exactly one, and only on the input side.",
        since="0.10",
        source="hlo/analysis/alias_info.cc: GetFusionInstructionInPlaceInputOutputPairs",
    )
    bitcasts_keep_width: bool = _holds(
        "On GPU, a bitcast to a type of another width is not fused; before, every bitcast was.",
        since="0.7",
        source="gpu_fusible.cc: IsUniversallyLoopFusible, priority_fusion.cc: IsFusible",
    )
    only_fusible_bitcasts_first: bool = _holds(
        "PriorityFusion takes only bitcasts that keep the width first, and passes over "
        "only those until then; before, every bitcast.",
        since="0.8",
        source="service/gpu/transforms/priority_fusion.cc: IsFusibleBitcast",
    )
    bitcasts_pass_use: bool = _holds(
        "To the cost model a bitcast of unchanged dimensions is read as element-wise operations are.",
        since="0.7",
        source="service/gpu/model/gpu_hlo_cost_analysis.cc: FusionCalculateUtilizations",
    )
    mlir_emitters: bool = _holds(
        "Kernels come from the MLIR emitters; before, from those that write LLVM IR "
        "(`xla_gpu_mlir_emitter_level` is 0 in the plugin of jaxlib 0.4.35).",
        since="0.4.38",
        source="service/gpu/hlo_fusion_analysis.cc, fusions/fusions.cc",
    )
    packed_transposes: bool = _holds(
        "Tiled transposes of narrow elements put several into a word of shared memory, and one "
        "kernel does only transposes of equally wide elements.",
        since="0.6",
        source="service/gpu/ir_emission_utils.cc: GetDescriptionForTiledTransposeEmitter",
    )
    packed_elements_in_loops: bool = _holds(
        "What reads or writes elements narrower than a byte is a plain loop.",
        until="0.5",
        source="service/gpu/hlo_fusion_analysis.cc: GetEmitterFusionKind",
    )
    scatters_in_vectors: bool = _holds(
        "The launch of a scatter uses vectors and whole warps; before, by single elements of the updates.",
        since="0.5",
        source="backends/gpu/codegen/emitters/scatter.cc",
    )
    scatters_slices_by_warps: bool = _holds(
        "A warp takes a whole slice of the updates where those are long and many, sorted or not; "
        "since, only several that are sorted.",
        since="0.5",
        until="0.5",
        source="backends/gpu/codegen/emitters/scatter.cc: CreateScatterFusion",
    )
    kernels_of_slices: bool = _holds(
        "Several slices of arrays of one shape are a kernel that iterates over the whole array.",
        until="0.6",
        source="service/gpu/hlo_fusion_analysis.cc: GetEmitterFusionKind",
    )
    reductions_exchange_vectors: bool = _holds(
        "The shared memory of a reduction is estimated for vectors, and by the type of each input; "
        "before, as if all inputs were like the first.",
        since="0.6",
        source="service/gpu/gpu_fusible.cc: SharedMemoryUsageNoCache",
    )
    priority_fusion_renames: bool = _holds(
        "PriorityFusion itself appends .0 to every name; since then, a pass before the fusion passes does.",
        until="0.5",
        source="service/gpu/transforms/priority_fusion.cc: PriorityFusion::Run",
    )
    users_by_layout_passes: bool = _holds(
        "PriorityFusion finds the users of an instruction in the order in which layout normalisation left "
        "them; since, in that of the text.",
        until="0.5",
        source="service/gpu/gpu_compiler.cc: OptimizeHloPostLayoutAssignment",
    )
    merged_bodies_stay: bool = _holds(
        "The body of a fusion that is gone, merged into others or never made, is still taken for "
        "one: CSE looks into it and fusion passes do not; since, vice versa.",
        until="0.8",
        source="hlo/ir/hlo_computation.h: IsFusionComputation",
    )
    compares_shardy: bool = _holds(
        "To CSE operations are equal only if Shardy's shardings (a frontend attribute) are.",
        since="0.7",
        source="hlo/ir/hlo_instruction.cc: IdenticalInternal",
    )
    embedded_computations_stay: bool = _holds(
        "Nothing is fused inside what a reduce, sort, map, scatter or custom call applies to each element.",
        since="0.10",
        source="service/instruction_fusion.cc: InstructionFusion::IsEmbeddedComputation",
    )
    cpu_inlined_computations_stay: bool = _holds(
        "On CPU the fusion emitters generate loops by default, and a computation that they inline "
        "holds no fusions; before, only those of scatters and custom calls held none.",
        since="0.7",
        source="service/cpu/cpu_options.cc: UseExperimentalLoopFusion",
    )
    cpu_own_expensive: bool = _holds(
        "CPU has its own list of expensive operations; before, the one that all backends share.",
        since="0.9",
        source="service/cpu/cpu_instruction_fusion.cc: CpuInstructionFusion::IsExpensive",
    )
    wraps_all_loops: bool = _holds(
        "FusionWrapper wraps transposes, dynamic-update-slices and the inverse and hyperbolic functions.",
        since="0.11",
        source="service/cpu/fusion_wrapper.cc: FusionWrapper::MustWrapInstruction",
    )
    tiles_narrow_types: bool = _holds(
        "The tiled emitter of XLA:CPU supports types of fewer than 8 bits.",
        since="0.11.2",
        source="backends/cpu/codegen/tiled/tiled_fusion_emitter.cc: IsSupportedTilingType (asked)",
    )
    tiles_unsigned_and_complex: bool = _holds(
        "The tiled emitter of XLA:CPU supports arrays of unsigned integers and of complex numbers.",
        since="0.11",
        source="backends/cpu/codegen/tiled/tiled_fusion_emitter.cc: IsSupportedTilingType",
    )
    whole_flops_per_ns: bool = _holds(
        "Flops of an FPU in a nanosecond are rounded down: 3 for a clock of 1.98 GHz, not 3.96.",
        until="0.7",
        source="service/gpu/model/gpu_performance_model_base.cc: CalculateEffectiveFlopsPerNs",
    )
    plain_transposes_apart: bool = _holds(
        "A transpose that is not tiled is no result of one kernel with a tiled transpose or a reduction.",
        since="0.7",
        source="service/gpu/gpu_fusible.cc: FusionHeroesAreCompatible",
    )
    tuples_written_whole: bool = _holds(
        "An operation with several results, such as a reduce-window, writes all of them; before, "
        "only a table of pointers, but for reduces.",
        since="0.8",
        source="service/hlo_cost_analysis.cc: Preprocess",
    )
    unrolls_small_windows: bool = _holds(
        "Reduce-windows of up to 8 elements are unrolled; before, none was.",
        since="0.8",
        source="service/gpu/gpu_fusible.cc: MayCausePerformanceDropIfUnrolled",
    )
    unrolls_further_on_blackwell: bool = _holds(
        "A thread of a loop over narrow elements computes eight on Blackwell; before, four as elsewhere.",
        since="0.8",
        source=_MAX_UNROLL,
    )
    unrolls_by_width_on_blackwell: bool = _holds(
        "There it computes as many as make a vector of the widest elements, at least eight.",
        since="0.9",
        source=_MAX_UNROLL,
    )
    unrolls_concatenates_on_blackwell: bool = _holds(
        "A concatenate is unrolled there as a loop is.",
        since="0.10",
        source=_MAX_UNROLL,
    )
    has_profile_of_b200: bool = _holds(
        "There is a table of clock cycles for compute capability 10.0; before, it had that of 8.6.",
        since="0.6",
        source="service/gpu/model/hlo_op_profiles_data.h",
    )
    has_profile_of_b300: bool = _holds(
        "The same for 10.3.",
        since="0.10",
        source="service/gpu/model/hlo_op_profiles_data.h",
    )

    every_tile_needs_registers: bool = _holds(
        "A tiling spills if any tile is too large; since, only tiles of results, operands and iotas count.",
        until="0.6",
        source="service/gpu/model/gpu_indexing_performance_model.cc: DoesTileFitsInRegisters",
    )
    tilings_that_spill_skipped: bool = _holds(
        "A fusion all of whose tilings spill is refused; before, it had one that takes infinitely long.",
        since="0.8",
        source="service/gpu/model/gpu_indexing_performance_model.cc: TryFindBestTilingForFusion",
    )
    reductions_padded_to_power_of_two: bool = _holds(
        "A reduction in a tile is counted with its dimensions rounded up to powers of two.",
        since="0.11",
        source="service/gpu/model/gpu_indexing_performance_model.cc: FlopsPerElement",
    )
    triton_takes_copies: bool = _holds(
        "Triton supports copies.",
        since="0.5",
        source=_TRITON_SUPPORT,
    )
    triton_limits_parameters: bool = _holds(
        "Triton fusions have the limit of inputs and outputs that other kernels have.",
        since="0.6",
        source="service/gpu/transforms/priority_fusion.cc: CanFuseTriton",
    )
    triton_takes_pads: bool = _holds(
        "Triton supports pads at the end, 4-bit integers and conversions between floats of 8 bits, and "
        "a refusal of an operation names it.",
        since="0.6",
        source=_TRITON_SUPPORT,
    )
    maps_are_affine: bool = _holds(
        "A refusal prints a map of indices with `floordiv` and `mod`; since, with `/` and `%`.",
        until="0.9",
        source="hlo/analysis/indexing_map_serialization.cc: PrintAffineExprWithDimsAndSymbols",
    )
    triton_bitcasts_keep_elements: bool = _holds(
        "Triton does not support any bitcast that changes the number of elements.",
        since="0.7",
        source=_TRITON_SUPPORT,
    )
    triton_takes_remainders: bool = _holds(
        "Triton supports the remainder of integers.",
        since="0.8",
        source=_TRITON_SUPPORT,
    )
    triton_names_types: bool = _holds(
        "A refusal of a type by Triton names it.",
        since="0.9",
        source=_TRITON_SUPPORT,
    )
    triton_keeps_predicates: bool = _holds(
        "Triton does not support any bitcast from predicates to another type or back.",
        since="0.9",
        source=_TRITON_SUPPORT,
    )
    triton_takes_dots: bool = _holds(
        "Generic Triton fusions may hold dots and concatenates; before, only those of matrix products.",
        since="0.10",
        source=_TRITON_SUPPORT,
    )
    triton_divides_halves: bool = _holds(
        "Triton supports divisions of f16 and bf16, and rounding to the nearest even number.",
        since="0.10",
        source=_TRITON_SUPPORT,
    )
    triton_takes_unsigned: bool = _holds(
        "Triton supports unsigned integers of 8 to 64 bits.",
        since="0.11",
        source=_TRITON_SUPPORT,
    )
    triton_aligns_concatenates: bool = _holds(
        "Triton supports concatenates only if all operands but the last are multiples of 64 long.",
        since="0.11",
        source=_TRITON_SUPPORT,
    )
    pads_only_in_products: bool = _holds(
        "Generic Triton fusions hold no pads.",
        since="0.12",
        source=_PROBED,
    )
    failed_tilings_unnamed: bool = _holds(
        "Every tiling is tried by itself, and where none succeeds no reason is given.",
        since="0.12",
        source=_PROBED,
    )
    equal_concatenates_shared: bool = _holds(
        "Two equal tiles of a concatenate in a fusion are computed once, as of other operations.",
        since="0.12",
        source=_PROBED,
    )
    tiles_are_powers_of_two: bool = _holds(
        "The tile sizes of a Triton fusion are rounded up, as Triton's emitter rounds them.",
        since="0.12",
        source=_PROBED,
    )

    sorts_config_fields: bool = _holds(
        "Backend configs are printed with their fields in alphabetical order.",
        since="0.11.2",
        source="service/gpu/backend_configs.proto",
    )

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
