"""One module: replay it and hold the result against XLA's."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence

from hlofuse.analysis.kernels import kernels
from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.format.escape import printable
from hlofuse.inputs.stage import doubt, stage_of
from hlofuse.ir.graph import Instruction, Module
from hlofuse.ir.text.reader import parse_module
from hlofuse.ir.unique_ids import UniqueIds
from hlofuse.pipelines.device import device_of
from hlofuse.replay import ModuleTexts, Replay, ReplayInput, replay
from hlofuse.reports.verify.model import (
    FirstDifference,
    KernelSide,
    PassVerdict,
    RecordVerdict,
    Verdict,
)
from hlofuse.reports.verify.records import compare_record, follow_record
from hlofuse.reports.verify.structure import ModuleStructure, Structures, first_unmatched
from hlofuse.trace.priority_record import PriorityRecord


def verify_module(
    before: Module,
    after: Module,
    *,
    name: str | None = None,
    target: str = "cpu",
    device: str | DeviceDescription | None = None,
    option: str | None = None,
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
    input = ReplayInput(before, ids, record if ties_from_record else None)
    start = time.perf_counter()
    observers = [ModuleTexts()] if after_passes is not None else []
    ours = replay(input, target, observers, device=device, option=option)
    seconds = time.perf_counter() - start
    compare = _Comparison()
    not_dumped: tuple[str, ...] = ()
    if complete or after_passes is None:
        passes, difference, end = _compare_passes(ours, before, after_passes, recorded, compare)
    else:
        passes, difference, end, not_dumped = _compare_dumps(ours, before, after_passes, after, compare)
    exact, partition = compare.equal(end, after)
    if difference is None and not exact:
        difference = compare.difference(end, after, None, ours)
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
        _record_verdict(record, ours),
        _remark(before, after, ours, target, other_device) if not exact else None,
        not_dumped,
    )


def _remark(before: Module, after: Module, ours: Replay, target: str, other_device: bool) -> str | None:
    """What is odd about the two modules, and may be all the difference; None for nothing."""
    found = [doubt(before, "BEFORE", target)]
    if before.name != after.name:
        found.append(
            f"BEFORE is {printable(before.name)}, AFTER {printable(after.name)}: not of one program."
        )
    if after.is_scheduled:
        found.append("AFTER shows the module after all optimizations, to which later passes have added.")
    elif not stage_of(after, target).is_fused and any(e.event == "fuse" for e in ours.events):
        found.append("AFTER shows no sign of fusion.")
    if other_device:
        found.append("XLA's own record beside it is of another device.")
    return " ".join(filter(None, found)) or None


def _record_verdict(record: PriorityRecord | None, ours: Replay) -> RecordVerdict | None:
    if record is None:
        return None
    followed = ours.recorded_order
    return follow_record(followed, record) if followed is not None else compare_record(record, ours.events)


class _Comparison:
    """Both ways of looking, with and without the order of results."""

    def __init__(self) -> None:
        self._strict = Structures()
        self._loose = Structures(output_order=False)
        self._known: dict[Module, ModuleStructure] = {}

    def strict(self, module: Module) -> ModuleStructure:
        known = self._known.get(module)
        if known is None:
            known = self._known[module] = self._strict.module(module)
        return known

    def equal(self, ours: Module, xla: Module) -> tuple[bool, bool]:
        """Exactly the same, and the same up to the order of results."""
        if self.strict(ours).key == self.strict(xla).key:
            return True, True
        return False, self._loose.module(ours).key == self._loose.module(xla).key

    def difference(self, ours: Module, xla: Module, pass_name: str | None, run: Replay) -> FirstDifference:
        """The first kernel of either side that the other lacks."""
        a, b = self.strict(ours), self.strict(xla)
        mine = first_unmatched(a, b.counted())
        theirs = first_unmatched(b, a.counted())
        decision = None
        for e in reversed(run.events):
            if mine is not None and e.event == "fuse" and e.fusion == mine.name:
                decision = f"{e.pass_name} step {e.step}: {e.producer} into {e.consumer}, {e.rule}"
                break
        return FirstDifference(pass_name, _side(mine), _side(theirs), decision)

    def fusion_names(self, before: Module, ours: Module, xla: Module) -> tuple[int, int]:
        """Fusions that the passes made: how many of XLA's have a structural twin of the same name."""
        old = {i.name for i in before.instructions() if i.opcode == "fusion"}
        mine = self.strict(ours).names()
        named = total = 0
        for key, names in self.strict(xla).names().items():
            made = {n for n in names if n not in old}
            total += len(made)
            named += len(made & set(mine.get(key, ())))
        return named, total


