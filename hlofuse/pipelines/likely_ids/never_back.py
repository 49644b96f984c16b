"""Turns of a pipeline that numbers in names have to agree with: they only go on."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

_TIMES = 16


def never_back(
    told: Sequence[int | None],
    weights: Sequence[int],
    sure: Collection[int] = (),
    falls: Mapping[int, int] | None = None,
) -> list[int]:
    """Turns that never fall and agree with as much as possible of what is told, None of one for nothing.

    There are as many turns as `weights`, which say how surely each is told. Those told in `sure` places count
    more than what only seems so around them. `falls` are places that are likely the first of a turn, and how
    much speaks against their being of the turn before.
    """
    agreed = [0] * len(weights)
    """How much agrees at most in a sequence so far that ends with this turn."""
    came_from: list[list[int]] = []
    for place, turn in enumerate(told):
        times = _TIMES if place in sure else 1
        fall = falls.get(place, 0) if falls else 0
        best = 0
        step: list[int] = []
        count: list[int] = []
        for k, own in enumerate(agreed):
            stays = not k or own - fall > agreed[best]
            step.append(k if stays else best)
            count.append(own - fall if stays else agreed[best])
            best = k if own > agreed[best] else best
        agreed = [n + times * weights[k] * (k == turn) for k, n in enumerate(count)]
        came_from.append(step)
    at = max(range(len(agreed)), key=agreed.__getitem__)
    found: list[int] = []
    for step in reversed(came_from):
        found.append(at)
        at = step[at]
    return found[::-1]
