"""The choice for each kernel, asked of the rules, as plain data."""

import math
from collections.abc import Callable, Container, Iterable
from typing import TypeAlias, TypeVar

from hlofuse.account import Account
from hlofuse.account.functions import Functions, functions_of
from hlofuse.account.replaying import account_on
from hlofuse.analysis.async_ops import wrapped_operation
from hlofuse.analysis.cost import Cost
from hlofuse.cost.combined import model_of
from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.cost.gpu.model import KernelModel
from hlofuse.format import fields
from hlofuse.format.paths import layer_of
from hlofuse.inputs.profile import MeasuredTime
from hlofuse.ir import Instruction, Json, Module, Record, Strings, grouped, replace
from hlofuse.pipelines import TARGETS
from hlofuse.releases import Release
from hlofuse.reports.common.facts import Facts, place_of
from hlofuse.reports.common.functions import functions_json
from hlofuse.reports.common.model import CreatedBy, both_names, created_by_json, measured_json, time_kind
from hlofuse.rules import cpu_emitters, gpu_emitters
from hlofuse.rules.catalogue import Rule
from hlofuse.rules.gpu_emitters.fusions import heroes_of
from hlofuse.rules.settings import AS_XLA, first_verdict
from hlofuse.rules.verdict import Verdict
from hlofuse.trace import Figures
from hlofuse.trace.recorder import NO_FIGURES


class Note(Record):
    """Something else to know about a kernel: a rule, and what it rests on."""

    rule: Rule
    figures: Figures


