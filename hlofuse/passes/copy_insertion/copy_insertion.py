"""Copies where two values would need one buffer at the same time (`xla/service/copy_insertion.cc`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from hlofuse.analysis.alias_info import AliasInfo
from hlofuse.analysis.call_sites import CallSites
from hlofuse.ir.graph import Instruction, Module
from hlofuse.passes.base import Pass
from hlofuse.passes.copy_insertion.adding import add_copies
from hlofuse.passes.copy_insertion.removing import remove_copies
from hlofuse.passes.copy_insertion.special_cases import add_special_copies
from hlofuse.passes.dce import HloDCE
from hlofuse.passes.tuple_simplifier import TupleSimplifier
from hlofuse.releases import AROUND_FUSION
from hlofuse.rules.rewrites.others import COPY
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
