"""One module: its replay compared with XLA's result."""

import time
from collections import Counter
from collections.abc import Sequence

from hlofuse.analysis.kernels import kernels
from hlofuse.compilation import Compilation, CompilationInput, ModuleTexts, compile, replay_config
from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.format.escape import printable
from hlofuse.inputs.stage import doubt, stage_of
from hlofuse.ir.graph import Module
from hlofuse.ir.text.reader import parse_module
from hlofuse.ir.unique_ids import UniqueIds
from hlofuse.matching.kernels import KernelKeys
from hlofuse.pipelines.device import device_of
from hlofuse.reports.verify.model import FirstDifference, PassVerdict, RecordVerdict, Verdict, side_of
from hlofuse.reports.verify.records import compare_record, follow_record
from hlofuse.trace.priority_record import PriorityRecord


def verify_module(
    before: Module,
    after: Module,
    *,
    name: str | None = None,
    target: str = "cpu",
    device: str | DeviceDescription | None = None,
    xla: str | None = None,
    option: str | None = None,
    flags: tuple[str, ...] = (),
    ids: UniqueIds | None = None,
    after_passes: Sequence[tuple[str, Module]] | None = None,
    recorded: Sequence[str] | None = None,
    complete: bool = True,
    record: PriorityRecord | None = None,
    ties_from_record: bool = False,
) -> Verdict:
    """Replay `before` and compare with XLA's `after`, and with its modules after single passes.

    `after_passes` holds (pass, module) for the passes that changed something, in order, as XLA dumps
    them: for none of them to have done so it is empty. None compares the end alone. `recorded` names
    the passes whose dumps are among them if they left one, where not all were kept; `after` is then the
    module after the last of those. Unless `complete`, a pass without a dump may have changed the module,
    too: only the modules that are there are compared. `record` are XLA's own steps of PriorityFusion;
    `ties_from_record` takes its choice among equal priorities, so that a difference is no echo of ids that
    are not known.
    """
    input = CompilationInput(before, ids, record if ties_from_record else None)
    start = time.perf_counter()
    observers = [ModuleTexts()] if after_passes is not None else []
    config = replay_config(target, device, xla=xla, option=option, xla_flags=flags)
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
    other_device = record is not None and not record.is_of(device_of(target, device)[0])
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
        _note(before, after, actual, target, other_device) if not exact else None,
        not_dumped,
        actual.order_source,
        reordered=compare.reordered(end, after) if partition and not exact else 0,
    )


def _note(before: Module, after: Module, actual: Compilation, target: str, other_device: bool) -> str | None:
    """Doubts about the two modules, which may explain the whole difference; None without one."""
    found = [doubt(before, "BEFORE", target)]
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
        self, actual: Module, xla: Module, pass_name: str | None, run: Compilation
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


_LACKS_FIGURES = frozenset({"horizontal_input_fusion"})
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
    changed it.

    Also gives the replayed module at the place of `after`, and passes that changed it and left no dump.
    """
    verdicts: list[PassVerdict] = []
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
