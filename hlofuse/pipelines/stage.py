"""The stages of a compilation."""

from enum import StrEnum


class Stage(StrEnum):
    """A place in the list of passes from the front end to what is launched, in order."""

    BEFORE = "before-optimizations"  # Anywhere before the fusion passes
    INPUT = "fusion-input"
    FUSED = "after-fusion"
    SCHEDULED = "scheduled"

    @property
    def is_fused(self) -> bool:
        """True if the fusion passes have run."""
        return self in (Stage.FUSED, Stage.SCHEDULED)
