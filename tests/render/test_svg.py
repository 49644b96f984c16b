"""The files that come out: well-formed, the same every time, and harmless whatever a dump holds."""

from __future__ import annotations

import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from hlofuse.compilation import compile
from hlofuse.ir import HlofuseError, Module, parse_module
from hlofuse.render import Drawing, drawing, render
from hlofuse.render import __file__ as package
from .modules import FUSED, SVG, UNFUSED, chain, needs_graphviz, quoted_strings, texts, tooltips

HOSTILE = [
    "</script><script>alert(1)</script>",
    '"quoted"',
    r"\N \G \L \E \T \H \n \l \\",
    "&amp; &lt;b&gt; &#0; &bogus;",
    "<b>bold</b><br/><img src=x>",
    "]]> --> */ ?>",
    "line\nbreak\r\ttab\x0bvt",
    "nul\x00 esc\x1b[31m bell\x07",
    "bidi\u202egnp.exe\u2066\u2069",
    "zero\u200bwidth\ufeff\u2028",
    "\ud800 lone surrogate",
    "\ufffe\uffff not a character",
    "漢字 emoji 🚀 é",
    "x" * 5_000,
    " ",
    "",
    "}; digraph evil {",
    'a" URL="http://evil.example/',
    "javascript:alert(1)",
]


def hostile_module(text: str) -> Module:
    """A module in which everything that can be a name is `text`."""
    module = parse_module(FUSED)
    module.name = text
    for computation in module.computations:
        computation.name = text
        for instruction in computation:
            instruction.name = text
            if instruction.opcode == "constant":
                instruction.payload = text
            raw = {**instruction.attributes.raw_items}
            if instruction.opcode in ("parameter", "fusion"):
                quoted = text.replace("\\", "\\\\").replace('"', '\\"')
                raw["metadata"] = f'{{op_name="{quoted}/{quoted}" source_file="{quoted}" source_line=1}}'
                instruction.attributes = type(instruction.attributes)(raw=raw)
    return module


@pytest.mark.parametrize("text", HOSTILE)
def test_dot_holds_names_as_data(text: str) -> None:
    dot = render(hostile_module(text)).dot
    dot.encode()
    assert all(line.lstrip("\t").isprintable() for line in dot.split("\n"))
    # Nothing of the dump reaches a quoted string unescaped: Graphviz would expand \N and the like.
    assert not any("\\" in s or "<" in s for s in quoted_strings(dot))
    assert dot.count("digraph") == 1 + (0 if "digraph" not in text else dot.count("; digraph"))


@needs_graphviz
@pytest.mark.parametrize("text", HOSTILE)
def test_svg_holds_names_as_data(text: str) -> None:
    svg = render(hostile_module(text)).to_svg()
    root = ET.fromstring(svg)
    tags = {e.tag.removeprefix(SVG) for e in root.iter()}
    assert tags <= {
        "svg",
        "title",
        "desc",
        "style",
        "rect",
        "g",
        "path",
        "polygon",
        "polyline",
        "ellipse",
        "text",
    }
    for element in root.iter():
        for name, value in element.attrib.items():
            assert not name.lower().startswith("on")
            assert "href" not in name
            assert "javascript" not in value
            assert "url(" not in value
    assert len(svg) < 200_000
    if text.isprintable() and 0 < len(text.strip()) < 20 and "\\" not in text:
        assert text in texts(svg)


@needs_graphviz
def test_a_long_name_is_short_in_the_box_and_whole_in_the_tooltip() -> None:
    module = parse_module(FUSED)
    name = "begin_" + "x" * 300 + "_end"
    instruction = module.find("fusion.1")
    assert instruction is not None
    instruction.name = name
    svg = render(module).to_svg()
    assert name not in texts(svg)
    assert "begin_xxxx" in texts(svg)
    assert any(name in t for t in tooltips(svg))


@needs_graphviz
def test_tooltips_hold_the_instruction_and_its_source() -> None:
    found = tooltips(render(parse_module(FUSED)).to_svg())
    assert any("reduce(" in t and "dimensions={1}" in t for t in found)
    assert any("source: model.py:42" in t for t in found)
    assert any(t.startswith("p: 4.10 kB") for t in found)


@needs_graphviz
def test_svg_is_self_contained_on_a_white_card() -> None:
    svg = render(parse_module(FUSED)).to_svg()
    root = ET.fromstring(svg)
    assert root.find(f"{SVG}title") is not None
    card = root.find(f"{SVG}rect")
    assert card is not None
    assert card.get("fill") == "#ffffff"
    assert "graphviz version" not in svg.lower()
    assert svg.count("http") == 1, "the namespace alone"
    assert "DOCTYPE" not in svg


