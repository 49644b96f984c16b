"""What the kernel-time model says about a replay: for explaining, never for deciding."""

from hlofuse.explainer.costs.figures import KernelTime, PairDetail, ReadTerm, StepCost
from hlofuse.explainer.costs.kernel_times import KernelTimes
from hlofuse.explainer.costs.observer import Observer
from hlofuse.explainer.costs.replaying import PRIORITY_FUSION, Costs, Observed, SharedStart, observed_replay

__all__ = [
    "PRIORITY_FUSION",
    "Costs",
    "KernelTime",
    "KernelTimes",
    "Observed",
    "Observer",
    "PairDetail",
    "ReadTerm",
    "SharedStart",
    "StepCost",
    "observed_replay",
]
