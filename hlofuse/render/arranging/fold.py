"""A long, narrow panel in columns, like text: what crosses from one to the next is named at both ends."""

from __future__ import annotations

import math
from dataclasses import dataclass

from hlofuse.render.arranging.islands import BEST, estimate
from hlofuse.render.scene import Arrow, Box, Outline, Panel

TOO_TALL = 2.2
"""Height to width from which a panel is folded."""

SHORT = 900.0
"""Points that fit on a screen: up to this height nothing is folded."""

MOST = 6


@dataclass(slots=True)
class _Unit:
    """A frame or a lone box: what a column holds whole."""

    boxes: list[Box]
    outline: Outline | None
    size: float
    start: float = 0.0


def is_too_tall(panel: Panel) -> bool:
    """True for a panel that reads better in columns."""
    width, height = estimate(panel)
    return height > SHORT and height > TOO_TALL * width


def fold(panel: Panel) -> list[Panel]:
    """The panel in columns."""
    width, height = estimate(panel)
    count = min(MOST, max(2, round(math.sqrt(height / width / BEST))))
    units = _units(panel)
    of = {b.key: u for u in units for b in u.boxes}
    if not _place(units, of, panel.arrows):
        return [panel]
    cuts = _cuts(units, of, panel.arrows, count)
    column = {key: sum(unit.start >= cut for cut in cuts) for key, unit in of.items()}
    parts = [
        Panel(f"{panel.key}c{n}", f"{panel.title} ({n} of {count})", panel.aside) for n in range(1, count + 1)
    ]
    for unit in units:
        part = parts[column[unit.boxes[0].key]]
        if unit.outline is not None:
            part.outlines.append(unit.outline)
        else:
            part.boxes += unit.boxes
    _arrows(panel, parts, column)
    return [p for p in parts if p.boxes or p.outlines]


def _units(panel: Panel) -> list[_Unit]:
    units = [_Unit([b], None, 40.0 + 9 * len(b.lines)) for b in panel.boxes]
    for outline in panel.outlines:
        inner = Panel(outline.key, "", boxes=outline.boxes)
        own = {b.key for b in outline.boxes}
        inner.arrows = [a for a in panel.arrows if a.source_box in own and a.head in own]
        units.append(_Unit(outline.boxes, outline, estimate(inner)[1]))
    return units


def _place(units: list[_Unit], of: dict[str, _Unit], arrows: list[Arrow]) -> bool:
    """Give every unit its distance from the top; False if they run in a circle."""
    waiting = {id(u): 0 for u in units}
    heads: dict[int, list[_Unit]] = {id(u): [] for u in units}
    for a in arrows:
        source_box, head = of[a.source_box], of[a.head]
        if source_box is not head:
            heads[id(source_box)].append(head)
            waiting[id(head)] += 1
    first = [u for u in units if not waiting[id(u)]]
    order = list(first)
    for unit in order:  # grows while it is walked
        for head in heads[id(unit)]:
            head.start = max(head.start, unit.start + unit.size)
            waiting[id(head)] -= 1
            if not waiting[id(head)]:
                order.append(head)
    for unit in first:  # a value stands where it is first used
        unit.start = max(0.0, min((h.start for h in heads[id(unit)]), default=unit.size) - unit.size)
    return len(order) == len(units)


def _cuts(units: list[_Unit], of: dict[str, _Unit], arrows: list[Arrow], count: int) -> list[float]:
    """Where columns end: near equal shares, across few arrows."""
    height = max(u.start + u.size for u in units)
    starts = sorted({u.start for u in units})
    cuts: list[float] = []
    for n in range(1, count):
        ideal = height * n / count
        near = [s for s in starts if abs(s - ideal) < 0.2 * height / count and s > (cuts[-1] if cuts else 0)]
        if not near:
            continue
        crossing = {
            s: len({a.source_box for a in arrows if of[a.source_box].start < s <= of[a.head].start})
            for s in near
        }
        cuts.append(min(near, key=lambda s: (crossing[s], abs(s - ideal))))
    return cuts


def _arrows(panel: Panel, parts: list[Panel], column: dict[str, int]) -> None:
    boxes = {b.key: b for b in panel.all_boxes()}
    kernel = {b.key: f.kernels for f in panel.outlines for b in f.boxes}
    stubs: dict[tuple[str, int], Box] = {}

    def stub(box: Box, where: int, word: str) -> Box:
        """The box that stands for `box` of another column in column `where`."""
        key = (f"{word} {box.key}", where)
        if key not in stubs:
            name = (
                f"{box.kernels or kernel.get(box.key) or box.title}" if word == "from" else f"{where_to(box)}"
            )
            stubs[key] = Box(f"{box.key}{word}{where}", "stub", f"{word} {name}", tooltip=box.tooltip[:1])
            parts[where].boxes.append(stubs[key])
        return stubs[key]

    def where_to(box: Box) -> str:
        places = sorted(
            {column[a.head] + 1 for a in panel.arrows if a.source_box == box.key} - {column[box.key] + 1}
        )
        return "column " + ", ".join(map(str, places))

    left: set[str] = set()
    for a in panel.arrows:
        here, there = column[a.source_box], column[a.head]
        if here == there:
            parts[here].arrows.append(a)
            continue
        source = stub(boxes[a.source_box], there, "from")
        parts[there].arrows.append(
            Arrow(source.key, a.head, a.bytes, a.values, a.inside, a.control, list(a.tooltip))
        )
        if a.source_box not in left:
            left.add(a.source_box)
            target = stub(boxes[a.source_box], here, "to")
            parts[here].arrows.append(Arrow(a.source_box, target.key, values=0))
