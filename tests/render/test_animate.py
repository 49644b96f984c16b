"""The decisions as an animated SVG: one frame each, the final state without animation, nothing active."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from playwright.sync_api import Browser

import hlofuse as front_door
from hlofuse.ir import HlofuseError
from hlofuse.library.report import Report
from hlofuse.render.animate import MOST

from ..hostile import COLOUR, EVIL, hostile_module
from ..running import Run
from .modules import FUSED, SVG, UNFUSED, chain, needs_graphviz

pytestmark = needs_graphviz


def captions(svg: str) -> list[tuple[bool, str]]:
    """The caption of every frame in order, and whether it is shown without animation."""
    found = [t for t in ET.fromstring(svg).iter(SVG + "text") if (t.get("class") or "").startswith("at")]
    assert [t.get("class") for t in found] == [f"at{k}" for k in range(len(found))]
    return [(t.get("visibility") == "visible", " | ".join(t.itertext())) for t in found]


def final_looks(svg: str) -> dict[str, str]:
    """By selector how an element looks without animation, or after it."""
    return dict(re.findall(r"\}\}([^{}]+)\{([^{}]*);animation:k\d+ \d+s step-end\}", svg))


@pytest.fixture
def softmax(samples: Path) -> Report:
    return front_door.open(samples / "cpu/softmax/before.hlo")


def test_a_frame_for_each_decision_that_explain_counts(softmax: Report) -> None:
    shown = [text for _, text in captions(softmax.render(animate=True).to_svg())]
    passes = softmax.explain().data.passes
    fused = sum(p.fuse_count for p in passes)
    refused = sum(r.between_kernels for p in passes for r in p.refused)
    assert len(shown) == 1 + fused + refused + 1
    assert sum(": Fused: " in text for text in shown) == fused == 3
    assert sum(": Refused: " in text for text in shown) == refused == 4
    assert shown[1].startswith("1 of 7: Fused: broadcast.1 into multiply | ")
    assert "expensive producer; producer elements 1,024" in shown[2], "plain words, figures, the rule"
    assert shown[2].endswith("(CPU007)")


def test_without_animation_the_final_state_is_shown(softmax: Report) -> None:
    drawing = softmax.render(animate=True)
    svg = drawing.to_svg()
    assert [visible for visible, _ in captions(svg)] == [False] * 8 + [True]
    looks = final_looks(svg)
    assert [s for s, look in looks.items() if s.startswith(".at") and "visible" in look] == [".at8"]
    frames = [o for p in drawing.scene.panels for o in p.outlines]
    assert frames
    for o in frames:
        assert looks[f"#{o.key},.{o.key}"] == "visibility:visible"
        assert all(
            "#0969da;stroke-width:2.5" in looks[f"#{b.key} :is(polygon,path,ellipse)"] for b in o.boxes
        )
    assert list(looks.values()).count("stroke-opacity:0.25;fill-opacity:0.25") == 2, (
        "one arrow inside each of the two fusions"
    )
    assert "prefers-reduced-motion" in svg
    times = [float(t) for t in re.findall(r"([\d.]+)%\{", svg)]
    assert min(times) == 0
    assert max(times) == 100
    assert svg == softmax.render(animate=True).to_svg()
    assert drawing.to_bytes("png").startswith(b"\x89PNG"), "other formats have the final state"


@pytest.mark.parametrize("text", [EVIL, COLOUR, "]]> & {}:%\\N", "'\"", "x" * 200])
def test_names_are_data_and_nothing_is_active(text: str) -> None:
    module = hostile_module(text, op_name="x", source_file="y")
    written = (
        front_door.open(module, target="cpu", stage="fusion-input")
        .render(animate=True)
        .to_bytes("svg")
        .decode()
    )
    root = ET.fromstring(written)
    drawn = "svg title desc style rect g path polygon polyline ellipse text tspan".split()
    assert {e.tag.removeprefix(SVG) for e in root.iter()} <= {*drawn}
    assert all(not k.startswith("on") and "href" not in k for e in root.iter() for k in e.attrib)
    styles = "".join(e.text or "" for e in root.iter(SVG + "style"))
    assert not re.search(r"url|@import|http", styles)
    assert written.count("http") == 1, "the namespace alone"
    assert all(line.isprintable() for line in written.replace("\xa0", " ").split("\n"))


def test_focus_shows_only_decisions_near_it(hlofuse: Run, tmp_path: Path) -> None:
    source, out = tmp_path / "long.hlo", tmp_path / "near.svg"
    source.write_text(chain(400))
    animate = "render", source, "--assume-input", "--animate", "-o", out
    whole = hlofuse(*animate)
    assert whole.status == 2
    assert f"399 decisions are too many to show (at most {MOST}): give --focus NAME" in whole.err
    assert not out.exists()
    wide = hlofuse(*animate, "--focus", "v200", "--radius", "100")
    assert wide.status == 2
    assert "200 decisions are too many to show (at most 150): give a smaller --radius" in wide.err
    near = hlofuse(*animate, "--focus", "v200")
    assert near.status == 0, near.err
    decided = [text for _, text in captions(out.read_text(encoding="utf-8"))[1:-1]]
    assert [re.findall(r"\bv\d+\b", text)[:1] for text in decided] == [
        [f"v{n}"] for n in (201, 200, 199, 198)
    ]
    assert "zooms" not in near.err


@pytest.mark.parametrize(
    ("text", "arguments", "message"),
    [
        (UNFUSED, ["-o", "x.png"], "--animate writes an SVG of one module: -o FILE.svg"),
        (UNFUSED, ["-o", "x.json"], "--animate writes an SVG of one module: -o FILE.svg"),
        (UNFUSED, ["-o", "-", "--format", "dot"], "--animate writes an SVG of one module"),
        (UNFUSED, ["m.hlo", "-o", "x.svg"], "without AFTER"),
        (UNFUSED, ["-o", "x.svg", "--view", "both"], "leave out view, open and collapse"),
        (FUSED, ["-o", "x.svg", "--target", "cpu"], "is a fused module"),
        (UNFUSED, ["-o", "x.svg", "--focus", "p", "--radius", "0"], "there is nothing to animate"),
    ],
)
def test_what_cannot_be_animated(
    text: str,
    arguments: list[str],
    message: str,
    hlofuse: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("m.hlo").write_text(text)
    result = hlofuse("render", "m.hlo", "--animate", *arguments)
    assert result.status == 2
    assert message in result.err
    assert [p.name for p in tmp_path.iterdir()] == ["m.hlo"]


def test_a_module_without_a_fusion_has_nothing_to_animate() -> None:
    report = front_door.open("HloModule m\n\nENTRY e {\n  ROOT p = f32[8]{0} parameter(0)\n}\n", target="cpu")
    with pytest.raises(HlofuseError, match="there is nothing to animate"):
        report.render(animate=True)


def test_in_a_browser_each_decision_has_its_time_and_a_focus_is_readable(
    browser: Browser, samples: Path, tmp_path: Path
) -> None:
    report = front_door.open(samples / "gpu/gpt2_block/before.hlo", device="h100_sxm")
    file = tmp_path / "near.svg"
    file.write_bytes(report.render(animate=True, focus="gemm_fusion_dot.2").to_bytes("svg"))
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(file.as_uri())
    last = len(captions(file.read_text(encoding="utf-8"))) - 1
    assert last > 3
    visible = """ms => {
        document.getAnimations().forEach(a => { a.pause(); a.currentTime = ms; });
        return [...document.querySelectorAll("[class^=at]")]
            .filter(t => getComputedStyle(t).visibility === "visible").map(t => t.getAttribute("class"));
    }"""
    for k in range(last + 1):
        assert page.evaluate(visible, 3000 * k + 1500) == [f"at{k}"]
    sizes = """[...document.querySelectorAll("text")].map(
        t => parseFloat(getComputedStyle(t).fontSize) * t.getScreenCTM().a)"""
    assert min(page.evaluate(sizes)) >= 11
    page.close()
