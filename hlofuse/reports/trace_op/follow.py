"""`follow`: one operation, or those of a source line, through every dump of a module, as data."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum
from functools import cache
from pathlib import Path

from msgspec import Struct, to_builtins

from hlofuse.account.measured import Measured
from hlofuse.analysis.kernels import NO_KERNEL, computed_in
from hlofuse.compilation import CompilationInput, ModuleTexts, ReplayConfig, compile
from hlofuse.diff import Added, Changed, Kind, ModuleDiff, diff
from hlofuse.format import fields, printable
from hlofuse.format.paths import source_text
from hlofuse.inputs import load
from hlofuse.inputs.companions import Companions
from hlofuse.inputs.many import dump_text
from hlofuse.inputs.ordered import in_creation_order, restore_literals
from hlofuse.inputs.wire_format import unique_ids_for
from hlofuse.ir import HlofuseError, Instruction, Json, Module, Record, Strings, reach, replace, values
from hlofuse.pipelines.targets import Stage
from hlofuse.reports.common.lineage import outermost, through_views
from hlofuse.reports.common.model import measured_json
from hlofuse.reports.common.names import described_by, not_found
from hlofuse.reports.common.profile import profile_json
from hlofuse.reports.diff.model import Cluster, summarize
from hlofuse.reports.timeline.model import DumpSequence, PassDump, read

_MOVES_ONLY = values(
    "bitcast bitcast-convert broadcast concatenate convert copy pad reshape reverse slice transpose"
)
"""These say less of a line than what it computes: they are listed last."""
_SAME_OPERATION = frozenset({Kind.OPERAND, Kind.TYPE, Kind.SHAPE, Kind.LAYOUT, Kind.ANNOTATION})
"""A reader that differs in these alone computes what it did, from another operand."""


class How(StrEnum):
    """The change of an operation at a step."""

    FOUND = "found"
    CREATED = "made"  # No earlier dump has it
    CHANGED = "changed"  # Another name, opcode, shape or place, the same value
    FUSED = "fused"
    UNFUSED = "unfused"
    REPLACED = "replaced"  # Its users have another value in its place
    REWRITTEN = "rewritten"  # Removed with its neighbours; the replacement has an instruction with its opcode
    MERGED = "merged"  # Its reader computes both now
    NAMESAKE = "namesake"  # Removed; new instructions have its op_name. Probable, not certain.
    REMOVED = "gone"


class Location(Record):
    name: str
    opcode: str
    shape: str
    fusion: str | None = None
    fusion_kind: str | None = None


class Event(Record):
    """A dump in which something about the operation is new."""

    dump: PassDump
    how: How
    locations: tuple[Location, ...]  # Several if it is computed more than once; empty if it is removed
    instead_of: Strings = ()  # Opcodes that were replaced, where it was created


class FinalKernel(Record):
    name: str
    opcode: str
    kind: str | None
    opcodes: Strings
    computation: str


class Trail(Struct):
    name: str
    opcode: str
    source: str
    op_name: str
    events: list[Event] = []
    ends: tuple[FinalKernel, ...] = ()  # Its kernels in the last dump; empty if it is removed


class Provenance(Record):
    """All that was asked for, followed."""

    label: str
    query: str
    trails: tuple[Trail, ...]
    first: PassDump
    last: PassDump
    unreadable: tuple[PassDump, ...] = ()
    measured: Measured | None = None


def provenance_json(provenance: Provenance) -> Json:
    """Everything; `docs/timeline.md` says what the fields mean."""
    times = m.times if (m := provenance.measured) is not None else {}
    return {
        "schema": "hlofuse.trace-op/3",
        **fields(provenance, "module=label asked=query first=first.path.name last=last.path.name"),
        **profile_json(m),
        "unreadable": [f.path.name for f in provenance.unreadable],
        "operations": [
            {
                **fields(t, "name opcode source? op_name?"),
                "stops": [
                    {
                        **fields(s, "file=dump.path.name pipeline=dump.pipeline? pass=dump.after"),
                        "how": str(s.how),
                        **fields(s, "places=locations", to_builtins),
                        "instead_of": list(s.instead_of),
                    }
                    for s in t.events
                ],
                "ends_in": [{**to_builtins(k), **measured_json(times.get(k.name))} for k in t.ends],
            }
            for t in provenance.trails
        ],
    }


def follow(sequence: DumpSequence, text: str) -> Provenance:
    """Follow any name through all dumps: back to where it was created, on to where it ends. HlofuseError
    where no dump has it. Dumps that cannot be read are passed over and listed."""
    unreadable: list[PassDump] = []
    dumps = _distinct(sequence, unreadable)
    modules = []
    found: Sequence[Instruction] = ()
    for dump, module in dumps:
        modules.append((dump, module))
        found = find(module, text)
        if found:
            break
    if not modules:
        raise HlofuseError(f"no dump of {printable(sequence.label)} can be read")
    if not found:
        every = (i.name for _, m in modules for i in m.instructions())
        raise HlofuseError(not_found(modules[-1][1], text, every))
    steps = cache(lambda k: diff(modules[k - 1][1], modules[k][1]))
    trails = [_begin(modules, i, steps) for i in found]
    steps.cache_clear()
    current = [{i} for i in found]
    last, previous = modules[-1]
    first = next(dump for dump, _ in modules if any(t.events[0].dump == dump for t in trails))
    modules.clear()  # from here on two dumps at a time are enough
    for last, module in dumps:
        step = diff(previous, module)
        clusters = [c for group in summarize(step).clusters for c in group] if not step.same else []
        for n, trail in enumerate(trails):
            if current[n]:
                current[n] = _advance(trail, current[n], step, clusters, last)
        previous = module
    for n, trail in enumerate(trails):
        ends = (through_views(outermost(i)) for i in _sorted(current[n]))
        trail.ends = tuple(dict.fromkeys(_kernel(i) for i in ends if i.opcode not in NO_KERNEL))
    last = next((f for f in reversed(sequence.dumps) if f not in unreadable), last)
    return Provenance(sequence.label, text, tuple(trails), first, last, tuple(unreadable))


def _distinct(sequence: DumpSequence, unreadable: list[PassDump]) -> Iterator[tuple[PassDump, Module]]:
    """The dumps that say something else than the one ahead of them; `unreadable` takes the damaged ones."""
    text = ""
    for dump in sequence.dumps:
        try:
            now = dump_text(dump.path) if dump.text is None else dump.text
            module = read(dump, now) if now != text else None
        except HlofuseError:
            unreadable.append(dump)
            continue
        if module is not None:
            text = now
            yield dump, module


def _begin(
    modules: Sequence[tuple[PassDump, Module]],
    found: Instruction,
    steps: Callable[[int], ModuleDiff],
) -> Trail:
    """A trail up to the last of `modules`, where it was found; its way there is looked up backwards. `steps`
    is asked for what changed from the module in front of a number to that module."""
    source = source_text(modules[-1][1].source_of(found))
    trail = Trail(found.name, found.opcode, source, found.op_name or "")
    events = []
    current = {found}
    k = len(modules) - 1
    while k:
        step = steps(k)
        earlier = {p.instruction for i in current for p in step.pairs.before_of(i)}
        if not earlier:
            events.append(Event(modules[k][0], How.CREATED, _locations(current), _replaced_by(step, current)))
            break
        now, before = _locations(current), _locations(earlier)
        if now != before:
            events.append(Event(modules[k][0], how_changed(before, now), now))
        current = earlier
        k -= 1
    else:
        events.append(Event(modules[0][0], How.FOUND, _locations(current)))
    trail.events = events[::-1]
    return trail


def _replaced_by(step: ModuleDiff, created: set[Instruction]) -> Strings:
    for group in summarize(step).clusters:
        for cluster in group:
            if created & set(cluster.added):
                return tuple(i.opcode for i in cluster.removed)
    return ()


def _advance(
    trail: Trail,
    current: set[Instruction],
    step: ModuleDiff,
    clusters: Iterable[Cluster],
    dump: PassDump,
) -> set[Instruction]:
    """The operation's instructions after one step; adds an event for a change."""

    def note(how: How, found: set[Instruction]) -> set[Instruction]:
        trail.events.append(Event(dump, how, _locations(found)))
        return found

    before = _locations(current)
    later = {p.instruction for i in current for p in step.pairs.after_of(i)}
    if later:
        now = _locations(later)
        if now != before:
            trail.events.append(Event(dump, how_changed(before, now), now))
        return later
    for cluster in clusters:
        if cluster.added and current & set(cluster.removed):
            same_opcode = {i for i in cluster.added if i.opcode == trail.opcode}
            later = parts_of(cluster) or same_opcode or {cluster.added[0]}
            return note(How.REWRITTEN if same_opcode else How.REPLACED, later)
    in_place = {new for old, new in _results(step) if old in current and new not in current}
    if in_place:
        # The cluster of what is new has no reader in common with what it stands for.
        parts = {i for c in clusters if in_place & set(c.added) for i in parts_of(c, most=0)}
        return note(How.REPLACED, parts or in_place)
    operands = {p.instruction for i in current for x in i.operands for p in step.pairs.after_of(x)}
    for edit, stand_in in _read_instead(step, {i.name for i in current}):
        if {d.kind for d in edit.details} <= _SAME_OPERATION:
            return note(How.REPLACED, {stand_in})
        if stand_in in operands:
            return note(How.MERGED, {edit.after[0].instruction})
    namesakes = set(_namesakes(step, trail.op_name))
    return note(How.NAMESAKE if namesakes else How.REMOVED, namesakes)


