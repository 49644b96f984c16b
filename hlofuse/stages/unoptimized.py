"""A module before optimizations, brought to where fusion begins, as far as XLA's passes are repeated here.

Of the targets in `simplifications.registry` XLA's passes ahead of fusion are repeated in order. Of any other,
calls are inlined, tuples cleaned, equal operations merged, what nothing uses removed and reshapes that move
nothing made bitcasts. Some passes are repeated for none, so that a replay of the result is approximate.
"""

from __future__ import annotations

from hlofuse.analysis.bitcasts import moves_no_data
from hlofuse.analysis.inlined_calls import is_inlined
from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.ir.copy import copy_module
from hlofuse.ir.module import Module
from hlofuse.ir.unfusing import check_growth, inline_call, most_instructions
from hlofuse.passes.cse import HloCSE
from hlofuse.passes.dce import HloDCE
from hlofuse.passes.tuple_simplifier import TupleSimplifier
from hlofuse.simplifications.registry import pipelines_of
from hlofuse.simplifications.running import prepare
from hlofuse.trace import Recorder

_BEFORE = "APPROXIMATE: this is a module before optimizations. "
_BASIC = (
    "Calls were inlined, tuples, equal and unused operations and reshapes cleaned up; the other passes that"
    " XLA runs ahead of fusion were not repeated."
)
_REPEATED = "Most of the passes that XLA runs ahead of fusion were repeated, but not all of them."
EXACT_WAY = 'For XLA\'s own decisions run the program with XLA_FLAGS="{flags}" and give hlofuse DIR.'


def what_it_is(target: str, device: DeviceDescription | None = None) -> str:
    """What the result of `simplified` is worth, in words."""
    return _BEFORE + (_REPEATED if pipelines_of(target, device) else _BASIC)


def simplified(module: Module, target: str, device: DeviceDescription | None = None) -> Module:
    """A copy as it may look ahead of the fusion passes; the module itself stays as it is."""
    if pipelines_of(target, device):
        return prepare(module, target, device).module
    out = copy_module(module)
    _inline_calls(out)
    recorder = Recorder()
    TupleSimplifier().run(out, recorder)
    HloDCE().run(out, recorder)
    HloCSE(only_fusion_computations=False).run(out, recorder)
    HloDCE().run(out, recorder)
    for i in out.instructions():
        if i.opcode == "reshape" and moves_no_data(i):
            i.opcode = "bitcast"
    return out


def _inline_calls(module: Module) -> None:
    most = most_instructions(module)
    pending = True
    while pending:
        pending = False
        for computation in list(module.computations):
            for i in list(computation) if computation.module is not None else ():
                if is_inlined(i):
                    inline_call(i)
                    pending = True
            check_growth(module, most)
