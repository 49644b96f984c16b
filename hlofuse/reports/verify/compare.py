"""One module: replay it and hold the result against XLA's."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Hashable, Sequence

from hlofuse.analysis.kernels import is_kernel, kernels
from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.format.escape import printable
from hlofuse.inputs.stage import doubt, stage_of
from hlofuse.ir.graph import Computation, Instruction, Module
from hlofuse.ir.grouping import grouped, unmatched
from hlofuse.ir.opcodes import CALLED_COMPUTATION_ATTRIBUTES
from hlofuse.ir.text.reader import parse_module
from hlofuse.ir.unique_ids import UniqueIds
from hlofuse.pipelines.device import device_of
from hlofuse.replay import ModuleTexts, Replay, ReplayInput, replay, replay_config
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
    input = ReplayInput(before, ids, record if ties_from_record else None)
    start = time.perf_counter()
    observers = [ModuleTexts()] if after_passes is not None else []
    config = replay_config(target, device, xla=xla, option=option, xla_flags=flags)
    actual = replay(input, config, observers)
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
    )


def _note(before: Module, after: Module, actual: Replay, target: str, other_device: bool) -> str | None:
    """What is odd about the two modules, and may be all the difference; None for nothing."""
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


def _record_verdict(record: PriorityRecord | None, actual: Replay) -> RecordVerdict | None:
    if record is None:
        return None
    followed = actual.recorded_order
    return follow_record(followed, record) if followed is not None else compare_record(record, actual.events)


class _Comparison:
    """Both ways of looking, with and without the order of results."""

    def __init__(self) -> None:
        self._strict = Structures()
        self._loose = Structures(output_order=False)
        self._structures: dict[Module, ModuleStructure] = {}

    def strict(self, module: Module) -> ModuleStructure:
        structure = self._structures.get(module)
        if structure is None:
            structure = self._structures[module] = self._strict.module(module)
        return structure

    def equal(self, actual: Module, xla: Module) -> tuple[bool, bool]:
        """Exactly the same, and the same except the order of results."""
        if self.strict(actual).key == self.strict(xla).key:
            return True, True
        return False, self._loose.module(actual).key == self._loose.module(xla).key

    def difference(self, actual: Module, xla: Module, pass_name: str | None, run: Replay) -> FirstDifference:
        """The first kernel of either side that the other lacks."""
        a, b = self.strict(actual), self.strict(xla)
        own = first_unmatched(a, b.counted())
        expected = first_unmatched(b, a.counted())
        decision = None
        for e in reversed(run.events):
            if own is not None and e.event == "fuse" and e.fusion == own.name:
                decision = f"{e.pass_name} step {e.step}: {e.producer} into {e.consumer}, {e.rule}"
                break
        return FirstDifference(pass_name, side_of(own), side_of(expected), decision)

    def fusion_names(self, before: Module, actual: Module, xla: Module) -> tuple[int, int]:
        """Fusions that the passes made: how many of XLA's have a structural duplicate of the same name."""
        old = {i.name for i in before.instructions() if i.opcode == "fusion"}
        own = self.strict(actual).names()
        named = total = 0
        for key, names in self.strict(xla).names().items():
            created = {n for n in names if n not in old}
            total += len(created)
            named += len(created & set(own.get(key, ())))
        return named, total


_LACKS_FIGURES = frozenset({"horizontal_input_fusion"})
"""Passes that tell of a change of the last computation only: without a dump nothing is known."""
_UNREPORTED = "unreported"
"""What a corpus calls the module after such a pass, taken from the start of the next pipeline."""


