"""The film: one frame a decision, the end is what the replay says, nothing active in it."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from hlofuse.inputs import load
from hlofuse.ir import HlofuseError, parse_module
from hlofuse.render import Options
from hlofuse.render.animate import animate
from hlofuse.replay import replay

from ..running import Run
from .modules import FUSED, UNFUSED, chain, needs_graphviz

SVG = "{http://www.w3.org/2000/svg}"


def lines_of_frames(timeline: str) -> list[str]:
    """The line of every frame, in order."""
    frames = [t for t in ET.fromstring(timeline).iter(SVG + "text") if t.get("class")]
    return [t.text or "" for t in frames]


@needs_graphviz
def test_a_frame_for_each_decision(samples: Path) -> None:
    done = replay(load(samples / "cpu/softmax/before.hlo"), "cpu")
    fused = [e for e in done.events if e.event == "fuse"]
    timeline = animate(done, Options())
    lines = lines_of_frames(timeline)
    assert lines[0] == "before: 3 fusions to come"
    assert len(lines) == 1 + len(fused)
    for line, e in zip(lines[1:], fused, strict=True):
        assert f"{e.producer} → {e.consumer}" in line
    assert timeline == animate(done, Options())


@needs_graphviz
def test_every_frame_has_its_time_and_the_last_one_stays(samples: Path) -> None:
    timeline = animate(replay(load(samples / "cpu/softmax/before.hlo"), "cpu"), Options())
    used = set(re.findall(r'class="(s\d+_\d+)"', timeline))
    assert used
    for name in used:
        assert f"@keyframes {name}{{" in timeline
        assert f".{name}{{visibility:" in timeline
    last = re.findall(r"\.s3_4\{visibility:(\w+)", timeline)
    assert last == ["visible"], "who wants no motion sees the end"
    assert "prefers-reduced-motion" in timeline
    starts = {float(p) for p in re.findall(r"([\d.]+)%\{visibility:visible\}", timeline)}
    assert all(0 <= p <= 100 for p in starts)


@needs_graphviz
def test_one_fusion_at_the_end_is_around_all_it_holds() -> None:
    timeline = animate(replay(parse_module(UNFUSED), "cpu"), Options())
    steps = len(lines_of_frames(timeline)) - 1
    final = re.findall(rf'<rect class="s\d+_{steps + 1}"[^>]*fill-opacity', timeline)
    assert len(final) == 1


@needs_graphviz
def test_nothing_in_it_is_active(hlofuse: Run, tmp_path: Path) -> None:
    source, timeline = tmp_path / "u.hlo", tmp_path / "film.svg"
    source.write_text(UNFUSED, encoding="utf-8")
    result = hlofuse("render", source, "--animate", "-o", timeline)
    assert (result.status, "note" in result.err) == (0, False)
    text = timeline.read_text(encoding="utf-8")
    for active in ("<script", "href", " on", "<animate", "url(", "@import"):
        assert active not in re.sub(r">[^<]*<", "><", text), active


@pytest.mark.parametrize(
    ("text", "phrase", "message"),
    [
        (chain(400), ("--assume-input",), "are too many to follow"),
        (FUSED, (), "as it enters the fusion passes"),
        (UNFUSED, ("--focus", "e"), "one SVG of a replay"),
    ],
)
@needs_graphviz
def test_what_cannot_be_shown(
    text: str, phrase: tuple[str, ...], message: str, hlofuse: Run, tmp_path: Path
) -> None:
    source = tmp_path / "m.hlo"
    source.write_text(text, encoding="utf-8")
    result = hlofuse("render", source, "--animate", "-o", tmp_path / "film.svg", *phrase)
    assert result.status == 2
    assert message in result.err
    assert not (tmp_path / "film.svg").exists()


def test_nothing_to_fuse_is_said() -> None:
    module = parse_module("HloModule m\n\nENTRY e {\n  ROOT p = f32[8]{0} parameter(0)\n}\n")
    with pytest.raises(HlofuseError, match="nothing to animate"):
        animate(replay(module, "cpu"), Options())
