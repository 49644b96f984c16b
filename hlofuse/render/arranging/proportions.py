"""How panels are set out: a guess at their sizes, made without Graphviz so that DOT says it too."""

from __future__ import annotations

import math
from collections.abc import Sequence

from hlofuse.render.scene import Panel

_BOX = (150.0, 26.0)
_GAP = 30.0
BEST = 1.3
"""Width to height of a picture that suits a screen and a page."""


def estimate(panel: Panel) -> tuple[float, float]:
    """Width and height in points, from the longest chain and the most crowded rank."""
    boxes = [b.key for b in panel.all_boxes()]
    rank = dict.fromkeys(boxes, 0.0)
    heads: dict[str, list[tuple[str, float]]] = {}
    waiting = dict.fromkeys(boxes, 0)
    for a in panel.arrows:
        heads.setdefault(a.tail, []).append((a.head, 1.0 if a.inside else 2.2))
        waiting[a.head] += 1
    first = [k for k in boxes if not waiting[k]]
    ready = list(first)
    while ready:
        key = ready.pop()
        for head, length in heads.get(key, ()):
            rank[head] = max(rank[head], rank[key] + length)
            waiting[head] -= 1
            if not waiting[head]:
                ready.append(head)
    for key in first:  # a value stands where it is first used
        if key in heads:
            rank[key] = max(0.0, min(rank[head] - length for head, length in heads[key]))
    crowd: dict[float, int] = {}
    for r in rank.values():
        crowd[r] = crowd.get(r, 0) + 1
    # Frames push boxes of the same rank apart and one another down.
    wide = max(crowd.values(), default=1)
    height = (max(rank.values(), default=0) + 1) * _BOX[1] * 1.2 + len(panel.frames) * 12
    return wide * _BOX[0] + 60, height + 60


def is_tall(panel: Panel) -> bool:
    """True where there is more room beside than below."""
    width, height = estimate(panel)
    return width < 1.6 * height


def columns(panels: Sequence[Panel], step: int = 1, aside: float = 0.0) -> int:
    """How many panels to a row; a multiple of `step`, or one. `aside` is taken by the legend."""
    sizes = [estimate(p) for p in panels]
    candidates = [1, *(c for c in range(step, len(panels) + 1, step) if c > 1)][:8]

    def badness(count: int) -> float:
        rows = [sizes[i : i + count] for i in range(0, len(sizes), count)]
        width = sum(max(row[c][0] for row in rows if c < len(row)) + _GAP for c in range(count)) + aside
        height = sum(max(h for _, h in row) + _GAP for row in rows)
        return abs(math.log(width / height / BEST))

    return min(candidates, key=badness)
