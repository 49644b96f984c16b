"""A big module as a directory of pictures: an overview, and one picture for each part and computation."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from hlofuse.ir import HlofuseError, Module
from hlofuse.pipelines import Replay
from hlofuse.present.units import plural
from hlofuse.renderer.build import Builder
from hlofuse.renderer.compose import compose, finished
from hlofuse.renderer.dot import to_dot
from hlofuse.renderer.drawing import Drawing
from hlofuse.renderer.options import Options
from hlofuse.renderer.planning.panel_plan import PanelPlan
from hlofuse.renderer.planning.plan import part_panel, plan
from hlofuse.renderer.scene import Scene
from hlofuse.renderer.text import cut

INDEX = "index.svg"
MOST_PAGES = 400
"""Parts of parts get pictures of their own up to here."""

_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]+")


def atlas(
    subject: Module | Replay, view: str | None, options: Options, caption: Sequence[str] = ()
) -> dict[str, Drawing]:
    """File name to picture, the overview first; boxes lead to the pictures of what they stand for."""
    if view == "both":
        raise HlofuseError("a directory holds pictures of one side: --view before or --view after")
    if options.focus is not None:
        raise HlofuseError("--focus draws one picture, and a directory holds one of everything")
    module = subject if isinstance(subject, Module) else subject.before if view == "before" else subject.after
    scene = compose(subject, view, options)
    scene.caption = list(caption)
    scene.notices = [_without_advice(n) for n in scene.notices]
    pages = {INDEX: scene}
    decided = plan(module, options)
    builder = Builder(module)
    todo = [(whole, part) for whole in decided.panels for part in whole.parts]
    drawn = {p.computation for p in decided.panels}
    files: dict[str, str] = {}
    for computation in decided.hidden:
        if computation in drawn:
            continue
        name = _file_name(computation.name, pages)
        files[computation.name] = name
        inner = plan(module, replace(options, focus=computation.name))
        pages[name] = finished(module, builder, inner.panels, inner.notices, options)
        todo += [(whole, part) for whole in inner.panels for part in whole.parts]
    for whole, part in todo:  # grows while it is walked
        panel = part_panel(whole, part, options)
        name = f"{_home(whole, files)}part{part.label}.svg"
        shown = plural(len(part.instructions), "instruction")
        notices = [f"part {part.label}: {shown} in {plural(len(panel.parts), 'part')}"] if panel.parts else []
        heading = f"part {part.label} of "
        pages[name] = finished(module, builder, [panel], notices, options, heading)
        if part.scope:
            pages[name].lines.append(cut(part.scope, 120))
        if len(todo) + len(panel.parts) <= MOST_PAGES:
            inner_whole = replace(panel, parts=[*panel.parts])
            inner_whole.elsewhere = {}
            todo += [(inner_whole, inner) for inner in panel.parts]
    return dict(_drawings(pages, files))


def _drawings(pages: dict[str, Scene], files: dict[str, str]) -> Iterator[tuple[str, Drawing]]:
    for name, scene in pages.items():
        prefix = name.partition("-part")[0] + "-" if "-part" in name else ""
        home = name.removesuffix(".svg") + "-" if name in files.values() else prefix
        links = {}
        for box in (b for p in scene.panels for b in p.all_boxes() if b.opens):
            for target in (files.get(box.opens), f"{home}{box.opens}.svg"):
                if target in pages and target != name:
                    links[box.key] = target
                    break
        above = name.rpartition(".")[0].rpartition(".")[0] + ".svg"  # part3.svg of part3.2.svg
        back = "" if name == INDEX else above if above in pages else INDEX
        yield name, Drawing(to_dot(scene), scene, list(scene.notices), links=links, back=back)


def _home(whole: PanelPlan, files: dict[str, str]) -> str:
    """What the files of a computation's parts begin with; nothing for the entry's."""
    own = files.get(whole.computation.name)
    return own.removesuffix(".svg") + "-" if own is not None else ""


def _file_name(name: str, taken: dict[str, Scene]) -> str:
    base = _UNSAFE.sub("_", name)[:60].strip("._-") or "computation"
    base = f"{base}_" if base.startswith(("part", "index")) else base
    candidate, n = f"{base}.svg", 1
    while candidate.lower() in {t.lower() for t in taken}:
        n += 1
        candidate = f"{base}_{n}.svg"
    return candidate


def _without_advice(notice: str) -> str:
    """Nobody needs options to open what a click opens."""
    return notice.partition(": --open")[0]
