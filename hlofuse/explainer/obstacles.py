"""Which rules hold back most."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from hlofuse.explainer.model import Obstacle, Refusal, RuleText


def obstacles(refusals: Iterable[Refusal], rule: Callable[[str | None], RuleText]) -> tuple[Obstacle, ...]:
    """Refusals between kernels by rule: most bytes kept in memory first, then most pairs.

    A pair refused by several passes counts once, for the last of them.
    """
    pairs: dict[tuple[str, str | None], Refusal] = {}
    for r in refusals:
        if r.between_kernels:
            pairs[r.producer.name, r.consumer] = r
    by_rule: dict[str | None, list[Refusal]] = {}
    for r in pairs.values():
        by_rule.setdefault(r.rule, []).append(r)
    found = [
        Obstacle(rule(code), tuple(sorted(held, key=lambda r: (-r.bytes_between, r.steps[0]))))
        for code, held in by_rule.items()
    ]
    found.sort(key=lambda o: (-o.bytes_between, -o.edges, o.rule.code))
    return tuple(found)
