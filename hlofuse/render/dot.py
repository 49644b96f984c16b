"""A scene as DOT text: readable, the same every time, and with nothing of the dump as markup."""

import math
from collections.abc import Iterator

from hlofuse.format.units import bytes_text
from hlofuse.render.labels import entities, multiline
from hlofuse.render.palette import ALERT, CARD, FAINT, FUSIONS, INK, LINE, OTHER_FUSION, PALE, STYLES, legend
from hlofuse.render.scene import Arrow, Box, Outline, Panel, Scene, text_width

FONT = "Helvetica,Arial,sans-serif"
LABELLED = 150
"""Beyond so many arrows only those that carry much say how much; the others say it in the tooltip."""


def to_dot(scene: Scene) -> str:
    """The whole picture as one directed graph."""
    return "\n".join(_lines(scene)) + "\n"


def _lines(scene: Scene) -> Iterator[str]:
    columns = scene.columns + scene.legend
    yield 'digraph "hlofuse" {'
    yield f"  label=<{_heading(scene)}>"
    # Graphviz forgets where a panel's own left is when it aligns there, and may put it over the legend: one
    # panel alone is placed as well without.
    left = "l" if len(scene.panels) > 1 else ""
    yield f'  graph [fontname="{FONT}" fontsize=11 fontcolor="{INK}" labelloc=t labeljust=l bgcolor="{CARD}"'
    yield f'    pad=0.3 nodesep=0.2 ranksep=0.15 pack=40 packmode="array_t{left}u{columns}" tooltip=" "]'
    yield f'  node [fontname="{FONT}" fontsize=11 fontcolor="{INK}" margin="0.09,0.04" height=0.26 width=0.4]'
    yield f'  edge [fontname="{FONT}" fontsize=9 fontcolor="{FAINT}" color="{LINE}" arrowsize=0.6]'
    place = 0
    if scene.legend:
        yield from legend(scene, place)
    loudest = max((a.bytes for p in scene.panels for a in p.arrows), default=0)
    for panel in scene.panels:
        place += 1
        if scene.legend and place > 1 and (place - 1) % (columns - 1) == 0:
            # Only the first row has the legend in its first place.
            yield f'  subgraph "cluster_gap{place}" {{ sortv={2 * place} peripheries=0 label=""'
            yield f'    "gap{place}" [style=invis label="" shape=point] }}'
        yield from _panel(panel, 2 * place + 1, loudest)
    yield "}"


def _heading(scene: Scene) -> str:
    rows = [f'<B><FONT POINT-SIZE="17">{entities(scene.title)}</FONT></B>']
    for k, line in enumerate([*scene.caption, *scene.lines]):
        color = ALERT if scene.caption and k == 0 else FAINT
        rows.append(f'<FONT POINT-SIZE="11" COLOR="{color}">{entities(line)}</FONT>')
    rows += [f'<FONT POINT-SIZE="11" COLOR="{ALERT}">{entities(line)}</FONT>' for line in scene.notices]
    # Graphviz sets lines without leading: an empty line of small type makes some.
    end = '<BR ALIGN="LEFT"/>'
    return "".join(f'{row}{end}<FONT POINT-SIZE="4"> </FONT>{end}' for row in rows)


def _panel(panel: Panel, place: int, loudest: int) -> Iterator[str]:
    aside = f'<FONT COLOR="{FAINT}">   {entities(panel.aside)}</FONT>' if panel.aside else ""
    yield f'  subgraph "cluster_{panel.key}" {{'
    yield f"    graph [sortv={place} label=<<B>{entities(panel.title)}</B>{aside}>"
    yield f'      style="rounded" color="{PALE}" margin=26 id="{panel.key}" tooltip=" "]'
    if not panel.boxes and not panel.outlines:
        yield f'    "{panel.key}none" [label="nothing to draw here" shape=plaintext fontcolor="{FAINT}"]'
    for outline in panel.outlines:
        yield from _outline(outline, panel.flat)
    for box in panel.boxes:
        yield f"    {_box(box)}"
    many = len(panel.arrows) > LABELLED
    for arrow in panel.arrows:
        yield f"    {_arrow(arrow, loudest, many)}"
    yield "  }"


