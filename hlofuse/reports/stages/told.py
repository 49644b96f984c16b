"""What a replay settled about two kernels, and which kernels an operation ended in."""

from __future__ import annotations

from hlofuse.replay import Replay
from hlofuse.reports.explain.facts import Facts
from hlofuse.reports.explain.model import Refusal
from hlofuse.reports.explain.refusals import refusals

Pair = tuple[str, str | None]
"""Producer and consumer, by their names in the end."""


def told_of_kernels(made: Replay, facts: Facts) -> dict[Pair, Refusal]:
    """The verdict on each pair of kernels; of several passes that of the first."""
    out: dict[Pair, Refusal] = {}
    for p in made.passes:
        for r in refusals(p.events, facts):
            if r.between_kernels:
                out.setdefault((r.kernel or r.producer.name, r.consumer), r)
    return out


def homes(facts: Facts) -> dict[str, set[str]]:
    """Of each operation of the input: the kernels that hold it in the end."""
    out: dict[str, set[str]] = {}
    for kernel in facts.launched_after:
        for member in facts.lineage.members(kernel):
            out.setdefault(member, set()).add(kernel)
    return out
