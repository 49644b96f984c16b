"""One instruction through every pass of a dump directory."""

from hlofuse.reports.trace_op.follow import follow
from hlofuse.reports.trace_op.model import Provenance

__all__ = ["Provenance", "follow"]