def _read_instead(step: ModuleDiff, removed: set[str]) -> Iterator[tuple[Changed, Instruction]]:
    """The changed readers of values that are removed, each with what it reads in their place."""
    for edit in step.edits:
        if isinstance(edit, Changed):
            names = (d.after for d in edit.details if d.kind is Kind.OPERAND and d.before in removed)
            yield from ((edit, x) for name in names if (x := step.after.module.find(name or "")) is not None)


def _results(step: ModuleDiff) -> Iterator[tuple[Instruction, Instruction]]:
    """The results of the program before and after, each what stands in the other's place."""
    before, after = (_values(side.module.entry.root) for side in (step.before, step.after))
    if len(before) == len(after):
        yield from zip(before, after, strict=True)


def parts_of(cluster: Cluster, most: int = 1) -> set[Instruction]:
    """The replacements of a single computing operation: a split one ends in several kernels."""
    if sum(_computes(i) for i in cluster.removed) != most:
        return set()
    return {i for i in cluster.added if _computes(i) and not is_applied(i)}


def _computes(i: Instruction) -> bool:
    return i.opcode not in _MOVES_ONLY and i.opcode not in NO_KERNEL and not i.is_fusion


def _namesakes(step: ModuleDiff, op_name: str) -> Iterator[Instruction]:
    for edit in step.edits if op_name else ():
        if isinstance(edit, Added):
            yield from (p.instruction for p in edit.after if p.instruction.op_name == op_name)


