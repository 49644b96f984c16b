"""What the kernel-time model says about a replay: for explaining, never for deciding."""

from hlofuse.account.figures import KernelTime, PairDetail, ReadTerm, StepCost
from hlofuse.account.kernel_times import KernelTimes
from hlofuse.account.observer import CostObserver
from hlofuse.account.replaying import PRIORITY_FUSION, Costs, Observed, SharedStart, observed_replay

__all__ = [
    "PRIORITY_FUSION",
    "CostObserver",
    "Costs",
    "KernelTime",
    "KernelTimes",
    "Observed",
    "PairDetail",
    "ReadTerm",
    "SharedStart",
    "StepCost",
    "observed_replay",
]
