"""The key to a picture: only the kinds that occur in it."""

from __future__ import annotations

from collections.abc import Iterator

from hlofuse.render.metrics import text_width
from hlofuse.render.palette import FAINT, FUSIONS, INK, OTHER_FUSION, PALE, STYLES
from hlofuse.render.scene import Scene
from hlofuse.render.text import entities

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
    kinds = {f.kind for p in scene.panels for f in p.frames}
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
    if any(b.kernels for b in boxes) or any(f.kernels for p in scene.panels for f in p.frames):
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
