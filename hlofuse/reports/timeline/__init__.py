"""A dump directory pass by pass: what each one did to a module."""

from hlofuse.reports.timeline.dumps import Reel, reels
from hlofuse.reports.timeline.model import Film, Replacement, Step
from hlofuse.reports.timeline.timeline import film

__all__ = ["Film", "Reel", "Replacement", "Step", "film", "reels"]
