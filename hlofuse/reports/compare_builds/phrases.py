"""What a comparison of devices says, in words."""

from __future__ import annotations

from collections.abc import Sequence

from hlofuse.format.escape import printable
from hlofuse.format.units import bytes_text, listing, plural, us_text
from hlofuse.reports.common.costs import number_text, worth_text
from hlofuse.reports.compare_builds.model import Comparison, FlippedEdge, Side


def by_kernels(flipped: Sequence[FlippedEdge]) -> list[list[FlippedEdge]]:
    """Edges that come apart because of the same two kernels, together."""
    found: dict[object, list[FlippedEdge]] = {}
    for e in flipped:
        key = (e.unfused_on, *(e.kernels or (e.producer.name, e.consumer.name)))
        found.setdefault(key, []).append(e)
    return list(found.values())


def beginning_lines(c: Comparison, most: int = 3) -> list[str]:
    """Whether each device ran its own passes before fusion, and what these leave on one device only."""
    first, second = (printable(s.label) for s in c.sides)
    if not c.from_program:
        own = f"what {second}'s own passes before fusion do differently is not in them"
        return [
            f"Both replays begin with the module that enters fusion on {first}: {own}.",
            "Give the module before optimizations for that.",
        ]
    lines = []
    for device, places in zip((first, second), c.alone, strict=True):
        if places:
            names = listing([f"{printable(p.name)} ({p.opcode})" for p in places], most)
            count = plural(len(places), "operation")
            lines.append(f"The passes before fusion leave {count} on {device} only: {names}.")
    return lines


def same_line(c: Comparison) -> str:
    """For no difference."""
    return f"Every edge {'that both have ' if any(c.alone) else ''}is decided the same on both."


def side_figures(s: Side) -> tuple[str, str, str]:
    """Kernels, bytes and time, before → after."""
    time = f"{us_text(s.before.us)} → {us_text(s.after.us)}" if s.before.us and s.after.us else ""
    moved = f"{bytes_text(s.before.cost.bytes_accessed)} → {bytes_text(s.after.cost.bytes_accessed)}"
    return f"{s.before.kernels:,} → {s.after.kernels:,}", moved, time


def edge_phrases(e: FlippedEdge) -> list[str]:
    """Why the two stay apart where they do, and which number of the device makes the difference."""
    out = []
    between = ""
    if e.kernels is not None and e.kernels != (e.producer.name, e.consumer.name):
        between = f" {printable(e.kernels[0])} → {printable(e.kernels[1])}:"
    if e.answer is not None:
        settled = e.answer.settled_by
        if settled is not None and settled.event == "ineligible":
            out.append(
                f"on {printable(e.unfused_on)}:{between} {settled.rule.code},"
                f" {printable(settled.reason or settled.rule.title)}"
            )
        elif e.answer.cost is not None:
            out.append(f"on {printable(e.unfused_on)}:{between} {worth_text(e.answer.cost)}")
    for name, own, other_value in e.terms[:3]:
        out.append(
            f"{name} alone would turn that: {number_text(name, own)} on {printable(e.unfused_on)},"
            f" {number_text(name, other_value)} on {printable(e.fused_on)}"
        )
    if not out:
        out.append("what was decided before about their neighbours leads there")
    elif not e.terms and not e.between_releases:
        out.append("no number of the device turns that alone: several do together")
    return out
