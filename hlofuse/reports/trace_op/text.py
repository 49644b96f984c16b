"""`trace-op` for the terminal."""

from collections.abc import Iterator

from rich.text import Text

from hlofuse.format import listing, plural, printable
from hlofuse.format.terminal import Page, Rows, indented, print_more
from hlofuse.ir import grouped
from hlofuse.reports.common.phrases import measured_text
from hlofuse.reports.common.profile import joined_line
from hlofuse.reports.timeline.phrases import opcodes_text, pass_name
from .follow import Event, FinalKernel, How, Location, Provenance, Trail

_MAX_LOCATIONS = 4
_TEXTS = {
    How.FOUND: "is {}",
    How.REPLACED: "replaced by {}",
    How.REWRITTEN: "rewritten, now {}",
    How.MERGED: "merged into its reader {}",
    How.NAMESAKE: "removed; new with the same op_name, probably its replacement: {}",
    How.REMOVED: "removed without replacement",
    How.UNFUSED: "moved out of its fusion: {}",
}


def headline(provenance: Provenance) -> str:
    """`jit_f: model.py:42, 3 operations, from before_optimizations to …`."""
    count = f", {plural(len(provenance.trails), 'operation')}" if len(provenance.trails) != 1 else ""
    return (
        f"{provenance.label}: {provenance.query}{count}, from {provenance.first.name} to "
        f"{provenance.last.name}"
    )


def event_text(event: Event, before: Event | None) -> str:
    """The change of the operation in this dump."""
    shown = locations_text(event.locations)
    if event.how is How.CREATED:
        instead = f", replacing {opcodes_text(event.instead_of)}" if event.instead_of else ""
        return f"created: {shown}{instead}"
    if event.how in _TEXTS:
        return _TEXTS[event.how].format(shown)
    if event.how is How.FUSED:
        return f"fused, now in {fusions_text(event.locations)}"
    return (
        ", ".join(_changes(before.locations if before is not None else (), event.locations)) or f"is {shown}"
    )


def _changes(before: tuple[Location, ...], now: tuple[Location, ...]) -> Iterator[str]:
    if len(before) != 1 or len(now) != 1:
        old_fusions, new_fusions = {s.fusion for s in before}, {s.fusion for s in now}
        if len(before) != len(now):
            yield f"computed {_times(len(now))} instead of {_times(len(before))}"
        if old_fusions != new_fusions:
            yield f"now in {fusions_text(now)}"
        elif len(before) == len(now):
            yield f"renamed {locations_text(now)}"
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


def locations_text(locations: tuple[Location, ...]) -> str:
    """`dot.5 = f32[8,16]{1,0} dot in loop_fusion`."""
    parts = [f"{s.name} = {s.shape} {s.opcode}" + (f" in {s.fusion}" if s.fusion else "") for s in locations]
    return listing(parts, _MAX_LOCATIONS)


def fusions_text(locations: tuple[Location, ...]) -> str:
    """`fusion loop_add_fusion (kLoop)`; several where it is computed in several."""
    inside = dict.fromkeys(f"{s.fusion} ({s.fusion_kind})" for s in locations if s.fusion)
    if not inside:
        return "no fusion"
    more = " and outside fusions" if any(s.fusion is None for s in locations) else ""
    return f"{'fusions' if len(inside) > 1 else 'fusion'} {listing([*inside], _MAX_LOCATIONS)}{more}"


def end_text(kernel: FinalKernel) -> str:
    """The final kernel that runs it."""
    if kernel.opcode != "fusion":
        return f"{kernel.name}, {kernel.opcode} in {kernel.computation}"
    inside = f"{plural(len(kernel.opcodes), 'operation')}: {opcodes_text(kernel.opcodes, 6)}"
    return f"{kernel.name}, {kernel.kind} fusion of {inside}, in {kernel.computation}"


def end_line(trail: Trail) -> str:
    if not trail.ends:
        return "final: in no kernel"
    head = "final: in " if len(trail.ends) == 1 else f"final: in {len(trail.ends)} kernels: "
    return head + "; ".join(end_text(k) for k in trail.ends[:4]) + ("; …" if len(trail.ends) > 4 else "")


def print_provenance(provenance: Provenance, console: Page) -> None:
    """Each operation: its stops, then the kernel it ends in."""
    console.print(printable(headline(provenance)), style="bold")
    if provenance.unreadable:
        names = ", ".join(printable(f.path.name) for f in provenance.unreadable[:3])
        count = plural(len(provenance.unreadable), "dump")
        console.print(f"{count} cannot be read and skipped: {names}", style="yellow")
    times = m.times if (m := provenance.measured) is not None else {}
    if m is not None:
        console.print(joined_line(m), style="dim")
    groups = [*grouped((_steps(t), t) for t in provenance.trails).values()]
    for trail, *same in console.first(groups):
        console.print()
        title = filter(None, (trail.name, trail.opcode, trail.source, trail.op_name))
        console.print(printable("  ".join(title)), style="bold")
        rows = Rows("right", "name", "left")
        before = None
        for event in trail.events:
            number = "" if event.dump.number is None else f"{event.dump.number:04d}"
            cells = printable(pass_name(event.dump)), printable(event_text(event, before))
            rows.add_row(Text(number, style="dim"), *map(Text, cells))
            before = event
        rows.print(console)
        indented(console, printable(end_line(trail)), 2, "green" if trail.ends else "dim")
        for name in (k.name for k in trail.ends if k.name in times):
            indented(console, f"{printable(name)}: {measured_text(times[name])} measured", 2, "green")
        if same:
            names = ", ".join(f"{t.name} ({t.opcode})" for t in same)
            indented(console, printable(f"same steps and kernels: {names}"), 2, "dim")
    if hidden := sum(map(len, groups)) - sum(map(len, console.first(groups))):
        console.print()
        print_more(console, hidden, indent=0)


def _steps(trail: Trail) -> object:
    """The dumps that change an operation, how, its fusions then, and its last kernels."""
    steps = [
        (e.dump.path, e.how, *((s.fusion, s.opcode == trail.opcode) for s in e.locations))
        for e in trail.events
    ]
    return *steps, trail.ends
