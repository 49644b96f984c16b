"""XLA's own record of priority fusion against what the replay says."""

from __future__ import annotations

from hlofuse.account import Observed
from hlofuse.passes.fusion.priority_fusion.following import Follower
from hlofuse.reports.explain.model import RecordCheck


def record_check(observed: Observed) -> RecordCheck | None:
    """How far the two agree; None where no record was followed."""
    guide = observed.guide
    if observed.record is None or not isinstance(guide, Follower):
        return None
    guide.finish()
    return RecordCheck(observed.record, guide.total, guide.agreed, tuple(guide.disagreements))