def how_changed(before: tuple[Location, ...], now: tuple[Location, ...]) -> How:
    """Into a fusion, out of one, or otherwise another."""
    old_fusions, new_fusions = {s.fusion for s in before}, {s.fusion for s in now}
    if new_fusions != {None} and old_fusions == {None}:
        return How.FUSED
    if new_fusions == {None} and old_fusions != {None}:
        return How.UNFUSED
    return How.CHANGED


def _sorted(instructions: Iterable[Instruction]) -> list[Instruction]:
    return sorted(instructions, key=lambda i: (outermost(i).name, i.name))


def _locations(instructions: Iterable[Instruction]) -> tuple[Location, ...]:
    return tuple(location_of(i) for i in _sorted(instructions))


def location_of(i: Instruction) -> Location:
    """The place of an operation in its dump."""
    outer = outermost(i)
    if outer is i:
        return Location(i.name, i.opcode, str(i.shape))
    return Location(i.name, i.opcode, str(i.shape), outer.name, outer.fusion_kind)


def _kernel(i: Instruction) -> FinalKernel:
    outer = i.to_apply.root if i.opcode == "async-start" and i.called else i
    inside = [x.opcode for x in computed_in(outer)] if outer.is_fusion else []
    return FinalKernel(outer.name, outer.opcode, outer.fusion_kind, tuple(inside), outer.computation_name)


