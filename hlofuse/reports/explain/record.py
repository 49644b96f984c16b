"""XLA's own record of priority fusion against what the replay says."""

from __future__ import annotations

from hlofuse.account import Observed
from hlofuse.reports.explain.model import RecordCheck


def record_check(observed: Observed) -> RecordCheck | None:
    """How far the two agree; None where no record was followed."""
    log = observed.replay.recorded_order
    if log is None:
        return None
    log.finish()
    return RecordCheck(observed.replay.input.record_file, log.total, log.agreed, tuple(log.disagreements))
