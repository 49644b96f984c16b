"""A scene as DOT, by the `graphviz` package: deterministic, and without markup from the dump."""

import math

from graphviz import Digraph

from hlofuse.format import bytes_text
from hlofuse.ir import Record
from hlofuse.ir.text.signatures import split_async
from .labels import entities, multiline
from .scene import TABLES, Arrow, Box, Panel, Scene, text_width

FONT = "Helvetica,Arial,sans-serif"
INK = "#1f2328"
FAINT = "#59636e"
LINE = "#8c959f"
PALE = "#d1d9e0"
CARD = "#ffffff"
ALERT = "#9a3412"


class Style(Record):
    title: str
    look: dict[str, str]  # Attributes of Graphviz
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


STYLES: dict[str, Style] = {name: Style(**table) for name, table in TABLES["boxes"].items()}
_CATEGORY: dict[str, str] = {
    opcode: name for name, style in STYLES.items() for opcode in style.opcodes.split()
}


def cluster_style(kind: str) -> dict[str, str]:
    """Attributes of Graphviz for the frame of a fusion, or (with none) of a future kernel."""
    frames: dict[str, dict[str, str]] = TABLES["frames"]
    return frames.get(kind, frames["other"])


def category(opcode: str) -> str:
    """The key in `STYLES` for an opcode, asynchronous or not; every unlisted one is element-wise."""
    return _CATEGORY.get(opcode) or _CATEGORY.get(split_async(opcode)[0], "elementwise")


def legend(graph: Digraph, scene: Scene, place: int) -> None:
    """Add a cluster of sample boxes, one below the other."""
    boxes = [b for p in scene.panels for b in p.all_boxes()]
    used = {b.style for b in boxes}
    kinds = {f.style for p in scene.panels for f in p.outlines}
    arrows = [a for p in scene.panels for a in p.arrows]
    rows = []
    for name, style in STYLES.items():
        if name in used and name != "stub":
            rows.append((style.title, style.attributes_for_size(text_width(style.title, 9), 11)))
    frames = TABLES["frames"]
    for kind in (*filter(kinds.__contains__, frames), *sorted(kinds - frames.keys())):
        title = TABLES["frame_titles"].get(kind, f"{kind} fusion: one kernel")
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


LABELLED = 150  # The limit of labelled arrows; with more, only large values have labels, others a tooltip


def to_dot(scene: Scene) -> str:
    """The whole picture as one directed graph."""
    columns = scene.columns + scene.legend
    # Graphviz forgets where a panel's own left is when it aligns there, and may put it over the legend: one
    # panel alone is placed as well without.
    left = "l" if len(scene.panels) > 1 else ""
    font = {"fontname": FONT, "fontcolor": INK}
    graph = Digraph(
        "hlofuse",
        graph_attr=font
        | {"label": f"<{_heading(scene)}>", "labelloc": "t", "labeljust": "l", "bgcolor": CARD, "pad": "0.3"}
        | {
            "nodesep": "0.2",
            "ranksep": "0.15",
            "pack": "40",
            "packmode": f"array_t{left}u{columns}" if len(scene.panels) > 1 else "array_tu",
        }
        | {"fontsize": "11", "tooltip": " "},
        node_attr=font | {"fontsize": "11", "margin": "0.09,0.04", "height": "0.26", "width": "0.4"},
        edge_attr={"fontname": FONT, "fontsize": "9", "fontcolor": FAINT, "color": LINE, "arrowsize": "0.6"},
    )
    place = 0
    if scene.legend:
        legend(graph, scene, place)
    loudest = max((a.bytes for p in scene.panels for a in p.arrows), default=0)
    if len(scene.panels) == 1:  # what hangs together is packed by Graphviz
        _content(graph, scene.panels[0], loudest)
        return str(graph.source)
    for panel in scene.panels:
        place += 1
        if scene.legend and place > 1 and (place - 1) % (columns - 1) == 0:
            # Only the first row has the legend in its first place.
            look = {"sortv": str(2 * place), "peripheries": "0", "label": ""}
            with graph.subgraph(name=f"cluster_gap{place}", graph_attr=look) as gap:
                gap.node(f"gap{place}", label="", style="invis", shape="point")
        look = {"sortv": str(2 * place + 1), "label": f"<<B>{entities(panel.title)}</B>>"}
        look |= {"style": "rounded", "color": PALE, "margin": "26", "id": panel.key, "tooltip": " "}
        with graph.subgraph(name=f"cluster_{panel.key}", graph_attr=look) as cluster:
            _content(cluster, panel, loudest)
    return str(graph.source)


def _heading(scene: Scene) -> str:
    rows = [f'<B><FONT POINT-SIZE="17">{entities(scene.title)}</FONT></B>']
    if len(scene.panels) == 1:
        rows[0] += f'<FONT COLOR="{FAINT}">   {entities(scene.panels[0].title)}</FONT>'
    for k, line in enumerate([*scene.caption, *scene.lines]):
        color = ALERT if scene.caption and k == 0 else FAINT
        rows.append(f'<FONT POINT-SIZE="11" COLOR="{color}">{entities(line)}</FONT>')
    rows += [f'<FONT POINT-SIZE="11" COLOR="{ALERT}">{entities(line)}</FONT>' for line in scene.notices]
    # Graphviz sets lines without leading: an empty line of small type makes some.
    end = '<BR ALIGN="LEFT"/>'
    return "".join(f'{row}{end}<FONT POINT-SIZE="4"> </FONT>{end}' for row in rows)


