"""A picture, ready to be written in any format. SVG is for pages and repositories: Graphviz's without links
and versions, with tooltips, on a white card. Only listed elements and attributes pass, so that no text of a
dump becomes active even if an escape were missed."""

import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

from msgspec import Struct

from hlofuse.format import printable
from hlofuse.ir import HlofuseError, values
from .scene import Scene, text_width

TIMEOUT = 60.0  # Seconds for one layout. The limits on boxes make a few seconds usual.
_BEST = 15.0  # Seconds for the best layout

# Graphviz 2.43 dies in the routing of curved edges around some clusters; straight ones it draws. With few
# iterations of its network simplex, hundreds of boxes take 3% of the time, and stand less well in line.
_SIMPLE = ("-Gsplines=line", "-Gnslimit=2")
_WINDOWS_CRASH = 0xC0000000
_MISSING = (
    "drawing needs Graphviz, and there are no wheels of pygraphviz for this machine: install Graphviz, so "
    "that its program dot is on PATH; -o FILE.dot and plots work without"
)


def engine() -> list[str]:
    """The command that reads DOT and takes `-Tformat`; raises `HlofuseError` without Graphviz."""
    dot = shutil.which("dot")
    if dot is not None:
        return [dot]
    if importlib.util.find_spec("pygraphviz") is not None:
        return [sys.executable, "-m", "hlofuse.render.worker"]
    raise HlofuseError(_MISSING)


def run_graphviz(dot: str, fmt: str, *arguments: str, timeout: float = TIMEOUT) -> bytes:
    """Lay out `dot` and draw it as `fmt` (a Graphviz format: svg, png, pdf). If that crashes or takes long,
    the picture is drawn again with straight edges. `HlofuseError` if it fails or exceeds `timeout` s."""
    status, output, text = _run_once(dot, [f"-T{fmt}", *arguments], min(_BEST, timeout))
    if _crashed(status):
        status, output, text = _run_once(dot, [f"-T{fmt}", *arguments, *_SIMPLE], timeout)
    if _crashed(status):
        raise HlofuseError(
            f"Graphviz crashed on this picture, or needed more than {timeout:g} s: "
            "draw another part (--focus NAME), less (--max-nodes N), or DOT (-o FILE.dot)"
        )
    if status or not output:
        why = next(
            (line for line in text if line.lower().startswith("error")),
            text[-1] if text else "it says nothing",
        )
        raise HlofuseError(f"Graphviz failed: {why[:300]}")
    return output


def _crashed(status: int) -> bool:
    """True if the program crashed (a signal, or Windows' code for one) instead of exiting."""
    return status < 0 or status >= _WINDOWS_CRASH


