"""Numbers of a device that would decide a pair otherwise: those that do when the whole module is replayed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from hlofuse.account import Observed
from hlofuse.account.flips import Flip
from hlofuse.reports.common.facts import Facts
from hlofuse.reports.why.model import PairAnswer
from hlofuse.reports.why.story import Answer

UP_TO = 3_000
"""Instructions of a module that is replayed for this."""


def confirmed(
    found: Sequence[Answer], observed: Observed, replayed: Callable[[str], Observed]
) -> list[Answer]:
    """The answers with only those flips that `replayed`, given `NAME=VALUE`, decides as they say."""
    facts = Facts(observed.replay)
    if len(facts.before) > UP_TO:
        return list(found)
    cache: dict[str, Facts] = {}

    def decides(pair: PairAnswer, flip: Flip) -> bool:
        change = flip_setting(flip)
        if change not in cache:
            cache[change] = Facts(replayed(change).replay)
        return _is_one_kernel(pair, cache[change], facts) != _is_one_kernel(pair, facts, facts)

    out: list[Answer] = []
    for answer in found:
        if isinstance(answer, PairAnswer) and answer.cost is not None and answer.cost.flips:
            flips = tuple(f for f in answer.cost.flips if decides(answer, f))
            answer = replace(answer, cost=replace(answer.cost, flips=flips))
        out.append(answer)
    return out


def flip_setting(flip: Flip) -> str:
    """`core_count=80`, as `--set` takes it."""
    value = f"{flip.value:.0f}" if flip.value == int(flip.value) else f"{flip.value:.10g}"
    return f"{flip.number}={value}"


def _is_one_kernel(pair: PairAnswer, facts: Facts, input: Facts) -> bool:
    """True if what producer and consumer hold of the module ends up in one kernel."""
    of_each = [
        {k for m in input.lineage.members(place.name) for k in facts.lineage.kernels_of(m)}
        for place in (pair.producer, pair.consumer)
    ]
    return not of_each[0].isdisjoint(of_each[1])
