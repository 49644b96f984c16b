"""Decisions that repeat: the layers of a model fuse alike, and are shown once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hlofuse.reports.explain.model import FusedGroup, Refusal, us_at_stake


def group_fused(groups: Sequence[FusedGroup]) -> list[FusedGroup]:
    """One group for all that took in the same operations by the same rules; `alike` names the others.

    Their savings are about the same; that of the greatest stands for each.
    """
    first: dict[object, FusedGroup] = {}
    others: dict[object, list[str]] = {}
    for g in groups:
        key = (
            g.fusion.shape,
            g.fusion.source,
            tuple(sorted((s.producer.opcode, s.producer.shape, s.rule or "") for s in g.steps)),
        )
        if key in first:
            others[key].append(g.fusion.name)
        else:
            first[key] = g
            others[key] = []
    found = [replace(g, alike=tuple(others[key])) if others[key] else g for key, g in first.items()]
    found.sort(key=_greatest_first)
    return found


def _greatest_first(g: FusedGroup) -> tuple[float, int, int]:
    copies = 1 + len(g.alike)
    return -(g.us_saved or 0.0) * copies, -g.bytes_saved * copies, g.steps[0].step


def group_refusals(refusals: Sequence[Refusal]) -> list[list[Refusal]]:
    """Refusals of like producers at the same source line by the same rule, together; dearest first."""
    found: dict[object, list[Refusal]] = {}
    for r in refusals:
        key = (r.rule, r.producer.opcode, r.producer.shape, r.producer.source, r.between_kernels)
        found.setdefault(key, []).append(r)
    return sorted(
        found.values(),
        key=lambda held: (-(us_at_stake(held) or 0.0), -sum(r.bytes_between for r in held)),
    )
