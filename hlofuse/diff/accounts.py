"""What runs of either side, and what it costs: a diff itself compares modules as they are."""

from __future__ import annotations

from dataclasses import dataclass

from hlofuse.account import Account
from hlofuse.analysis.kernels import is_kernel
from hlofuse.diff.model import FusionChange, ModuleDiff
from hlofuse.ir import Instruction


@dataclass(frozen=True, slots=True)
class Accounts:
    """The accounts of both sides."""

    before: Account
    """Of the module that BEFORE is launched as."""
    after: Account
    compared: tuple[Account, Account]
    """Of the two modules that were compared."""
    devices: tuple[str, str] | None = None
    """What the times are for; None where there are none."""

    def of_change(self, change: FusionChange) -> tuple[float, float] | None:
        """Microseconds before and after, all iterations; None without times and where others took part."""
        if self.devices is None or change.cost_before is None or change.cost_after is None:
            return None
        old = [*change.before, *filter(is_kernel, change.joined)]
        new = [*change.after, *filter(is_kernel, change.left)]
        return _us(self.compared[0], old), _us(self.compared[1], new)


def as_compared(diff: ModuleDiff) -> Accounts:
    """Of the two modules as they are, without times."""
    before, after = Account(diff.before.module), Account(diff.after.module)
    return Accounts(before, after, (before, after))


def _us(account: Account, kernels: list[Instruction]) -> float:
    rows = (account.by_name.get(k.name) for k in kernels)
    return sum(r.total_us or 0.0 for r in rows if r is not None)
