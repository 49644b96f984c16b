"""Comparisons of two compilations in words, and for the terminal."""

from collections.abc import Sequence

from rich.text import Text

from hlofuse.account import Totals
from hlofuse.format import change_percent, plural, printable, quantity, us_text
from hlofuse.format.terminal import Page, Rows, indented, print_lines, print_more
from hlofuse.ir import grouped
from hlofuse.reports.common.costs import worth_text
from .model import ChangedEdge, Comparison

FUSED_HEADING, PARTED_HEADING = "fused here, not fused by XLA", "not fused here, fused by XLA"


def warning_line(changes: Sequence[str]) -> str:
    """`Settings differ from XLA's: without PF008.`"""
    return f"Settings differ from XLA's: {', '.join(map(printable, changes))}."


def difference_lines(d: Comparison) -> list[str]:
    """The warning and the figures at the head of such a report."""
    parts = [decisions_line(d)]
    if d.other_model:
        parts.append("Device numbers differ, so the two times come from different models.")
    if d.xla.floors != d.replayed.floors:
        parts.append(
            f"Times include lower bounds for kernels outside XLA's model: {d.xla.floors:,} by XLA,"
            f" {d.replayed.floors:,} here."
        )
    return [warning_line(d.changes), f"compared with XLA: {figures_line(d)}", " ".join(parts)]


def figures_line(d: Comparison) -> str:
    """`6 → 4 kernels (−33 %)    29.4 MB → 21.0 MB moved (−29 %)`."""
    x, o = d.xla, d.replayed
    moved = x.cost.bytes_accessed, o.cost.bytes_accessed
    parts = [
        f"{x.kernels:,} → {plural(o.kernels, 'kernel')}{share(x.kernels, o.kernels)}",
        f"{x.moved_text} → {o.moved_text} moved{share(*moved)}",
    ]
    if x.us is not None and o.us is not None:
        old, new = us_text(x.us, x.is_floor), us_text(o.us, o.is_floor)
        parts.append(f"est. {old} → {new}{share(x.us, o.us)}")
    elif work(x) != work(o):
        parts.append(f"{quantity(work(x))} → {quantity(work(o))} operations{share(work(x), work(o))}")
    return "    ".join(parts)


def work(t: Totals) -> int:
    """FLOP and transcendentals: what says most of time where no model does."""
    return t.cost.flops + t.cost.transcendentals


def figures(before: Totals, after: Totals, *, arrows: bool = False) -> tuple[str, str, str]:
    """Kernels, bytes and time, before → after; without `arrows` one value where both are the same."""

    def both(old: str, new: str) -> str:
        return f"{old} → {new}" if arrows or old != new else new

    time = ""
    if before.us is not None and after.us is not None:
        time = both(us_text(before.us, before.is_floor), us_text(after.us, after.is_floor))
    return both(f"{before.kernels:,}", f"{after.kernels:,}"), both(before.moved_text, after.moved_text), time


def decisions_line(d: Comparison) -> str:
    """The number of edges decided otherwise."""
    if not d.fused and not d.parted:
        return "No decision changes." if d.same_decisions else "Every edge is decided the same."
    parts = []
    if d.fused:
        parts.append(f"{plural(len(d.fused), 'edge')} fused that XLA does not fuse")
    if d.parted:
        parts.append(f"{plural(len(d.parted), 'edge')} not fused that XLA fuses")
    return f"{', '.join(parts)}."


def share(old: float, new: float) -> str:
    return f" ({change_percent(old, new)})" if old != new else ""


def edge_line(e: ChangedEdge) -> str:
    """`divide → broadcast_multiply_fusion`."""
    return f"{printable(e.producer.name)} → {printable(e.consumer.name)}"


def edge_phrase(e: ChangedEdge) -> str:
    """The reason why the two stay apart where they do."""
    between = ""
    if e.kernels is not None and e.kernels != (e.producer.name, e.consumer.name):
        between = f" {printable(e.kernels[0])} → {printable(e.kernels[1])}:"
    if e.answer is not None:
        settled = e.answer.settled_by
        if settled is not None and settled.event.event == "ineligible":
            return (
                f"on {printable(e.unfused_on)}:{between} {settled.rule.code},"
                f" {printable(settled.event.reason or settled.rule.title)}"
            )
        if e.answer.cost is not None:
            return f"on {printable(e.unfused_on)}:{between} {worth_text(e.answer.cost)}"
    return "follows from an earlier decision nearby"


def print_difference(d: Comparison, console: Page) -> None:
    """The warning, the figures, and the edges each way."""
    first, *rest = difference_lines(d)
    console.print(first, style="bold yellow")
    print_lines(console, rest, 0)
    for heading, edges in ((FUSED_HEADING, d.fused), (PARTED_HEADING, d.parted)):
        if edges:
            rows = Rows((heading, "left"), "left", drop=(1,))
            for e in console.first(edges):
                rows.add_row(edge_line(e), Text(printable(e.consumer.source or ""), style="dim"))
            rows.print(console)
            console.print_rest(edges)
    console.print()


_EDGES = 4  # named of those between the same two kernels


def print_flipped(c: Comparison, console: Page) -> None:
    """Print the changed decisions, by the kernels that they separate."""
    edges_of = grouped(
        ((e.unfused_on, *(e.kernels or (e.producer.name, e.consumer.name))), e) for e in c.flipped
    )
    groups = list(edges_of.values())
    console.print(f"{plural(len(c.flipped), 'edge')} decided differently", style="bold cyan")
    for edges in console.first(groups):
        first = edges[0]
        for e in edges[:_EDGES]:
            line = Text(edge_line(e), style="bold")
            if e is first:
                where = f"  fused on {printable(e.fused_on)}, not fused on {printable(e.unfused_on)}"
                line.append(where, style="not bold")
            if e.producer.source:
                line.append(f"  {printable(e.producer.source)}", style="not bold dim")
            indented(console, line)
        if len(edges) > _EDGES:
            indented(console, f"… {len(edges) - _EDGES:,} more between the same two", 2, "dim")
        indented(console, edge_phrase(first), 6)
    print_more(console, sum(map(len, groups)) - sum(map(len, console.first(groups))))