def find(module: Module, query: str) -> Sequence[Instruction]:
    """The instructions meant by a name, a line of the user's program, or a part of an `op_name`; of a line or
    `op_name` those that compute, or all where none does. For a fusion, which is none itself, its contents."""
    named = module.find(query)
    if named is not None:
        return _values(named)
    described = described_by(module.instructions(), module, query)
    here = [i for i in described if not i.is_parameter]
    operations = [i for i in here if not i.is_fusion or not i.called]
    here = operations or list(dict.fromkeys(v for i in here for v in _values(i)))
    # A reduction's own small computation belongs to the reduction.
    computing = [i for i in here if i.opcode not in NO_KERNEL and not i.is_broadcast]
    not_applied = [i for i in computing if not is_applied(i)]
    return sorted(not_applied or computing or here, key=lambda i: i.opcode in _MOVES_ONLY)


def _values(found: Instruction) -> tuple[Instruction, ...]:
    """The values an instruction stands for: a fusion's results, the elements of a tuple."""

    def parts(i: Instruction) -> list[Instruction]:
        if i.is_fusion and i.called:
            return [i.fused_root]
        return i.operands[::-1] if i.opcode in ("tuple", "get-tuple-element") else []

    return tuple(i for i in reach([found], parts) if not parts(i))


def is_applied(i: Instruction) -> bool:
    """It is in a computation that a reduce, a sort or a similar operation applies element by element."""
    callers = i.computation.callers if i.computation is not None else {}
    return any(c.opcode not in ("while", "conditional", "call", "fusion", "async-start") for c in callers)


def with_replayed_passes(sequence: DumpSequence, config: ReplayConfig) -> DumpSequence:
    """The sequence with the module before optimizations, if it lies in its folder. XLA's passes before fusion
    are repeated on it; those after fusion where XLA's final module is missing."""
    dumps = sequence.dumps
    first = Companions(dumps[0].path).before_optimizations
    if first is not None and first not in {d.path for d in dumps}:
        dumps = (*_before(first, config), *dumps)
    return replace(sequence, dumps=(*dumps, *_after(dumps[-1], config)))


def _before(path: Path, config: ReplayConfig) -> list[PassDump]:
    dumps = [PassDump(path, after="before_optimizations")]
    try:
        module = load(path)
        restore_literals(module)
        in_creation_order(module, unique_ids_for(module))
        dumps += _changes(CompilationInput(module, stage=Stage.BEFORE), Stage.INPUT, config, path)
    except HlofuseError:  # partitioned by hand, for one
        pass
    return dumps


def _after(last: PassDump, config: ReplayConfig) -> list[PassDump]:
    if last.after == "after_optimizations":
        return []
    try:
        input = CompilationInput(load(last.path), stage=Stage.FUSED)
        return _changes(input, Stage.SCHEDULED, config, last.path)
    except HlofuseError:
        return []


def _changes(
    input: CompilationInput,
    until: Stage,
    config: ReplayConfig,
    path: Path,
) -> list[PassDump]:
    passes = compile(input, config, [ModuleTexts(only_changed=True)], until=until).span(until).passes
    return [PassDump(path, after=p.name, text=p.module_text) for p in passes if p.module_text is not None]
