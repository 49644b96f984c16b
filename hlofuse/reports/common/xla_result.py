"""Comparison of a replay with XLA's own result next to the input."""

from collections import Counter
from pathlib import Path

from hlofuse.analysis.launches import launches
from hlofuse.compilation import Compilation
from hlofuse.format import fields, listing, plural, printable
from hlofuse.inputs.companions import companions_of
from hlofuse.inputs.many import load
from hlofuse.ir import HlofuseError, Json, Module, Record, Strings, unmatched
from hlofuse.matching.kernels import outline
from hlofuse.pipelines.targets import Stage

_SHOWN = 3


class XlaResult(Record):
    """XLA's kernels, and how many of them a replay has as well."""

    file: str
    is_final: bool  # The file shows the module after all passes; else after fusion
    kernels: int  # XLA's
    replayed: int
    same: int  # XLA's kernels that hold the same operations as one of the replay, each paired once
    only_xla: Strings
    only_replayed: Strings  # Names of the replay's other kernels, each with the pass that created it

    @property
    def line(self) -> str:
        """The comparison for the reader of a report."""
        kind = "final module" if self.is_final else "fusion result"
        result = f"XLA's {kind} ({printable(Path(self.file).name)})"
        if not self.only_xla and not self.only_replayed:
            end = "" if self.is_final else "; later passes replayed"
            return f"{result} has the same {plural(self.kernels, 'kernel')}{end}"
        figures = "Figures are XLA's." if self.is_final else "Figures are those of the replay."
        sides = [("only in XLA's", self.only_xla), ("only in the replay", self.only_replayed)]
        listed = "; ".join(f"{side}: {listing([*map(printable, own)], _SHOWN)}" for side, own in sides if own)
        counts = f"{plural(self.kernels, 'kernel')}, the replay {self.replayed:,}"
        return f"{result} has {counts}; {self.same:,} match. {figures} {listed[0].upper()}{listed[1:]}"

    def to_json(self) -> Json:
        """`file`, `kernels`, `replayed`, `same`, `only_xla` and `only_replayed`."""
        return fields(self, "file kernels replayed same only_xla only_replayed")


def compare_with_result(replay: Compilation) -> XlaResult | None:
    """XLA's own final module against that of a replay, or both after fusion; None without XLA's own."""
    if replay.find_final is None:
        return None
    if replay.has_xla_final:
        return _compared(replay, replay.final, replay.replayed_final)
    found = companions_of(replay.input.module).fusion_result(replay.target)
    try:
        return _compared(replay, load(found[0]), replay.after) if found is not None and not found[1] else None
    except HlofuseError:
        return None


def _compared(replay: Compilation, expected: Module, actual: Module) -> XlaResult:
    passes = dict[str, str]()
    is_final = replay.has_xla_final
    if is_final:
        for p in replay.span(Stage.SCHEDULED).passes:
            passes |= {name: p.name for e in p.events for name in e.added}
    backend = replay.config.build.backend
    xla, own = ([(outline(k), k.name) for k, _ in launches(m, backend)] for m in (expected, actual))
    in_xla, in_own = (Counter(key for key, _ in side) for side in (xla, own))
    only_xla, only_own = list(unmatched(xla, in_own)), list(unmatched(own, in_xla))
    named = (f"{n} ({passes[n]})" if n in passes else n for n in only_own)
    same = len(xla) - len(only_xla)
    file = expected.filename or ""
    return XlaResult(file, is_final, len(xla), len(own), same, tuple(only_xla), tuple(named))
