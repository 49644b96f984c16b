"""`why`: the decisions about one instruction, or about a pair of them."""

from hlofuse.reports.why.model import Decision, PairAnswer, Story
from hlofuse.reports.why.pair import last_priority
from hlofuse.reports.why.story import why, why_each

__all__ = ["Decision", "PairAnswer", "Story", "last_priority", "why", "why_each"]
