"""One module: its replay compared with XLA's result."""

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from math import isclose

from hlofuse.analysis.kernels import kernels
from hlofuse.compilation import Compilation, CompilationInput, ModuleTexts, ReplayConfig, compile
from hlofuse.format.escape import printable
from hlofuse.inputs.stage import doubt, stage_of
from hlofuse.ir import Module, grouped, parse_module
from hlofuse.ir.opcodes import values
from hlofuse.matching.kernels import KernelKeys
from hlofuse.passes.fusion.priority_fusion.observers import Disagreement, RecordedOrder
from hlofuse.trace import Event
from hlofuse.trace.priority_record import FusionStep, IneligibleStep, PriorityRecord, PriorityStep
from .model import FirstDifference, PassVerdict, RecordVerdict, Verdict, side_of

PASS = "priority-fusion"
_RELATIVE_TOLERANCE = 1e-3


def compare_record(record: PriorityRecord, events: Iterable[Event]) -> RecordVerdict:
    """A replay that went its own way: counts, and the first fusion that is not XLA's."""
    decisions = [e for e in events if e.pass_name == PASS]
    fuses = [e for e in decisions if e.event == "fuse"]
    expected = record.fusions()
    ordered = [(s.producer, s.consumer) for s in expected]
    actual = [(e.producer or "", e.consumer or "") for e in fuses]
    priorities = [s for s in record.steps if isinstance(s, PriorityStep)]
    priority_events = (e for e in decisions if e.event == "priority")
    by_producer = grouped(((e.producer or "", tuple(sorted(e.consumers))), e) for e in priority_events)
    agreed = sum(
        any(
            _close(s.us_fused, e.us_fused) and _close(s.us_unfused, e.us_unfused)
            for e in by_producer.get((s.producer, tuple(sorted(s.consumers))), ())
        )
        for s in priorities
    )
    xla_refusals = Counter((s.producer, s.reason) for s in record.steps if isinstance(s, IneligibleStep))
    our_refusals = Counter((e.producer or "", e.reason or "") for e in decisions if e.event == "ineligible")
    return RecordVerdict(
        in_order=ordered == actual,
        any_order=Counter(ordered) == Counter(actual),
        priorities=agreed,
        priorities_total=len(priorities),
        refusals=(xla_refusals & our_refusals).total(),
        refusals_total=xla_refusals.total(),
        difference=_first_fusion(record, fuses, decisions),
    )


def follow_record(recorded_order: RecordedOrder, record: PriorityRecord) -> RecordVerdict:
    """A replay that took XLA's choice among equals: the first entry that differs is a real difference."""
    recorded_order.finish()
    wrong = Counter(d.kind for d in recorded_order.disagreements)
    priorities = sum(isinstance(s, PriorityStep) for s in record.steps)
    refusals = sum(isinstance(s, IneligibleStep) for s in record.steps)
    order = wrong["choice"] + wrong["fusion"]
    return RecordVerdict(
        in_order=order == 0,
        any_order=order == 0,
        priorities=max(0, priorities - wrong["priority"]),
        priorities_total=priorities,
        refusals=max(0, refusals - wrong["refusal"]),
        refusals_total=refusals,
        difference=next(iter(recorded_order.disagreements), None),
        followed=True,
    )


def _first_fusion(record: PriorityRecord, fuses: list[Event], decisions: list[Event]) -> Disagreement | None:
    for number, (xla, our) in enumerate(zip_longest(record.fusions(), fuses)):
        if xla and our and (xla.producer, xla.consumer) == (our.producer, our.consumer):
            continue
        left = right = None
        if xla is not None:
            before = [s for s in record.steps[: record.steps.index(xla)] if isinstance(s, PriorityStep)]
            left = _into(xla, before)
        if our is not None:
            right = _into(our, [e for e in decisions if e.step < our.step and e.event == "priority"])
        return Disagreement("fusion", number, (xla or our).producer or "", left, right)
    return None


def _into(fusion: FusionStep | Event, estimates: Sequence[PriorityStep | Event]) -> str:
    """The two that were fused, with the figures of the last estimate of the producer before."""
    text = f"{fusion.producer} into {fusion.consumer}"
    last = next((e for e in reversed(estimates) if e.producer == fusion.producer), None)
    return text if last is None else f"{text} ({last.us_fused:g} µs fused, {last.us_unfused:g} unfused)"


def _close(a: float, b: float | None) -> bool:
    return b is not None and isclose(a, b, rel_tol=_RELATIVE_TOLERANCE)


def verify_module(
    input: CompilationInput,
    after: Module,
    config: ReplayConfig,
    *,
    name: str | None = None,
    after_passes: Sequence[tuple[str, Module]] | None = None,
    recorded: Sequence[str] | None = None,
    complete: bool = True,
    record: PriorityRecord | None = None,
) -> Verdict:
    """Replay a module and compare with XLA's `after`, and with its modules after single passes.

    `after_passes` holds (pass, module) for the passes that changed something, in order, as XLA dumps them:
    for none of them to have done so it is empty. None compares the end alone. `recorded` names the passes
    whose dumps are among them if they left one, where not all were kept; `after` is then the module after the
    last of those. Unless `complete`, a pass without a dump may have changed the module, too: only the modules
    that are there are compared. `record` are XLA's own steps of PriorityFusion; where the input has them,
    too, its choice among equal priorities is taken, so that a difference is no echo of unknown ids."""
    before = input.module
    start = time.perf_counter()
    observers = [ModuleTexts()] if after_passes is not None else []
    actual = compile(input, config, observers)
    seconds = time.perf_counter() - start
    compare = _Comparison()
    passes, difference, end, not_dumped = _compare_passes(
        actual, before, after, after_passes, recorded, complete, compare
    )
    exact, partition = compare.equal(end, after)
    if difference is None and not exact:
        difference = compare.difference(end, after, None, actual)
    named, total = compare.fusion_names(before, end, after)
    other_device = record is not None and not record.is_of(config.device)
    return Verdict(
        name or before.name,
        exact,
        partition,
        tuple(passes),
        named,
        total,
        len(kernels(after)),
        difference,
        None,
        seconds,
        _record_verdict(record, actual),
        _note(before, after, actual, other_device) if not exact else None,
        not_dumped,
        actual.order_source,
        reordered=compare.reordered(end, after) if partition and not exact else 0,
    )


