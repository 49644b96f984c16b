"""Launches of a module, their numbers and costs: the source of every report's figures."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .account import Account, Launched, Totals
    from .figures import KernelTime, PairDetail, ReadTerm, StepCost
    from .observer import CostObserver
    from .replaying import PRIORITY_FUSION, Costs, KernelTimes, Observed, SharedStart, observed_replay

__all__ = [
    "PRIORITY_FUSION",
    "Account",
    "CostObserver",
    "Costs",
    "KernelTime",
    "KernelTimes",
    "Launched",
    "Observed",
    "PairDetail",
    "ReadTerm",
    "SharedStart",
    "StepCost",
    "Totals",
    "observed_replay",
]


def __getattr__(name: str) -> Any:
    """Import on first use: counting kernels needs no time model, which is slow to import."""
    for module in ("account", "figures", "observer", "replaying") if name in __all__ else ():
        found = import_module(f"hlofuse.account.{module}")
        if hasattr(found, name):
            return getattr(found, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
