"""What an operation looks like: a colour and, for eyes that do not tell colours apart, a shape.

The hues are Okabe and Ito's, which stay apart under every common colour blindness; fills are pale
so that black text reads on them."""

from collections.abc import Iterator
from dataclasses import dataclass

from hlofuse.ir.text.signatures import split_async
from hlofuse.render.labels import entities
from hlofuse.render.scene import Scene, text_width

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
    shape: str
    """Graphviz attributes that make the shape."""
    slack: tuple[float, float, float] | None = None
    """For a shape that is no box: width per text width, width and height to add, in points."""


_SLANTED = (1.1, 34.0, 6.0)
_QUAD = "shape=polygon sides=4 style=filled"
_HEXAGON = "shape=hexagon style=filled"
_OCTAGON = "shape=octagon style=filled"
_DOUBLE_OCTAGON = "shape=doubleoctagon style=filled"
_BOX = 'shape=box style="filled,rounded"'

STYLES: dict[str, Style] = {
    "elementwise": Style("elementwise", "#e1effa", "#0072b2", _BOX),
    "reduction": Style("reduction", "#fdebc8", "#c27c00", _QUAD + " distortion=0.25", _SLANTED),
    "contraction": Style("dot, convolution", "#fadccb", "#b84e00", _HEXAGON, (1.12, 30, 6)),
    "generator": Style(
        "broadcast, iota, random", "#f9f5cc", "#8f8400", _QUAD + " distortion=-0.25", _SLANTED
    ),
    "movement": Style("reshape, transpose, slice", "#d8f1e8", "#00805c", _QUAD + " skew=0.3", _SLANTED),
    "indexing": Style("gather, scatter, sort", "#f6e1ed", "#a8487f", _OCTAGON, (1.05, 24, 7)),
    "collective": Style("collective", "#dcf0fb", "#2a86b8", _DOUBLE_OCTAGON, (1.05, 28, 10)),
    "library": Style("custom call", "#e9e3f5", "#6546a3", "shape=component style=filled"),
    "control": Style("loop, branch, call", "#ebedf0", "#424a53", "shape=box3d style=filled"),
    "value": Style("parameter, constant, result", "#ffffff", LINE, "shape=oval style=filled", (1.1, 18, 10)),
    "part": Style("collapsed part", "#f6f8fa", "#424a53", "shape=folder style=filled"),
    "fusion": Style("fusion, closed", "#eef4fb", "#33658a", "shape=box peripheries=2 style=filled"),
    "stub": Style("goes on outside the picture", "#ffffff", PALE, 'shape=plaintext style=""'),
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
    "kCustom": "kCustom fusion: Triton's, a library's",
    "": "will be one kernel",
}


def legend(scene: Scene, place: int) -> Iterator[str]:
    """A cluster of sample boxes, one below the other."""
    boxes = [b for p in scene.panels for b in p.all_boxes()]
    used = {b.style for b in boxes}
    kinds = {f.kind for p in scene.panels for f in p.outlines}
    arrows = [a for p in scene.panels for a in p.arrows]
    rows: list[str] = []
    for name, style in STYLES.items():
        if name in used and name != "stub":
            size = ""
            if style.slack is not None:
                width = text_width(style.title, 9) * style.slack[0] + style.slack[1]
                size = f" fixedsize=true width={width / 72:.2f} height={(11 + style.slack[2]) / 72:.2f}"
            rows.append(
                f'label="{style.title}" {style.shape} fillcolor="{style.fill}" color="{style.line}"{size}'
            )
    for kind in (*FUSIONS, *sorted(kinds - FUSIONS.keys())):
        if kind in kinds:
            look = FUSIONS.get(kind, OTHER_FUSION)
            title = entities(_FUSION_TITLES.get(kind, f"{kind} fusion: one kernel"))
            line = look.style if kind else "rounded,dashed"
            color = look.line if kind else FAINT
            rows.append(f'label="{title}" shape=box style="{line}" fillcolor="{look.fill}" color="{color}"')
    notes = []
    if any(not a.inside and a.bytes for a in arrows):
        notes.append("dark arrow: through memory,")
        notes.append("with its bytes")
    if any(a.inside for a in arrows):
        notes.append("pale arrow: inside a kernel")
    if any(b.kernels for b in boxes) or any(f.kernels for p in scene.panels for f in p.outlines):
        notes.append("K1, K2 …: kernels")
    yield '  subgraph "cluster_legend" {'
    yield f'    graph [sortv={place} label=<<B>Legend</B>> style="rounded" color="{PALE}" margin=10'
    yield '      id="legend" tooltip=" "]'
    yield f'    node [fontsize=9 fontcolor="{INK}" margin="0.06,0.03" height=0.22 tooltip=" "]'
    for n, row in enumerate(rows):
        yield f'    "legend{n}" [id="legend{n}" {row}]'
    if notes:
        text = "".join(entities(note) + '<BR ALIGN="LEFT"/>' for note in notes)
        yield f'    "legend{len(rows)}" [id="legend{len(rows)}" label=<{text}> shape=plaintext]'
        rows.append("")
    if len(rows) > 1:
        chain = " -> ".join(f'"legend{n}"' for n in range(len(rows)))
        yield f"    {chain} [style=invis]"
    yield "  }"
