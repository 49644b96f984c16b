"""Which rules hold back most."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from hlofuse.explainer.model import Obstacle, Refusal, RuleText


def obstacles(refusals: Iterable[Refusal], rule: Callable[[str | None], RuleText]) -> tuple[Obstacle, ...]:
    """Refusals between kernels by rule: most time at stake first, then most bytes kept in memory.

    A pair refused by several passes counts once, for the last of them.
    """
    pairs: dict[tuple[str, str | None], Refusal] = {}
    for r in refusals:
        if r.between_kernels:
            pairs[r.producer.name, r.consumer] = r
    by_rule: dict[str | None, list[Refusal]] = {}
    for r in pairs.values():
        by_rule.setdefault(r.rule, []).append(r)
    found = [Obstacle(rule(code), tuple(sorted(held, key=_greatest_first))) for code, held in by_rule.items()]
    found.sort(key=lambda o: (-(o.us_at_stake or 0.0), -o.bytes_between, -o.edges, o.rule.code))
    return tuple(found)


def _greatest_first(r: Refusal) -> tuple[float, int, int]:
    return -(r.us_at_stake or 0.0), -r.bytes_between, r.steps[0]
