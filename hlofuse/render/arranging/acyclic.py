"""Groups that can be drawn as one: contracted to a point each, they leave no cycle.

A box around two ops with a third between them that lies outside makes the arrows run in a circle:
Graphviz then fails or draws nonsense, and a reader sees a kernel that waits for itself."""

from collections.abc import Hashable, Mapping, Sequence

from hlofuse.analysis.components import components
from hlofuse.format.units import bytes_text
from hlofuse.ir.grouping import grouped
from hlofuse.render.scene import Arrow, Box, Panel


def levels(
    order: Sequence[int], operands: Sequence[Sequence[int]], group: Mapping[int, Hashable]
) -> dict[int, int]:
    """For each node, the maximum of group changes on a path to it.

    Nodes of the same group and level can always be drawn as one: an edge between different groups raises the
    level, and none lowers it.
    """
    level: dict[int, int] = {}
    for node in order:
        own = group[node]
        level[node] = max((level[o] + (group[o] != own) for o in operands[node]), default=0)
    return level


def convex(
    order: Sequence[int], operands: Sequence[Sequence[int]], group: Mapping[int, Hashable]
) -> dict[int, Hashable]:
    """`group` with the groups on a cycle split up; the others are unchanged.

    `order` has the nodes operands first, `group` the group of every node (a single node has its own).
    """
    result: dict[int, Hashable] = dict(group)
    guilty = _cyclic_groups(order, operands, result)
    if guilty:
        level = levels(order, operands, group)
        # Splitting the guilty alone may, rarely, leave a cycle through what was innocent before.
        for node in order:
            if result[node] in guilty:
                result[node] = ("split", group[node], level[node])
        if _cyclic_groups(order, operands, result):
            result = {node: ("split", group[node], level[node]) for node in order}
    return result


def _cyclic_groups(
    order: Sequence[int], operands: Sequence[Sequence[int]], group: Mapping[int, Hashable]
) -> set[Hashable]:
    successors: dict[Hashable, dict[Hashable, None]] = {}
    for node in order:
        own = group[node]
        edges = successors.setdefault(own, {})
        for o in operands[node]:
            if group[o] != own:
                edges[group[o]] = None
    return {member for cycle in components(successors) for member in cycle}


# Too many arrows to follow: those that others imply are said in words instead.
#
# An arrow from A to B is implied where another way leads from A to B; without it every reader still sees
# that B comes after A. What a training step keeps for its backward pass would otherwise run the length of
# the picture, once for every layer.

MANY = 60
PER_BOX = 1.8
"""A panel is thinned when it has more than `MANY` arrows and more than this many to a box."""


def thin(panel: Panel) -> int:
    """Write the implied arrows of a crowded panel into their heads; returns their number."""
    boxes = {b.key: b for b in panel.all_boxes()}
    outer = [a for a in panel.arrows if not a.inside]
    if len(outer) <= MANY or len(outer) <= PER_BOX * len(boxes):
        return 0
    implied = _implied_arrows(boxes, panel.arrows)
    removed = {id(a) for a in implied}
    panel.arrows = [a for a in panel.arrows if id(a) not in removed]
    for head, arrows in grouped((a.head, a) for a in sorted(implied, key=lambda a: -a.bytes)).items():
        box = boxes[head]
        names = [_short_name(boxes[a.source_box]) for a in arrows]
        more = f" +{len(names) - 3}" if len(names) > 3 else ""
        total = bytes_text(sum(a.bytes for a in arrows))
        box.lines.append(f"also reads {total} from {', '.join(names[:3])}{more}")
        for a in arrows[:12]:
            box.tooltip.append(f"also from {_short_name(boxes[a.source_box])}: {bytes_text(a.bytes)}")
    return len(implied)


def _implied_arrows(boxes: Mapping[str, Box], arrows: list[Arrow]) -> list[Arrow]:
    """Arrows between kernels with a longer path (transitive reduction)."""
    heads: dict[str, list[str]] = {key: [] for key in boxes}
    waiting = dict.fromkeys(boxes, 0)
    for a in arrows:
        heads[a.source_box].append(a.head)
        waiting[a.head] += 1
    order = [key for key, count in waiting.items() if not count]
    for key in order:  # grows while it is walked
        for head in heads[key]:
            waiting[head] -= 1
            if not waiting[head]:
                order.append(head)
    if len(order) < len(boxes):
        return []  # arrows in a circle: nothing is sure
    bit = {key: 1 << n for n, key in enumerate(order)}
    below: dict[str, int] = {}
    for key in reversed(order):
        reach = 0
        for head in heads[key]:
            reach |= bit[head] | below[head]
        below[key] = reach
    implied = []
    for a in arrows:
        if not a.inside and not a.control and a.values:
            others = 0
            for head in heads[a.source_box]:
                if head != a.head:
                    others |= below[head]
            if others & bit[a.head]:
                implied.append(a)
    return implied


def _short_name(box: Box) -> str:
    return box.kernels or box.title
