"""One module by two XLA builds: `explain --compare-device`, and a part of `hlofuse upgrade`."""

from hlofuse.reports.compare_builds.model import Comparison, compare_builds

__all__ = ["Comparison", "compare_builds"]
