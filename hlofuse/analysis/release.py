"""What differs between the XLA releases hlofuse repeats, where predicates depend on it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Release:
    """One XLA release, as far as the predicates in this folder differ."""

    name: str
    in_place_through_bitcasts: bool = True
    """In-place pairs of a fusion are traced through any number of bitcasts on both sides; before, through
    exactly one, and only on the input side."""
    embedded_computations_skipped: bool = True
    """Fusion leaves computations called by a reduce, sort, custom-call… alone."""


JAXLIB_0_11_1 = Release("jaxlib 0.11.1")
JAXLIB_0_4_35 = Release("jaxlib 0.4.35", in_place_through_bitcasts=False, embedded_computations_skipped=False)
