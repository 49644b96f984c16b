"""A picture, ready to be written in any format."""

import os
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import ClassVar

from hlofuse.format.escape import printable
from hlofuse.ir import HlofuseError
from hlofuse.render import svg
from hlofuse.render.engine import run as run_graphviz
from hlofuse.render.scene import Scene

FORMATS = ("svg", "png", "pdf", "dot")
VIEWERS = ("model-explorer", "perfetto")
_DPI = 144
_MOST_PIXELS = 40_000_000

# Cairo writes when a PDF was made. Another date of the same length leaves every offset in place.
_DATE = re.compile(rb"/CreationDate \(D:[^)]{15,40}\)")
_NO_DATE = b"/CreationDate (D:19700101000000Z)"


class Picture(ABC):
    """What is written in any of `FORMATS`; the same module gives the same bytes every time."""

    layout: ClassVar[tuple[str, ...]] = ()
    """Arguments of Graphviz."""
    dot: str

    @abstractmethod
    def to_svg(self) -> str:
        """A self-contained SVG for a page: no script, link or font."""

    @abstractmethod
    def size(self) -> tuple[float, float]:
        """Width and height in points."""

    def _repr_svg_(self) -> str:
        return self.to_svg()

    def to_png(self) -> bytes:
        """A PNG at twice the usual resolution, less where it would grow beyond 40 megapixels."""
        width, height = self.size()
        pixels = width * height / 72**2
        dpi = min(_DPI, int((_MOST_PIXELS / max(pixels, 1)) ** 0.5), int(32_000 * 72 / max(width, height, 1)))
        return run_graphviz(self.dot, "png", *self.layout, f"-Gdpi={max(dpi, 12)}")

    def to_pdf(self) -> bytes:
        """A PDF of one page in the picture's size, without the date."""
        pdf = run_graphviz(self.dot, "pdf", *self.layout)
        return _DATE.sub(lambda m: _NO_DATE[: len(m[0])].ljust(len(m[0])), pdf)

    def to_bytes(self, fmt: str) -> bytes:
        """The picture in one of `FORMATS`; an SVG as a file of its own, which zooms and pans."""
        if fmt == "dot":
            return self.dot.encode()
        if fmt == "svg":
            return svg.zoomable(self.to_svg()).encode()
        if fmt == "png":
            return self.to_png()
        if fmt == "pdf":
            return self.to_pdf()
        raise HlofuseError(f"cannot draw {fmt!r}; the formats are {', '.join(FORMATS)}")


@dataclass
class Drawing(Picture):
    """DOT text and what Graphviz makes of it."""

    dot: str = field(repr=False)
    scene: Scene = field(repr=False)
    notices: list[str] = field(default_factory=list)
    """What is not shown in full, and how to see it; also written in the picture."""

    def to_svg(self) -> str:
        """A self-contained SVG for a page: no script, link or font. Needs Graphviz."""
        tooltips = {b.key: b.tooltip for p in self.scene.panels for b in p.all_boxes()}
        tooltips |= {f.key: f.tooltip for p in self.scene.panels for f in p.outlines}
        description = "; ".join([*self.scene.caption, *self.scene.lines, *self.notices])
        return svg.finish(self._drawn, self.scene.title, description, tooltips)

    def size(self) -> tuple[float, float]:
        """Width and height in points. Needs Graphviz."""
        return svg.size(self._drawn)

    @cached_property
    def _drawn(self) -> bytes:
        return run_graphviz(self.dot, "svg")


def format_of(path: str | os.PathLike[str], viewers: bool = False) -> str:
    """The format that a file's suffix asks for, with `viewers` also of `VIEWERS`.

    Raises HlofuseError for a suffix that is not among them.
    """
    name = Path(path).name.lower()
    if viewers and name.endswith((".trace.json", ".json.gz")):
        return "perfetto"
    if viewers and name.endswith(".json"):
        return "model-explorer"
    suffix = Path(name).suffix.lstrip(".")
    suffix = "dot" if suffix == "gv" else suffix
    if suffix not in FORMATS:
        formats = ", ".join("." + f for f in (*FORMATS, *(("json", "trace.json.gz") if viewers else ())))
        given = f".{printable(suffix)} is not among them" if suffix else "the name has none"
        raise HlofuseError(f"the output's suffix says what to draw ({formats}), but {given}")
    return suffix
