"""A picture of what lies around one instruction."""

from __future__ import annotations

from collections import deque

from hlofuse.format.units import plural
from hlofuse.ir import Computation, Instruction
from hlofuse.render.options import HARD_LIMIT, Options
from hlofuse.render.planning.boxed import drawn, inner_boxes
from hlofuse.render.planning.panel_plan import PanelPlan, that_fit


def neighbourhood(
    centre: Instruction,
    options: Options,
    wanted: set[Instruction | Computation],
    closed: set[Instruction | Computation],
    notices: list[str],
) -> PanelPlan:
    """What lies within `radius` arrows of `centre`, as far as there is room."""
    marked = {centre}
    computation = centre.computation
    assert computation is not None
    fusion = computation.fusion
    if fusion is not None and fusion.computation is not None and inner_boxes(fusion) <= options.max_nodes:
        centre, computation = fusion, fusion.computation
        marked.add(centre)
    shown = {centre: 0}
    queue = deque([centre])
    crowded = 0
    while queue:
        here = queue.popleft()
        if shown[here] == options.radius:
            continue
        # Everything meets in a parameter: its neighbours are nobody's.
        if here is not centre and here.opcode in ("parameter", "constant"):
            continue
        for there in (*drawn(here.operands, up=True), *drawn(here.users, up=False)):
            if there in shown:
                continue
            if len(shown) >= options.max_nodes:
                crowded += 1
                continue
            shown[there] = shown[here] + 1
            queue.append(there)
    if crowded:
        notices.append(
            f"only the nearest {plural(len(shown), 'instruction')} within radius {options.radius}: "
            "a smaller --radius or a greater --max-nodes"
        )
    panel = PanelPlan(computation, shown=set(shown), marked=frozenset(marked))
    room = options.max_nodes - len(shown)
    for near in shown:  # nearest first
        if near.opcode == "fusion" and near not in closed:
            inside = inner_boxes(near)
            if inside <= room or (near in marked and inside <= options.max_nodes):
                room -= inside
                panel.open.add(near)
    asked = [near for near in shown if near in wanted and near not in panel.open]
    panel.open |= that_fit(asked, HARD_LIMIT - options.max_nodes, notices)
    return panel
