"""A picture, ready to be written in any format."""

import os
import re
from dataclasses import dataclass, field
from pathlib import Path

from hlofuse.format.escape import printable
from hlofuse.ir import HlofuseError
from hlofuse.render.engine import run as run_graphviz
from hlofuse.render.scene import Scene
from hlofuse.render.svg import finish as finish_svg
from hlofuse.render.svg import size as svg_size

FORMATS = ("svg", "png", "pdf", "dot")
_DPI = 144
_MOST_PIXELS = 40_000_000

# Cairo writes when a PDF was made. Another date of the same length leaves every offset in place.
_DATE = re.compile(rb"/CreationDate \(D:[^)]{15,40}\)")
_NO_DATE = b"/CreationDate (D:19700101000000Z)"


@dataclass(slots=True)
class Drawing:
    """DOT text and what Graphviz makes of it; the same module gives the same bytes every time."""

    dot: str = field(repr=False)
    scene: Scene = field(repr=False)
    notices: list[str] = field(default_factory=list)
    """What is not shown in full, and how to see it; also written in the picture."""
    _raw_svg: bytes | None = field(default=None, repr=False)

    def to_svg(self) -> str:
        """A self-contained SVG: no scripts, links or fonts from elsewhere. Needs Graphviz."""
        tooltips = {b.key: b.tooltip for p in self.scene.panels for b in p.all_boxes()}
        tooltips |= {f.key: f.tooltip for p in self.scene.panels for f in p.outlines}
        description = "; ".join([*self.scene.caption, *self.scene.lines, *self.notices])
        return finish_svg(self.raw_svg(), self.scene.title, description, tooltips)

    def _repr_svg_(self) -> str:
        return self.to_svg()

    def to_png(self) -> bytes:
        """A PNG at twice the usual resolution, less where it would grow beyond 40 megapixels."""
        width, height = svg_size(self.raw_svg())
        pixels = width * height / 72**2
        dpi = min(_DPI, int((_MOST_PIXELS / max(pixels, 1)) ** 0.5), int(32_000 * 72 / max(width, height, 1)))
        return run_graphviz(self.dot, "png", f"-Gdpi={max(dpi, 12)}")

    def to_pdf(self) -> bytes:
        """A PDF of one page in the picture's size."""
        return undated(run_graphviz(self.dot, "pdf"))

    def to_bytes(self, fmt: str) -> bytes:
        """The picture in one of `FORMATS`."""
        if fmt == "dot":
            return self.dot.encode()
        if fmt == "svg":
            return self.to_svg().encode()
        if fmt == "png":
            return self.to_png()
        if fmt == "pdf":
            return self.to_pdf()
        raise HlofuseError(f"cannot draw {fmt!r}; the formats are {', '.join(FORMATS)}")

    def raw_svg(self) -> bytes:
        """What Graphviz drew, for those who add to it."""
        if self._raw_svg is None:
            self._raw_svg = run_graphviz(self.dot, "svg")
        return self._raw_svg


def undated(pdf: bytes) -> bytes:
    """The same PDF whenever it is made."""
    return _DATE.sub(lambda m: _NO_DATE[: len(m[0])].ljust(len(m[0])), pdf)


def format_of(path: str | os.PathLike[str]) -> str:
    """The format a file's suffix asks for; raises HlofuseError for one that is not drawn."""
    suffix = Path(path).suffix.lower().lstrip(".")
    suffix = "dot" if suffix == "gv" else suffix
    if suffix not in FORMATS:
        formats = ", ".join("." + f for f in FORMATS)
        given = f".{printable(suffix)} is not among them" if suffix else "the name has none"
        raise HlofuseError(f"the output's suffix says what to draw ({formats}), but {given}")
    return suffix
