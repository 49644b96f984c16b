"""Big modules stay small pictures, and no picture has frames that wait for each other."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hlofuse.compilation import compile
from hlofuse.ir import parse_module
from hlofuse.render import render
from hlofuse.render.plan import convex, levels, thin
from hlofuse.render.scene import Arrow, Box, Panel, Scene
from .modules import chain, cyclic, needs_graphviz, titles


def mesh(size: int, seed: int) -> str:
    """Random operations on random earlier ones, some in scopes, a few with several results."""
    pick = random.Random(seed)
    lines = ["  v0 = f32[32]{0} parameter(0)", "  v1 = f32[32]{0} parameter(1)"]
    for n in range(2, size):
        a, b = pick.randrange(max(0, n - 12), n), pick.randrange(max(0, n - 12), n)
        scope = pick.choice(["a", "a/b", "a/c", "d"])
        op = pick.choice(["add", "multiply", "exponential", "negate", "sine"])
        operands = f"v{a}, v{b}" if op in ("add", "multiply") else f"v{a}"
        lines.append(f'  v{n} = f32[32]{{0}} {op}({operands}), metadata={{op_name="jit(f)/{scope}/{op}"}}')
    ends = [n for n in range(size) if n % 7 == 3] or [size - 1]
    shapes = ", ".join("f32[32]{0}" for _ in ends)
    lines.append(f"  ROOT out = ({shapes}) tuple({', '.join(f'v{n}' for n in ends)})")
    return "HloModule mesh\n\nENTRY main {\n" + "\n".join(lines) + "\n}\n"


@given(size=st.integers(3, 60), seed=st.integers(0, 10_000), limit=st.sampled_from([5, 20, 40, 250]))
@settings(max_examples=60, deadline=None)
def test_no_picture_has_a_cycle_of_frames(size: int, seed: int, limit: int) -> None:
    module = parse_module(mesh(size, seed))
    result = compile(module)
    for view in ("before", "after", "both"):
        for panel in render(result, view, max_nodes=limit).scene.panels:
            assert not cyclic(panel), view


@given(
    st.lists(st.tuples(st.lists(st.integers(0, 100), max_size=3), st.integers(0, 4)), min_size=1, max_size=30)
)
def test_groups_made_convex_leave_no_cycle(nodes: list[tuple[list[int], int]]) -> None:
    operands = [[o % n for o in wanted] if n else [] for n, (wanted, _) in enumerate(nodes)]
    group = {n: label for n, (_, label) in enumerate(nodes)}
    split = convex(range(len(nodes)), operands, group)
    names = {g: f"g{k}" for k, g in enumerate(dict.fromkeys(split.values()))}
    panel = Panel("p", "", boxes=[Box(name, "stub", "") for name in names.values()])
    for n, wanted in enumerate(operands):
        panel.arrows += [Arrow(names[split[o]], names[split[n]]) for o in wanted if split[o] != split[n]]
    assert not cyclic(panel)
    for n in split:  # nothing is joined that was apart, and nobody innocent is split
        assert all(group[m] == group[n] for m in split if split[m] == split[n])
    level = levels(range(len(nodes)), operands, group)
    assert all(level[o] <= level[n] for n, wanted in enumerate(operands) for o in wanted)


def test_thinning_leaves_every_order_visible() -> None:
    boxes = [Box(f"n{n}", "elementwise", "add") for n in range(30)]
    arrows = [Arrow(f"n{a}", f"n{b}", 4) for b in range(30) for a in range(b)]
    panel = Panel("p", "", boxes=boxes, arrows=arrows)
    assert thin(panel) == 30 * 29 // 2 - 29
    assert [(a.source_box, a.head) for a in panel.arrows] == [(f"n{n}", f"n{n + 1}") for n in range(29)]
    assert boxes[5].lines == ["also reads 16 B from add, add, add +1"]


@pytest.mark.parametrize("limit", [1, 10, 100])
def test_the_number_of_boxes_is_kept(limit: int) -> None:
    drawing = render(parse_module(chain(2_000, scopes=9)), max_nodes=limit)
    counted = [t for t in titles(drawing) if not t.startswith("result")]
    assert len(counted) <= max(limit, 1)
    assert "collapsed" in drawing.notices[0]
    assert "collapsed" in drawing.dot


def test_parts_follow_scopes_and_are_named_by_them() -> None:
    panels = render(parse_module(chain(120, scopes=4)), max_nodes=48).scene.panels
    asides = {b.aside for p in panels for b in p.boxes if b.style == "part"}
    assert asides == {"layer_0", "layer_1", "layer_2", "layer_3"}


def test_an_opened_part_shows_its_instructions() -> None:
    module = parse_module(chain(400))
    closed, opened = (render(module, max_nodes=40, open=names) for names in ((), ("part2",)))
    assert "negate" not in titles(closed)
    assert "negate" in titles(opened)
    assert "part 2" not in titles(opened)


def boxes_of(scene: Scene) -> int:
    return sum(len(p.all_boxes()) for p in scene.panels)


def test_a_fusion_too_big_to_open_is_drawn_alone() -> None:
    body = chain(3_000).split("ENTRY main")[1]
    entry = "ENTRY main {\n  p = f32[4]{0} parameter(0)\n"
    entry += "  ROOT big = f32[4]{0} fusion(p), kind=kLoop, calls=body\n}\n"
    module = parse_module(f"HloModule big\n\nbody{body}\n{entry}")
    opened = render(module, open=("big",))
    assert "too big to open" in opened.notices[0]
    assert boxes_of(opened.scene) < 10
    for focus in ("v1500", "body"):
        assert 3 < boxes_of(render(module, focus=focus).scene) < 250


@pytest.mark.parametrize(("most", "offered"), [(1_499, True), (1_500, False)])
def test_more_boxes_are_offered_where_there_may_be_more(most: int, *, offered: bool) -> None:
    bodies = "".join(f"body{n}{chain(400).split('ENTRY main')[1]}\n" for n in range(5))
    entry = "ENTRY main {\n  f0 = f32[4]{0} parameter(0)\n"
    for n in range(1, 6):
        root = "ROOT " * (n == 5)
        entry += f"  {root}f{n} = f32[4]{{0}} fusion(f{n - 1}), kind=kLoop, calls=body{n - 1}\n"
    drawing = render(parse_module(f"HloModule m\n\n{bodies}\n{entry}}}\n"), max_nodes=most)
    (notice,) = drawing.notices
    assert "collapsed" in notice
    assert notice.endswith("--open FUSION or --focus NAME") is not offered
    assert ("a greater --max-nodes" in notice) is offered


@needs_graphviz
def test_ten_thousand_instructions_are_drawn_as_few_boxes() -> None:
    """Which is what keeps Graphviz from taking minutes; `benchmarks/render.py` has the times."""
    drawing = render(parse_module(mesh(10_000, 1)))
    assert boxes_of(drawing.scene) < 100
    assert len(drawing.to_svg()) < 1_000_000
