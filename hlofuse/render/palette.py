"""What an operation looks like: a colour and, for eyes that do not tell colours apart, a shape.

The hues are Okabe and Ito's, which stay apart under every common colour blindness; fills are pale
so that black text reads on them."""

from __future__ import annotations

from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class Style:
    """How a box of one kind is drawn."""

    title: str
    """Its line in the legend."""
    fill: str
    line: str
    shape: dict[str, str]
    """Graphviz attributes that make the shape."""
    slack: tuple[float, float, float] | None = None
    """For a shape that is no box: width per text width, width and height to add, in points."""


_SLANTED = (1.1, 34.0, 6.0)


def _shape(name: str, style: str = "filled", **more: str) -> dict[str, str]:
    return {"shape": name, "style": style, **more}


STYLES: dict[str, Style] = {
    "elementwise": Style("elementwise", "#e1effa", "#0072b2", _shape("box", "filled,rounded")),
    "reduction": Style(
        "reduction", "#fdebc8", "#c27c00", _shape("polygon", sides="4", distortion="0.25"), _SLANTED
    ),
    "contraction": Style("dot, convolution", "#fadccb", "#b84e00", _shape("hexagon"), (1.12, 30, 6)),
    "generator": Style(
        "broadcast, iota, random",
        "#f9f5cc",
        "#8f8400",
        _shape("polygon", sides="4", distortion="-0.25"),
        _SLANTED,
    ),
    "movement": Style(
        "reshape, transpose, slice", "#d8f1e8", "#00805c", _shape("polygon", sides="4", skew="0.3"), _SLANTED
    ),
    "indexing": Style("gather, scatter, sort", "#f6e1ed", "#a8487f", _shape("octagon"), (1.05, 24, 7)),
    "collective": Style("collective", "#dcf0fb", "#2a86b8", _shape("doubleoctagon"), (1.05, 28, 10)),
    "library": Style("custom call", "#e9e3f5", "#6546a3", _shape("component")),
    "control": Style("loop, branch, call", "#ebedf0", "#424a53", _shape("box3d")),
    "value": Style("parameter, constant, result", "#ffffff", LINE, _shape("oval"), (1.1, 18, 10)),
    "part": Style("collapsed part", "#f6f8fa", "#424a53", _shape("folder")),
    "fusion": Style("fusion, closed", "#eef4fb", "#33658a", _shape("box", peripheries="2")),
    "stub": Style("continues beyond the picture", "#ffffff", PALE, _shape("plaintext", "")),
}


@dataclass(frozen=True, slots=True)
class FusionStyle:
    """How the frame of one fusion kind is drawn."""

    fill: str
    line: str
    style: str


FUSIONS: dict[str, FusionStyle] = {
    "kLoop": FusionStyle("#f3f8fd", "#2f6f9f", "filled,rounded"),
    "kInput": FusionStyle("#fff8ea", "#b57200", "filled,rounded,bold"),
    "kOutput": FusionStyle("#f1faf6", "#00805c", "filled,rounded,dashed"),
    "kCustom": FusionStyle("#f7f3fc", "#7a5bb5", "filled,dashed"),
}
OTHER_FUSION = FusionStyle("#f6f8fa", "#59636e", "filled,dotted")

_OPCODES: dict[str, str] = {
    "reduction": "reduce reduce-window scan topk batch-norm-training batch-norm-grad",
    "contraction": "dot convolution fft cholesky triangular-solve ragged-dot scaled-dot",
    "generator": "broadcast iota rng rng-bit-generator rng-get-and-update-state partition-id replica-id",
    "movement": """bitcast bitcast-convert concatenate copy copy-done copy-start dynamic-reshape pad reshape
        reverse slice transpose get-dimension-size set-dimension-size""",
    "indexing": "dynamic-slice dynamic-update-slice gather scatter select-and-scatter sort",
    "collective": """all-gather all-gather-done all-gather-start all-reduce all-reduce-done all-reduce-start
        all-to-all collective-broadcast collective-permute collective-permute-done collective-permute-start
        ragged-all-to-all recv recv-done reduce-scatter send send-done infeed outfeed""",
    "library": "custom-call",
    "control": """add-dependency after-all async-done async-start async-update call conditional domain map
        opt-barrier while""",
    "value": "constant get-tuple-element parameter tuple",
    "fusion": "fusion",
}
_CATEGORY: dict[str, str] = {op: category for category, ops in _OPCODES.items() for op in ops.split()}


def category(opcode: str) -> str:
    """The key in `STYLES` for an opcode; everything not listed works element by element.

    The start and the done of an asynchronous operation look like the operation.
    """
    return _CATEGORY.get(opcode) or _CATEGORY.get(split_async(opcode)[0], "elementwise")


# The key to a picture: only the kinds that occur in it.

_FUSION_TITLES = {
    "kLoop": "kLoop fusion: one kernel",
    "kInput": "kInput fusion: one kernel",
    "kOutput": "kOutput fusion: one kernel",
    "kCustom": "kCustom fusion: Triton or library",
    "": "becomes one kernel",
}


def legend(graph: Digraph, scene: Scene, place: int) -> None:
    """Add a cluster of sample boxes, one below the other."""
    boxes = [b for p in scene.panels for b in p.all_boxes()]
    used = {b.style for b in boxes}
    kinds = {f.kind for p in scene.panels for f in p.outlines}
    arrows = [a for p in scene.panels for a in p.arrows]
    rows: list[tuple[str, dict[str, str]]] = []
    for name, style in STYLES.items():
        if name in used and name != "stub":
            look = style.shape | {"fillcolor": style.fill, "color": style.line}
            if style.slack is not None:
                width = text_width(style.title, 9) * style.slack[0] + style.slack[1]
                look |= {"fixedsize": "true", "width": f"{width / 72:.2f}"}
                look["height"] = f"{(11 + style.slack[2]) / 72:.2f}"
            rows.append((style.title, look))
    for kind in (*FUSIONS, *sorted(kinds - FUSIONS.keys())):
        if kind in kinds:
            frame = FUSIONS.get(kind, OTHER_FUSION)
            look = {"shape": "box", "style": "rounded,dashed", "color": FAINT}
            if kind:
                look |= {"style": frame.style, "fillcolor": frame.fill, "color": frame.line}
            rows.append((entities(_FUSION_TITLES.get(kind, f"{kind} fusion: one kernel")), look))
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
