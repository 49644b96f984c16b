"""`stats`: a module in figures."""

from hlofuse.reports.stats.model import ModuleStatistics, statistics

__all__ = ["ModuleStatistics", "statistics"]