def _compare_passes(
    actual: Replay,
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


# Structure without names: equal keys for instructions that compute the same in the same kernels.


# Where an operation came from, and names (which the graph holds as edges).
_IGNORED = frozenset({*CALLED_COMPUTATION_ATTRIBUTES, "metadata", "control-predecessors", "origin", "kind"})


class Structures:
    """Hands out keys.

    `output_order` says whether the order of a multi-output fusion's results counts.
    """

    def __init__(self, *, output_order: bool = True) -> None:
        self._output_order = output_order
        self._keys: dict[Hashable, int] = {}
        self._texts: dict[tuple[int, ...], Hashable] = {}

    def _key(self, value: Hashable) -> int:
        return self._keys.setdefault(value, len(self._keys))

    def module(self, module: Module) -> ModuleStructure:
        """The keys of every instruction outside fusions."""
        structure = ModuleStructure(module)
        for computation in module.computation_post_order():
            if computation.fusion is None:
                self._computation(computation, structure)
        structure.key = self._key(
            ("module", structure.computations[module.entry], tuple(sorted(structure.computations.values())))
        )
        return structure

    def _computation(self, computation: Computation, structure: ModuleStructure) -> None:
        keys = structure.keys
        order = computation.post_order()
        for i in order:
            keys[i] = self._instruction(i, keys, structure)
        # Everything in it counts, also what the root does not need. An element of a tuple counts where it
        # is used: XLA's texts write no line for it, nor tell two equal ones apart.
        written = [i for i in order if i.opcode != "get-tuple-element" or i.is_root]
        content = tuple(sorted(keys[i] for i in written))
        structure.computations[computation] = self._key(("computation", keys[computation.root], content))
        structure.orders[computation] = written

    def _instruction(self, i: Instruction, keys: dict[Instruction, int], structure: ModuleStructure) -> int:
        operands = tuple(keys[o] for o in i.operands)
        if i.opcode == "fusion":
            return self._fusion(i, operands, structure)
        if i.opcode == "get-tuple-element" and not self._output_order:
            results = structure.results.get(i.operands[0])
            if results is not None and i.tuple_index < len(results):
                return self._key(("result", operands, results[i.tuple_index]))
        called = tuple(structure.computations.get(c, -1) for _, c in i.called)
        payload: Hashable = None
        if i.opcode == "constant":
            payload = i.literal.canonical_text
        elif i.payload is not None:
            payload = i.payload.strip()
        control = tuple(sorted(keys.get(p, -1) for p in i.control_predecessors))
        return self._key((i.opcode, i.shape.key, operands, called, payload, self._attributes(i), control))

    def _fusion(self, fusion: Instruction, operands: tuple[int, ...], structure: ModuleStructure) -> int:
        """A fusion is the operations inside it, its parameters being what it is called with."""
        body = fusion.fused_computation
        inner: dict[Instruction, int] = {}
        content = []
        for i in body.post_order():
            if i.opcode == "parameter":
                number = i.parameter_number
                inner[i] = operands[number] if number < len(operands) else -1
                continue
            inner[i] = self._instruction(i, inner, structure)
            if i.opcode != "tuple" or i is not body.root:
                content.append(inner[i])
        root = body.root
        shape: Hashable = fusion.shape.key
        if root.opcode == "tuple":
            results = tuple(inner[o] for o in root.operands)
            structure.results[fusion] = results
            result: Hashable = results if self._output_order else tuple(sorted(results))
            if not self._output_order:
                shape = "tuple"
        else:
            result = inner[root]
        kind = fusion.attributes.raw("kind")
        control = len(fusion.control_predecessors)
        return self._key(
            ("fusion", kind, shape, result, tuple(sorted(content)), self._attributes(fusion), control)
        )

    def _attributes(self, i: Instruction) -> Hashable:
        if i.opcode == "get-tuple-element":
            return i.tuple_index  # short texts write `%x#1` for it, with room for no more
        items = i.attributes.raw_items
        return tuple(sorted((k, "".join(v.split())) for k, v in items.items() if k not in _IGNORED))


class ModuleStructure:
    """The keys of one module."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.key = -1
        """Of the whole module."""
        self.keys: dict[Instruction, int] = {}
        self.computations: dict[Computation, int] = {}
        self.orders: dict[Computation, list[Instruction]] = {}
        self.results: dict[Instruction, tuple[int, ...]] = {}
        """Keys of the results of multi-output fusions."""

    def counted(self) -> Counter[int]:
        """How often each key occurs among the instructions outside fusions."""
        return Counter(self.keys.values())

    def names(self) -> dict[int, list[str]]:
        """Names of the fusions by key."""
        return grouped((key, i.name) for i, key in self.keys.items() if i.opcode == "fusion")


def first_unmatched(structure: ModuleStructure, other: Counter[int]) -> Instruction | None:
    """The first instruction, operands before users, that has no equal on the other side.

    Kernels go first: a constant too many is the trace of a kernel that took in another one's.
    """
    order = (i for c in structure.module.computation_post_order() for i in structure.orders.get(c, ()))
    first = None
    for i in unmatched(((structure.keys[i], i) for i in order), other):
        if is_kernel(i):
            return i
        first = first or i
    return first