def _run_once(dot: str, arguments: list[str], timeout: float) -> tuple[int, bytes, list[str]]:
    with subprocess.Popen(
        [*engine(), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        try:
            output, complaints = process.communicate(dot.encode(), timeout=timeout)
        except subprocess.TimeoutExpired:
            _kill(process)
            process.communicate()
            return -1, b"", []
        except BaseException:
            _kill(process)
            raise
    return process.returncode, output, complaints.decode(errors="replace").strip().splitlines()


def _kill(process: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (AttributeError, OSError):  # no process groups here, or it has ended
        process.kill()


_SVG = "{http://www.w3.org/2000/svg}"
_XLINK = "{http://www.w3.org/1999/xlink}"
_ELEMENTS = values("polygon polyline path ellipse")
_ATTRIBUTES = values("""
    class cx cy d fill fill-opacity font-family font-size font-style font-weight height id points rx ry stroke
    stroke-dasharray stroke-opacity stroke-width text-anchor transform width x y
    """)
_NUMBER = re.compile(r"-?\d+\.\d{3,}")

# Pointing at a box or an arrow brings it out; it works in a page and does no harm in an image. Opened by
# itself, a picture larger than the window is scaled to fit it.
_CSS = (
    ".edge:hover path{stroke:#0969da;stroke-width:3}.edge:hover text{fill:#0969da;font-weight:bold}"
    ".node:hover>*:not(text){stroke-width:3}.node,.edge,.cluster{cursor:default}"
    ".heading{pointer-events:none}"
    "svg:root{max-width:100%;max-height:100vh}"
)


def document(
    width: float,
    height: float,
    title: str,
    description: str,
    body: Iterable[str],
) -> str:
    """An SVG of that size in points on a white card."""
    return "".join(
        [
            '<?xml version="1.0" encoding="UTF-8"?>\n',
            f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{width:g}pt" height="{height:g}pt" ',
            f'viewBox="0 0 {width:g} {height:g}" style="color-scheme:light">\n',
            f"<title>{escape(title)}</title>\n<desc>{escape(description)}</desc>\n<style>{_CSS}</style>\n",
            f'<rect x="0.5" y="0.5" width="{width - 1:g}" height="{height - 1:g}" rx="10" ',
            'fill="#ffffff" stroke="#d1d9e0"/>\n',
            *body,
            "</svg>\n",
        ]
    )


def inline(svg: str, width: float) -> str:
    """The picture as HTML for a notebook's cell: as wide as the cell, but never below half of its `width`."""
    look = f"max-width:100%;min-width:{width / 2:g}pt;height:auto;"
    return '<div style="overflow-x:auto">' + svg.replace('style="', f'style="{look}', 1) + "</div>"


def zoomable(svg: str) -> str:
    """The picture as a separate file, with a constant script to zoom and pan."""
    script = Path(__file__).with_name("pan.js").read_text(encoding="utf-8")
    return svg.removesuffix("</svg>\n") + f"<script>{escape(script)}</script>\n</svg>\n"


class _Writer(Struct):
    """Copies listed elements; `headings` are the texts of frames, which come last, on their `plates`."""

    tooltips: Mapping[str, list[str]]
    out: list[str] = []
    headings: list[str] = []
    plates: list[str] = []

    def write(self, element: ET.Element, frame: ET.Element | None = None) -> None:
        """Copy an element; text right inside a `frame` is its heading, with the frame's id as its class."""
        name = element.tag.removeprefix(_SVG) if isinstance(element.tag, str) else ""
        if name == "a":  # Graphviz's bearer of tooltips: its content stays, the link goes
            for child in element:
                self.write(child, frame)
        elif name == "g":
            self.out.append(f"<g{_attributes(element)}>\n")
            tooltip = self._tooltip(element)
            if tooltip:
                self.out.append(f"<title>{escape(tooltip)}</title>\n")
            for child in element:
                self.write(child, element if "cluster" in element.get("class", "") else frame)
            self.out.append("</g>\n")
        elif name == "text":
            text = "".join(element.itertext())
            if text.strip():
                target, of = self.out, ""
                if frame is not None:
                    target, of = self.headings, f" class={quoteattr(frame.get('id', ''))}"
                    self.plates.append(self._plate(element, text, frame))
                target.append(f'<text xml:space="preserve"{of}{_attributes(element)}>{escape(text)}</text>\n')
        elif name in _ELEMENTS and element.get("stroke") not in ("none", "transparent"):
            # Only Graphviz's white rectangle, whose place the card takes, has no border.
            self.out.append(f"<{name}{_attributes(element)}/>\n")

    def _plate(self, element: ET.Element, text: str, frame: ET.Element) -> str:
        """What a line of a heading stands on, in the colour of its frame: arrows pass behind."""
        x, y, size = (float(element.get(name, 0)) for name in ("x", "y", "font-size"))
        width = text_width(text, size, bold=element.get("font-weight") == "bold") + 6
        fills = (shape.get("fill", "none") for shape in frame.iter())
        fill = next((fill for fill in fills if fill.startswith("#")), "#ffffff")
        place = f'x="{x - 3:.2f}" y="{y - size:.2f}" width="{width:.2f}" height="{1.4 * size:.2f}"'
        return f"<rect {place} fill={quoteattr(fill)}/>\n"

    def _tooltip(self, element: ET.Element) -> str:
        own = self.tooltips.get(element.get("id", ""))
        if own:
            return "\n".join(own)
        if element.get("class") == "edge":
            # An arrow has no id of ours; its tooltip sits on a link inside.
            for link in element.iter(_SVG + "a"):
                text = link.get(_XLINK + "title", "")
                if text.strip():
                    return text
        return ""


def _attributes(element: ET.Element) -> str:
    return "".join(
        f" {key}={quoteattr(_NUMBER.sub(lambda m: f'{float(m[0]):.2f}', value))}"
        for key, value in element.attrib.items()
        if key in _ATTRIBUTES
    )


FORMATS = ("svg", "png", "pdf", "dot")
_DPI = 144
_MOST_PIXELS = 40_000_000

# Cairo writes when a PDF was made. Another date of the same length leaves every offset in place.
_DATE = re.compile(rb"/CreationDate \(D:[^)]{15,40}\)")
_NO_DATE = b"/CreationDate (D:19700101000000Z)"


@dataclass
class Drawing:
    """DOT text, drawn by Graphviz in any of `FORMATS`: the same bytes every time with the same layout."""

    dot: str = field(repr=False)
    scene: Scene = field(repr=False)
    notices: list[str] = field(default_factory=list)
    """Parts not shown in full, and how to see them; also written in the picture."""

    def to_svg(self) -> str:
        """A self-contained SVG for a page: no script, link or font. Needs Graphviz."""
        description = "; ".join([*self.scene.caption, *self.scene.lines, *self.notices])
        return document(*self.size(), self.scene.title, description, self.content())

    def content(self) -> list[str]:
        """The elements of the SVG. Needs Graphviz."""
        tooltips = {b.key: b.tooltip for p in self.scene.panels for b in p.all_boxes()}
        tooltips |= {f.key: f.tooltip for p in self.scene.panels for f in p.outlines}
        root, writer = ET.fromstring(self._graphviz_output), _Writer(tooltips)
        for child in root:
            writer.write(child)
        # Arrows run across headings of the frames they enter: these come last, all plates below all letters.
        transform = next((g.get("transform", "") for g in root if g.tag == _SVG + "g"), "")
        headings = [*writer.plates, *writer.headings]
        return [*writer.out, f'<g class="heading" transform={quoteattr(transform)}>\n', *headings, "</g>\n"]

    def size(self) -> tuple[float, float]:
        """Width and height in points. Needs Graphviz."""
        box = ET.fromstring(self._graphviz_output).get("viewBox", "0 0 1 1").split()
        return float(box[2]), float(box[3])

    def _repr_html_(self) -> str:
        return inline(self.to_svg(), self.size()[0])

    def _repr_svg_(self) -> str:  # where a notebook is no page: nbconvert's PDF, an editor
        return self.to_svg()

    def to_png(self) -> bytes:
        """A PNG at twice the usual resolution, less where it would grow beyond 40 megapixels."""
        width, height = self.size()
        pixels = width * height / 72**2
        dpi = min(_DPI, int((_MOST_PIXELS / max(pixels, 1)) ** 0.5), int(32_000 * 72 / max(width, height, 1)))
        return run_graphviz(self.dot, "png", f"-Gdpi={max(dpi, 12)}")

    def to_pdf(self) -> bytes:
        """A PDF of one page in the picture's size, without the date."""
        pdf = run_graphviz(self.dot, "pdf")
        return _DATE.sub(lambda m: _NO_DATE[: len(m[0])].ljust(len(m[0])), pdf)

    def to_bytes(self, fmt: str) -> bytes:
        """The picture in one of `FORMATS`; an SVG as a separate file, with zoom and pan."""
        if fmt == "dot":
            return self.dot.encode()
        if fmt == "svg":
            return zoomable(self.to_svg()).encode()
        if fmt == "png":
            return self.to_png()
        if fmt == "pdf":
            return self.to_pdf()
        raise HlofuseError(f"cannot draw {fmt!r}; the formats are {', '.join(FORMATS)}")

    @cached_property
    def _graphviz_output(self) -> bytes:
        return run_graphviz(self.dot, "svg")


def format_of(path: str | os.PathLike[str]) -> str:
    """The format of a file's suffix; raises `HlofuseError` for others."""
    suffix = Path(path).suffix.lower().lstrip(".")
    suffix = "dot" if suffix == "gv" else suffix
    if suffix not in FORMATS:
        formats = ", ".join("." + f for f in FORMATS)
        given = f".{printable(suffix)} is not among them" if suffix else "the name has none"
        raise HlofuseError(f"the output's suffix says what to draw ({formats}), but {given}")
    return suffix
