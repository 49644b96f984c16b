"""Compare two modules: instructions by structure, fusions by what they compute."""

from .compare import diff
from .model import Added, Changed, Detail, FusionChange, FusionKind, Kind, ModuleDiff, Moved, Removed

__all__ = [
    "Added",
    "Changed",
    "Detail",
    "FusionChange",
    "FusionKind",
    "Kind",
    "ModuleDiff",
    "Moved",
    "Removed",
    "diff",
]
