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
    bitcasts_keep_width: bool = True
    """On GPU, a bitcast to a type of another width is not fused; before, every bitcast was."""
    bitcasts_pass_use: bool = True
    """To the cost model a bitcast of unchanged dimensions is read as element-wise operations are."""
    mlir_emitters: bool = True
    """Kernels come from the MLIR emitters; before, from those that write LLVM IR
    (`xla_gpu_mlir_emitter_level` is 0 in the plugin of jaxlib 0.4.35)."""
    merged_bodies_stay: bool = False
    """CSE still takes the body of a fusion that has been merged into others for one."""
    compares_shardy: bool = True
    """To CSE operations are equal only if Shardy's shardings (a frontend attribute) are."""
    newest_op_profile: tuple[int, int] = (10, 3)
    """The newest compute capability with a table of clock cycles of its own."""


JAXLIB_0_11_1 = Release("jaxlib 0.11.1")
JAXLIB_0_4_35 = Release(
    "jaxlib 0.4.35",
    in_place_through_bitcasts=False,
    bitcasts_keep_width=False,
    bitcasts_pass_use=False,
    mlir_emitters=False,
    merged_bodies_stay=True,
    compares_shardy=False,
    newest_op_profile=(9, 0),
)

RELEASES = {release.name: release for release in (JAXLIB_0_11_1, JAXLIB_0_4_35)}