_SAYS_TOO_LITTLE = frozenset({"horizontal_input_fusion"})
"""Passes that tell of a change of the last computation only: without a dump nothing is known."""
_UNREPORTED = "unreported"
"""What a corpus calls the module after such a pass, taken from the start of the next pipeline."""


def _compare_passes(
    ours: Replay,
    before: Module,
    after_passes: Sequence[tuple[str, Module]] | None,
    recorded: Sequence[str] | None,
    compare: _Comparison,
) -> tuple[list[PassVerdict], FirstDifference | None, Module]:
    """Pass by pass: where XLA has no dump, the pass left the module as it was.

    Also gives the module of ours that stands where XLA's last one does.
    """
    verdicts: list[PassVerdict] = []
    difference = None
    if after_passes is None:
        return verdicts, None, ours.after
    end = ours.after
    left = list(after_passes)
    xla = before
    runs: Counter[str] = Counter()
    unsaid = False
    for done in ours.passes:
        if recorded is not None and done.name not in recorded:
            continue
        runs[done.name] += 1
        names = (done.name, f"{done.name}-{runs[done.name]}")
        dumped = bool(left) and left[0][0] in names
        if done.name in _SAYS_TOO_LITTLE:
            dumped = dumped or (bool(left) and left[0][0] == _UNREPORTED)
            unsaid = done.changed and not dumped
        if dumped:
            xla, unsaid = left.pop(0)[1], False
        if unsaid:
            continue  # XLA's module is not known before the next dump
        mine = parse_module(done.module_text or "", f"<our module after {done.name}>")
        exact, partition = compare.equal(mine, xla)
        end = mine
        verdicts.append(PassVerdict(done.name, exact, partition, done.changed, dumped))
        if not exact and difference is None:
            difference = compare.difference(mine, xla, done.name, ours)
    return verdicts, difference, ours.after if recorded is None else end


def _compare_dumps(
    ours: Replay,
    before: Module,
    after_passes: Sequence[tuple[str, Module]],
    after: Module,
    compare: _Comparison,
) -> tuple[list[PassVerdict], FirstDifference | None, Module, tuple[str, ...]]:
    """The passes that left a dump, where others may have changed the module without one.

    Also gives our module that stands where `after` does, and the passes that changed ours and left no dump.
    """
    verdicts: list[PassVerdict] = []
    difference = None
    end, xla = ours.after, before
    left = list(after_passes)
    not_dumped: list[str] = []
    runs: Counter[str] = Counter()
    for done in ours.passes:
        runs[done.name] += 1
        if not left or left[0][0] not in (done.name, f"{done.name}-{runs[done.name]}"):
            not_dumped += [done.name] if done.changed else []
            continue
        known, xla = xla, left.pop(0)[1]
        mine = parse_module(done.module_text or "", f"<our module after {done.name}>")
        exact, partition = compare.equal(mine, xla)
        changed = not compare.equal(known, xla)[0]  # a narrow pattern dumps passes that changed nothing, too
        verdicts.append(PassVerdict(done.name, exact, partition, done.changed, changed))
        if not exact and difference is None:
            difference = compare.difference(mine, xla, done.name, ours)
        if xla is after:
            end = mine
    return verdicts, difference, end, tuple(dict.fromkeys(not_dumped))


_QUIET = ("parameter", "constant", "tuple")


def _side(i: Instruction | None) -> KernelSide | None:
    if i is None:
        return None
    contents: tuple[str, ...] = ()
    if i.opcode == "fusion":
        contents = tuple(x.opcode for x in i.fused_computation.post_order() if x.opcode not in _QUIET)
    home = i.computation.name if i.computation is not None else ""
    return KernelSide(
        i.name, i.opcode, i.fusion_kind, str(i.shape), home, tuple(o.name for o in i.operands), contents
    )
