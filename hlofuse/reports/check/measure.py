"""From a replay, or from a module as XLA left it, to the profile that is checked."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from hlofuse.account import Observed
from hlofuse.analysis.cost import CostAnalysis
from hlofuse.analysis.kernels import computed_in, kernels
from hlofuse.analysis.loops import outermost_loops
from hlofuse.format.escape import printable
from hlofuse.ir.graph import Instruction, Module
from hlofuse.pipelines import TARGETS
from hlofuse.reports.check.model import Figures, Kernel, Profile
from hlofuse.reports.check.places import where_is

_SILENT = frozenset({"bitcast", "constant", "get-tuple-element", "tuple"})


def profile_of_replay(name: str, observed: Observed, root: Path) -> Profile:
    """What the fusion passes leave of a module."""
    replay = observed.replay
    found = kernels(replay.after)
    us = round(observed.costs.total(found)[0], 2) if observed.costs is not None else None
    release = TARGETS[replay.target].release
    return _profile(name, replay.after, found, us, replay.target, replay.device, release, root)


def profile_of_result(name: str, module: Module, target: str, root: Path) -> Profile:
    """A module that XLA has fused already, as it is; no estimate of its time."""
    return _profile(name, module, kernels(module), None, target, None, "", root)


def _profile(
    name: str,
    module: Module,
    found: list[Instruction],
    us: float | None,
    target: str,
    device: str | None,
    release: str,
    root: Path,
) -> Profile:
    moved = CostAnalysis().computation(module.entry).bytes_accessed
    listed = sorted(
        (Kernel(_what(i), where_is(module, i, root), i.name) for i in found),
        key=lambda k: (k.where, k.what, k.name),
    )
    sums = Figures(len(found), moved, us)
    return Profile(name, target, device, release, sums, tuple(listed), outermost_loops(module))


def _what(kernel: Instruction) -> str:
    if kernel.opcode == "fusion":
        counted = Counter(i.opcode for i in computed_in(kernel) if i.opcode not in _SILENT)
        parts = [f"{op}×{n}" if n > 1 else op for op, n in sorted(counted.items())]
        return f"{kernel.fusion_kind}: {', '.join(parts) or 'copies'}"
    if kernel.opcode == "custom-call":
        # The separator of a baseline's lines is no part of a kernel.
        target = printable(kernel.attributes.raw("custom_call_target") or "").strip('"')
        return f"custom-call {target.replace('|', '¦')}".strip()
    return kernel.opcode
