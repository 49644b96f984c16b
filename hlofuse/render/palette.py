"""What an operation looks like: a colour and, for eyes that do not tell colours apart, a shape.

The hues are Okabe and Ito's, which stay apart under every common colour blindness; fills are pale
so that black text reads on them.
"""

from __future__ import annotations

from dataclasses import dataclass

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
    """The key in `STYLES` for an opcode; everything not listed works element by element."""
    return _CATEGORY.get(opcode, "elementwise")
