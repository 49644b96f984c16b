"""`explain`: what a replay decided, and what each decision is worth."""

from hlofuse.reports.explain.model import Explanation

__all__ = ["Explanation"]
