"""Turns of a pipeline that numbers in names have to agree with: they only go on."""

from __future__ import annotations

from collections.abc import Sequence


def never_back(told: Sequence[int | None], weights: Sequence[int]) -> list[int]:
    """Turns that never fall and agree with as much as possible of what is told, None of one for nothing.

    There are as many turns as `weights`, which say how surely each is told.
    """
    agreed = [0] * len(weights)
    """How much agrees at most in a sequence so far that ends with this turn."""
    came_from: list[list[int]] = []
    for turn in told:
        best = 0
        step: list[int] = []
        for k, count in enumerate(agreed):
            best = k if count > agreed[best] else best
            step.append(best)
        agreed = [agreed[before] + weights[k] * (k == turn) for k, before in enumerate(step)]
        came_from.append(step)
    at = max(range(len(agreed)), key=agreed.__getitem__)
    found: list[int] = []
    for step in reversed(came_from):
        found.append(at)
        at = step[at]
    return found[::-1]
