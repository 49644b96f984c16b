"""A computation whose parts never meet (an optimizer's step for each weight), a panel for each.

Side by side they would make one row as wide as their number; apart they can be set out in a grid, and
before stands next to after."""

from __future__ import annotations

import math
from collections.abc import Sequence

from hlofuse.render.scene import Box, Outline, Panel

MOST = 8
"""Panels made of one; beyond, neighbours share one."""

WORTHWHILE = 4
"""Fewer boxes than this are not a panel of their own."""


def split(sides: Sequence[Panel]) -> list[list[Panel]]:
    """For each island the panels of every side; one list with all sides where nothing splits.

    The sides show the same computation: boxes with a kernel's number in common are on one island.
    """
    if any(b.style == "part" for panel in sides for b in panel.boxes):
        return [list(sides)]  # an overview's boxes have many kernels each
    groups = _gather(_components(sides))
    if len(groups) < 2:
        return [list(sides)]
    result = []
    for number, keys in enumerate(groups, 1):
        panels = []
        for panel in sides:
            part = Panel(f"{panel.key}i{number}", f"{panel.title} ({number} of {len(groups)})")
            part.boxes = [b for b in panel.boxes if b.key in keys]
            part.outlines = [f for f in panel.outlines if f.boxes[0].key in keys]
            part.arrows = [a for a in panel.arrows if a.source_box in keys]
            panels.append(part)
        result.append(panels)
    return result


def _components(sides: Sequence[Panel]) -> list[list[str]]:
    """Keys of boxes that hang together, in the order of the first."""
    parent: dict[str, str] = {}

    def find(key: str) -> str:
        root = key
        while parent.setdefault(root, root) != root:
            root = parent[root]
        while parent[key] != root:
            parent[key], key = root, parent[key]
        return root

    def tie(holder: Box | Outline, key: str) -> None:
        for number in holder.kernels.split():
            if number.startswith("K"):
                parent[find(key)] = find(f"kernel {number}")

    keys = []
    for panel in sides:
        for box in panel.all_boxes():
            keys.append(box.key)
            tie(box, box.key)
        for outline in panel.outlines:
            tie(outline, outline.boxes[0].key)
            for box in outline.boxes:
                parent[find(box.key)] = find(outline.boxes[0].key)
        for arrow in panel.arrows:
            parent[find(arrow.source_box)] = find(arrow.head)
    found: dict[str, list[str]] = {}
    for key in keys:
        found.setdefault(find(key), []).append(key)
    return list(found.values())


def _gather(components: list[list[str]]) -> list[set[str]]:
    """Components of like size, at most `MOST`; what is too small goes with a neighbour."""
    total = sum(map(len, components))
    least = max(WORTHWHILE, -(-total // MOST))
    if max(map(len, components), default=0) * 2 > total:
        return []  # one mainland and some rocks
    groups: list[set[str]] = [set()]
    for component in components:
        if len(groups[-1]) >= least:
            groups.append(set())
        groups[-1].update(component)
    if len(groups) > 1 and len(groups[-1]) < least // 2:
        rest = groups.pop()
        groups[-1] |= rest
    return groups


# How panels are set out: a guess at their sizes, made without Graphviz so that DOT says it too.

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
        heads.setdefault(a.source_box, []).append((a.head, 1.0 if a.inside else 2.2))
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
    height = (max(rank.values(), default=0) + 1) * _BOX[1] * 1.2 + len(panel.outlines) * 12
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
