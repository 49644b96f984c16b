"""Words for one operation's way. Plain text: whoever prints it makes it safe for where it goes."""

from __future__ import annotations

from collections.abc import Iterator

from hlofuse.format.escape import printable
from hlofuse.format.units import listing, plural
from hlofuse.reports.timeline.phrases import opcodes_text
from hlofuse.reports.trace_op.model import FinalKernel, How, Journey, Spot, Stop, Trail

_SPOTS = 4


def headline(journey: Journey) -> str:
    """`jit_f: model.py:42, 3 operations, from before_optimizations to …`."""
    count = f", {plural(len(journey.trails), 'operation')}" if len(journey.trails) != 1 else ""
    return f"{journey.label}: {journey.asked}{count}, from {journey.first.name} to {journey.last.name}"


def subject(trail: Trail) -> str:
    """`divide.5  divide  model.py:89  jit(f)/div`."""
    return "  ".join(part for part in (trail.name, trail.opcode, trail.source, trail.op_name) if part)


def stop_text(stop: Stop, before: Stop | None) -> str:
    """What is new of the operation in this dump."""
    shown = spots_text(stop.spots)
    if stop.how is How.FOUND:
        return f"is {shown}"
    if stop.how is How.MADE:
        instead = f", in place of {opcodes_text(stop.instead_of)}" if stop.instead_of else ""
        return f"made here: {shown}{instead}"
    if stop.how is How.REPLACED:
        return f"replaced by {shown}"
    if stop.how is How.REWRITTEN:
        return f"rewritten, now {shown}"
    if stop.how is How.NAMESAKE:
        return f"gone; new with its op_name, so likely it: {shown}"
    if stop.how is How.GONE:
        return "gone, nothing put in its place"
    if stop.how is How.FUSED:
        return f"into {fusions_text(stop.spots)}"
    if stop.how is How.UNFUSED:
        return f"out of its fusion: {shown}"
    return ", ".join(_changes(before.spots if before is not None else (), stop.spots)) or f"is {shown}"


def _changes(before: tuple[Spot, ...], now: tuple[Spot, ...]) -> Iterator[str]:
    if len(before) != 1 or len(now) != 1:
        ours, theirs = {s.fusion for s in before}, {s.fusion for s in now}
        if len(before) != len(now):
            yield f"computed {_times(len(now))} instead of {_times(len(before))}"
        if ours != theirs:
            yield f"now in {fusions_text(now)}"
        elif len(before) == len(now):
            yield f"renamed {spots_text(now)}"
        return
    old, new = before[0], now[0]
    if old.opcode != new.opcode:
        yield f"{old.opcode} becomes {new.opcode}"
    if old.shape != new.shape:
        yield f"{old.shape} becomes {new.shape}"
    if old.fusion != new.fusion:
        yield f"now in {fusions_text(now)}"
    if old.name != new.name and old.fusion is None:
        yield f"renamed {new.name}"
    elif old.name != new.name and old.fusion == new.fusion:
        yield f"renamed {new.name} within {new.fusion}"


def _times(number: int) -> str:
    return {1: "once", 2: "twice"}.get(number, f"{number} times")


def spots_text(spots: tuple[Spot, ...]) -> str:
    """`dot.5 = f32[8,16]{1,0} dot in loop_fusion`."""
    parts = [f"{s.name} = {s.shape} {s.opcode}" + (f" in {s.fusion}" if s.fusion else "") for s in spots]
    return listing(parts, _SPOTS)


def fusions_text(spots: tuple[Spot, ...]) -> str:
    """`fusion loop_add_fusion (kLoop)`; several where it is computed in several."""
    inside = dict.fromkeys(f"{s.fusion} ({s.fusion_kind})" for s in spots if s.fusion)
    names = ([*inside, "no fusion"] if any(s.fusion is None for s in spots) else [*inside]) or ["no fusion"]
    shown = listing(names, _SPOTS)
    return shown if not inside else f"{'fusions' if len(inside) > 1 else 'fusion'} {shown}"


def end_text(kernel: FinalKernel) -> str:
    """What runs it in the end."""
    if kernel.opcode != "fusion":
        return f"{kernel.name}, a {kernel.opcode} by itself, in {kernel.computation}"
    inside = f"{plural(len(kernel.opcodes), 'operation')}: {opcodes_text(kernel.opcodes, 6)}"
    return f"{kernel.name}, a {kernel.kind} fusion of {inside}; in {kernel.computation}"


def stops_with_text(trail: Trail) -> list[tuple[Stop, str]]:
    """Each stop with what happened there."""
    before = [None, *trail.stops]
    return [(s, stop_text(s, before[n])) for n, s in enumerate(trail.stops)]


def end_lines(trail: Trail) -> list[str]:
    """The kernels it ends in."""
    if not trail.ends:
        return ["ends: it is in no kernel"]
    head = "ends in " if len(trail.ends) == 1 else f"ends in {len(trail.ends)} kernels: "
    more = "; …" if len(trail.ends) > 4 else ""
    return [head + "; ".join(end_text(k) for k in trail.ends[:4]) + more]


def dump_number(stop: Stop) -> str:
    """`0058`; empty for a dump without a number."""
    return "" if stop.frame.number is None else f"{stop.frame.number:04d}"


def unreadable_line(journey: Journey) -> str:
    """The dumps that were left out."""
    names = ", ".join(f.path.name for f in journey.unreadable[:3])
    count = plural(len(journey.unreadable), "dump")
    return printable(f"{count} cannot be read and left out: {names}")
