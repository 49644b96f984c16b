"""What a picture shows: kernels, bytes, sources, and what became of what."""

from __future__ import annotations

import pytest

from hlofuse.compilation import compile
from hlofuse.ir import HlofuseError, parse_module
from hlofuse.render import render
from .modules import FUSED, LOOP, UNFUSED, chain, titles


def test_a_fusion_is_a_frame_with_its_kind_number_and_traffic() -> None:
    panel = render(parse_module(FUSED)).scene.panels[0]
    assert [(f.kernels, f.title, f.aside) for f in panel.outlines] == [
        ("K1", "fusion", "kInput"),
        ("K2", "fusion.1", "kLoop"),
    ]
    assert panel.outlines[0].lines == ["reads 4.10 kB, writes 32 B"]
    assert "source: model.py:42" in panel.outlines[0].tooltip
    assert [b.title for b in panel.outlines[1].boxes] == ["add", "rsqrt", "broadcast", "multiply"]


def test_constants_are_written_where_they_are_used() -> None:
    frame = render(parse_module(FUSED)).scene.panels[0].outlines[1]
    assert frame.boxes[0].aside == "(·, 1e-06)"


def test_bytes_are_on_arrows_between_kernels_and_not_inside() -> None:
    panel = render(parse_module(FUSED)).scene.panels[0]
    framed = {b.key: f.title for f in panel.outlines for b in f.boxes}
    for arrow in panel.arrows:
        inside = arrow.source_box in framed and framed[arrow.source_box] == framed.get(arrow.head)
        assert arrow.inside == inside
        assert arrow.bytes > 0


def test_what_is_unbounded_has_no_bytes() -> None:
    text = """HloModule m

ENTRY e {
  p = f32[?,8]{1,0} parameter(0)
  x = f32[?,8]{1,0} negate(p)
  ROOT y = f32[?,8]{1,0} exponential(x)
}
"""
    picture = render(parse_module(text))
    assert {a.bytes for a in picture.scene.panels[0].arrows} == {0}
    assert picture.dot


def test_both_sides_bear_the_same_kernel_numbers() -> None:
    scene = render(compile(parse_module(UNFUSED)), "both").scene
    before, after = scene.panels
    assert before.title.startswith("before")
    assert {f.kernels for f in before.outlines} == {f.kernels for f in after.outlines} == {"K1"}
    assert [b.title for b in before.outlines[0].boxes] == [
        "broadcast",
        "add",
        "negate",
        "exponential",
        "multiply",
    ]
    assert scene.lines[0].startswith("cpu fusion: 5 → 1 kernel")


def test_a_loop_has_a_panel_of_its_own() -> None:
    scene = render(parse_module(LOOP)).scene
    assert [p.title for p in scene.panels][:2] == ["entry main", "body, body of loop"]
    assert "s.1[1]" in [b.title for b in scene.panels[1].boxes]
    assert "result[1]" in [b.title for b in scene.panels[1].boxes]


def test_open_opens_what_has_no_room() -> None:
    module = parse_module(FUSED)
    closed = render(module, max_nodes=6)
    assert "rsqrt" not in titles(closed)
    assert "rsqrt" in titles(render(module, max_nodes=6, open=("fusion.1",)))


def test_focus_draws_the_neighbourhood() -> None:
    module = parse_module(chain(50))
    near = titles(render(module, focus="v25", radius=2))
    assert near.count("negate") == 5
    assert "+ 1 operand" in near
    assert "+ 1 user" in near
    assert titles(render(module, focus="%v25", radius=0)).count("negate") == 1


def test_focus_inside_a_fusion_opens_it_and_marks_both() -> None:
    panel = render(parse_module(FUSED), focus="safe", radius=0).scene.panels[0]
    assert [f.title for f in panel.outlines if f.marked] == ["fusion.1"]
    assert [b.title for b in panel.all_boxes() if b.marked] == ["add"]


def test_focus_on_a_computation_draws_that_one() -> None:
    panels = render(parse_module(LOOP), focus="body").scene.panels
    assert [p.title for p in panels] == ["body, body of loop"]


def test_focus_follows_a_name_to_the_other_side() -> None:
    result = compile(parse_module(UNFUSED))
    fusion = result.after.entry.root.name
    before, after = render(result, "both", focus="n", radius=0).scene.panels
    assert [b.title for b in before.all_boxes() if b.marked] == ["negate"]
    assert [f.title for f in after.outlines if f.marked] == [fusion]
    assert render(result, focus="n", radius=0).scene.panels[0].outlines[0].marked
    before, after = render(result, "both", focus=fusion, radius=0).scene.panels
    assert any(b.marked for b in before.all_boxes())
    with pytest.raises(HlofuseError, match="no instruction or computation is named nn"):
        render(result, focus="nn")


@pytest.mark.parametrize("options", [{"focus": "fusoin.1"}, {"open": ("fusoin.1",)}])
def test_a_mistyped_name_gets_suggestions(options: dict[str, object]) -> None:
    with pytest.raises(HlofuseError, match=r"did you mean"):
        render(parse_module(FUSED), **options)  # type: ignore[arg-type]


def test_what_cannot_be_drawn_is_said() -> None:
    module = parse_module(FUSED)
    with pytest.raises(HlofuseError, match="needs a replay"):
        render(module, "after")
    with pytest.raises(HlofuseError, match="no view"):
        render(module, "sideways")
    with pytest.raises(HlofuseError, match="calls no computation"):
        render(module, open=("dot",))
    with pytest.raises(HlofuseError, match="max-nodes"):
        render(module, max_nodes=0)
    with pytest.raises(HlofuseError, match="there is no part9"):
        render(parse_module(chain(100)), max_nodes=8, open=("part9999",))
