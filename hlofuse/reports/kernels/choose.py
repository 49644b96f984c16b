"""Ask the rules who runs each kernel of a module."""

from collections.abc import Callable, Iterable
from typing import TypeAlias, TypeVar

from hlofuse.account import Account, KernelTimes
from hlofuse.account.functions import functions_of
from hlofuse.account.replaying import plain_account
from hlofuse.analysis.async_ops import wrapped_operation
from hlofuse.analysis.cost import Cost
from hlofuse.cost.combined import model_of
from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.cost.gpu.model import KernelModel
from hlofuse.format.fields import fields
from hlofuse.format.paths import layer_of
from hlofuse.ir import Instruction, Json, Module, replace
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
Condition: TypeAlias = Callable[[Q], Verdict | None]


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
    model = model_of(device, release) if device is not None else None
    is_closed = model is None and (replayed is None or replayed.needs_device)
    if device is None:
        backend = replayed.backend if replayed is not None else target
        account = account or plain_account(module, backend, release)
    else:
        account = KernelTimes(device, release).account(module)
    account = facts.account_after if facts is not None else account
    found = []
    for row in account.rows:
        kernel = row.instruction
        place = place_of(kernel, module) if facts is None else facts.final_place(kernel)
        source = (place.source or "").partition(" ")[0] or None
        own = fields(row, "us is_floor measured runs per_iteration")
        chosen = _chosen(kernel, row.cost, {} if is_closed else _by_rules(kernel, model))
        found.append(replace(chosen, source=source, line=place.line, **own))
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
        from_xla=replay is not None and replay.has_xla_final,
    )


def _by_rules(kernel: Instruction, model: KernelModel | None) -> Json:
    """The rule that says who runs a kernel, by the model of a GPU or on a CPU, and further notes."""
    operation = wrapped_operation(kernel) or kernel
    if model is None:
        return _settled(cpu_emitters.RULES, cpu_emitters.NOTES, operation)
    candidate = GpuKernel(operation, model)
    found = _settled(gpu_emitters.RULES, gpu_emitters.NOTES, candidate)
    heroes = {h.opcode for h in heroes_of(candidate)} if candidate.is_generated else ()
    blocks, threads = candidate.derived_launch(found["rule"]) or (None, None)
    return {**found, "heroes": tuple(sorted(heroes)), "blocks": blocks, "threads": threads}


def _settled(rules: Iterable[Condition[Q]], notes: Iterable[Condition[Q]], candidate: Q) -> Json:
    verdict = first_verdict(rules, candidate, AS_XLA)
    assert verdict is not None  # the last rule speaks about everything
    further = tuple(Note(v.rule, v.figures) for note in notes if (v := note(candidate)) is not None)
    return {"rule": verdict.rule, "figures": verdict.figures, "notes": further}


def _chosen(kernel: Instruction, cost: Cost, by_rules: Json) -> Choice:
    is_typed = not any(x.shape.has_unknown_type for x in (kernel, *kernel.operands))
    return Choice(
        kernel.name,
        kernel.opcode,
        kernel.shape.text_without_layout,
        kernel.fusion_kind,
        kernel.computation_name,
        int(cost.bytes_accessed) if is_typed else None,
        is_typed and bool(cost.unknown) and not kernel.is_opaque,
        layer=layer_of(kernel.op_name),
        **by_rules,
    )
