"""Sentences of an explanation in detail."""

from collections.abc import Sequence

from hlofuse.format import bytes_text, listing, plural, printable, quantity, us_text
from hlofuse.reports.common.costs import roofline, why_saves
from hlofuse.reports.common.model import Refusal, us_at_stake
from hlofuse.reports.common.phrases import created_by_lines, floors_and_copies, loops_line, origin
from .model import (
    BlockingRule,
    Explanation,
    FusedGroup,
    FusedStep,
    PassStory,
    RecordCheck,
    Rewrite,
    SelectedKernel,
    Selection,
)

_OPERATIONS = 8  # named of those asked for in one kernel
SIBLINGS_UNTIMED = "XLA merges kernels that read the same array, whatever their times"


def result_line(e: Explanation) -> str:
    """Kernels, bytes and FLOP, before → after."""
    b, a = e.before, e.after
    loops_count = any(t.launches != t.kernels for t in (b, a))
    parts = [
        f"{plural(b.kernels, 'kernel')} → {a.kernels:,}",
        *([f"{b.launches:,} → {plural(a.launches, 'launch', 'launches')}"] if loops_count else []),
        f"{b.moved_text} → {a.moved_text} moved",
        f"{quantity(b.cost.flops)} → {quantity(a.cost.flops)} FLOP",
    ]
    if b.us is not None and a.us is not None:
        parts.append(f"est. {us_text(b.us, b.is_floor)} → {us_text(a.us, a.is_floor)}")
    return "    ".join(parts)


def notes(e: Explanation) -> list[str]:
    """Limitations of the figures."""
    found = []
    costs = e.before.cost, e.after.cost
    before, after = (quantity(c.transcendentals) for c in costs)
    if costs[1].transcendentals > costs[0].transcendentals and after != before:
        # Copies of an operation in several kernels; copies of these are expensive.
        found.append(f"{before} → {after} transcendental operations: some are computed in two kernels")
    if e.before.cost.unknown:
        calls = plural(e.before.cost.unknown, "custom call")
        found.append(f"{calls} excluded: XLA does not know their cost")
    found += floors_and_copies(e.after)
    if e.loops:
        found.append(loops_line(e.loops))
    if e.ties:
        fused = sum(len(g.steps) for p in e.passes for g in p.fused)
        found.append(
            f"{plural(e.ties, 'decision')} of {fused} {'hangs' if e.ties == 1 else 'hang'} on a tie"
            " that only XLA's ids settle (dump with --xla_dump_hlo_as_proto); marked below"
        )
    if e.record is not None:
        found += record_lines(e.record)
    return found


def selection_line(s: Selection, e: Explanation) -> str:
    """`model.py:35: 2 of 27 kernels, 12.3 µs of 45.9 µs`; bytes where no time is estimated."""
    kernels = [k.kernel for k in s.kernels]
    line = f"{printable(s.name)}: {len(kernels):,} of {plural(e.after.kernels, 'kernel')}"
    if e.after.us is not None:
        us = sum(k.us * k.runs for k in kernels if k.us is not None)
        own = us_text(us, any(k.is_floor for k in kernels))
        return f"{line}, {own} of {us_text(e.after.us, e.after.is_floor)}"
    moved = sum(k.bytes_accessed * k.runs for k in kernels)
    return f"{line}, {bytes_text(moved)} of {bytes_text(e.after.cost.bytes_accessed)} moved"


def selected_kernel_lines(k: SelectedKernel, e: Explanation, s: Selection) -> list[str]:
    """Its figures and origin; what bounds it; the operations asked for; what earlier passes did."""
    row, figures = k.kernel, []
    if row.us is not None:
        total = f" × {row.runs:,} = {us_text(row.us * row.runs)}" if row.runs > 1 else ""
        share = f", {100 * row.us * row.runs / (e.after.us or 1.0):.0f}%" if row.runs else ""
        figures.append(us_text(row.us, row.is_floor) + total + share)
    if not row.runs:
        figures.append(f"not counted ({'another branch costs more' if row.in_branch else 'not evaluated'})")
    elif row.runs != 1 and row.us is None:
        figures.append(f"runs {row.runs:,} times")
    figures.append(f"{bytes_text(row.bytes_accessed)} moved{' per iteration' if row.runs > 1 else ''}")
    if row.per_iteration:
        figures.append("counted for one iteration")
    if row.in_branch and row.runs:
        figures.append("in one branch")
    if row.kind != "kernel":
        figures.append(row.kind if row.input_name is not None else f"{row.kind}, added after fusion")
    lines = [f"{', '.join(figures)}  {printable(origin(row.place))}".rstrip()]
    if k.time is not None and not any(g.fusion.name == row.place.name for p in e.passes for g in p.fused):
        lines.append(roofline(k.time))  # else the pass shows it
    if k.operations:
        names = listing([printable(n) for n in k.operations], _OPERATIONS)
        many = f"{plural(len(k.operations), 'operation')} of {printable(s.name)}: {names}"
        lines.append(f"contains {names}" if k.operations == (s.name.lstrip("%"),) else many)
    return lines + created_by_lines(k.created_by)