@needs_graphviz
@pytest.mark.parametrize("form", ["dot", "svg", "png", "pdf"])
def test_the_same_bytes_every_time(form: str) -> None:
    code = (
        "import sys; from hlofuse.ir import parse_module; from hlofuse.render import render;"
        "sys.stdout.buffer.write(render(parse_module(sys.stdin.read())).to_bytes(sys.argv[1]))"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code, form],
            input=FUSED.encode(),
            capture_output=True,
            check=True,
            env={"PYTHONHASHSEED": str(seed), "PATH": ""},
        ).stdout
        for seed in (0, 1)
    }
    assert len(outputs) == 1
    assert outputs.pop()[:4] in (b"\x89PNG", b"%PDF", b"<?xm", b"digr")


@needs_graphviz
def test_pdf_and_png() -> None:
    drawing = render(compile(parse_module(UNFUSED)), "both")
    assert drawing.to_pdf().startswith(b"%PDF")
    png = drawing.to_png()
    assert png.startswith(b"\x89PNG")
    assert int.from_bytes(png[16:20], "big") > 500


@needs_graphviz
def test_a_layout_that_takes_too_long_is_ended() -> None:
    edges = "".join(f"n{a}->n{b};" for a in range(120) for b in range(a))
    with pytest.raises(HlofuseError, match=r"more than 0\.3 s"):
        drawing.run_graphviz(f"digraph {{ {edges} }}", "svg", timeout=0.3)


@needs_graphviz
def test_what_graphviz_complains_about_is_said() -> None:
    with pytest.raises(HlofuseError, match="Graphviz"):
        drawing.run_graphviz("digraph { this is not dot", "svg")


_DIES = """
import os, signal, sys
sys.stdin.read()
if {unless!r} not in sys.argv:
    os.kill(os.getpid(), signal.SIGTERM)
print("<svg/>")
"""


@pytest.mark.parametrize(("unless", "drawn"), [("-Gsplines=line", True), ("nothing", False)])
def test_what_graphviz_dies_of_is_drawn_with_straight_edges(
    unless: str, drawn: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = [sys.executable, "-c", _DIES.format(unless=unless)]
    monkeypatch.setattr(drawing, "engine", lambda: program)
    if drawn:
        assert drawing.run_graphviz("digraph {}", "svg").strip() == b"<svg/>"
    else:
        with pytest.raises(HlofuseError, match="Graphviz crashed on this picture"):
            drawing.run_graphviz("digraph {}", "svg")


def test_a_picture_that_takes_long_is_drawn_with_straight_edges(monkeypatch: pytest.MonkeyPatch) -> None:
    waits = _DIES.format(unless="-Gsplines=line").replace(
        "os.kill(os.getpid(), signal.SIGTERM)", "signal.pause()"
    )
    monkeypatch.setattr(drawing, "engine", lambda: [sys.executable, "-c", waits])
    monkeypatch.setattr(drawing, "_BEST", 0.5)
    assert drawing.run_graphviz("digraph {}", "svg").strip() == b"<svg/>"


def test_without_graphviz_there_is_one_clear_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _: None)
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    drawing: Drawing = render(parse_module(FUSED))
    assert drawing.to_bytes("dot").startswith(b"digraph")
    with pytest.raises(HlofuseError, match=r"no wheels of pygraphviz .* install Graphviz") as caught:
        drawing.to_svg()
    assert "\n" not in str(caught.value)


@needs_graphviz
def test_arrows_run_below_the_headings_of_frames() -> None:
    """Headings come last, on plates in the colour of their frames."""
    text = render(parse_module(FUSED)).to_svg()
    root = ET.fromstring(text)
    (last,) = [e for e in root if e.get("class") == "heading"]
    drawn = [k for k, e in enumerate(root) if e.find(f".//{SVG}path") is not None]
    assert list(root).index(last) > max(drawn)
    plates = [(float(r.get("x", 0)), float(r.get("y", 0))) for r in last.findall(f"{SVG}rect")]
    heading = next(t for t in last.findall(f"{SVG}text") if t.text == "fusion.1")
    assert any(x < float(heading.get("x", 0)) and y < float(heading.get("y", 0)) for x, y in plates)


