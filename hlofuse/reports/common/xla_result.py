"""Comparison of a replay with XLA's own result next to the input."""

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hlofuse.analysis.kernels import kernels
from hlofuse.format.escape import printable
from hlofuse.format.fields import fields
from hlofuse.format.units import plural
from hlofuse.inputs.companions import Companions
from hlofuse.inputs.many import load
from hlofuse.ir.errors import HlofuseError
from hlofuse.ir.graph import Module
from hlofuse.matching.kernels import outline


@dataclass(frozen=True, slots=True)
class XlaResult:
    """XLA's kernels, and how many of them a replay has as well."""

    file: str
    after_all_passes: bool
    """The file shows the module after all passes: those after fusion add copies and rename."""
    kernels: int
    """XLA's, without copies where passes after fusion may have added them."""
    replayed: int
    same: int
    """XLA's kernels that hold the same operations as one of the replay, each paired once."""

    @property
    def line(self) -> str:
        """One sentence for the reader of a report."""
        name = printable(Path(self.file).name)
        stage, end = ("", ", copies excluded") if self.after_all_passes else (" after fusion", "")
        if self.same == self.kernels == self.replayed:
            return f"XLA's own result{stage} has the same {plural(self.kernels, 'kernel')} ({name}{end})"
        return (
            f"XLA's own result{stage} has {plural(self.kernels, 'kernel')}, the replay {self.replayed:,};"
            f" {self.same:,} match ({name}{end})"
        )

    def to_json(self) -> dict[str, Any]:
        """`file`, `kernels`, `replayed` and `same`."""
        return fields(self, "file kernels replayed same")


def compare_with_result(filename: str | None, target: str, after: Module) -> XlaResult | None:
    """The comparison with `after`, a replay's result; None without XLA's result next to the file."""
    found = Companions(filename).fusion_result(target)
    if found is None:
        return None
    path, after_all_passes = found
    try:
        expected = _outlines(load(path), not after_all_passes)
    except HlofuseError:
        return None
    own = _outlines(after, not after_all_passes)
    return XlaResult(str(path), after_all_passes, expected.total(), own.total(), (expected & own).total())


def _outlines(module: Module, with_copies: bool) -> Counter[Hashable]:
    return Counter(outline(k) for k in kernels(module) if with_copies or k.opcode != "copy")
