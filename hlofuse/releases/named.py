"""The XLA releases whose fusion is replayed, by jaxlib version, oldest first, and their differences: one
behaviour a line, with its span. `behaviours.toml` has the place of each in XLA's source."""

import re
from dataclasses import dataclass, field, fields
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from hlofuse.ir import HlofuseError, Record
from hlofuse.ir.texts import texts


class NamedRelease(Record):
    """A release that was compared with XLA."""

    name: str  # The jaxlib version, such as `0.8.3`, for its whole series
    source: str  # The tag or commit of XLA's source that was read; empty where only its behaviour was tested

    @property
    def series(self) -> str:
        """`0.8` for `0.8.3`; each release before 0.5 is its own series."""
        first, second = self.name.split(".")[:2]
        return self.name if (first, second) == ("0", "4") else f"{first}.{second}"


NAMED = (
    NamedRelease("0.4.35", "76da7301"),
    NamedRelease("0.4.38", "upstream-jax-v0.4.38"),
    NamedRelease("0.5.3", "upstream-jax-v0.5.3"),
    NamedRelease("0.6.2", "upstream-jax-v0.6.2"),
    NamedRelease("0.7.2", "upstream-jax-v0.7.2"),
    NamedRelease("0.8.3", "upstream-jax-v0.8.3"),
    NamedRelease("0.9.2", "upstream-jax-v0.9.2"),
    NamedRelease("0.10.2", "upstream-jax-v0.10.2"),
    NamedRelease("0.11.1", "upstream-jax-v0.11.1"),
    NamedRelease("0.11.2", ""),
    NamedRelease("0.12.0.1", ""),
)
NAMES = tuple(named.name for named in NAMED)
EARLIEST, NEWEST = NAMES[0], NAMES[-1]
REFERENCE = "0.11.1"  # The newest release whose source could be read: the default, also around fusion


class Span(Record):
    """Releases from `since` to `until`, both included and either open; until 0.8: until the last of 0.8."""

    since: str = ""
    until: str = ""

    def includes(self, name: str) -> bool:
        return _includes(self.since, self.until, name)

    def __str__(self) -> str:
        if self.since and self.until:
            return self.since if self.since == self.until else f"{self.since} to {self.until}"
        if self.until:
            return f"{self.until} or earlier"
        return f"{self.since} or later" if self.since else "any release"


ANY = Span()


def numbers(name: str) -> tuple[int, ...]:
    """`0.8.3` as (0, 8, 3)."""
    return tuple(int(n) for n in name.split("."))


@lru_cache(maxsize=4096)
def _includes(since: str, until: str, name: str) -> bool:
    number = numbers(name)
    if since and number < numbers(since):
        return False
    return not until or number[: len(numbers(until))] <= numbers(until)


def nearest(text: str) -> tuple[str, str]:
    """The named release for a user's version, and a note where it is another one. That of the same series,
    else the newest before it. `HlofuseError` names the known ones for any other text."""
    version = text.strip().removeprefix("jaxlib").removeprefix("jax").strip(" =v")
    match = re.fullmatch(r"\d+(?:\.\d+)+", version)
    if match is None:
        raise HlofuseError(f"--xla {text}: expected a jaxlib release, such as {REFERENCE}, or auto")
    if version in NAMES:
        return version, ""
    number = numbers(version)
    of_series = [n.name for n in NAMED if Span(n.series, n.series).includes(version)]
    earlier = [name for name in of_series or NAMES if numbers(name) < number]
    if not earlier and not of_series:
        raise HlofuseError(f"--xla {text}: expected {EARLIEST} or later")
    name = earlier[-1] if earlier else of_series[0]
    if of_series and len(number) == 2:  # a series, not a release
        return name, ""
    return name, f"{version} is replayed as {name}, the nearest verified release"


