"""Data of a verification, printed by the renderers."""

from typing import overload

from msgspec import to_builtins

from hlofuse.format import fields
from hlofuse.ir import Instruction, Json, OrderSource, Record, Strings, replace
from hlofuse.passes.fusion.priority_fusion.observers import Disagreement
from hlofuse.reports.common.head import Head


class KernelSide(Record):
    name: str
    opcode: str
    kind: str | None
    shape: str
    computation: str
    operands: Strings
    contents: Strings  # Opcodes of the operations inside a fusion, in order


class FirstDifference(Record):
    """The first place where the two sides part."""

    pass_name: str | None  # The pass after which it shows; None where only the end was compared
    ours: KernelSide | None  # None: XLA has one more
    xla: KernelSide | None  # None: we have one more
    decision: str | None = None  # Our last decision about that kernel, in words


class PassVerdict(Record):
    """The modules after one pass compared."""

    name: str
    exact: bool  # The same kernels, also in the order of multi-output fusions' results (L1x)
    partition: bool  # The same kernels up to that order (L1)
    changed_actual: bool
    changed_xla: bool


class RecordVerdict(Record):
    """Our decisions against XLA's own record of PriorityFusion."""

    in_order: bool  # The same fusions in the same order (L2)
    any_order: bool
    priorities: int  # XLA's priorities that match the replay to 1e-3 (L3)
    priorities_total: int
    refusals: int  # XLA's refusals that match the replay word for word (L4)
    refusals_total: int
    difference: Disagreement | None
    followed: bool = False  # XLA's choice among equal priorities was taken from the record


class FinalVerdict(Record):
    """The launches of the replayed final module against those of XLA's."""

    named: int  # XLA's kernels whose name a replayed kernel has
    kernels: int  # XLA's kernels, without copies
    same_names: bool
    same_kernels: bool  # Equal kernels, each as often: their operations, shapes and attributes
    same_copies: bool  # Copies of the same shapes, each as often
    copies: int  # XLA's copies
    copies_actual: int
    only_xla: tuple[KernelSide, ...] = ()  # Kernels and then copies of XLA's that the replay lacks
    only_actual: tuple[KernelSide, ...] = ()  # Kernels and then copies of the replay that XLA lacks
    renamed: Strings = ()  # Names of XLA's kernels that no replayed kernel has

    @property
    def agrees(self) -> bool:
        """The same names, kernels and copies."""
        return self.same_names and self.same_kernels and self.same_copies


class Verdict(Record):
    """One module: our replay against XLA's result."""

    name: str
    exact: bool
    partition: bool
    passes: tuple[PassVerdict, ...]  # Passes whose result could be compared
    fusion_names: int  # Fusions made by the passes that are named as XLA names them
    fusions: int  # Fusions XLA's passes made
    kernels: int
    difference: FirstDifference | None
    error: str | None  # Why there was no comparison; everything else then says nothing
    seconds: float  # Time the replay took
    record: RecordVerdict | None = None  # None where XLA left no record of its steps
    note: str | None = None  # Possible reason for a difference: files of other stages than the compared ones
    not_dumped: Strings = ()
    """Passes that changed our module and may have changed XLA's, but left no dump to compare with."""
    order: OrderSource = "text"  # The source of the replay's ids and use-lists
    head: Head | None = None
    final: FinalVerdict | None = None  # Final modules compared; None where those at the end of fusion were
    reordered: int = 0  # Kernels with XLA's results in another order

    @property
    def same_kernels(self) -> bool:
        """The same kernels, up to the order of results and to names."""
        return self.error is None and (self.final.same_kernels if self.final is not None else self.partition)

    @property
    def agrees(self) -> bool:
        """It was compared, and everything is exact."""
        return self.error is None and self.exact and all(p.exact for p in self.passes)


class Tried(Record):
    """The modules replayed as one of the releases that the dumps leave open."""

    releases: Strings  # The releases with equal decisions, oldest first
    exact: int  # Modules that are exact so; unless `complete`, this many at most
    compared: int
    complete: bool  # Every module was replayed so; else those that differ as the release tried first


class Report(Record):
    target: str
    verdicts: tuple[Verdict, ...]
    skipped: Strings  # Modules of a dump directory that lack the dumps to compare, with the reason
    tried: tuple[Tried, ...] = ()  # The releases that were tried, the best first; empty where one was enough

    @property
    def compared(self) -> list[Verdict]:
        return [v for v in self.verdicts if v.error is None]

    @property
    def exact(self) -> int:
        return sum(v.exact for v in self.compared)

    @property
    def agrees(self) -> bool:
        """Every module was compared, and every one is exact."""
        return all(v.agrees for v in self.verdicts)


_QUIET = ("parameter", "constant", "tuple")


@overload
def side_of(i: Instruction) -> KernelSide: ...
@overload
def side_of(i: Instruction | None) -> KernelSide | None: ...
def side_of(i: Instruction | None) -> KernelSide | None:
    """Its name, shape and operands, and the operations inside a fusion; None for no kernel."""
    if i is None:
        return None
    contents: Strings = ()
    if i.is_fusion:
        contents = tuple(x.opcode for x in i.fused_computation.post_order() if x.opcode not in _QUIET)
    operands, where = tuple(o.name for o in i.operands), i.computation_name
    return KernelSide(i.name, i.opcode, i.fusion_kind, str(i.shape), where, operands, contents)


def report_json(report: Report) -> Json:
    return {
        "schema": "hlofuse.verify/3",
        **fields(report, "target agrees"),
        "modules": len(report.verdicts),
        **fields(report, "exact skipped"),
        **fields(report, "tried", to_builtins),
        **fields(report, "verdicts", _verdict),
    }


def _verdict(v: Verdict) -> Json:
    values: Json = to_builtins(replace(v, head=None))
    del values["head"]
    if v.final is None:
        del values["final"]
    # The keys that scripts read.
    if v.record is not None and (d := v.record.difference) is not None:
        values["record"]["difference"] = fields(d, "kind fusions=step producer xla") | {"ours": d.ours}
    values["remark"] = values.pop("note")
    for p in values["passes"]:
        p["changed_ours"] = p.pop("changed_actual")
    return values
