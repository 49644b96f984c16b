"""A module after fusion as data: its kernels, what passes between them, and the rule at each boundary."""

from collections.abc import Container, Iterator

from hlofuse.account import Account
from hlofuse.account.flips import sums
from hlofuse.account.traffic import KernelCosts
from hlofuse.analysis.async_ops import ends_of, is_async_end
from hlofuse.analysis.elementwise import is_fusible
from hlofuse.analysis.kernels import computed_in, is_kernel, is_small_call, kernels
from hlofuse.compilation import compile
from hlofuse.cost.combined import CombinedModel
from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.cost.gpu.ticks import microseconds
from hlofuse.format import us_text
from hlofuse.inputs.choose_target import NO_TARGET
from hlofuse.ir import Instruction, Module, Record, Strings, copy_module, replace, with_trait
from hlofuse.ir.fusing import inline_calls
from hlofuse.passes.cse import HloCSE
from hlofuse.passes.dce import HloDCE
from hlofuse.passes.fusion.priority_fusion.legality import Legality
from hlofuse.pipelines import TARGETS
from hlofuse.pipelines.identity import ShownStage
from hlofuse.releases import Release
from hlofuse.reports.common.facts import Facts
from hlofuse.reports.common.lineage import is_view
from hlofuse.reports.common.refusals import refusals_between_kernels
from hlofuse.rules.catalogue import Rule, catalogue
from hlofuse.rules.gpu_fusible import fusible_computations, is_fusible_bitcast
from hlofuse.rules.priority_fusion.conditions import DOES_NOT_PAY
from hlofuse.rules.settings import AS_XLA
from hlofuse.rules.verdict import Verdict
from hlofuse.trace import Figures, OnlySkipped
from hlofuse.trace.provenance import final_instructions


class FusedKernel(Record):
    name: str
    opcode: str
    kind: str | None
    opcodes: Strings  # Its operations; empty for other kernels than fusions
    bytes: int


class Boundary(Record):
    """Two kernels, the second of which reads what the first wrote."""

    producer: str
    consumer: str
    bytes_between: int
    rule: str | None = None  # The rule that stands in the way; None where that is not known
    reason: str = ""  # XLA's words, or why it is not known
    figures: Figures | None = None
    runs: int = 1  # Launches of the consumer in one run of the program


class Fused(Record):
    module: str
    target: str
    device: str | None
    release: str
    evidence: str  # Evidence that it is fused already
    how: str  # The way in which the rules were evaluated, and its reliability
    kernels: tuple[FusedKernel, ...]
    boundaries: tuple[Boundary, ...]  # Greatest first
    rules: dict[str, Rule]  # The named rules by code
    right_file: str | None = None  # The dump before fusion, if it is in the same directory
    selected: str | None = None  # The name that these are the kernels of; None where all are here

    def only(self, name: str, names: Container[str]) -> "Fused":
        boundaries = tuple(b for b in self.boundaries if b.producer in names or b.consumer in names)
        codes = {b.rule for b in boundaries}
        return replace(
            self,
            kernels=tuple(k for k in self.kernels if k.name in names),
            boundaries=boundaries,
            rules={code: rule for code, rule in self.rules.items() if code in codes},
            selected=name.strip(),
        )


def kernels_of(module: Module) -> tuple[FusedKernel, ...]:
    """All kernels, the one that moves most first."""
    costs = KernelCosts()
    found = [
        FusedKernel(
            i.name, i.opcode, i.fusion_kind, tuple(_opcodes_inside(i)), costs.instruction(i).bytes_accessed
        )
        for i in kernels(module)
    ]
    return tuple(sorted(found, key=lambda k: -k.bytes))


def _opcodes_inside(kernel: Instruction) -> Iterator[str]:
    if kernel.is_fusion and kernel.called:
        for i in computed_in(kernel):
            if i.opcode not in ("constant", "tuple"):
                yield i.opcode


def edges(module: Module) -> list[tuple[Instruction, Instruction, Instruction, int]]:
    """(producer, value, consumer, bytes): `value` is the producer or a view of it, as it is read. The
    producer may run in another computation: one that a call runs, or the caller."""
    launched = set(kernels(module))
    found = []
    for consumer in launched:
        for value in dict.fromkeys(consumer.operands):
            for producer in _producers(value):
                if producer in launched:
                    found.append((producer, value, consumer, value.shape.leaves_size))
    return sorted(found, key=lambda e: (-e[3], e[0].name, e[2].name))


