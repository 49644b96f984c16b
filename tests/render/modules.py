"""Small modules to draw, and ways to look at what was drawn."""

from __future__ import annotations

import importlib.util
import re
import shutil
import xml.etree.ElementTree as ET
from collections import defaultdict

import pytest

from hlofuse.render import Drawing
from hlofuse.render.scene import Panel
from ..fixtures import companion_texts

SVG = "{http://www.w3.org/2000/svg}"

needs_graphviz = pytest.mark.skipif(
    shutil.which("dot") is None and importlib.util.find_spec("pygraphviz") is None,
    reason="no Graphviz on this machine",
)
_TEXTS = companion_texts(__file__)
FUSED, UNFUSED, LOOP = (_TEXTS[name] for name in ("fused", "unfused", "loop"))


def chain(length: int, scopes: int = 0) -> str:
    """`length` operations one after the other, optionally in so many scopes."""
    lines = ["  v0 = f32[4]{0} parameter(0)"]
    for n in range(1, length + 1):
        scope = f', metadata={{op_name="jit(f)/layer_{n * scopes // (length + 1)}/neg"}}' if scopes else ""
        root = "ROOT " if n == length else ""
        lines.append(f"  {root}v{n} = f32[4]{{0}} negate(v{n - 1}){scope}")
    return "HloModule chain\n\nENTRY main {\n" + "\n".join(lines) + "\n}\n"


def titles(drawing: Drawing) -> list[str]:
    """The titles of all boxes."""
    return [b.title for p in drawing.scene.panels for b in p.all_boxes()]


def texts(svg: str) -> str:
    """All text that is shown, without tooltips."""
    return "\n".join(t.text or "" for t in ET.fromstring(svg).iter(SVG + "text"))


def tooltips(svg: str) -> list[str]:
    """All titles: the picture's, and those of its groups."""
    return [t.text or "" for t in ET.fromstring(svg).iter(SVG + "title")]


def cyclic(panel: Panel) -> bool:
    """Whether the arrows run in a circle once every frame is a point."""
    place = {b.key: b.key for b in panel.all_boxes()}
    for frame in panel.outlines:
        place |= {b.key: frame.key for b in frame.boxes}
    edges: dict[str, set[str]] = defaultdict(set)
    for arrow in panel.arrows:
        rest, head = place[arrow.source_box], place[arrow.head]
        if rest != head:
            edges[rest].add(head)
    waiting = dict.fromkeys(place.values(), 0)
    for heads in edges.values():
        for head in heads:
            waiting[head] += 1
    ready = [k for k, n in waiting.items() if not n]
    for key in ready:
        for head in edges[key]:
            waiting[head] -= 1
            if not waiting[head]:
                ready.append(head)
    return len(ready) < len(waiting)


def quoted_strings(dot: str) -> list[str]:
    """The contents of DOT's quoted strings; HTML-like labels are left out."""
    return re.findall(r'"((?:[^"\\]|\\.)*)"', re.sub(r"label=<.*?> ", "", dot))
