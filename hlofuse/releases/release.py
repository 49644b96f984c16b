"""What differs between XLA releases: one behaviour a line, with its span.

What each is, and where XLA has it, is in `behaviours.toml` under the same name.
"""

from dataclasses import dataclass, field, fields
from functools import lru_cache
from pathlib import Path
from typing import Any

from hlofuse.ir.texts import texts
from hlofuse.releases.named import NAMES, REFERENCE, Span


@dataclass(frozen=True, slots=True)
class Behaviour:
    """Where a behaviour of XLA holds."""

    name: str
    span: Span

    @property
    def text(self) -> str:
        """What XLA does, and what it did before or does since."""
        return texts(_TEXTS)[self.name]["text"]

    @property
    def source(self) -> str:
        """XLA's file and function."""
        return texts(_TEXTS)[self.name]["source"]


_TEXTS = Path(__file__).with_name("behaviours.toml")


def _holds(*, since: str = "", until: str = "") -> Any:
    return field(metadata={"span": Span(since, until)})


@dataclass(frozen=True, slots=True)
class Release:
    """One XLA release, as far as its fusion passes and cost models differ."""

    name: str
    """As jaxlib counts, such as `0.8.3`."""
    flipped: frozenset[str]
    """Codes of rules, texts of passes and names of knobs that it is taken to have though it has not, or the
    other way round; empty for XLA's own."""
    in_place_through_bitcasts: bool = _holds(since="0.10")
    bitcasts_keep_width: bool = _holds(since="0.7")
    only_fusible_bitcasts_first: bool = _holds(since="0.8")
    bitcasts_pass_use: bool = _holds(since="0.7")
    mlir_emitters: bool = _holds(since="0.4.38")
    packed_transposes: bool = _holds(since="0.6")
    packed_elements_in_loops: bool = _holds(until="0.5")
    scatters_in_vectors: bool = _holds(since="0.5")
    scatters_slices_by_warps: bool = _holds(since="0.5", until="0.5")
    kernels_of_slices: bool = _holds(until="0.6")
    reductions_exchange_vectors: bool = _holds(since="0.6")
    priority_fusion_renames: bool = _holds(until="0.5")
    users_by_layout_passes: bool = _holds(until="0.5")
    merged_bodies_stay: bool = _holds(until="0.8")
    compares_shardy: bool = _holds(since="0.7")
    embedded_computations_stay: bool = _holds(since="0.10")
    cpu_inlined_computations_stay: bool = _holds(since="0.7")
    cpu_own_expensive: bool = _holds(since="0.9")
    wraps_all_loops: bool = _holds(since="0.11")
    tiles_narrow_types: bool = _holds(since="0.11.2")
    tiles_unsigned_and_complex: bool = _holds(since="0.11")
    whole_flops_per_ns: bool = _holds(until="0.7")
    plain_transposes_apart: bool = _holds(since="0.7")
    tuples_written_whole: bool = _holds(since="0.8")
    unrolls_small_windows: bool = _holds(since="0.8")
    unrolls_further_on_blackwell: bool = _holds(since="0.8")
    unrolls_by_width_on_blackwell: bool = _holds(since="0.9")
    unrolls_concatenates_on_blackwell: bool = _holds(since="0.10")
    has_profile_of_b200: bool = _holds(since="0.6")
    has_profile_of_b300: bool = _holds(since="0.10")
    every_tile_needs_registers: bool = _holds(until="0.6")
    tilings_that_spill_skipped: bool = _holds(since="0.8")
    reductions_padded_to_power_of_two: bool = _holds(since="0.11")
    triton_takes_copies: bool = _holds(since="0.5")
    triton_limits_parameters: bool = _holds(since="0.6")
    triton_takes_pads: bool = _holds(since="0.6")
    maps_are_affine: bool = _holds(until="0.9")
    triton_bitcasts_keep_elements: bool = _holds(since="0.7")
    triton_takes_remainders: bool = _holds(since="0.8")
    triton_names_types: bool = _holds(since="0.9")
    triton_keeps_predicates: bool = _holds(since="0.9")
    triton_takes_dots: bool = _holds(since="0.10")
    triton_divides_halves: bool = _holds(since="0.10")
    triton_takes_unsigned: bool = _holds(since="0.11")
    triton_aligns_concatenates: bool = _holds(since="0.11")
    pads_only_in_products: bool = _holds(since="0.12")
    failed_tilings_unnamed: bool = _holds(since="0.12")
    equal_concatenates_shared: bool = _holds(since="0.12")
    tiles_are_powers_of_two: bool = _holds(since="0.12")
    sorts_config_fields: bool = _holds(since="0.11.2")

    def has(self, span: Span, name: str) -> bool:
        """True if what has that span and name (a rule's code, a pass's text) is part of this release."""
        return span.includes(self.name) is not (name in self.flipped)

    @property
    def title(self) -> str:
        """As reports name it: `jaxlib 0.8.3`."""
        return f"jaxlib {self.name}"


def behaviours() -> dict[str, Behaviour]:
    """All, by the name of the field of `Release`."""
    return {f.name: Behaviour(f.name, f.metadata["span"]) for f in fields(Release) if f.metadata}


@lru_cache(maxsize=len(NAMES))
def release_of(name: str) -> Release:
    """The release of that name (`NAMES`)."""
    values: dict[str, Any] = {field: b.span.includes(name) for field, b in behaviours().items()}
    return Release(name, frozenset(), **values)


AROUND_FUSION = release_of(REFERENCE)
"""The release whose passes before and after fusion are repeated, whichever a module's own is."""