def _note(before: Module, after: Module, actual: Compilation, other_device: bool) -> str | None:
    """Doubts about the two modules, which may explain the whole difference; None without one."""
    target = actual.config.target
    found = [doubt(before, target)]
    if before.name != after.name:
        found.append(
            f"BEFORE is {printable(before.name)}, AFTER is {printable(after.name)}: different programs."
        )
    if after.is_scheduled:
        found.append("AFTER is the module after all optimizations, changed by later passes.")
    elif not stage_of(after, target).is_fused and any(e.event == "fuse" for e in actual.events):
        found.append("AFTER has no fusions.")
    if other_device:
        found.append("XLA's fusion log next to it is for another device.")
    return " ".join(filter(None, found)) or None


def _record_verdict(record: PriorityRecord | None, actual: Compilation) -> RecordVerdict | None:
    if record is None:
        return None
    followed = actual.recorded_order
    return follow_record(followed, record) if followed is not None else compare_record(record, actual.events)


class _Comparison:
    """Comparison of modules with and without the order of results."""

    def __init__(self) -> None:
        self._strict = KernelKeys()
        self._loose = KernelKeys(output_order=False)

    def equal(self, actual: Module, xla: Module) -> tuple[bool, bool]:
        """Whether they are the same, and the same except the order of results."""
        if self._strict.module(actual).key == self._strict.module(xla).key:
            return True, True
        return False, self._loose.module(actual).key == self._loose.module(xla).key

    def reordered(self, actual: Module, xla: Module) -> int:
        """XLA's kernels that `actual`, which has the same up to the order of results, has in another one."""
        own, expected = (Counter(map(self._strict.kernel, kernels(m))) for m in (actual, xla))
        return (expected - own).total()

    def difference(
        self,
        actual: Module,
        xla: Module,
        pass_name: str | None,
        run: Compilation,
    ) -> FirstDifference:
        """The first kernel of either side that the other lacks."""
        a, b = self._strict.module(actual), self._strict.module(xla)
        own, expected = a.first_missing_in(b), b.first_missing_in(a)
        decision = None
        for e in reversed(run.events):
            if own is not None and e.event == "fuse" and e.fusion == own.name:
                decision = f"{e.pass_name} step {e.step}: {e.producer} into {e.consumer}, {e.rule}"
                break
        return FirstDifference(pass_name, side_of(own), side_of(expected), decision)

    def fusion_names(self, before: Module, actual: Module, xla: Module) -> tuple[int, int]:
        """The number of XLA's new fusions with an equal one of the same name, and of all new ones."""
        old = {i.name for i in before.instructions() if i.opcode == "fusion"}
        own = self._strict.module(actual).names()
        named = total = 0
        for key, names in self._strict.module(xla).names().items():
            created = {n for n in names if n not in old}
            total += len(created)
            named += len(created & set(own.get(key, ())))
        return named, total


_LACKS_FIGURES = values("horizontal_input_fusion")
"""Passes that report a change of the last computation only: without a dump nothing is known."""
_UNREPORTED = "unreported"
"""The corpus name of the module after such a pass, taken from the start of the next pipeline."""


def _compare_passes(
    actual: Compilation,
    before: Module,
    after: Module,
    after_passes: Sequence[tuple[str, Module]] | None,
    recorded: Sequence[str] | None,
    complete: bool,
    compare: _Comparison,
) -> tuple[list[PassVerdict], FirstDifference | None, Module, tuple[str, ...]]:
    """Pass by pass: where XLA has no dump, the pass left the module as it was, or unless `complete` may have
    changed it. Also gives the replayed module at `after`, and passes that changed it without a dump."""
    verdicts = []
    difference = None
    end, xla = actual.after, before
    left = list(after_passes or ())
    not_dumped: dict[str, None] = {}
    runs: Counter[str] = Counter()
    unsaid = False
    for done in actual.passes if after_passes is not None else ():
        if recorded is not None and done.name not in recorded:
            continue
        runs[done.name] += 1
        names = {done.name, f"{done.name}-{runs[done.name]}"}
        if done.name in _LACKS_FIGURES:
            names.add(_UNREPORTED)
            unsaid = done.changed
        dumped, previous = bool(left) and left[0][0] in names, xla
        if dumped:
            xla, unsaid = left.pop(0)[1], False
        elif not complete:
            not_dumped |= {done.name: None} if done.changed else {}
        if unsaid or not (dumped or complete):
            continue  # XLA's module is not known before the next dump
        own = parse_module(done.module_text or "", f"<replayed module after {done.name}>")
        exact, partition = compare.equal(own, xla)
        # A narrow pattern dumps passes that changed nothing, too.
        changed = dumped if complete else not compare.equal(previous, xla)[0]
        verdicts.append(PassVerdict(done.name, exact, partition, done.changed, changed))
        if not exact and difference is None:
            difference = compare.difference(own, xla, done.name, actual)
        if recorded is not None or (not complete and xla is after):
            end = own
    return verdicts, difference, end, tuple(not_dumped)
