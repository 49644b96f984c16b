"""Which rules keep which kernels apart, and where in the user's program."""

from __future__ import annotations

from pathlib import Path

from hlofuse.account import Observed
from hlofuse.replay import Replay
from hlofuse.reports.check.model import Held, Kernel, Where
from hlofuse.reports.check.places import where_is
from hlofuse.reports.explain.explain import explain
from hlofuse.reports.explain.facts import Facts


def held_apart(observed: Observed, root: Path) -> list[Held]:
    """Every pair of kernels kept apart, greatest value first."""
    facts = Facts(observed.replay, observed.costs)
    explanation = explain(observed.replay, costs=observed.costs, facts=facts)
    found = []
    for obstacle in explanation.obstacles:
        for r in obstacle.refusals:
            final = facts.lineage.final(r.producer.name)
            names = {final, r.consumer or ""}
            found.append(
                Held(
                    obstacle.rule.code,
                    obstacle.rule.title,
                    obstacle.rule.advice,
                    r.producer.name,
                    r.consumer,
                    frozenset(names - {""}),
                    _place(observed.replay, r.producer.name, final, root),
                    r.bytes_between,
                    r.us_at_stake,
                    r.reason or "",
                )
            )
    found.sort(key=lambda h: (-(h.us_at_stake or 0.0), -h.bytes_between, h.producer))
    return found


def _place(replay: Replay, name: str, final: str, root: Path) -> Where:
    """Of an operation of the input; of a fusion made on the way, that of the kernel it became."""
    for module, known in ((replay.before, name), (replay.after, final)):
        instruction = module.find(known)
        if instruction is not None:
            return where_is(module, instruction, root)
    return Where()


def between(kernels: tuple[Kernel, ...], held: list[Held]) -> tuple[Held, ...]:
    """What keeps these kernels apart from one another, or else from any other."""
    names = {k.name for k in kernels}
    both = [h for h in held if h.kernels <= names]
    return tuple(both or [h for h in held if h.kernels & names])
