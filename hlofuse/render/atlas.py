"""A big module as a directory of pictures: an overview, and one of each part, computation, closed fusion."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from hlofuse.format.units import plural
from hlofuse.ir import Computation, HlofuseError, Module
from hlofuse.render.build import Builder
from hlofuse.render.compose import compose, finished
from hlofuse.render.dot import to_dot
from hlofuse.render.drawing import Drawing
from hlofuse.render.labels import cut
from hlofuse.render.options import Options
from hlofuse.render.planning.plan import PanelPlan, part_panel, plan
from hlofuse.render.scene import Scene
from hlofuse.replay import Replay

INDEX = "index.svg"
MOST_PAGES = 400
"""Parts of parts, and fusions that are drawn closed, get pictures of their own up to here."""

_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]+")
_PART_OF_PART = re.compile(r"(.*part\d+(?:\.\d+)*)\.\d+\.svg")


def atlas(
    shown: Module | Replay, view: str | None, options: Options, caption: Sequence[str] = ()
) -> dict[str, Drawing]:
    """File name to picture, the overview first; boxes lead to the pictures of what they stand for."""
    if view == "both":
        raise HlofuseError("a directory holds pictures of one side: --view before or --view after")
    if options.focus is not None:
        raise HlofuseError("--focus draws one picture, and a directory holds one of everything")
    module = shown if isinstance(shown, Module) else shown.before if view == "before" else shown.after
    scene = compose(shown, view, options)
    scene.caption = list(caption)
    scene.notices = [_without_advice(n) for n in scene.notices]
    decided = plan(module, options)
    drawn = {p.computation for p in decided.panels}
    found = _Pages(module, options, {INDEX: scene})
    found.draw_parts(decided.panels)
    for computation in decided.hidden:
        if computation not in drawn:
            found.draw(computation, options)
    near = replace(options, radius=1)
    for fusion in found.closed_fusions():
        if len(found.pages) < MOST_PAGES:
            found.draw(fusion, near)
    return dict(found.drawings())


class _Pages:
    """The pictures there are, by file name; `files` are those of whole computations."""

    def __init__(self, module: Module, options: Options, pages: dict[str, Scene]) -> None:
        self.module = module
        self.options = options
        self.pages = pages
        self.files: dict[str, str] = {}
        self._builder = Builder(module, final_names=options.final_names)

    def draw(self, computation: Computation, options: Options) -> None:
        """A picture of a computation (of a fusion's: with what lies around), and of its parts."""
        name = _file_name(computation.name, self.pages)
        self.files[computation.name] = name
        inner = plan(self.module, replace(options, focus=computation.name))
        notices = [_without_advice(n) for n in inner.notices]
        self.pages[name] = finished(self.module, self._builder, inner.panels, notices, options)
        self.draw_parts(inner.panels)

    def draw_parts(self, panels: Sequence[PanelPlan]) -> None:
        """A picture of each part, and of parts of those."""
        todo = [(whole, part) for whole in panels for part in whole.parts]
        for whole, part in todo:  # grows while it is walked
            panel = part_panel(whole, part, self.options)
            name = f"{self._prefix(whole)}part{part.label}.svg"
            shown = plural(len(part.instructions), "instruction")
            notices = (
                [f"part {part.label}: {shown} in {plural(len(panel.parts), 'part')}"] if panel.parts else []
            )
            heading = f"part {part.label} of "
            page = finished(self.module, self._builder, [panel], notices, self.options, heading)
            self.pages[name] = page
            if part.scope:
                page.lines.append(cut(part.scope, 120))
            if len(self.pages) + len(panel.parts) <= MOST_PAGES:
                inner_whole = replace(panel, parts=[*panel.parts])
                inner_whole.elsewhere = {}
                todo += [(inner_whole, inner) for inner in panel.parts]

    def closed_fusions(self) -> list[Computation]:
        """What is inside of the fusions that no picture shows open, so far."""
        boxes = (b for page in self.pages.values() for p in page.panels for b in p.all_boxes())
        requested = dict.fromkeys(b.opens for b in boxes if b.opens)
        return [
            c for c in map(self.module.find_computation, requested) if c is not None and c.fusion is not None
        ]

    def drawings(self) -> Iterator[tuple[str, Drawing]]:
        """Each picture, with where its boxes lead to."""
        own = set(self.files.values())
        for name, scene in self.pages.items():
            prefix = name.partition("-part")[0] + "-" if "-part" in name else ""
            computation = name.removesuffix(".svg") + "-" if name in own else prefix
            links = {}
            for box in (b for p in scene.panels for b in p.all_boxes() if b.opens):
                for target in (self.files.get(box.opens), f"{computation}{box.opens}.svg"):
                    if target in self.pages and target != name:
                        links[box.key] = target
                        break
            above = _PART_OF_PART.fullmatch(name) if name not in own else None
            back = f"{above[1]}.svg" if above is not None and f"{above[1]}.svg" in self.pages else INDEX
            yield (
                name,
                Drawing(
                    to_dot(scene), scene, list(scene.notices), links=links, back="" if name == INDEX else back
                ),
            )

    def _prefix(self, whole: PanelPlan) -> str:
        """What the files of a computation's parts begin with; nothing for the entry's."""
        own = self.files.get(whole.computation.name)
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