def record_lines(r: RecordCheck, most: int = 3) -> list[str]:
    """The agreement of XLA's fusion log with the replay, and the first differences."""
    name = printable(r.file.rsplit("/", 1)[-1])
    if r.agreed == r.records and not r.disagreements:
        of = f"{r.records:,} of {r.records:,} decisions"
        return [f"Matches XLA's fusion log ({name}): {of}"]
    parts = f"differs: {r.agreed:,} of {r.records:,} decisions match"
    if not r.agreed:
        parts += "; it may be for another module or device"
    elif r.agreed == r.records:
        parts = f"is shorter than the replay: all its {r.records:,} decisions match"
    lines = [f"XLA's fusion log ({name}) {parts}"]
    for d in r.disagreements[:most]:
        xla, actual = printable(d.xla or "nothing"), printable(d.ours or "nothing")
        lines.append(
            f"  {d.kind} of {printable(d.producer)}, after {plural(d.step, 'fusion')}: XLA {xla}; here "
            f"{actual}"
        )
    if len(r.disagreements) > most:
        lines.append(f"  … {len(r.disagreements) - most:,} more")
    return lines


def has_content(story: PassStory) -> bool:
    """It fused, rewrote or kept kernels apart."""
    return bool(story.fused or story.rewrites or any(r.between_kernels for r in story.refused))


def stories(e: Explanation) -> list[PassStory]:
    """Every pass that has something to tell, in order; those around fusion refuse nothing."""
    return [*e.earlier, *filter(has_content, e.passes), *e.later]


def pass_summary(story: PassStory) -> str:
    """`80 fused into 16 kernels, 35 edges refused`."""
    parts = []
    if story.fused:
        into = plural(sum(1 + len(g.equivalents) for g in story.fused), "kernel")
        count = sum(len(g.steps) * (1 + len(g.equivalents)) for g in story.fused)
        parts.append(f"{count:,} fused into {into}")
    if story.rewrites:
        parts.append(f"{len(story.rewrites):,} rewritten")
    refused = sum(r.between_kernels for r in story.refused)
    if refused:
        parts.append(f"{plural(refused, 'edge')} refused")
    return ", ".join(parts) or ("changed nothing" if not story.changed else "changed nothing itself")


def rewrite_text(r: Rewrite) -> str:
    """`sort.3 → fusion.2`; the first name alone where nothing new took its place."""
    removed, added = (", ".join(map(printable, names)) for names in (r.event.removed, r.event.added))
    new = set(r.event.added) - set(r.event.removed)
    return f"{removed} → {added}" if removed and new else removed or added


def sources(g: FusedGroup) -> str:
    """The source of a fusion: its own, else that of its first operation with one."""
    places = (g.fusion, *(s.producer for s in g.steps))
    first = next((p for p in places if p.source), None) or next((p for p in places if origin(p)), None)
    return origin(first, len(g.equivalents)) if first is not None else ""


def at_stake_text(refused: Sequence[Refusal]) -> str:
    """Saving or cost of fusing a row of refusals."""
    saved = us_at_stake(refused)
    return "–" if saved is None else saves_text(saved)


def if_allowed(o: BlockingRule) -> str:
    """`, −9.3 µs if allowed`; empty where nothing is estimated."""
    at_stake = o.us_at_stake
    if at_stake is None:
        return ""
    return f", −{us_text(at_stake)} if allowed" if at_stake > 0 else f", {us_text(-at_stake)} slower if fused"


def saves_text(value: float) -> str:
    """`saves 1.2 µs`, or `costs` it."""
    return f"{'saves' if value >= 0 else 'costs'} {us_text(abs(value))}"


def step_text(s: FusedStep) -> str:
    """The reason for a step in one line; for what is not priority fusion's the two times compared."""
    if s.cost is not None:
        return why_saves(s.cost, s.producer.opcode)
    fused, unfused = (float(s.event.figures.get(key, 0.0)) for key in ("us_fused", "us_unfused"))
    into = f" into all {s.consumers} users" if s.consumers > 1 else ""
    return f"unfused {us_text(unfused)}, fused{into} {us_text(fused)}"