def _content(graph: Digraph, panel: Panel, loudest: int) -> None:
    if not panel.boxes and not panel.outlines:
        graph.node(f"{panel.key}none", "nothing to draw here", shape="plaintext", fontcolor=FAINT)
    for outline in panel.outlines:
        head = _badge(outline.kernels) + f"<B>{entities(outline.title)}</B>"
        if outline.aside:
            head += f"  {entities(outline.aside)}"
        head += _flag(outline.note)
        rows = "".join(f'{r}<BR ALIGN="LEFT"/>' for r in (head, *map(_small, outline.lines)) if r)
        look = {"penwidth": "3" if outline.marked or outline.note else "1.3", "label": f"<{rows}>"}
        look |= {"margin": "9", "labeljust": "l", "fontsize": "11", "id": outline.key}
        look |= {"tooltip": multiline(outline.tooltip), **cluster_style(outline.style)}
        look |= {"class": "marked"} if outline.marked else {}
        with graph.subgraph(name=f"cluster_{outline.key}", graph_attr=look) as cluster:
            for box in outline.boxes:
                _box(cluster, box, flat=bool(outline.style))
    for box in panel.boxes:
        _box(graph, box)
    many = len(panel.arrows) > LABELLED
    for arrow in panel.arrows:
        _arrow(graph, arrow, loudest, many)


def _box(graph: Digraph, box: Box, flat: bool = False) -> None:
    style = STYLES[box.style]
    light = box.style in ("value", "stub")
    base, small = 9.0 if light else 11.0, 9.0
    lines = box.lines
    if not light and len(lines) == 2 and text_width("  ".join(lines), small) < 130:
        lines = ["  ".join(lines)]  # a short name and a short shape share a line
    title = entities(box.title)
    head = _badge(box.kernels) + (title if light else f"<B>{title}</B>")
    width = text_width(box.title, base, bold=not light)
    if box.kernels:
        width += text_width(f"{box.kernels}  ", base)
    if box.aside:
        head += f" {entities(box.aside)}"
        width += text_width(f" {box.aside}", base)
    if box.note:
        head += _flag(box.note)
        width += text_width(f"  {box.note}", base, bold=True)
    if flat and len(lines) <= 2:
        # Inside a kernel one line does: pictures are tall enough as they are.
        source_box = "  ".join(lines)
        head += f"  {_small(source_box, small)}"
        width += text_width("  " + source_box, small)
        lines = []
    width = max([width, *(text_width(line, small) for line in lines)])
    look = style.attributes_for_size(width, base * 1.2 + len(lines) * small * 1.2) | {"id": box.key}
    if light and style.slack is None:
        look |= {"margin": "0.05,0.02", "height": "0.2"}
    if light:
        look["fontsize"] = "9"
    if box.marked:
        look |= {"penwidth": "3", "class": "marked"}
    label = "<BR/>".join([head, *(_small(line, small) for line in lines)])
    graph.node(box.key, f"<{label}>", tooltip=multiline(box.tooltip), **look)


def _badge(kernels: str) -> str:
    return f'<FONT COLOR="{FAINT}">{entities(kernels)}</FONT>  ' if kernels else ""


def _flag(note: str) -> str:
    return f'  <FONT COLOR="{ALERT}"><B>{entities(note)}</B></FONT>' if note else ""


def _small(line: str, size: float = 9) -> str:
    return f'<FONT POINT-SIZE="{size:g}" COLOR="{FAINT}">{entities(line)}</FONT>' if line else ""


def _arrow(panel: Digraph, arrow: Arrow, loudest: int, many: bool) -> None:
    look = {"edgetooltip": multiline(arrow.tooltip)} if arrow.tooltip else {}
    look |= {"id": arrow.key} if arrow.key else {}
    label = None
    if arrow.control:
        look |= {"style": "dashed"}
    elif arrow.values == 0:
        look |= {"style": "dotted", "arrowsize": "0.4"}
    elif arrow.inside:
        look |= {"penwidth": "0.8"}
    else:
        share = math.log1p(arrow.bytes) / math.log1p(loudest) if loudest else 0.0
        # A label needs a rank of its own; with `pack` Graphviz does not see to that.
        look |= {"minlen": "2", "color": INK if share > 0.85 else FAINT}
        look["penwidth"] = f"{0.8 + 1.8 * share**3:.2f}"
        if arrow.bytes and not (many and arrow.bytes * 50 < loudest):
            text = bytes_text(arrow.bytes)
            label = f"  {text}" if arrow.values == 1 else f"  {arrow.values}: {text}"
    panel.edge(arrow.source_box, arrow.head, label, **look)
