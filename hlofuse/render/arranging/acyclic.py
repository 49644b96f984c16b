"""Groups that can be drawn as one: contracted to a point each, they leave no cycle.

A box around two ops with a third between them that lies outside makes the arrows run in a circle:
Graphviz then fails or draws nonsense, and a reader sees a kernel that waits for itself.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from hlofuse.analysis.components import components


def levels(
    order: Sequence[int], operands: Sequence[Sequence[int]], group: Mapping[int, Hashable]
) -> dict[int, int]:
    """For each node, how often the group changes at most on a way that leads to it.

    Nodes of the same group and level can always be drawn as one: an edge between different
    groups raises the level, and none lowers it.
    """
    level: dict[int, int] = {}
    for node in order:
        own = group[node]
        level[node] = max((level[o] + (group[o] != own) for o in operands[node]), default=0)
    return level


def convex(
    order: Sequence[int], operands: Sequence[Sequence[int]], group: Mapping[int, Hashable]
) -> dict[int, Hashable]:
    """`group` with the groups that lie on a cycle split up; the others stay as they are.

    `order` holds the nodes operands first, `group` says for every node which group it is in
    (a node alone has a group of its own).
    """
    result: dict[int, Hashable] = dict(group)
    guilty = _on_cycles(order, operands, result)
    if guilty:
        level = levels(order, operands, group)
        # Splitting the guilty alone may, rarely, leave a cycle through what was innocent before.
        for node in order:
            if result[node] in guilty:
                result[node] = ("split", group[node], level[node])
        if _on_cycles(order, operands, result):
            result = {node: ("split", group[node], level[node]) for node in order}
    return result


def _on_cycles(
    order: Sequence[int], operands: Sequence[Sequence[int]], group: Mapping[int, Hashable]
) -> set[Hashable]:
    """The groups that lie on a cycle of the contracted graph."""
    successors: dict[Hashable, dict[Hashable, None]] = {}
    for node in order:
        own = group[node]
        edges = successors.setdefault(own, {})
        for o in operands[node]:
            if group[o] != own:
                edges[group[o]] = None
    return {member for cycle in components(successors) for member in cycle}
