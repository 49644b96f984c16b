"""What a what-if run changes against XLA's own; stands at the head of every such report."""

from hlofuse.reports.difference.model import Difference, difference_of

__all__ = ["Difference", "difference_of"]
