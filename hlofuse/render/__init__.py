"""Pictures of modules: which operations became which kernel. `plan` decides what is drawn open, closed or not
at all, `build` makes the boxes, frames and arrows of a computation (`scene`), `compose` puts one module or
two side by side. `dot` and `drawing` have Graphviz draw it: an SVG without anything active."""

from collections.abc import Mapping, Sequence

from hlofuse.compilation import Compilation
from hlofuse.ir import Module, Strings
from .build import compose
from .dot import to_dot
from .drawing import FORMATS, Drawing, format_of
from .scene import MAX_NODES, VIEWS, ModulePair, Options


def render(
    drawn: Module | Compilation | ModulePair,
    view: str | None = None,
    *,
    max_nodes: int = MAX_NODES,
    focus: str | Strings | None = None,
    radius: int = 2,
    open: Strings = (),
    legend: bool = True,
    caption: Sequence[str] = (),
    final_names: Mapping[str, str] | None = None,
    times: Mapping[str, str] | None = None,
) -> Drawing:
    """Draw a module as it is, or a replay `before`, `after` (its default) or `both` side by side.

    Both sides of a `ModulePair` are drawn unless `view` names one; each instruction has the number of the
    kernel that computes it.

    `focus` names instructions or computations whose neighbourhood, `radius` arrows wide, is drawn. `open`
    names fusions, computations or the numbered parts of an overview. More than `max_nodes` boxes a side are
    collapsed, unless `open` names them, and a notice says so (`Drawing.notices`). `caption` are the caller's
    lines at the head. `final_names` are those of kernels renamed after fusion, `times`
    texts by the names before that."""
    focus = (focus,) if isinstance(focus, str) else focus or ()
    options = Options(max_nodes, focus, radius, open, legend, final_names or {}, times or {})
    scene = compose(drawn, view, options)
    scene.caption = list(caption)
    return Drawing(to_dot(scene), scene, list(scene.notices))
