"""Which rules hold back most."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from hlofuse.reports.explain.model import Obstacle, PassStory, Refusal, RuleText

FURTHER_RESULTS = frozenset(
    {"multi_output_fusion", "cpu_multi_output_fusion", "horizontal_loop_fusion", "horizontal_input_fusion"}
)
"""Passes that only make one kernel with several results of what those before them have left apart."""


def obstacles(stories: Iterable[PassStory], rule: Callable[[str | None], RuleText]) -> tuple[Obstacle, ...]:
    """Refusals between kernels by rule: most time at stake first, then most bytes kept in memory.

    A pair refused by several passes counts once, for the last of them; those that only give a kernel further
    results count where no other had something to say.
    """
    pairs: dict[tuple[str | None, str | None], Refusal] = {}
    for story in stories:
        for r in story.refused:
            if r.between_kernels and not (story.name in FURTHER_RESULTS and (r.kernel, r.consumer) in pairs):
                pairs[r.kernel, r.consumer] = r
    by_rule: dict[str | None, list[Refusal]] = {}
    for r in pairs.values():
        by_rule.setdefault(r.rule, []).append(r)
    found = [Obstacle(rule(code), tuple(sorted(held, key=_greatest_first))) for code, held in by_rule.items()]
    found.sort(key=lambda o: (-(o.us_at_stake or 0.0), -o.bytes_between, -o.edges, o.rule.code))
    return tuple(found)


def _greatest_first(r: Refusal) -> tuple[float, int, int]:
    return -(r.us_at_stake or 0.0), -r.bytes_between, r.steps[0]
