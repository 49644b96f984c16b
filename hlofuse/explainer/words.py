"""Sentences that the text and the markdown report share."""

from __future__ import annotations

from hlofuse.explainer.model import Explanation, FusedGroup, PassStory
from hlofuse.present.escape import printable
from hlofuse.present.units import bytes_text, plural, quantity


def headline(e: Explanation) -> str:
    """`jit_f on cpu, as XLA in jaxlib 0.11.1 fuses it`."""
    device = f" ({printable(e.device)})" if e.device else ""
    if e.what_if:
        return f"{printable(e.module)} on {e.target}{device}, if {', '.join(map(printable, e.what_if))}"
    return f"{printable(e.module)} on {e.target}{device}, as XLA in {e.release}"


def result_line(e: Explanation) -> str:
    """Kernels, bytes and flops, before → after."""
    b, a = e.before, e.after
    parts = [
        f"{plural(b.kernels, 'kernel')} → {a.kernels:,}",
        f"{bytes_text(b.cost.bytes_accessed)} → {bytes_text(a.cost.bytes_accessed)} moved",
        f"{quantity(b.cost.flops)} → {quantity(a.cost.flops)} flops",
    ]
    if a.cost.transcendentals != b.cost.transcendentals:
        # Fusing copies operations into several kernels; of these the copies are dear.
        exps = f"{quantity(b.cost.transcendentals)} → {quantity(a.cost.transcendentals)}"
        parts.append(f"{exps} exp, tanh, …")
    return "    ".join(parts)


def unknown_note(e: Explanation) -> str:
    """Says what the figures leave out; empty where they leave nothing out."""
    if not e.before.cost.unknown:
        return ""
    return (
        f"{plural(e.before.cost.unknown, 'custom call')} not in these figures: XLA does not know their cost"
    )


def pass_summary(story: PassStory) -> str:
    """`80 fused into 16 kernels, 35 edges refused`."""
    parts = []
    if story.fused:
        into = plural(sum(1 + len(g.alike) for g in story.fused), "kernel")
        parts.append(f"{story.fuse_count:,} fused into {into}")
    if story.rewrites:
        parts.append(f"{len(story.rewrites):,} rewritten")
    held = sum(r.between_kernels for r in story.refused)
    if held:
        parts.append(f"{plural(held, 'edge')} between kernels refused")
    return ", ".join(parts) or ("changed nothing" if not story.changed else "nothing of its own to tell")


def sources(g: FusedGroup) -> str | None:
    """The source line of a fusion: its own, else that of the first operation in it that has one."""
    return g.fusion.source or next((s.producer.source for s in g.steps if s.producer.source), None)
