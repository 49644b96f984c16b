"""What a module launches, for the viewers of other projects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hlofuse.account import Account, Launched
from hlofuse.analysis.kernels import kernel_source
from hlofuse.format.escape import printable
from hlofuse.format.paths import source_text
from hlofuse.ir import Instruction


@dataclass(frozen=True, slots=True)
class LaunchedModule:
    """A module, what its kernels cost, and their names."""

    account: Account
    title: str
    """`gpu h100_sxm`."""
    names_at_fusion: Mapping[str, str]
    """By the final names. Without what later passes added."""
    final_names: Mapping[str, str]
    """By the names in the module, where XLA's own final module has another."""

    @property
    def is_timed(self) -> bool:
        """True if kernels have an estimated time."""
        return self.account.totals.us is not None

    def name(self, i: Instruction) -> str:
        """The name that a profiler shows."""
        return printable(self.final_names.get(i.name, i.name))

    def facts(self, row: Launched) -> dict[str, Any]:
        """A kernel's figures, of one run, and where it comes from."""
        i, cost = row.instruction, row.cost
        source = kernel_source(i, self.account.module)
        facts: dict[str, Any] = {"name": self.name(i)}
        if (at_fusion := self.names_at_fusion.get(i.name)) is not None:
            facts["name at fusion"] = printable(at_fusion)
        facts |= {"opcode": i.opcode, "kind": row.kind}
        if source is not None:
            facts["source"] = printable(source_text(source))
        if i.op_name:
            facts["op_name"] = printable(i.op_name)
        facts |= {"bytes read": cost.bytes_read, "bytes written": cost.bytes_written, "FLOP": cost.flops}
        if row.us is not None:
            facts |= {"estimated time (µs)": round(row.us, 4), "is lower bound": row.is_floor}
        facts["runs"] = row.runs
        if row.per_iteration:
            facts["trip count"] = "unknown: one iteration is counted"
        return facts
