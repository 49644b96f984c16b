"""`follow`: one operation, or those of a source line, through every dump of a module."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache

from hlofuse.analysis.kernels import computed_in
from hlofuse.diff import Added, ModuleDiff, diff
from hlofuse.diff.report.clusters import Cluster
from hlofuse.diff.report.summary import summarize
from hlofuse.format.escape import printable
from hlofuse.inputs.text import read_text
from hlofuse.ir.errors import HlofuseError
from hlofuse.ir.graph import Instruction, Module
from hlofuse.reports.timeline.dumps import Reel
from hlofuse.reports.timeline.model import Frame
from hlofuse.reports.timeline.timeline import read
from hlofuse.reports.trace_op.find import Subject
from hlofuse.reports.trace_op.model import How, Journey, Kernel, Spot, Stop, Trail


def follow(reel: Reel, asked: str) -> Journey:
    """Follow NAME, or FILE:LINE, through all dumps: back to where it was made, and on to where it ends.

    HlofuseError where no dump has it. Dumps that cannot be read are passed over and listed.
    """
    subject = Subject(asked)
    unreadable: list[Frame] = []
    dumps = _distinct(reel, unreadable)
    modules: list[tuple[Frame, Module]] = []
    found: Sequence[Instruction] = ()
    for frame, module in dumps:
        modules.append((frame, module))
        found = subject.find(module)
        if found:
            break
    if not modules:
        raise HlofuseError(f"no dump of {printable(reel.label)} can be read")
    if not found:
        raise HlofuseError(subject.not_found(reel.label, [m for _, m in modules]))
    steps = cache(lambda k: diff(modules[k - 1][1], modules[k][1]))
    trails = [_begin(modules, i, steps) for i in found]
    steps.cache_clear()
    current = [{i} for i in found]
    first, (last, previous) = modules[-1][0], modules[-1]
    modules.clear()  # from here on two dumps at a time are enough
    for last, module in dumps:
        step = diff(previous, module)
        clusters = [c for group in summarize(step).clusters for c in group] if not step.same else []
        for n, trail in enumerate(trails):
            if current[n]:
                current[n] = _advance(trail, current[n], step, clusters, last)
        previous = module
    for n, trail in enumerate(trails):
        trail.ends = tuple(dict.fromkeys(_kernel(i) for i in _sorted(current[n])))
    last = next((f for f in reversed(reel.frames) if f not in unreadable), last)
    return Journey(reel.label, asked, tuple(trails), first, last, tuple(unreadable))


def _distinct(reel: Reel, unreadable: list[Frame]) -> Iterator[tuple[Frame, Module]]:
    """The dumps that say something else than the one ahead of them; `unreadable` takes the damaged ones."""
    text = ""
    for frame in reel.frames:
        try:
            now = read_text(frame.path)
            module = read(frame, now) if now != text else None
        except HlofuseError:
            unreadable.append(frame)
            continue
        if module is not None:
            text = now
            yield frame, module


def _begin(
    modules: Sequence[tuple[Frame, Module]], found: Instruction, steps: Callable[[int], ModuleDiff]
) -> Trail:
    """A trail up to the last of `modules`, where it was found; its way there is looked up backwards.

    `steps` is asked for what changed from the module in front of a number to that module.
    """
    place = modules[-1][1].source_of(found)
    trail = Trail(found.name, found.opcode, str(place) if place else "", found.op_name or "")
    stops: list[Stop] = []
    current = {found}
    k = len(modules) - 1
    while k:
        step = steps(k)
        earlier = {p.instruction for i in current for p in step.before_of(i)}
        if not earlier:
            stops.append(Stop(modules[k][0], How.MADE, _spots(current), _replaced_by(step, current)))
            break
        now, before = _spots(current), _spots(earlier)
        if now != before:
            stops.append(Stop(modules[k][0], how_changed(before, now), now))
        current = earlier
        k -= 1
    else:
        stops.append(Stop(modules[0][0], How.FOUND, _spots(current)))
    trail.stops = stops[::-1]
    return trail


def _replaced_by(step: ModuleDiff, made: set[Instruction]) -> tuple[str, ...]:
    for group in summarize(step).clusters:
        for cluster in group:
            if made & set(cluster.added):
                return tuple(i.opcode for i in cluster.removed)
    return ()


def _advance(
    trail: Trail,
    current: set[Instruction],
    step: ModuleDiff,
    clusters: Iterable[Cluster],
    frame: Frame,
) -> set[Instruction]:
    """Where the operation is after one step; a stop where anything about it is new."""
    before = _spots(current)
    later = {p.instruction for i in current for p in step.after_of(i)}
    if later:
        now = _spots(later)
        if now != before:
            trail.stops.append(Stop(frame, how_changed(before, now), now))
        return later
    for cluster in clusters:
        if cluster.added and current & set(cluster.removed):
            alike = {i for i in cluster.added if i.opcode == trail.opcode}
            later = alike or {cluster.added[0]}
            trail.stops.append(Stop(frame, How.REWRITTEN if alike else How.REPLACED, _spots(later)))
            return later
    namesakes = set(_namesakes(step, trail.op_name))
    if namesakes:
        trail.stops.append(Stop(frame, How.NAMESAKE, _spots(namesakes)))
    else:
        trail.stops.append(Stop(frame, How.GONE, ()))
    return namesakes


def _namesakes(step: ModuleDiff, op_name: str) -> Iterator[Instruction]:
    for edit in step.edits if op_name else ():
        if isinstance(edit, Added):
            yield from (p.instruction for p in edit.after if p.instruction.op_name == op_name)


def how_changed(before: tuple[Spot, ...], now: tuple[Spot, ...]) -> How:
    """Into a fusion, out of one, or otherwise another."""
    ours, theirs = {s.fusion for s in before}, {s.fusion for s in now}
    if theirs != {None} and ours == {None}:
        return How.FUSED
    if theirs == {None} and ours != {None}:
        return How.UNFUSED
    return How.CHANGED


def _sorted(instructions: Iterable[Instruction]) -> list[Instruction]:
    return sorted(instructions, key=lambda i: (_outermost(i).name, i.name))


def _spots(instructions: Iterable[Instruction]) -> tuple[Spot, ...]:
    return tuple(spot_of(i) for i in _sorted(instructions))


def spot_of(i: Instruction) -> Spot:
    """Where an operation is in its dump."""
    outer = _outermost(i)
    if outer is i:
        return Spot(i.name, i.opcode, str(i.shape))
    return Spot(i.name, i.opcode, str(i.shape), outer.name, outer.fusion_kind)


def _outermost(i: Instruction) -> Instruction:
    """The fusion an instruction is in, the outermost of nested ones; itself outside of fusions."""
    while i.computation is not None and i.computation.fusion is not None:
        i = i.computation.fusion
    return i


def _kernel(i: Instruction) -> Kernel:
    outer = _outermost(i)
    inside = [x.opcode for x in computed_in(outer)] if outer.opcode == "fusion" else []
    where = outer.computation.name if outer.computation is not None else ""
    return Kernel(outer.name, outer.opcode, outer.fusion_kind, tuple(inside), where)