def _producers(value: Instruction) -> Iterator[Instruction]:
    """The instructions that compute a value, through views and calls; of a parameter the operands'."""
    stack: list[tuple[Instruction, tuple[int, ...]]] = [(value, ())]
    seen = set()
    while stack:
        entry = stack.pop()
        if entry in seen:
            continue
        seen.add(entry)
        x, index = entry
        computation = x.computation
        callers = computation.callers if computation is not None else {}
        if x.is_get_tuple_element:
            stack.append((x.operand, (x.tuple_index, *index)))
        elif x.opcode == "tuple" and index:
            stack.append((x.operands[index[0]], index[1:]))
        elif is_view(x) and x.operands:
            stack.append((x.operand, index))
        elif x.opcode == "call" and x.called and not is_kernel(x):
            stack.append((x.to_apply.root, index))
        elif x.is_parameter and callers and all(c.opcode == "call" for c in callers):
            stack += [(c.operands[x.parameter_number], index) for c in callers]
        else:
            yield x


# Why two kernels of a fused module are still two: the rule at each boundary.
#
# Priority fusion decides about finished fusions, too, so its rules are asked about the kernels as they stand.
# The order is that of `PriorityFusionQueue::CalculateProducerPriority`
# (`xla/backends/gpu/transforms/priority_fusion.cc`): may all users of the producer take it in, and does it
# pay?
#
# `InstructionFusion` hardly decides about finished fusions: it works from the last consumer back, so that a
# producer is still a single instruction when it is considered. There the fusions are taken apart and made
# again, and the refusals read off; they are reported only for kernels that come out the same. Where that
# leaves a pair open on XLA:GPU (a bitcast lies between, a kernel comes out differently, or the rule is only
# that the two cannot share an array), the passes' verdict on the finished kernels counts, `FusionMerger`'s
# first: it exists to merge those.


def explain_fused(
    module: Module,
    target: str,
    release: Release,
    stage: ShownStage,
    device: DeviceDescription | None,
) -> Fused:
    """The boundaries between kernels; without reasons for XLA:TPU, and for a GPU's without a device."""
    title = release.title
    reason = None
    if stage.backend in NO_TARGET:
        backend = str(stage.backend).upper()
        reason = f"{backend}'s fusion passes are not public"
        target, title, device = backend.lower(), f"{backend}'s own compiler", None
    elif TARGETS[target].needs_device and device is None:
        reason = "the rules need the numbers of the GPU (--device)"
    if reason is not None:
        found = [Boundary(p.name, c.name, size, None, reason) for p, _, c, size in edges(module)]
        how = "Kernels and the bytes between them come from the module."
    else:
        module = _calls_in_place(module)
        if device is None or target == "gpu-legacy":
            found, how = recreated_boundaries(module, target, device)
        else:
            found, how = gpu_boundaries(module, device, release)
        runs = {
            row.instruction.name: row.runs for row in Account(module, backend=TARGETS[target].backend).rows
        }
        found = [replace(b, runs=runs.get(b.consumer, 1)) for b in found]
    quoted = {b.rule for b in found}
    return Fused(
        module.name,
        target,
        device.name if device is not None else None,
        title,
        stage.evidence,
        how,
        kernels_of(module),
        tuple(found),
        {code: rule for code, rule in catalogue().items() if code in quoted},
        str(stage.right_file) if stage.right_file is not None else None,
    )


def _calls_in_place(module: Module) -> Module:
    """The module, or a copy in which command buffers, parallel tasks and asynchronous computations stand in
    their callers. Those with several callers stay, as in XLA, and calls that are one kernel."""

    def is_call(i: Instruction) -> bool:
        return (
            i.opcode in ("call", "async-start")
            and len(i.called) == 1
            and not is_small_call(i)
            and sum(i.to_apply.callers.values()) == 1
        )

    if not any(i.opcode == "async-start" or is_call(i) for i in module.instructions()):
        return module
    out = copy_module(module)
    for start in [i for i in out.instructions() if i.opcode == "async-start" and len(i.called) == 1]:
        for end in reversed(list(ends_of(start))):
            end.replace_all_uses_with(start)
            end.drop_all_control_dependencies()
            end.parent.remove_instruction(end)
    inline_calls(out, is_call)
    return out


HOW = "Priority fusion's rules and cost model were evaluated for each pair of kernels in this module."
_ACROSS_CALLS = "XLA fuses inside a computation; a call lies between the two"


def gpu_boundaries(
    module: Module,
    device: DeviceDescription,
    release: Release,
) -> tuple[list[Boundary], str]:
    """Every pair of kernels with the rule that keeps it apart."""
    considered_count = copy_module(module)  # asking may not leave a trace in the caller's module
    queries = _Queries(considered_count, device, release)
    considered = {i for c in fusible_computations(considered_count, release) for i in c}
    found = []
    for producer, value, consumer, size in edges(considered_count):
        names = producer.name, consumer.name, size
        if producer.computation is not consumer.computation:
            found.append(Boundary(*names, None, _ACROSS_CALLS))
            continue
        if producer not in considered:
            found.append(Boundary(*names, None, "the pass does not run on this computation"))
            continue
        # Of what is read as a bitcast only, XLA asks before it looks at who reads that; a kernel of several
        # results was asked about before it had them.
        unread = queries.refusal(producer) if value.is_bitcast and is_fusible(producer) else None
        is_element = value.is_get_tuple_element
        result = queries.legality.verdict(producer, consumer) if is_element else None
        computed = producer if is_async_end(value.opcode) else value
        verdict = unread or result or queries.answer(computed, consumer)
        if verdict is None:
            reason = "priority fusion allows it; a later pass created the kernels"
            found.append(Boundary(*names, None, reason))
        else:
            found.append(Boundary(*names, verdict.rule.code, verdict.reason, verdict.figures))
    return found, HOW


