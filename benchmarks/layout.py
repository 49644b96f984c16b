"""How readable the explorer's pictures are, against Graphviz' dot on the same boxes and lines.

    python benchmarks/layout.py [--target T] [--device D] [--parts 25] [INPUT...]

For each INPUT the parts of the Steps view at the last step: boxes, lines, and ours and dot's crossings, lines
that run through a box, overlapping boxes, length of the lines, area. Asks for a `dot` program.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from hlofuse.account import observed_replay
from hlofuse.compilation import replay_config
from hlofuse.explorer import page_html, page_of
from hlofuse.inputs import load

Point = tuple[float, float]
Rect = tuple[float, float, float, float]
Line = tuple[int, int, list[Point]]
"""From, to, and points along it."""

_PICTURE = """(part) => {
    const a = explorer;
    a.change({ view: "steps" });
    a.openRegion(part);
    const scene = a.scene(0, part), box = new Map();
    for (const [key, s] of scene.slots) box.set(`${s.x} ${s.y}`, Number(key.split(":")[1]));
    const nodes = [...document.querySelectorAll("#panes .nodes .node")].map((e) => {
        const [x, y] = e.getAttribute("transform").match(/[-\\d.]+/g).map(Number);
        const r = e.querySelector("rect");
        const size = [r.getAttribute("width"), r.getAttribute("height")].map(Number);
        return [x, y, ...size, box.get(`${x} ${y}`) ?? -1];
    });
    const lines = [...document.querySelectorAll("#panes path.edge")].map((p) => {
        const length = p.getTotalLength(), count = Math.max(8, Math.min(80, Math.ceil(length / 12)));
        return Array.from({ length: count + 1 }, (_, k) => p.getPointAtLength((length * k) / count))
            .map((q) => [q.x, q.y]);
    });
    return { nodes, lines };
}"""


@dataclass
class Figures:
    """Of one picture, or of several together."""

    crossings: int = 0
    through: int = 0
    overlaps: int = 0
    length: float = 0.0
    area: float = 0.0

    def add(self, other: Figures) -> None:
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)

    def __str__(self) -> str:
        counts = f"{self.crossings:>6} {self.through:>6} {self.overlaps:>6}"
        return f"{counts} {self.length:>9.0f} {self.area / 1000:>7.0f}"


def measured(nodes: Sequence[Rect], lines: Sequence[Line]) -> Figures:
    out = Figures()
    for a, b in itertools.combinations(lines, 2):
        if not {a[0], a[1]} & {b[0], b[1]}:
            out.crossings += sum(
                _cross(p, q, r, s)
                for p, q in itertools.pairwise(a[2])
                for r, s in itertools.pairwise(b[2])
                if min(p[0], q[0]) <= max(r[0], s[0]) and min(r[0], s[0]) <= max(p[0], q[0])
            )
    for start, end, points in lines:
        for n, (x, y, w, h) in enumerate(nodes):
            inside = (x + 2 < px < x + w - 2 and y + 2 < py < y + h - 2 for px, py in points)
            out.through += n not in (start, end) and any(inside)
        out.length += sum(math.dist(p, q) for p, q in itertools.pairwise(points))
    for (x, y, w, h), (u, v, o, p) in itertools.combinations(nodes, 2):
        out.overlaps += x < u + o - 0.5 and u < x + w - 0.5 and y < v + p - 0.5 and v < y + h - 0.5
    wide = max(x + w for x, _, w, _ in nodes) - min(x for x, _, _, _ in nodes)
    out.area = wide * (max(y + h for _, y, _, h in nodes) - min(y for _, y, _, _ in nodes))
    return out


def _cross(p: Point, q: Point, r: Point, s: Point) -> bool:
    def side(a: Point, b: Point, c: Point) -> float:
        return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])

    return side(p, q, r) * side(p, q, s) < 0 and side(r, s, p) * side(r, s, q) < 0


def as_drawn(picture: dict[str, Any]) -> tuple[list[Rect], list[int], list[Line]]:
    """Boxes, the kernel each is in, and lines; once each."""
    nodes: list[Rect] = [tuple(n[:4]) for n in picture["nodes"]]

    def nearest(point: Point, foot: bool) -> int:
        ends = [(x + w / 2, y + (h if foot else 0)) for x, y, w, h in nodes]
        return min(range(len(ends)), key=lambda n: math.dist(ends[n], point))

    lines: dict[tuple[int, int], Line] = {}
    for points in picture["lines"]:
        start, end = nearest(points[0], True), nearest(points[-1], False)
        lines.setdefault((start, end), (start, end, points))
    return nodes, [n[4] for n in picture["nodes"]], list(lines.values())


def by_dot(
    nodes: Sequence[Rect], kernels: Sequence[int], lines: Sequence[Line]
) -> tuple[list[Rect], list[Line]]:
    """The same laid out by dot, each kernel of several boxes a cluster."""
    text = ["digraph {", 'nodesep=0.2; ranksep=0.28; node [shape=box, fixedsize=true, label=""];']
    for kernel in dict.fromkeys(kernels):
        inside = [n for n, k in enumerate(kernels) if k == kernel]
        rows = [f"n{n} [width={nodes[n][2] / 72:.4f}, height={nodes[n][3] / 72:.4f}];" for n in inside]
        text += [f"subgraph cluster_{kernel} {{ margin=10;", *rows, "}"] if len(inside) > 1 else rows
    text += [f"n{a} -> n{b} [arrowhead=none];" for a, b, _ in lines] + ["}"]
    done = subprocess.run(
        ["dot", "-Tjson"], input="\n".join(text), capture_output=True, text=True, check=True
    )
    reported = json.loads(done.stdout)
    placed: dict[int, Rect] = {}
    number: dict[int, int] = {}
    for item in reported["objects"]:
        if "pos" in item and item["name"].startswith("n"):
            x, y = map(float, item["pos"].split(","))
            n = number[item["_gvid"]] = int(item["name"][1:])
            width, height = nodes[n][2:]
            placed[n] = (x - width / 2, -y - height / 2, width, height)
    drawn = [(number[e["tail"]], number[e["head"]], _spline(e["pos"])) for e in reported.get("edges", [])]
    return [placed[n] for n in range(len(nodes))], drawn


def _spline(text: str) -> list[Point]:
    given = [tuple(map(float, p.split(","))) for p in text.split() if p[0] not in "es"]
    corners = [(p[0], -p[1]) for p in given]
    points = []
    for k in range(0, len(corners) - 3, 3):
        a, b, c, d = corners[k : k + 4]
        for t in (n / 12 for n in range(12)):
            f = ((1 - t) ** 3, 3 * (1 - t) ** 2 * t, 3 * (1 - t) * t * t, t**3)
            points.append((_mixed(f, (a, b, c, d), 0), _mixed(f, (a, b, c, d), 1)))
    return [*points, corners[-1]]


def _mixed(f: Sequence[float], corners: Sequence[Point], axis: int) -> float:
    return sum(w * corner[axis] for w, corner in zip(f, corners, strict=True))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("inputs", nargs="*", default=["samples/cpu/gpt2_block/before.hlo"])
    parser.add_argument("--parts", type=int, default=25, help="at most so many parts of each")
    parser.add_argument("--target", default="cpu")
    parser.add_argument("--device")
    options = parser.parse_args()
    names = ("chromium", "chromium-browser", "google-chrome")
    path = next((found for n in names if (found := shutil.which(n))), None)
    columns = f"{'cross':>6} {'thru':>6} {'over':>6} {'length':>9} {'area':>7}"
    print(f"{'module':>28} {'boxes':>6} {'lines':>6} |{columns} |{columns}   (ours | dot)")
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        for name in options.inputs:
            module = load(name)
            observed = observed_replay(module, replay_config(options.target, options.device))
            file = Path(folder) / "page.html"
            file.write_text(page_html(page_of({"": observed})), encoding="utf-8")
            page = browser.new_page(viewport={"width": 1400, "height": 850})
            page.goto(file.as_uri())
            page.wait_for_selector("html[data-ready]")
            actual, dots, boxes, count = Figures(), Figures(), 0, 0
            for part in range(min(options.parts, page.evaluate("explorer.run.regions.length"))):
                nodes, kernels, lines = as_drawn(page.evaluate(_PICTURE, part))
                boxes, count = boxes + len(nodes), count + len(lines)
                if nodes:
                    actual.add(measured(nodes, lines))
                    dots.add(measured(*by_dot(nodes, kernels, lines)))
            page.close()
            print(f"{module.name:>28} {boxes:>6} {count:>6} |{actual} |{dots}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
