"""Copies where two values would need one buffer at the same time (`xla/service/copy_insertion.cc`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial

from hlofuse.analysis.alias_info import AliasInfo
from hlofuse.analysis.call_sites import CallSites
from hlofuse.analysis.hlo_ordering import HloOrdering, SequentialOrdering
from hlofuse.ir.graph import Computation, Instruction, Module
from hlofuse.passes.base import Pass
from hlofuse.passes.copy_insertion.adding import add_copies
from hlofuse.passes.copy_insertion.removing import remove_copies
from hlofuse.passes.copy_insertion.special_cases import add_special_copies
from hlofuse.passes.dce import HloDCE
from hlofuse.passes.tuple_simplifier import TupleSimplifier
from hlofuse.releases import AROUND_FUSION
from hlofuse.rules.rewrites.entries import COPY
from hlofuse.trace import OnlySkipped, Recorder


@dataclass(frozen=True)
class CopyInsertion(Pass):
    """`copy-insertion`: copies wherever they might be needed, but for those that turn out not to be."""

    name = "copy-insertion"
    alias_info: Callable[[], AliasInfo] = field(default=partial(AliasInfo, AROUND_FUSION), compare=False)
    """Makes what the backend knows of buffers, for one run."""

    def run(self, module: Module, recorder: Recorder) -> bool:
        if not CallSites(module).is_flattened:
            recorder.skipped(module.entry.root, "a computation has several callers, and XLA stops here")
            return False
        info = self.alias_info()
        reasons: dict[Instruction, str] = {}
        add_copies(module, info, reasons.__setitem__)
        _clean_up(module)
        remove_copies(module, info)
        add_special_copies(module, info, reasons.__setitem__)
        _clean_up(module)
        record_copies(recorder, reasons)
        return True


def record_copies(recorder: Recorder, reasons: dict[Instruction, str]) -> None:
    """Record the copies that stay."""
    for copy, reason in reasons.items():
        if copy.computation is not None:
            recorder.rewrite(copy.computation.name, [], [copy.name], rule=COPY.code, reason=reason)


def _clean_up(module: Module) -> None:
    """Take apart the tuples of copies; nobody asks how."""
    silent = OnlySkipped()
    TupleSimplifier().run(module, silent)
    HloDCE().run(module, silent)


# A second look at copies once the order of execution is known.
#
# Mirrors `RunPostSchedulingCopyInsertion` (`xla/service/gpu/gpu_compiler.cc`), without the copies for memory
# that devices share.


@dataclass(frozen=True)
class PostSchedulingCopyInsertion(Pass):
    """Removes copies that the schedule makes needless and adds those for read-only memory again.

    XLA runs it as a function and not as a pass. A module without a schedule is taken to run in post order.
    """

    name = "post-scheduling-copy-insertion"
    alias_info: Callable[[], AliasInfo] = field(default=partial(AliasInfo, AROUND_FUSION), compare=False)
    """Makes what the backend knows of buffers, for one run."""

    def run(self, module: Module, recorder: Recorder) -> bool:
        if not CallSites(module).is_flattened:
            return False
        info = self.alias_info()
        reasons: dict[Instruction, str] = {}
        changed = remove_copies(module, info, _scheduled)
        HloDCE().run(module, OnlySkipped())
        add_special_copies(module, info, reasons.__setitem__)
        HloDCE().run(module, OnlySkipped())
        record_copies(recorder, reasons)
        return changed or bool(reasons)


def _scheduled(calls: CallSites, compared: Iterable[Instruction]) -> HloOrdering:
    """One instruction after the other, in the computations that hold what may be compared."""
    computations: dict[Computation, None] = {}
    for x in compared:
        for y in (x, *calls.chain(x)):
            if y.computation is not None:
                computations[y.computation] = None
    is_scheduled = calls.module.is_scheduled
    return SequentialOrdering(
        calls, {c: c.instructions if is_scheduled else c.post_order() for c in computations}
    )