class _Queries:
    """Asks as priority fusion does when it works out a producer's priority."""

    def __init__(self, module: Module, device: DeviceDescription, release: Release) -> None:
        self._model = CombinedModel(device, release)
        self.legality = Legality(module, self._model, AS_XLA)
        self._of_all: dict[Instruction, Verdict | None] = {}
        """The verdict against fusing a producer into all its users together."""

    def answer(self, producer: Instruction, consumer: Instruction) -> Verdict | None:
        """The verdict that separates the two: on them, on another user of the producer, or by cost."""
        verdict = self.legality.verdict(producer, consumer)
        is_bitcast = is_fusible_bitcast(producer, self._model.release)
        if verdict is not None or not is_fusible(producer) or is_bitcast:
            return verdict
        if producer not in self._of_all:
            self._of_all[producer] = self.refusal(producer) or self._cost(producer)
        return self._of_all[producer]

    def refusal(self, producer: Instruction) -> Verdict | None:
        """The rule that keeps it out of all of its users."""
        found = self.legality.refusal(producer)
        return found[0] if found is not None else None

    def _cost(self, producer: Instruction) -> Verdict | None:
        unfused, fused = sums(self._model, producer)
        if fused <= unfused:
            return None
        us = {"us_unfused": microseconds(unfused), "us_fused": microseconds(fused)}
        reason = f"fused {us_text(us['us_fused'])}, unfused {us_text(us['us_unfused'])}"
        return Verdict(DOES_NOT_PAY, us, reason)


_FUSION_KINDS = ("kLoop", "kInput", "kOutput")
_UNTOLD = with_trait("free") - {"parameter"}


def split_fusions(module: Module) -> tuple[Module, dict[str, str]]:
    """A copy without fusions of passes, copies of one operation merged; names there by those here."""
    unfused = copy_module(module)
    unfused.begin_run()
    unfused.attributes = unfused.attributes.without("is_scheduled")
    inline_calls(unfused, lambda i: i.fusion_kind in _FUSION_KINDS and i.fusion_around is None)
    recorder = OnlySkipped()
    HloCSE(only_fusion_computations=False).run(unfused, recorder)
    HloDCE().run(unfused, recorder)
    return unfused, {name: x.name for name, x in final_instructions(unfused.instructions()).items()}


def recreated_boundaries(
    module: Module, target: str, device: DeviceDescription | None = None
) -> tuple[list[Boundary], str]:
    """Every pair of kernels, with the reason where one is known; and how that was found out."""
    unfused, merged = split_fusions(module)
    replayed = compile(unfused, target, device=device)
    facts = Facts(replayed)
    names_, remade = {}, {}  # of the kernels that were created again with the same content
    for name in facts.launched_after:
        content = frozenset(m for m in facts.lineage.members(name) if m in facts.before)
        names_[_telling(content, facts)] = name
    for kernel in kernels(module):
        is_whole = kernel.is_fusion and kernel.called and kernel.fusion_kind != "kCustom"
        members = kernel.fused_computation if is_whole else (kernel,)
        content = frozenset(merged.get(i.name, i.name) for i in members if not i.is_parameter)
        if (new := names_.get(_telling(content, facts))) is not None:
            remade[kernel] = new
    refusals_ = refusals_between_kernels(replayed, facts)
    found = []
    for producer, _, consumer, size in edges(module):
        one, two = remade.get(producer), remade.get(consumer)
        refusal = refusals_.get((one, two)) if one and two else None
        rule = figures = None
        reason = ""
        if producer.computation is not consumer.computation:
            reason = _ACROSS_CALLS
        elif refusal is not None:
            rule, reason, figures = refusal.rule, refusal.reason or "", refusal.figures
        elif not is_fusible(consumer):
            reason = f"{consumer.opcode} cannot be fused into"
        elif not (one and two):
            other = producer.name if one is None else consumer.name
            reason = f"{other} differs when it is re-fused"
        else:
            reason = "no pass considered fusing the two"
        found.append(Boundary(producer.name, consumer.name, size, rule, reason, figures))
    how = (
        f"Fusions were split and re-fused as in XLA: {len(remade):,} of {len(kernels(module)):,} kernels"
        " match; reasons cover these."
    )
    return found, how


def _telling(names: frozenset[str], facts: Facts) -> frozenset[str]:
    return frozenset(n for n in names if n in facts.before and facts.before[n].opcode not in _UNTOLD)