@needs_graphviz
def test_parts_that_never_meet_are_packed() -> None:
    """Twenty of them next to each other would be a row."""
    lines = [f"  p{n} = f32[8]{{0}} parameter({n})\n  t{n} = f32[8]{{0}} tanh(p{n})" for n in range(20)]
    results = ", ".join(f"t{n}" for n in range(20))
    lines.append(f"  ROOT r = ({', '.join(['f32[8]{0}'] * 20)}) tuple({results})")
    width, height = render(parse_module("HloModule m\n\nENTRY e {\n" + "\n".join(lines) + "\n}\n")).size()
    assert width < 2 * height


@pytest.fixture
def opened(browser: Browser, tmp_path: Path) -> Iterator[Callable[..., Page]]:
    """Opens the picture of a module in a window of 1,280 × 800."""
    page = browser.new_page(viewport={"width": 1280, "height": 800})

    def open_picture(text: str, focus: tuple[str, ...] = ()) -> Page:
        file = tmp_path / "picture.svg"
        file.write_bytes(render(parse_module(text), focus=focus, radius=40).to_bytes("svg"))
        page.goto(file.as_uri())
        return page

    yield open_picture
    page.close()


_SCALE = "document.querySelector('text').getScreenCTM().a"
_PLACE = """(() => {
  const r = document.querySelector('rect').getBoundingClientRect();
  return [r.x, r.y, r.right, r.bottom];
})()"""


@needs_graphviz
def test_a_picture_fits_the_window_and_zooms_and_pans(opened: Callable[..., Page]) -> None:
    page = opened(FUSED)
    left, top, right, bottom = page.evaluate(_PLACE)
    assert left >= 0
    assert top >= 0
    assert right <= 1280
    assert bottom <= 800
    before = page.evaluate(_SCALE)
    page.mouse.move(640, 400)
    page.mouse.wheel(0, -200)
    page.wait_for_function(f"{_SCALE} > {before} * 1.5")
    place = page.evaluate(_PLACE)
    page.mouse.down()
    page.mouse.move(700, 430)
    page.mouse.up()
    moved = page.evaluate(_PLACE)
    assert [round(m - p) for m, p in zip(moved, place, strict=True)] == [60, 30, 60, 30]
    page.keyboard.press("0")
    assert page.evaluate(_PLACE) == [left, top, right, bottom]
    page.set_viewport_size({"width": 1280, "height": round(0.9 * (bottom - top))})
    page.wait_for_function(f"{_SCALE} < {before}", timeout=3000)


@needs_graphviz
def test_a_large_picture_opens_readable_and_a_double_click_fits_it(opened: Callable[..., Page]) -> None:
    page = opened(chain(150))
    sizes = """[...document.querySelectorAll('text')].map(
        t => parseFloat(getComputedStyle(t).fontSize) * t.getScreenCTM().a)"""
    assert min(page.evaluate(sizes)) >= 11
    page.mouse.dblclick(640, 400)
    *_, bottom = page.evaluate(_PLACE)
    assert bottom <= 801
    page.mouse.dblclick(640, 400)
    assert min(page.evaluate(sizes)) >= 11


@needs_graphviz
@pytest.mark.parametrize(("focus", "readable"), [(("v100",), True), (("v70", "v140"), False)])
def test_a_large_picture_opens_on_all_that_is_in_focus(
    opened: Callable[..., Page], focus: tuple[str, ...], readable: bool
) -> None:
    page = opened(chain(150), focus)
    marked = "[...document.querySelectorAll('.marked')].map((e) => e.getBoundingClientRect().toJSON())"
    places = page.evaluate(marked)
    assert len(places) == len(focus)
    assert all(p["x"] >= 0 and p["y"] >= 0 and p["right"] <= 1280 and p["bottom"] <= 800 for p in places)
    assert (page.evaluate(_SCALE) > 1.3) is readable


@needs_graphviz
def test_without_its_script_a_picture_still_fits_the_window(browser: Browser, tmp_path: Path) -> None:
    """An `img` runs no script, and neither does a page that forbids it."""
    file = tmp_path / "picture.svg"
    file.write_text(render(parse_module(chain(60))).to_svg(), encoding="utf-8")
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.goto(file.as_uri())
    *_, right, bottom = page.evaluate(_PLACE)
    assert right <= 1280
    assert bottom <= 801
    page.close()


@needs_graphviz
def test_only_the_script_of_a_file_is_active() -> None:
    text = render(hostile_module("</script><script>alert(1)</script>")).to_bytes("svg").decode()
    (script,) = ET.fromstring(text).iter(f"{SVG}script")
    assert script.text == Path(package).with_name("pan.js").read_text(encoding="utf-8")
    for word in ("fetch", "XMLHttpRequest", "innerHTML", "eval", "http"):
        assert word not in script.text
