"""Which rules keep which kernels apart, and where in the user's program."""

from __future__ import annotations

from pathlib import Path

from hlofuse.checker.model import Held, Kernel, Where
from hlofuse.checker.places import where_is
from hlofuse.explainer import explain
from hlofuse.explainer.costs import Observed
from hlofuse.explainer.lineage import Lineage


def held_apart(observed: Observed, root: Path) -> list[Held]:
    """Every pair of kernels kept apart, greatest value first."""
    explanation = explain(observed.replay, costs=observed.costs)
    lineage = Lineage(observed.replay.events)
    before = observed.replay.before
    found = []
    for obstacle in explanation.obstacles:
        for r in obstacle.refusals:
            instruction = before.find(r.producer.name)
            names = {lineage.final(r.producer.name), r.consumer or ""}
            found.append(
                Held(
                    obstacle.rule.code,
                    obstacle.rule.title,
                    obstacle.rule.advice,
                    r.producer.name,
                    r.consumer,
                    frozenset(names - {""}),
                    where_is(before, instruction, root) if instruction is not None else Where(),
                    r.bytes_between,
                    r.us_at_stake,
                    r.reason or "",
                )
            )
    found.sort(key=lambda h: (-(h.us_at_stake or 0.0), -h.bytes_between, h.producer))
    return found


def between(kernels: tuple[Kernel, ...], held: list[Held]) -> tuple[Held, ...]:
    """What keeps these kernels apart from one another, or else from any other."""
    names = {k.name for k in kernels}
    both = [h for h in held if h.kernels <= names]
    return tuple(both or [h for h in held if h.kernels & names])
