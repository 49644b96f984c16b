"""A computation whose parts never meet (an optimizer's step for each weight), a panel for each.

Side by side they would make one row as wide as their number; apart they can be set out in a grid, and
before stands next to after.
"""

from __future__ import annotations

from collections.abc import Sequence

from hlofuse.render.scene import Box, Frame, Panel

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
            part.frames = [f for f in panel.frames if f.boxes[0].key in keys]
            part.arrows = [a for a in panel.arrows if a.tail in keys]
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

    def tie(holder: Box | Frame, key: str) -> None:
        for number in holder.kernels.split():
            if number.startswith("K"):
                parent[find(key)] = find(f"kernel {number}")

    keys = []
    for panel in sides:
        for box in panel.all_boxes():
            keys.append(box.key)
            tie(box, box.key)
        for frame in panel.frames:
            tie(frame, frame.boxes[0].key)
            for box in frame.boxes:
                parent[find(box.key)] = find(frame.boxes[0].key)
        for arrow in panel.arrows:
            parent[find(arrow.tail)] = find(arrow.head)
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
        groups[-2] |= groups.pop()
    return groups