class Choice(Record):
    name: str
    opcode: str
    shape: str
    kind: str | None  # kLoop and so on for a fusion
    computation: str
    bytes_accessed: int | None  # None where an element type is not known
    bytes_floor: bool  # `bytes_accessed` is a lower bound, as of a custom call, whose cost is not known
    rule: Rule | None = None  # None where no rule is known to say who runs it (`KernelSelection.is_closed`)
    figures: Figures = NO_FIGURES
    notes: tuple[Note, ...] = ()
    heroes: Strings = ()
    """Opcodes of the heroes on GPU, sorted, each once: XLA names the kernel by them. Else empty."""
    blocks: int | None = None
    """Launch dimensions where XLA derives them from the kernel; None where a library or autotuning does."""
    threads: int | None = None
    us: float | None = None  # Estimated time, launch included; None on CPU and where XLA makes no estimate
    source: str | None = None
    line: str = ""  # The user's own line
    layer: str = ""  # The model's layer (`format/paths.py`), where the dump has one
    is_floor: bool = False  # `us` is a lower bound: XLA has no estimate, or one that no machine reaches
    is_open: bool = False  # `us`, of its bytes, says nothing of its time
    runs: int = 1
    count: int = 1  # equal kernels that share a row, this one among them
    per_iteration: bool = False  # `runs` counts one iteration of a loop whose trip count is not known
    measured: MeasuredTime | None = None
    final: str | None = None  # XLA's final name, which a profiler shows; None where it is not known
    created_by: tuple[CreatedBy, ...] = ()  # Rewrites before and after fusion that created it or its contents

    @property
    def shown(self) -> str:
        """The final name, then the name at the end of fusion where it is another."""
        return both_names(self.final or self.name, self.name)

    @property
    def launches(self) -> int:
        return self.runs * self.count

    @property
    def run_by(self) -> str:
        """The emitter or library that runs it, in the words of the rule."""
        return self.rule.runs if self.rule is not None else "not known"

    @property
    def code(self) -> str | None:
        """The code of the rule that says who runs it."""
        return self.rule.code if self.rule is not None else None

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rule that says who runs it, where there is one, and those of the notes."""
        own = () if self.rule is None else (self.rule,)
        return (*own, *(note.rule for note in self.notes))


class Runner(Record):
    """One of those who run kernels, and how much falls to it."""

    name: str
    kernels: int
    us: float | None
    bytes_accessed: int
    is_floor: bool  # `us` has lower bounds in it


class KernelSelection(Record):
    module: str
    file: str | None
    target: str
    device: str | None
    release: str
    replayed: bool  # The kernels are those a replay left; else those of the dump as given
    what_if: Strings
    kernels: tuple[Choice, ...]  # In the order of the module, the entry computation first
    selected: str | None = None  # The name that these are the kernels of; None where all are here
    launched: int = 0  # Kernels of the module, also those that are left out
    call_us: float = 0.0  # µs of the call of the program and of its loops, on a CPU; part of the total
    functions: Functions = Functions()  # The shares of the user's functions; none of a selection
    from_xla: bool = False  # The kernels are those of XLA's own final module, next to the input

    def only(self, name: str, meant: Container[str]) -> "KernelSelection":
        """The selection of the kernels that a name means, by their names at the end of fusion."""
        chosen = tuple(k for k in self.kernels if k.name in meant)
        own = replace(self, kernels=chosen, selected=name.strip(), launched=len(self.kernels))
        return replace(own, call_us=0.0, functions=Functions())

    @property
    def is_closed(self) -> bool:
        """True if no rule says who runs a kernel: on TPU, and on a GPU without a device."""
        return not any(k.rule for k in self.kernels)

    @property
    def runners(self) -> list[Runner]:
        """Emitters and libraries with their shares, most kernels first."""
        found = grouped((kernel.run_by, kernel) for kernel in self.kernels)
        runners = [
            Runner(
                name,
                len(own),
                sum(times) if (times := [k.us * k.runs for k in own if k.us is not None]) else None,
                sum((k.bytes_accessed or 0) * k.runs for k in own),
                any(k.is_floor or k.us is None for k in own if k.runs),
            )
            for name, own in found.items()
        ]
        return sorted(runners, key=lambda r: (-r.kernels, r.name))

    @property
    def heaviest_first(self) -> list[Choice]:
        """Equal kernels as one. By measured time, by estimated time, then by bytes of all of them."""
        groups = grouped((_equal(k), k) for k in self.kernels).values()

        def weight(k: Choice) -> tuple[float, float, int]:
            measured = k.measured.total_us if k.measured is not None else 0.0
            us = k.us or 0.0
            return -measured, -us * k.launches, -(k.bytes_accessed or 0) * k.launches

        return sorted(map(_together, groups), key=weight)


def _together(kernels: list[Choice]) -> Choice:
    found = [k.measured for k in kernels if k.measured is not None]
    first = replace(kernels[0], count=len(kernels))
    if not found:
        return first
    us = sum(m.total_us for m in found)
    calls = sum(m.calls for m in found)
    return replace(first, measured=replace(found[0], calls=calls, total_us=us))


def _equal(k: Choice) -> object:
    """The key of kernels that share a row: the layers of a model have equal ones."""
    stem = (k.final or k.name).rstrip(".0123456789")
    # Of measured times a factor of two is no noise.
    us = k.us
    if k.measured is not None and k.measured.us:
        us = round(math.log2(k.measured.us))
    created_by = tuple(c.rule.code for c in k.created_by)
    rules = tuple(rule.code for rule in k.rules)
    work = k.opcode, k.shape, k.kind, k.line, k.source
    cost = us, k.bytes_accessed, k.runs, k.per_iteration, k.blocks, k.threads
    return stem, work, cost, rules, created_by


def selection_json(s: KernelSelection) -> Json:
    rules = {r.code: r for k in s.kernels for r in k.rules}
    return {
        "schema": "hlofuse.kernels/3",
        **fields(s, "module file target device release replayed what_if selected"),
        "runners": [fields(r, "run_by=name kernels us bytes_accessed") for r in s.runners],
        "functions": functions_json(s.functions),
        **fields(s, "kernels", _kernel),
        "rules": {
            code: fields(r, "title asks=condition why advice run_by=runs")
            for code, r in sorted(rules.items())
        },
    }


def _kernel(k: Choice) -> Json:
    return {
        "name": k.final or k.name,
        **fields(k, "input_name=name opcode shape kind computation run_by rule=code"),
        "figures": dict(k.figures),
        "notes": [{"rule": n.rule.code, "title": n.rule.title, "figures": dict(n.figures)} for n in k.notes],
        **fields(
            k, "heroes blocks threads us time_us=us floor=is_floor runs bytes_accessed bytes_floor source"
        ),
        "time_kind": time_kind(k.us, k.is_floor, k.is_open),
        **measured_json(k.measured),
        **fields(k, "made_by=created_by", created_by_json),
    }


Q = TypeVar("Q")
Condition: TypeAlias = Callable[[Q], Verdict | None]


def kernel_selection(
    module: Module,
    target: str,
    release: Release,
    *,
    device: DeviceDescription | None = None,
    facts: Facts | None = None,
    what_if: Strings = (),
    account: Account | None = None,
) -> KernelSelection:
    """The emitter or library of each kernel of a fused module: not known of a GPU without a device, or of a
    backend without a target. `facts` are those of the replay whose final module this is; `what_if` are its
    changes. `account` is that of the module, where it is at hand."""
    replay = facts.replay if facts is not None else None
    replayed = TARGETS.get(target)
    model = model_of(device, release) if device is not None else None
    is_closed = model is None and (replayed is None or replayed.needs_device)
    backend = replayed.backend if replayed is not None else target
    account = facts.account_after if facts is not None else account
    account = account or account_on(module, device, backend, release)
    found = []
    for row in account.rows:
        kernel = row.instruction
        place = place_of(kernel, module) if facts is None else facts.final_place(kernel)
        source = (place.source or "").partition(" ")[0] or None
        own = fields(row, "us is_floor is_open measured runs per_iteration")
        chosen = _chosen(kernel, row.cost, {} if is_closed else _by_rules(kernel, model, release))
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


def _by_rules(kernel: Instruction, model: KernelModel | None, release: Release) -> Json:
    """The rule that says who runs a kernel, by the model of a GPU or on a CPU, and further notes."""
    operation = wrapped_operation(kernel) or kernel
    if model is None:
        return _settled(cpu_emitters.rules_of(release), cpu_emitters.NOTES, operation)
    candidate = gpu_emitters.GpuKernel(operation, model)
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
