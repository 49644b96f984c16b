"""Differences of a what-if run from XLA's own, at the head of every such report."""

from hlofuse.reports.difference.model import Difference, difference_of

__all__ = ["Difference", "difference_of"]
