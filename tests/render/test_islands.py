"""Islands: every box is on one of them."""

from __future__ import annotations

import pytest

from hlofuse.ir import parse_module
from hlofuse.render import render
from hlofuse.render.arranging.islands import split
from hlofuse.render.scene import Arrow, Box, Panel
from hlofuse.replay import replay

from .modules import needs_graphviz


@pytest.mark.parametrize("sizes", [(6, 6, 1), (5, 5, 5, 2), (1,) * 12, (4, 4, 4, 4, 1), (9, 8, 7, 3, 2, 1)])
def test_each_box_is_drawn_once(sizes: tuple[int, ...]) -> None:
    panel = Panel("p", "entry")
    for island, size in enumerate(sizes):
        panel.boxes += [Box(f"b{island}_{k}", "elementwise", "add") for k in range(size)]
        panel.arrows += [Arrow(f"b{island}_{k}", f"b{island}_{k + 1}") for k in range(size - 1)]
    islands = [part for parts in split([panel]) for part in parts]
    drawn = [b.key for part in islands for b in part.boxes]
    assert sorted(drawn) == sorted(b.key for b in panel.boxes)
    assert sum(len(part.arrows) for part in islands) == len(panel.arrows)


@needs_graphviz
def test_islands_side_by_side_are_a_picture() -> None:
    lines = []
    for name, length in (("a", 5), ("b", 5), ("c", 1)):
        lines.append(f"  {name}0 = f32[8]{{0}} parameter({ord(name) - 97})")
        lines += [
            f"  {name}{k} = f32[8]{{0}} sort({name}{k - 1}), dimensions={{0}}, to_apply=less"
            for k in range(1, length)
        ]
    results = "a4, b4, c0"
    text = (
        "HloModule m\n\nless {\n  p = f32[] parameter(0)\n  q = f32[] parameter(1)\n"
        "  ROOT l = pred[] compare(p, q), direction=LT\n}\n\nENTRY e {\n"
        + "\n".join(lines)
        + f"\n  ROOT t = (f32[8]{{0}}, f32[8]{{0}}, f32[8]{{0}}) tuple({results})\n}}\n"
    )
    assert "<svg" in render(replay(parse_module(text), "cpu"), "both").to_svg()
