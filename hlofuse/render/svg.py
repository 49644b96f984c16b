"""SVG to commit and to open: Graphviz's without links and versions, with tooltips, on a white card.

Only elements and attributes on a list come through, so that no text of a dump becomes active even if an
escape were missed.
"""

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Mapping
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

_SVG = "{http://www.w3.org/2000/svg}"
_XLINK = "{http://www.w3.org/1999/xlink}"
_ELEMENTS = frozenset({"polygon", "polyline", "path", "ellipse"})
# fmt: off
_ATTRIBUTES = frozenset({
    "class", "cx", "cy", "d", "fill", "fill-opacity", "font-family", "font-size", "font-style", "font-weight",
    "height", "id", "points", "rx", "ry", "stroke", "stroke-dasharray", "stroke-opacity", "stroke-width",
    "text-anchor", "transform", "width", "x", "y",
})
# fmt: on
_NUMBER = re.compile(r"-?\d+\.\d{3,}")

# Pointing at a box or an arrow brings it out; it works in a page and does no harm in an image. Opened by
# itself, a picture larger than the window is scaled to fit it.
_CSS = (
    ".edge:hover path{stroke:#0969da;stroke-width:3}.edge:hover text{fill:#0969da;font-weight:bold}"
    ".node:hover>*:not(text){stroke-width:3}.node,.edge,.cluster{cursor:default}"
    ".heading,.halo{pointer-events:none}.halo{stroke:#fff;stroke-width:3px;stroke-linejoin:round}"
    "svg:root{max-width:100%;max-height:100vh}"
)


def document(width: float, height: float, title: str, description: str, body: Iterable[str]) -> str:
    """A picture of that many points on a white card."""
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


def zoomable(svg: str) -> str:
    """The picture as a file of its own: with a script, the same for every picture, that zooms and pans."""
    script = Path(__file__).with_name("pan.js").read_text(encoding="utf-8")
    return svg.removesuffix("</svg>\n") + f"<script>{escape(script)}</script>\n</svg>\n"


def finish(svg: bytes, title: str, description: str, tooltips: Mapping[str, list[str]]) -> str:
    """Graphviz's SVG to hand out; `tooltips` by the ids of boxes, frames and panels."""
    root = ET.fromstring(svg)
    writer = _Writer(tooltips)
    for child in root:
        writer.write(child, depth=0)
    # Arrows run across the headings of the frames they enter: these come last, all halos below all letters.
    transform = next((g.get("transform", "") for g in root if g.tag == _SVG + "g"), "")
    heading = ["".join(writer.headings), "</g>\n"]
    for look in ("halo", "heading"):
        writer.out += [f'<g class="{look}" transform={quoteattr(transform)}>\n', *heading]
    return document(*size(svg), title, description, writer.out)


def size(svg: bytes) -> tuple[float, float]:
    """Width and height in points."""
    box = ET.fromstring(svg).get("viewBox", "0 0 1 1").split()
    return float(box[2]), float(box[3])


class _Writer:
    """Copies elements on the lists; `headings` are the texts of frames, which come last."""

    def __init__(self, tooltips: Mapping[str, list[str]]) -> None:
        self.tooltips = tooltips
        self.out: list[str] = []
        self.headings: list[str] = []

    def write(self, element: ET.Element, depth: int, in_heading: bool = False) -> None:
        """Copy an element; Graphviz's output has a depth of a few levels for any picture.

        Text is `in_heading` directly inside a frame.
        """
        name = element.tag.removeprefix(_SVG) if isinstance(element.tag, str) else ""
        if name == "a":  # Graphviz's bearer of tooltips: its content stays, the link goes
            for child in element:
                self.write(child, depth, in_heading)
        elif name == "g":
            self._group(element, depth, in_heading or element.get("class") == "cluster")
        elif name == "text":
            text = "".join(element.itertext())
            if text.strip():
                target = self.headings if in_heading else self.out
                target.append(f'<text xml:space="preserve"{_attributes(element)}>{escape(text)}</text>\n')
        elif name in _ELEMENTS and not (depth == 1 and _is_background(element)):
            self.out.append(f"<{name}{_attributes(element)}/>\n")

    def _group(self, element: ET.Element, depth: int, in_heading: bool) -> None:
        self.out.append(f"<g{_attributes(element)}>\n")
        text = self._tooltip(element)
        if text:
            self.out.append(f"<title>{escape(text)}</title>\n")
        for child in element:
            self.write(child, depth + 1, in_heading)
        self.out.append("</g>\n")

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


def _is_background(element: ET.Element) -> bool:
    """Graphviz's white rectangle, whose place the card takes."""
    return element.tag == _SVG + "polygon" and element.get("stroke") in ("none", "transparent")


def _attributes(element: ET.Element) -> str:
    return "".join(
        f" {key}={quoteattr(_NUMBER.sub(lambda m: f'{float(m[0]):.2f}', value))}"
        for key, value in element.attrib.items()
        if key in _ATTRIBUTES
    )
