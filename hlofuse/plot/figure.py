"""A drawing of lines, points and text at given places, as DOT that Graphviz draws in any format (`nop2`)."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from hlofuse.ir.errors import HlofuseError
from hlofuse.render import engine, svg
from hlofuse.render.dot import FONT
from hlofuse.render.drawing import FORMATS, undated
from hlofuse.render.labels import entities
from hlofuse.render.palette import INK

Position = tuple[float, float]
"""Points of 1/72 inch, to the right and up."""

_ALIGNED = {"left": "\\l", "right": "\\r", "center": ""}

COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8f8400", "#56b4e9", "#6546a3", "#424a53")
_PLACED = "-Knop2"  # every node has its place


class Canvas:
    """Everything is a node or an edge; what is drawn first lies below."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._count = 0
        self.tooltips: dict[str, list[str]] = {}
        """What pointing at a node says, by its id in the picture."""

    def _name(self) -> str:
        self._count += 1
        return f"n{self._count}"

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
        """A line of text; `align` says which end of it is at `at`. `width` is room that it may take."""
        if not text:
            return  # Graphviz dies of a label that is an empty line
        x, y = at
        x += {"left": width / 2, "right": -width / 2, "center": 0.0}[align]
        font = "Helvetica-Bold" if bold else FONT
        self._lines.append(
            f'  {self._name()} [pos="{x:.2f},{y:.2f}" shape=plaintext fixedsize=true margin=0'
            f' width={width / 72:.4f} height={size * 1.3 / 72:.4f} fontname="{font}" fontsize={size:g}'
            f' fontcolor="{color}" label="{entities(text)}{_ALIGNED[align]}" tooltip=" "]'
        )

    def point(self, at: Position, color: str, *, ring: bool = False, tooltip: str = "") -> None:
        """A filled spot; a larger hollow one with `ring`."""
        size, fill, pen = (9.0, "#ffffff", 2.0) if ring else (5.5, color, 1.0)
        self._lines.append(
            f'  {self._name()} [pos="{at[0]:.2f},{at[1]:.2f}" shape=circle fixedsize=true label=""'
            f' width={size / 72:.4f} height={size / 72:.4f} style=filled fillcolor="{fill}" color="{color}"'
            f" penwidth={pen:g} {self._escaped(tooltip)}]"
        )

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
        fill = "#ffffff" if hollow else color
        self._lines.append(
            f'  {self._name()} [pos="{at[0] + width / 2:.2f},{at[1]:.2f}" shape=box fixedsize=true label=""'
            f' width={width / 72:.4f} height={height / 72:.4f} style=filled fillcolor="{fill}"'
            f' color="{color}" penwidth=1 {self._escaped(tooltip)}]'
        )

    def _escaped(self, tooltip: str) -> str:
        if not tooltip:
            return 'tooltip=" "'
        key = f"n{self._count}"
        self.tooltips[key] = [tooltip]
        return f'id="{key}" tooltip="{entities(tooltip)}"'

    def line(
        self, places: Sequence[Position], color: str, *, width: float = 1.0, style: str = "solid"
    ) -> None:
        """Straight from place to place."""
        names = []
        for x, y in places:
            names.append(self._name())
            self._lines.append(
                f'  {names[-1]} [pos="{x:.2f},{y:.2f}" shape=point width=0.001 height=0.001 style=invis]'
            )
        for a, b in pairwise(names):
            self._lines.append(
                f'  {a} -- {b} [color="{color}" penwidth={width:g} style={style}'
                " headclip=false tailclip=false]"
            )

    def to_dot(self) -> str:
        """The whole as one graph; every node has its place."""
        looks = 'splines=line outputorder=edgesfirst bgcolor="#ffffff" pad=0.2'
        return "\n".join(['graph "hlofuse" {', f"  graph [{looks}]", *self._lines, "}"]) + "\n"


# Okabe and Ito's hues, which stay apart under every common colour blindness.


@dataclass(frozen=True, slots=True)
class Plot:
    """DOT with every place settled, and what Graphviz makes of it."""

    dot: str
    title: str
    description: str
    tooltips: Mapping[str, list[str]] = field(default_factory=dict)

    def to_svg(self) -> str:
        """A self-contained SVG. Needs Graphviz, as the other formats do."""
        return svg.finish(engine.run(self.dot, "svg", _PLACED), self.title, self.description, self.tooltips)

    def to_bytes(self, fmt: str) -> bytes:
        """The picture as `svg`, `png`, `pdf` or `dot`."""
        if fmt not in FORMATS:
            raise HlofuseError(f"cannot draw {fmt!r}; the formats are {', '.join(FORMATS)}")
        if fmt == "dot":
            return self.dot.encode()
        if fmt == "svg":
            return self.to_svg().encode()
        if fmt == "png":
            return engine.run(self.dot, "png", _PLACED, "-Gdpi=144")
        return undated(engine.run(self.dot, "pdf", _PLACED))


def plot_of(canvas: Canvas, title: str, description: str) -> Plot:
    """The finished picture."""
    return Plot(canvas.to_dot(), title, description, canvas.tooltips)


def round_numbers(low: float, high: float, whole: bool) -> list[float]:
    """Round numbers around all values, four or five of them; zero is among them where it is near."""
    if low > 0 and low < high * 0.4:
        low = 0
    if whole:
        low, high = max(0, low - 0.5), high + 0.5
    if high == low:
        low, high = (low - 1, high + 1) if whole or not low else (low * 0.9, high * 1.1)
    raw = (high - low) / 4
    size = 10.0 ** math.floor(math.log10(raw))
    step = next(f * size for f in (1, 2, 2.5, 5, 10) if f * size >= raw * 0.999)
    if whole:
        step = max(1.0, math.ceil(step))
    first = math.floor(low / step + 1e-9)
    last = math.ceil(high / step - 1e-9)
    if first >= 0:
        first = max(first, 0)
    return [k * step for k in range(first, max(last, first + 1) + 1)]