class Behaviour(Record):
    name: str
    span: Span

    @property
    def text(self) -> str:
        return texts(_TEXTS)[self.name]["text"]

    @property
    def source(self) -> str:
        """XLA's file and function."""
        return texts(_TEXTS)[self.name]["source"]


_TEXTS = Path(__file__).with_name("behaviours.toml")


def _holds(since: str = "", until: str = "", *, around: bool = False) -> Any:
    """A behaviour of the releases of `Span(since, until)`."""
    return field(metadata={"span": Span(since, until), "around": around})


_around = partial(_holds, around=True)


@dataclass(frozen=True, slots=True)
class Release:
    """One XLA release: the differences of its fusion and cost models, then of the passes around them."""

    name: str  # The jaxlib version, such as `0.8.3`
    flipped: frozenset[str]
    """Codes of rules, texts of passes, names of knobs toggled against XLA's release; empty for XLA's."""
    in_place_through_bitcasts: bool = _holds("0.10")
    bitcasts_keep_width: bool = _holds("0.7")
    only_fusible_bitcasts_first: bool = _holds("0.8")
    bitcasts_pass_use: bool = _holds("0.7")
    mlir_emitters: bool = _holds("0.4.38")
    packed_transposes: bool = _holds("0.6")
    packed_elements_in_loops: bool = _holds(until="0.5")
    scatters_in_vectors: bool = _holds("0.5")
    scatters_slices_by_warps: bool = _holds("0.5", "0.5")
    kernels_of_slices: bool = _holds(until="0.6")
    reductions_exchange_vectors: bool = _holds("0.6")
    priority_fusion_renames: bool = _holds(until="0.5")
    users_by_layout_passes: bool = _holds(until="0.5")
    merged_bodies_stay: bool = _holds(until="0.8")
    compares_shardy: bool = _holds("0.7")
    embedded_computations_stay: bool = _holds("0.10")
    cpu_inlined_computations_stay: bool = _holds("0.7")
    cpu_own_expensive: bool = _holds("0.9")
    wraps_all_loops: bool = _holds("0.11")
    tiles_narrow_types: bool = _holds("0.11.2")
    tiles_unsigned_and_complex: bool = _holds("0.11")
    whole_flops_per_ns: bool = _holds(until="0.7")
    plain_transposes_apart: bool = _holds("0.7")
    tuples_written_whole: bool = _holds("0.8")
    unrolls_small_windows: bool = _holds("0.8")
    unrolls_further_on_blackwell: bool = _holds("0.8")
    unrolls_by_width_on_blackwell: bool = _holds("0.9")
    unrolls_concatenates_on_blackwell: bool = _holds("0.10")
    has_profile_of_b200: bool = _holds("0.6")
    has_profile_of_b300: bool = _holds("0.10")
    every_tile_needs_registers: bool = _holds(until="0.6")
    tilings_that_spill_skipped: bool = _holds("0.8")
    reductions_padded_to_power_of_two: bool = _holds("0.11")
    triton_takes_copies: bool = _holds("0.5")
    triton_limits_parameters: bool = _holds("0.6")
    triton_takes_pads: bool = _holds("0.6")
    maps_are_affine: bool = _holds(until="0.9")
    triton_bitcasts_keep_elements: bool = _holds("0.7")
    triton_takes_remainders: bool = _holds("0.8")
    triton_names_types: bool = _holds("0.9")
    triton_keeps_predicates: bool = _holds("0.9")
    triton_takes_dots: bool = _holds("0.10")
    triton_converts_f8_on_ada: bool = _holds("0.10")
    triton_divides_halves: bool = _holds("0.10")
    triton_takes_unsigned: bool = _holds("0.11")
    triton_aligns_concatenates: bool = _holds("0.11")
    pads_only_in_products: bool = _holds("0.12")
    failed_tilings_unnamed: bool = _holds("0.12")
    equal_concatenates_shared: bool = _holds("0.12")
    tiles_are_powers_of_two: bool = _holds("0.12")
    tiles_parts_of_rows: bool = _holds("0.12")
    sorts_config_fields: bool = _holds("0.11.2")
    cpu_keeps_bf16: bool = _around("0.12")
    ynn_reduces_at_length: bool = _around("0.9", "0.9")
    ynn_ends_in_arithmetic: bool = _around("0.12")
    ynn_copies_past_ones: bool = _around("0.12")
    ynn_computes_angles: bool = _around("0.11.2")
    floats_reassociated: bool = _around(until="0.11")
    products_fused_by_tiling: bool = _around("0.12")
    slices_past_ones: bool = _around("0.12")
    slices_of_updates: bool = _around("0.12")
    filters_padded_whole: bool = _around("0.12")
    undoes_squares_and_exponentials: bool = _around(until="0.10")
    gathers_from_any_dimension: bool = _around("0.8")
    scatters_into_any_dimension: bool = _around("0.9", "0.11")
    moves_for_longer_runs: bool = _around("0.12")
    lays_out_at_once: bool = _around("0.12")
    joins_unlike_loops: bool = _around("0.4.38")
    joins_readers_of_one: bool = _around("0.5")
    simplifies_conditionals: bool = _around("0.8")
    products_in_cublaslt: bool = _around("0.10")
    products_repeat_powers: bool = _around(until="0.7.1")
    products_take_slices: bool = _around("0.8.2")
    products_take_cheap_slices: bool = _around("0.11")
    products_enter_concatenates: bool = _around("0.11")
    products_of_any_type: bool = _around("0.10.1")
    products_end_in_sums: bool = _around("0.10")
    leaves_products_of_calls: bool = _around("0.10")
    weighs_merged_products: bool = _around("0.11")
    gpu_compares_bf16: bool = _around("0.6.2")
    gpu_negates_bf16: bool = _around("0.8.2")
    moves_reshapes_on: bool = _around("0.6.2", "0.6")
    undoes_moved_reshapes: bool = _around("0.6.2")
    cpu_sums_products: bool = _around("0.10")
    inverts_broadcasts: bool = _around("0.10")
    undoes_transposes_past_ones: bool = _around("0.8")
    undoes_chains_of_bitcasts: bool = _around("0.9")
    hoists_transposes: bool = _around("0.9")
    packs_narrow_topk: bool = _around("0.11")
    bitcast_converts_become_bitcasts: bool = _around("0.7")
    lays_out_long_rows_only: bool = _around("0.9")
    reshapes_keep_ones_in_place: bool = _around("0.10")
    slices_reshapes_anywhere: bool = _around("0.11.1")
    reduces_before_broadcasts: bool = _around("0.10")
    cuts_scatters_past_windows: bool = _around("0.10")
    bitcasts_pass_unary: bool = _around("0.9")
    transposes_enter_scatters: bool = _around("0.10.2", "0.11")

    def has(self, span: Span, name: str) -> bool:
        """True if an item with that span and name (a rule's code, a pass's text) is part of this release."""
        return span.includes(self.name) is not (name in self.flipped)

    @property
    def title(self) -> str:
        """The name in reports: `jaxlib 0.8.3`."""
        return f"jaxlib {self.name}"


def behaviours(*, around: bool = False) -> dict[str, Behaviour]:
    """The behaviours of the fusion passes, or of those around fusion, by the field name of `Release`."""
    own = [f for f in fields(Release) if f.metadata and f.metadata["around"] is around]
    return {f.name: Behaviour(f.name, f.metadata["span"]) for f in own}


@lru_cache(maxsize=len(NAMES))
def release_of(name: str) -> Release:
    """The release of that name (`NAMES`)."""
    values = {f.name: f.metadata["span"].includes(name) for f in fields(Release) if f.metadata}
    return Release(name, frozenset(), **values)


AROUND_FUSION = release_of(REFERENCE)
"""The release whose passes before and after fusion are repeated for modules of any release."""
