"""Appearance of operations: a colour and, for colour-blind readers, a shape."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hlofuse.ir.text.signatures import split_async
from hlofuse.render.labels import entities
from hlofuse.render.scene import Scene, text_width

if TYPE_CHECKING:
    from graphviz import Digraph

FONT = "Helvetica,Arial,sans-serif"
INK = "#1f2328"
FAINT = "#59636e"
LINE = "#8c959f"
PALE = "#d1d9e0"
CARD = "#ffffff"
ALERT = "#9a3412"


_TABLES = tomllib.loads(Path(__file__).with_name("palette.toml").read_text(encoding="utf-8"))


@dataclass(frozen=True, slots=True)
class Style:
    title: str
    """Its line in the legend."""
    look: dict[str, str]
    """Attributes of Graphviz."""
    opcodes: str = ""
    slack: tuple[float, float, float] | None = None
    """For a shape other than a box: width per text width, width and height to add, in points."""

    def attributes_for_size(self, width: float, height: float) -> dict[str, str]:
        """Attributes of Graphviz for a box around a text of that size, in points."""
        if self.slack is None:
            return self.look
        per_width, more, taller = self.slack
        width, height = width * per_width + more, height + taller
        return self.look | {"fixedsize": "true", "width": f"{width / 72:.2f}", "height": f"{height / 72:.2f}"}


STYLES: dict[str, Style] = {name: Style(**table) for name, table in _TABLES["boxes"].items()}
_CATEGORY: dict[str, str] = {
    opcode: name for name, style in STYLES.items() for opcode in style.opcodes.split()
}


def cluster_style(kind: str) -> dict[str, str]:
    """Attributes of Graphviz for the frame of a fusion, or (with none) of a future kernel."""
    frames: dict[str, dict[str, str]] = _TABLES["frames"]
    return frames.get(kind, frames["other"])


def category(opcode: str) -> str:
    """The key in `STYLES` for an opcode, asynchronous or not; every unlisted one is element-wise."""
    return _CATEGORY.get(opcode) or _CATEGORY.get(split_async(opcode)[0], "elementwise")


# The key to a picture: only the kinds that occur in it.


def legend(graph: Digraph, scene: Scene, place: int) -> None:
    """Add a cluster of sample boxes, one below the other."""
    boxes = [b for p in scene.panels for b in p.all_boxes()]
    used = {b.style for b in boxes}
    kinds = {f.kind for p in scene.panels for f in p.outlines}
    arrows = [a for p in scene.panels for a in p.arrows]
    rows: list[tuple[str, dict[str, str]]] = []
    for name, style in STYLES.items():
        if name in used and name != "stub":
            rows.append((style.title, style.attributes_for_size(text_width(style.title, 9), 11)))
    frames = _TABLES["frames"]
    for kind in (*filter(kinds.__contains__, frames), *sorted(kinds - frames.keys())):
        title = _TABLES["frame_titles"].get(kind, f"{kind} fusion: one kernel")
        rows.append((entities(title), {"shape": "box"} | cluster_style(kind)))
    notes = []
    if any(not a.inside and a.bytes for a in arrows):
        notes += ["dark arrow: through memory,", "with its bytes"]
    if any(a.inside for a in arrows):
        notes.append("pale arrow: inside a kernel")
    if any(b.kernels for b in boxes) or any(f.kernels for p in scene.panels for f in p.outlines):
        notes.append("K1, K2 …: kernels")
    if notes:
        text = "".join(entities(note) + '<BR ALIGN="LEFT"/>' for note in notes)
        rows.append((f"<{text}>", {"shape": "plaintext"}))
    look = {"sortv": str(place), "label": "<<B>Legend</B>>", "style": "rounded", "color": PALE}
    look |= {"margin": "10", "id": "legend", "tooltip": " "}
    small = {"fontsize": "9", "fontcolor": INK, "margin": "0.06,0.03", "height": "0.22", "tooltip": " "}
    with graph.subgraph(name="cluster_legend", graph_attr=look, node_attr=small) as cluster:
        for n, (title, look) in enumerate(rows):
            cluster.node(f"legend{n}", title, id=f"legend{n}", **look)
        for n in range(1, len(rows)):
            cluster.edge(f"legend{n - 1}", f"legend{n}", style="invis")
