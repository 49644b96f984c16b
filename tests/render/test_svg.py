"""The files that come out: well-formed, the same every time, and harmless whatever a dump holds."""

from __future__ import annotations

import subprocess
import sys
import xml.etree.ElementTree as ET

import pytest

from hlofuse.ir import HlofuseError, Module, parse_module
from hlofuse.render import Drawing, engine, render
from hlofuse.replay import replay

from .modules import FUSED, SVG, UNFUSED, needs_graphviz, quoted_strings, texts, tooltips

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
    drawing = render(replay(parse_module(UNFUSED)), "both")
    assert drawing.to_pdf().startswith(b"%PDF")
    png = drawing.to_png()
    assert png.startswith(b"\x89PNG")
    assert int.from_bytes(png[16:20], "big") > 500


@needs_graphviz
def test_a_layout_that_takes_too_long_is_ended() -> None:
    edges = "".join(f"n{a}->n{b};" for a in range(120) for b in range(a))
    with pytest.raises(HlofuseError, match=r"more than 0\.3 s"):
        engine.run(f"digraph {{ {edges} }}", "svg", timeout=0.3)


@needs_graphviz
def test_what_graphviz_complains_about_is_said() -> None:
    with pytest.raises(HlofuseError, match="Graphviz"):
        engine.run("digraph { this is not dot", "svg")


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
    monkeypatch.setattr(engine, "engine", lambda: program)
    if drawn:
        assert engine.run("digraph {}", "svg").strip() == b"<svg/>"
    else:
        with pytest.raises(HlofuseError, match="Graphviz crashed on this picture"):
            engine.run("digraph {}", "svg")


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
    svg = render(parse_module(FUSED)).to_svg()
    root = ET.fromstring(svg)
    last = [e for e in root if e.get("class") == "heading"]
    assert len(last) == 1
    plates, text = last[0].findall(f"{SVG}rect"), last[0].findall(f"{SVG}text")
    assert list(last[0]) == [*plates, *text]  # no plate hides a word
    drawn = [k for k, e in enumerate(root) if e.find(f".//{SVG}path") is not None]
    assert list(root).index(last[0]) > max(drawn)
    for word in text:
        x, y = float(word.get("x", "")), float(word.get("y", ""))
        assert any(
            float(p.get("x", "")) <= x <= float(p.get("x", "")) + float(p.get("width", ""))
            and float(p.get("y", "")) <= y <= float(p.get("y", "")) + float(p.get("height", ""))
            for p in plates
        )
