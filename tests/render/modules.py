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

SVG = "{http://www.w3.org/2000/svg}"

needs_graphviz = pytest.mark.skipif(
    shutil.which("dot") is None and importlib.util.find_spec("pygraphviz") is None,
    reason="no Graphviz on this machine",
)

FUSED = """HloModule fused

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}

norm {
  x = f32[8,128]{1,0} parameter(0)
  zero = f32[] constant(0)
  square = f32[8,128]{1,0} multiply(x, x)
  ROOT total = f32[8]{0} reduce(square, zero), dimensions={1}, to_apply=sum
}

scale {
  x.1 = f32[8,128]{1,0} parameter(0)
  t = f32[8]{0} parameter(1)
  eps = f32[] constant(1e-06)
  wide_eps = f32[8]{0} broadcast(eps), dimensions={}
  safe = f32[8]{0} add(t, wide_eps)
  root = f32[8]{0} rsqrt(safe)
  wide = f32[8,128]{1,0} broadcast(root), dimensions={0}
  ROOT scaled = f32[8,128]{1,0} multiply(x.1, wide)
}

ENTRY main {
  p = f32[8,128]{1,0} parameter(0), metadata={op_name="inputs[0]"}
  w = f32[128,64]{1,0} parameter(1)
  fusion = f32[8]{0} fusion(p), kind=kInput, calls=norm, metadata={op_name="jit(f)/norm/reduce_sum" source_file="model.py" source_line=42}
  fusion.1 = f32[8,128]{1,0} fusion(p, fusion), kind=kLoop, calls=scale
  ROOT dot = f32[8,64]{1,0} dot(fusion.1, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""  # noqa: E501

UNFUSED = """HloModule unfused

ENTRY main {
  p = f32[64,64]{1,0} parameter(0)
  one = f32[] constant(1)
  ones = f32[64,64]{1,0} broadcast(one), dimensions={}
  a = f32[64,64]{1,0} add(p, ones)
  n = f32[64,64]{1,0} negate(a)
  e = f32[64,64]{1,0} exponential(n)
  ROOT m = f32[64,64]{1,0} multiply(e, n)
}
"""

LOOP = """HloModule loop

cond {
  s = (s32[], f32[16]{0}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  end = s32[] constant(5)
  ROOT less = pred[] compare(i, end), direction=LT
}

body {
  s.1 = (s32[], f32[16]{0}) parameter(0)
  i.1 = s32[] get-tuple-element(s.1), index=0
  v = f32[16]{0} get-tuple-element(s.1), index=1
  one = s32[] constant(1)
  next = s32[] add(i.1, one)
  twice = f32[16]{0} add(v, v)
  ROOT again = (s32[], f32[16]{0}) tuple(next, twice)
}

ENTRY main {
  x = f32[16]{0} parameter(0)
  start = s32[] constant(0)
  init = (s32[], f32[16]{0}) tuple(start, x)
  loop = (s32[], f32[16]{0}) while(init), condition=cond, body=body
  out = f32[16]{0} get-tuple-element(loop), index=1
  ROOT neg = f32[16]{0} negate(out)
}
"""


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