def _outline(outline: Outline, flat: bool) -> Iterator[str]:
    head = _badge(outline.kernels) + f"<B>{entities(outline.title)}</B>"
    if outline.aside:
        head += f"  {entities(outline.aside)}"
    head += _flag(outline.note)
    rows = [head, *(_small(line) for line in outline.lines)]
    if outline.kind:
        style = FUSIONS.get(outline.kind, OTHER_FUSION)
        look = f'style="{style.style}" fillcolor="{style.fill}" color="{style.line}"'
    else:
        look = f'style="rounded,dashed" color="{FAINT}"'
    width = 3 if outline.marked or outline.note else 1.3
    yield f'    subgraph "cluster_{outline.key}" {{'
    yield f"      graph [label=<{_rows(rows)}> {look} penwidth={width} margin=9 labeljust=l fontsize=11"
    yield f'        id="{outline.key}" tooltip="{multiline(outline.tooltip)}"]'
    for box in outline.boxes:
        yield f"      {_box(box, flat=flat and bool(outline.kind))}"
    yield "    }"


def _box(box: Box, flat: bool = False) -> str:
    style = STYLES[box.style]
    light = box.style in ("value", "stub")
    base, small = (9.0, 8.0) if light else (11.0, 9.0)
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
    attributes = [f"label=<{'<BR/>'.join([head, *(_small(line, small) for line in lines)])}>", style.shape]
    attributes.append(f'fillcolor="{style.fill}" color="{style.line}"')
    if style.slack is not None:
        per_width, more, taller = style.slack
        height = base * 1.2 + len(lines) * small * 1.2 + taller
        attributes.append(
            f"fixedsize=true width={(width * per_width + more) / 72:.2f} height={height / 72:.2f}"
        )
    elif light:
        attributes.append('margin="0.05,0.02" height=0.2')
    if light:
        attributes.append("fontsize=9")
    if box.marked:
        attributes.append("penwidth=3")
    attributes.append(f'id="{box.key}" tooltip="{multiline(box.tooltip)}"')
    return f'"{box.key}" [{" ".join(attributes)}]'


def _badge(kernels: str) -> str:
    return f'<FONT COLOR="{FAINT}">{entities(kernels)}</FONT>  ' if kernels else ""


def _flag(note: str) -> str:
    return f'  <FONT COLOR="{ALERT}"><B>{entities(note)}</B></FONT>' if note else ""


def _small(line: str, size: float = 9) -> str:
    return f'<FONT POINT-SIZE="{size:g}" COLOR="{FAINT}">{entities(line)}</FONT>' if line else ""


def _rows(rows: list[str]) -> str:
    return "".join(row + '<BR ALIGN="LEFT"/>' for row in rows if row)


def _arrow(arrow: Arrow, loudest: int, many: bool) -> str:
    attributes = [f'edgetooltip="{multiline(arrow.tooltip)}"'] if arrow.tooltip else []
    if arrow.control:
        attributes.append(f'style=dashed color="{LINE}" constraint=true')
    elif arrow.values == 0:
        attributes.append(f'style=dotted color="{LINE}" arrowsize=0.4')
    elif arrow.inside:
        attributes.append(f'color="{LINE}" penwidth=0.8')
    else:
        share = math.log1p(arrow.bytes) / math.log1p(loudest) if loudest else 0.0
        # A label needs a rank of its own; with `pack` Graphviz does not see to that.
        attributes.append("minlen=2")
        attributes.append(f'color="{INK if share > 0.85 else FAINT}" penwidth={0.8 + 1.8 * share**3:.2f}')
        if arrow.bytes and not (many and arrow.bytes * 50 < loudest):
            text = bytes_text(arrow.bytes)
            attributes.append(
                f'label="  {text}"' if arrow.values == 1 else f'label="  {arrow.values}: {text}"'
            )
    return f'"{arrow.source_box}" -> "{arrow.head}" [{" ".join(attributes)}]'
