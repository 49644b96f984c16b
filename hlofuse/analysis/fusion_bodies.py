"""Which computations are bodies of fusions (`HloComputation::IsFusionComputation`)."""

from __future__ import annotations

from hlofuse.ir.graph import Computation
from hlofuse.releases import Release


def is_fusion_body(computation: Computation, release: Release) -> bool:
    """A fusion has it, or once had it and nobody has it now."""
    if computation.fusion is not None:
        return True
    return release.merged_bodies_stay and not computation.callers and not computation.is_entry
