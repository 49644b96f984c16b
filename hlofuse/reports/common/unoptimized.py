"""A module before optimizations, brought to where fusion begins, as far as XLA's passes are repeated here.

XLA's passes before fusion are repeated in order for targets that list them. For any other,
calls are inlined, tuples cleaned, equal operations merged, what nothing uses removed and reshapes that move
nothing made bitcasts. Some passes are repeated for none, so that a replay of the result is approximate.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from hlofuse.analysis.custom_calls import is_inlined
from hlofuse.analysis.elementwise import moves_no_data
from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.inputs.dump_names import FUSION_STAGES
from hlofuse.ir.copy import copy_module
from hlofuse.ir.graph import Module
from hlofuse.ir.unfusing import inline_calls
from hlofuse.passes.control_flow.annotations import remove_annotations
from hlofuse.passes.cse import HloCSE
from hlofuse.passes.dce import HloDCE, TupleSimplifier
from hlofuse.pipelines.manager import FusionInput, lower_to_fusion_input
from hlofuse.pipelines.targets import before_fusion
from hlofuse.releases import AROUND_FUSION
from hlofuse.trace import Event, Recorder
from hlofuse.trace.provenance import Provenance

BRIEF = "approximate: from a module before optimizations"
"""The remark where there is room for one line."""

_BEFORE = "APPROXIMATE: this is a module before optimizations. "
_BASIC = (
    "Calls were inlined; tuples, duplicate and unused operations and reshapes were simplified. XLA's other"
    " passes before fusion were not replayed."
)

_EXACT_HINT = ' For XLA\'s own decisions, run the program with XLA_FLAGS="{flags}" and give hlofuse DIR.'


@dataclass(frozen=True, slots=True)
class Beginning:
    """A module before optimizations, brought to where fusion begins."""

    module: Module
    note: str
    """What that is worth, in words, and how XLA's own decisions are had."""
    events: tuple[Event, ...] = ()
    """What the passes tell of their rewrites."""


def beginning_of_fusion(
    module: Module,
    target: str,
    device: DeviceDescription | None = None,
    flags: tuple[str, ...] = (),
    provenance: Provenance | None = None,
) -> Beginning:
    """A copy as it enters the fusion passes, as far as it is known; the module itself stays as it is.

    `provenance` learns what becomes of each instruction.
    HlofuseError where calls would multiply beyond reason.
    """
    events: tuple[Event, ...] = ()
    if before_fusion(target, device):
        prepared = lower_to_fusion_input(module, target, device, flags=flags, provenance=provenance)
        out, worth, events = prepared.module, _worth(prepared), prepared.events
    else:
        out, worth = _basically_simplified(module, provenance), _BASIC
    path = _EXACT_HINT.format(flags=FUSION_STAGES[target].flags) if target in FUSION_STAGES else ""
    return Beginning(out, _BEFORE + worth + path, events)


def _worth(prepared: FusionInput) -> str:
    """What was repeated, and what in this module was not."""
    missing = [
        f"{name} ({', '.join(f'{n} {opcode}' for opcode, n in sorted(found.items()))})"
        for name, found in prepared.not_repeated.items()
    ]
    left = Counter(s.pass_name for s in prepared.left_alone if s.pass_name not in prepared.not_repeated)
    missing += [f"{name} (for {n} {'instruction' if n == 1 else 'instructions'})" for name, n in left.items()]
    text = f"The passes before fusion were replayed first, as in XLA {AROUND_FUSION.name}."
    return f"{text} Not replayed: {', '.join(missing)}." if missing else text


def simplified(module: Module, target: str, device: DeviceDescription | None = None) -> Module:
    """The module alone of `beginning_of_fusion`."""
    return beginning_of_fusion(module, target, device).module


def _basically_simplified(module: Module, provenance: Provenance | None) -> Module:
    out = copy_module(module)
    recorder = Recorder()
    steps: tuple[tuple[str, Callable[[], object]], ...] = (
        ("call-inliner", lambda: inline_calls(out, is_inlined)),
        ("sharding-remover", lambda: remove_annotations(out)),
        ("tuple-simplifier", lambda: TupleSimplifier().run(out, recorder)),
        ("dce", lambda: HloDCE().run(out, recorder)),
        ("cse", lambda: HloCSE(release=AROUND_FUSION, only_fusion_computations=False).run(out, recorder)),
        ("dce", lambda: HloDCE().run(out, recorder)),
    )
    if provenance is not None:
        provenance.begin(out)
    for name, step in steps:
        if provenance is not None:
            provenance.begin_pass(name)
        step()
    if provenance is not None:
        provenance.end()
    for i in out.instructions():
        if i.opcode == "reshape" and moves_no_data(i):
            i.opcode = "bitcast"
    return out
