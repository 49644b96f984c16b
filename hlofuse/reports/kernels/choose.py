"""Ask the rules who runs each kernel of a module."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import TypeVar

from hlofuse.account import Account, KernelTimes
from hlofuse.account.functions import functions_of
from hlofuse.account.replaying import plain_account
from hlofuse.analysis.async_ops import wrapped_operation
from hlofuse.analysis.cost import Cost
from hlofuse.cost.combined import model_of
from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.format.fields import fields
from hlofuse.format.paths import layer_of
from hlofuse.ir import Instruction, Module, replace
from hlofuse.pipelines import TARGETS
from hlofuse.releases import Release
from hlofuse.reports.common.facts import Facts, place_of
from hlofuse.rules import cpu_emitters, gpu_emitters
from hlofuse.rules.gpu_emitters import GpuKernel
from hlofuse.rules.gpu_emitters.fusions import heroes_of
from hlofuse.rules.settings import AS_XLA, first_verdict
from hlofuse.rules.verdict import Verdict
from .model import Choice, KernelSelection, Note

Q = TypeVar("Q")


def kernel_selection(
    module: Module,
    target: str,
    release: Release,
    *,
    device: DeviceDescription | None = None,
    facts: Facts | None = None,
    what_if: tuple[str, ...] = (),
    account: Account | None = None,
) -> KernelSelection:
    """The emitter or library of each kernel of a fused module: not known of a GPU without a device, or of a
    backend without a target. `facts` are those of the replay whose final module this is; `what_if` are its
    changes. `account` is that of the module, where it is at hand."""
    replay = facts.replay if facts is not None else None
    replayed = TARGETS.get(target)
    choose: Callable[[Instruction, Cost], Choice]
    if device is None:
        choose = partial(_choice, verdict=None, notes=())
        if replayed is not None and not replayed.needs_device:
            choose = _on_cpu
        backend = replayed.backend if replayed is not None else target
        account = account or plain_account(module, backend, release)
    else:
        choose = _on_gpu(device, release)
        account = KernelTimes(device, release).account(module)
    account = facts.account_after if facts is not None else account
    found = []
    for row in account.rows:
        kernel = row.instruction
        place = place_of(kernel, module) if facts is None else facts.final_place(kernel)
        source = (place.source or "").partition(" ")[0] or None
        own = fields(row, "us is_floor measured runs per_iteration")
        found.append(replace(choose(kernel, row.cost), source=source, line=place.line, **own))
    if replay is not None:
        names = replay.names_at_fusion
        found = [replace(k, name=names.get(k.name, k.name), final=k.name) for k in found]
    if facts is not None and (facts.replay.fusion_input.events or facts.replay.events_after_fusion):
        found = [
            replace(k, created_by=facts.created_by(k.name) or facts.created_after_fusion(row.instruction))
            for k, row in zip(found, account.rows, strict=True)
        ]
    return KernelSelection(
        module.name,
        replay.before.filename if replay is not None else module.filename,
        target,
        device.name if device is not None else None,
        release.title,
        replay is not None,
        what_if,
        tuple(found),
        call_us=account.sums.call_us,
        functions=functions_of(account),
    )


def _on_cpu(kernel: Instruction, cost: Cost) -> Choice:
    operation = wrapped_operation(kernel) or kernel
    verdict = _settled(cpu_emitters.RULES, operation)
    notes = _notes(cpu_emitters.NOTES, operation)
    return _choice(kernel, cost, verdict, notes)


def _on_gpu(device: DeviceDescription, release: Release) -> Callable[[Instruction, Cost], Choice]:
    model = model_of(device, release)

    def choose(kernel: Instruction, cost: Cost) -> Choice:
        candidate = GpuKernel(wrapped_operation(kernel) or kernel, model)
        verdict = _settled(gpu_emitters.RULES, candidate)
        notes = _notes(gpu_emitters.NOTES, candidate)
        heroes = sorted({h.opcode for h in heroes_of(candidate)}) if candidate.is_generated else ()
        return _choice(
            kernel,
            cost,
            verdict,
            notes,
            heroes=tuple(heroes),
            launch=candidate.derived_launch(verdict.rule) or (None, None),
        )

    return choose


def _settled(rules: Iterable[Callable[[Q], Verdict | None]], candidate: Q) -> Verdict:
    verdict = first_verdict(rules, candidate, AS_XLA)
    assert verdict is not None  # the last rule speaks about everything
    return verdict


def _notes(rules: Iterable[Callable[[Q], Verdict | None]], candidate: Q) -> tuple[Note, ...]:
    return tuple(Note(v.rule, v.figures) for rule in rules if (v := rule(candidate)) is not None)


def _has_unknown_bytes(kernel: Instruction, cost: Cost) -> bool:
    if any(x.shape.has_unknown_type for x in (kernel, *kernel.operands)):
        return True
    return bool(cost.unknown) and not kernel.is_opaque


def _choice(
    kernel: Instruction,
    cost: Cost,
    verdict: Verdict | None,
    notes: tuple[Note, ...],
    *,
    heroes: tuple[str, ...] = (),
    launch: tuple[int | None, int | None] = (None, None),
) -> Choice:
    return Choice(
        kernel.name,
        kernel.opcode,
        kernel.shape.text_without_layout,
        kernel.fusion_kind,
        kernel.computation_name,
        verdict.rule if verdict is not None else None,
        verdict.figures if verdict is not None else {},
        notes,
        heroes,
        *launch,
        None,
        None if _has_unknown_bytes(kernel, cost) else int(cost.bytes_accessed),
        None,
        layer=layer_of(kernel.op_name),
    )
