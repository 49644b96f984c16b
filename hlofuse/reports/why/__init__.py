"""`why`: the decisions about one instruction, or about a pair of them."""

from .model import Decision, PairAnswer, Story
from .pair import last_priority
from .story import why, why_each

__all__ = ["Decision", "PairAnswer", "Story", "last_priority", "why", "why_each"]
