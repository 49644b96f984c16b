"""What runs, how often, and what it costs: every report reads its figures here."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hlofuse.account.account import Account, Launched, Totals
    from hlofuse.account.figures import KernelTime, PairDetail, ReadTerm, StepCost
    from hlofuse.account.observer import CostObserver
    from hlofuse.account.replaying import (
        PRIORITY_FUSION,
        Costs,
        KernelTimes,
        Observed,
        SharedStart,
        observed_replay,
    )

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
    """Counting kernels needs no model of their time, which is slow to import: quick modules come first."""
    for module in ("account", "figures", "observer", "replaying") if name in __all__ else ():
        found = import_module(f"hlofuse.account.{module}")
        if hasattr(found, name):
            return getattr(found, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
