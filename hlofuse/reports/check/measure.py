"""From a replay, or from a module as XLA left it, to the profile that is checked."""

from collections import Counter
from pathlib import Path

from hlofuse.account import Account
from hlofuse.account.measured import NO_MEASURED_TIME
from hlofuse.analysis.kernels import computed_in, kernel_source, outermost_loops
from hlofuse.compilation import Compilation
from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.format.escape import printable
from hlofuse.format.paths import layer_of, portable
from hlofuse.ir import HlofuseError, Instruction, Module, replace, with_trait
from hlofuse.reports.common.facts import Facts
from hlofuse.reports.common.model import Place
from hlofuse.reports.explain.explain import explain
from .model import BaselineKernel, Figures, Profile, RefusedEdge, Where

_SILENT = with_trait("free") - {"parameter"}


def profile_of_replay(name: str, facts: Facts, root: Path) -> Profile:
    """The profile of a module after its replayed fusion passes."""
    replay = facts.replay
    release = replay.config.release.title
    found = _profile(name, facts.account_after, replay.target, replay.device, release, root)
    names = replay.names_at_fusion
    kernels = (replace(k, input_name=names.get(k.name, k.name)) for k in found.kernels)
    return replace(found, kernels=tuple(kernels))


def profile_of_result(
    name: str,
    account: Account,
    target: str,
    device: DeviceDescription | None,
    root: Path,
) -> Profile:
    """The profile of a module that is fused already."""
    return _profile(name, account, target, device.name if device is not None else None, "", root)


def _profile(
    name: str,
    account: Account,
    target: str,
    device: str | None,
    release: str,
    root: Path,
) -> Profile:
    module, totals = account.module, account.totals
    listed = sorted(
        (
            BaselineKernel(_what(r.instruction), where_is(module, r.instruction, root), r.instruction.name)
            for r in account.rows
        ),
        key=lambda k: (k.where, k.what, k.name),
    )
    if account.measured is not None and not totals.measured_us:
        raise HlofuseError(f"{printable(name)}: {NO_MEASURED_TIME}")
    us, measured_us = (None if us is None else round(us, 2) for us in (totals.us, totals.measured_us))
    moved, memory, has_floors = totals.cost.bytes_accessed, totals.memory_bytes, totals.is_floor
    sides = totals.devices, has_floors, totals.cost.unknown
    sums = Figures(totals.kernels, moved, us, measured_us, memory, *sides)
    loops = outermost_loops(module)
    largest = account.memory.peak[:1] if memory is not None else []
    at_peak = where_is(module, largest[0].instruction, root) if largest else Where()
    return Profile(name, target, device, release, sums, tuple(listed), loops, account.measured, at_peak)


def _what(kernel: Instruction) -> str:
    if kernel.opcode == "fusion":
        counted = Counter(i.opcode for i in computed_in(kernel) if i.opcode not in _SILENT)
        parts = [f"{op}×{n}" if n > 1 else op for op, n in sorted(counted.items())]
        return f"{kernel.fusion_kind}: {', '.join(parts) or 'copies'}"
    if kernel.opcode == "custom-call":
        # The separator of a baseline's lines is no part of a kernel.
        target = printable(kernel.raw("custom_call_target") or "").strip('"')
        return f"custom-call {target.replace('|', '¦')}".strip()
    return kernel.opcode


def where_is(module: Module, instruction: Instruction, root: Path) -> Where:
    """The source place of an instruction; an empty one where the dump has none."""
    source = kernel_source(instruction, module)
    if source is None:
        return Where()
    layer = layer_of(instruction.op_name)
    return Where(portable(source.file, root), source.line, source.function, layer)


def refused_edges(facts: Facts, root: Path) -> list[RefusedEdge]:
    """Every pair of kernels kept apart, greatest value first."""
    explanation = explain(facts.replay, facts=facts)
    found = []
    for blocking in explanation.blocking_rules:
        for r in blocking.refusals:
            final = facts.lineage.final(r.producer.name)
            names = {final, r.consumer or ""}
            found.append(
                RefusedEdge(
                    blocking.rule.code,
                    blocking.rule.title,
                    blocking.rule.advice,
                    r.producer,
                    Place(r.consumer, final=r.consumer_final) if r.consumer is not None else None,
                    frozenset(names - {""}),
                    _place(facts.replay, r.producer.name, final, root),
                    r.bytes_between,
                    r.us_at_stake,
                    r.reason or "",
                )
            )
    found.sort(key=lambda h: (-(h.us_at_stake or 0.0), -h.bytes_between, h.producer.name))
    return found


def _place(replay: Compilation, name: str, final: str, root: Path) -> Where:
    """The source place of an input operation, or of the kernel that an intermediate fusion became."""
    for module, profile in ((replay.before, name), (replay.after, final)):
        instruction = module.find(profile)
        if instruction is not None:
            return where_is(module, instruction, root)
    return Where()


def between(kernels: tuple[BaselineKernel, ...], refused_edges: list[RefusedEdge]) -> tuple[RefusedEdge, ...]:
    """Refused edges between these kernels, or else between them and any other."""
    names = {k.input_name for k in kernels}
    both = [h for h in refused_edges if h.kernels <= names]
    return tuple(both or [h for h in refused_edges if h.kernels & names])
