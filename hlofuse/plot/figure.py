"""A drawing of lines, points and text at given places: SVG as it is, other formats by Graphviz (`nop2`)."""

import math
from collections.abc import Sequence
from itertools import pairwise
from xml.sax.saxutils import escape, quoteattr

from hlofuse.format.escape import printable
from hlofuse.render.dot import ALERT, FAINT, FONT, INK
from hlofuse.render.drawing import Picture, document
from hlofuse.render.labels import entities
from hlofuse.render.scene import text_width

Position = tuple[float, float]
"""Points of 1/72 inch, to the right and up."""

_ALIGNED = {"left": ("\\l", "start"), "right": ("\\r", "end"), "center": ("", "middle")}

# Okabe and Ito's hues, which stay apart under every common colour blindness.
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8f8400", "#56b4e9", "#6546a3", "#424a53")
_MARGIN = 14.4


class Plot(Picture):
    """Elements at fixed positions; earlier ones lie below. Only PNG and PDF need Graphviz."""

    layout = ("-Knop2",)  # every node has its place

    def __init__(self, title: str, description: str) -> None:
        self.title, self.description = title, description
        self._dot: list[str] = []
        self._svg: list[str] = []
        self._count = 0
        self._low, self._high = (math.inf, math.inf), (-math.inf, -math.inf)

    def _name(self) -> str:
        self._count += 1
        return f"n{self._count}"

    def _reach(
        self,
        left: float,
        bottom: float,
        right: float,
        top: float,
    ) -> None:
        """Extend the picture to include this rectangle."""
        self._low = min(self._low[0], left), min(self._low[1], bottom)
        self._high = max(self._high[0], right), max(self._high[1], top)

    def text(
        self,
        at: Position,
        text: str,
        *,
        size: float = 9,
        color: str = INK,
        align: str = "left",
        width: float = 200,
        bold: bool = False,
    ) -> None:
        """A line of text; `align` is the end at `at`. `width` is the room that it may take."""
        if not text:
            return  # Graphviz dies of a label that is an empty line
        x, y = at
        center = x + {"left": width / 2, "right": -width / 2, "center": 0.0}[align]
        font = "Helvetica-Bold" if bold else FONT
        self._dot.append(
            f'  {self._name()} [pos="{center:.2f},{y:.2f}" shape=plaintext fixedsize=true margin=0'
            f' width={width / 72:.4f} height={size * 1.3 / 72:.4f} fontname="{font}" fontsize={size:g}'
            f' fontcolor="{color}" label="{entities(text)}{_ALIGNED[align][0]}" tooltip=" "]'
        )
        wide = text_width(text, size, bold)
        left = x - {"left": 0.0, "right": wide, "center": wide / 2}[align]
        self._reach(left, y - size * 0.65, left + wide, y + size * 0.65)
        weight = ' font-weight="bold"' if bold else ""
        self._svg.append(
            f'<text xml:space="preserve" x="{x:.2f}" y="{size * 0.35 - y:.2f}" font-size="{size:g}" '
            f'text-anchor="{_ALIGNED[align][1]}" fill="{color}"{weight}>{escape(printable(text))}</text>\n'
        )

    def point(
        self, at: Position, color: str, *, ring: bool = False, tooltip: str = "", size: float = 5.5
    ) -> None:
        """A filled spot; a larger hollow one with `ring`."""
        (x, y), size = at, 9.0 if ring else size
        look = f'stroke="{color}" stroke-width="2" fill="#ffffff"' if ring else f'fill="{color}"'
        self._mark(f'<circle cx="{x:.2f}" cy="{-y:.2f}" r="{size / 2:g}" {look}/>', tooltip)
        self._node(at, (size, size), "circle", color, ring, tooltip)

    def bar(
        self,
        at: Position,
        width: float,
        height: float,
        color: str,
        *,
        hollow: bool = False,
        tooltip: str = "",
    ) -> None:
        """A rectangle to the right of `at`, its middle at that height; only its outline with `hollow`."""
        width = max(width, 0.4)
        place = f'x="{at[0]:.2f}" y="{-at[1] - height / 2:.2f}" width="{width:.2f}" height="{height:g}"'
        fill = "#ffffff" if hollow else color
        self._mark(f'<rect {place} fill="{fill}" stroke="{color}"/>', tooltip)
        self._node((at[0] + width / 2, at[1]), (width, height), "box", color, hollow, tooltip)

    def _mark(self, shape: str, tooltip: str) -> None:
        title = f"<title>{escape(printable(tooltip))}</title>" if tooltip else ""
        self._svg.append(f'<g class="node">{title}{shape}</g>\n')

    def _node(
        self,
        at: Position,
        size: Position,
        shape: str,
        color: str,
        hollow: bool,
        tooltip: str,
    ) -> None:
        (x, y), (width, height) = at, size
        self._reach(x - width / 2, y - height / 2, x + width / 2, y + height / 2)
        fill, pen = "#ffffff" if hollow else color, 2 if hollow and shape == "circle" else 1
        self._dot.append(
            f'  {self._name()} [pos="{x:.2f},{y:.2f}" shape={shape} fixedsize=true label=""'
            f' width={width / 72:.4f} height={height / 72:.4f} style=filled fillcolor="{fill}"'
            f' color="{color}" penwidth={pen} tooltip="{entities(tooltip)}"]'
        )

    def line(self, places: Sequence[Position], color: str, *, width: float = 1.0) -> None:
        """Straight segments from place to place."""
        names = []
        for x, y in places:
            names.append(self._name())
            self._reach(x, y, x, y)
            self._dot.append(
                f'  {names[-1]} [pos="{x:.2f},{y:.2f}" shape=point width=0.001 height=0.001 style=invis]'
            )
        for a, b in pairwise(names):
            self._dot.append(
                f'  {a} -- {b} [color="{color}" penwidth={width:g} headclip=false tailclip=false]'
            )
        points = quoteattr(" ".join(f"{x:.2f},{-y:.2f}" for x, y in places))
        self._svg.append(
            f'<polyline points={points} fill="none" stroke="{color}" stroke-width="{width:g}"/>\n'
        )

    def heading(
        self,
        at: Position,
        alerts: Sequence[str],
        lines: Sequence[str],
        width: float,
    ) -> None:
        """The title, and below it the lines, `alerts` in their own colour."""
        self.text(at, self.title, size=14, width=width, bold=True)
        for k, line in enumerate([*alerts, *lines]):
            color = ALERT if k < len(alerts) else FAINT
            self.text((at[0], at[1] - 17 - 13 * k), line, size=9, width=width, color=color)

    @property
    def dot(self) -> str:  # type: ignore[override]
        """The whole as one graph with fixed positions."""
        looks = 'splines=line outputorder=edgesfirst bgcolor="#ffffff" pad=0.2'
        return "\n".join(['graph "hlofuse" {', f"  graph [{looks}]", *self._dot, "}"]) + "\n"

    def size(self) -> tuple[float, float]:
        width, height = (high - low + 2 * _MARGIN for low, high in zip(self._low, self._high, strict=True))
        return round(width, 2), round(height, 2)

    def to_svg(self) -> str:
        """A self-contained SVG for a page, on a card of its size."""
        shift = f"translate({_MARGIN - self._low[0]:.2f} {_MARGIN + self._high[1]:.2f})"
        body = [f'<g font-family="{FONT}" transform="{shift}">\n', *self._svg, "</g>\n"]
        return document(*self.size(), self.title, self.description, body)
