"""Compare two modules: instructions by structure, fusions by what they compute."""

from hlofuse.diff.compare import diff
from hlofuse.diff.model import (
    Added,
    Changed,
    Detail,
    Edit,
    FusionChange,
    FusionKind,
    Kind,
    Matched,
    ModuleDiff,
    ModuleSide,
    Moved,
    Occurrence,
    Removed,
)

__all__ = [
    "Added",
    "Changed",
    "Detail",
    "Edit",
    "FusionChange",
    "FusionKind",
    "Kind",
    "Matched",
    "ModuleDiff",
    "ModuleSide",
    "Moved",
    "Occurrence",
    "Removed",
    "diff",
]
