"""XLA's own record of priority fusion against what the replay says."""

from __future__ import annotations

from hlofuse.explainer.costs import Observed
from hlofuse.explainer.model import RecordCheck
from hlofuse.passes.priority_fusion.following import Follower


def record_check(observed: Observed) -> RecordCheck | None:
    """How far the two agree; None where no record was followed."""
    guide = observed.guide
    if observed.record is None or not isinstance(guide, Follower):
        return None
    guide.finish()
    return RecordCheck(observed.record, guide.total, guide.agreed, tuple(guide.disagreements))
