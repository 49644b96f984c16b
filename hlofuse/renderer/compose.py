"""Which panels a picture has: the module as it is, after a replay, or both side by side."""

from __future__ import annotations

from collections.abc import Mapping

from hlofuse.analysis.cost import CostAnalysis
from hlofuse.analysis.kernels import kernels
from hlofuse.ir import Computation, HlofuseError, Instruction, Module
from hlofuse.pipelines import Replay
from hlofuse.present.escape import shorten
from hlofuse.present.units import bytes_text, plural
from hlofuse.renderer import labels
from hlofuse.renderer.acyclic import convex
from hlofuse.renderer.build import Builder, kernel_numbers
from hlofuse.renderer.fold import fold, is_too_tall
from hlofuse.renderer.islands import split
from hlofuse.renderer.options import VIEWS, Options
from hlofuse.renderer.plan import plan
from hlofuse.renderer.proportions import columns, is_tall
from hlofuse.renderer.provenance import members
from hlofuse.renderer.reduction import thin
from hlofuse.renderer.scene import Panel, Scene
from hlofuse.renderer.sides import for_side

_LEGEND = 180.0
"""The width of a legend."""


def compose(subject: Module | Replay, view: str | None, options: Options) -> Scene:
    """The scene for `subject`; a bare module is drawn as it is."""
    if view is not None and view not in VIEWS:
        raise HlofuseError(f"no view is called {view!r}; there are {', '.join(VIEWS)}")
    if isinstance(subject, Module):
        if view in ("after", "both"):
            raise HlofuseError(f"view {view!r} needs a replay of the module")
        return _one(subject, options, f"as it is: {_totals(subject)}")
    title = f"{subject.target} fusion" + (f" on {subject.device}" if subject.device else "")
    if view == "before":
        return _one(subject.before, options, f"before {title}: {_totals(subject.before)}")
    if view == "both":
        return _both(subject, options, title)
    return _one(subject.after, for_side(options, subject, subject.after), _change(subject, title))


def _one(module: Module, options: Options, line: str) -> Scene:
    scene = _scene(module, options, line)
    decided = plan(module, options)
    builder = Builder(module)
    panels = [builder.panel(p, _panel_title(p.computation)) for p in decided.panels]
    scene.panels = [p for island in split(panels[:1]) for p in island] + panels[1:]
    scene.notices = decided.notices
    _arrange(scene, step=1)
    return scene


def _both(replay: Replay, options: Options, title: str) -> Scene:
    after_numbers = kernel_numbers(replay.after)
    future, titles = _futures(replay, after_numbers)
    sides: list[dict[str, Panel]] = []
    scene = _scene(replay.after, options, _change(replay, title))
    for side, module in (("before", replay.before), ("after", replay.after)):
        if side == "before":
            groups = _groups(module, future)
            builder = Builder(module, "b", future, groups, titles)
        else:
            builder = Builder(module, "a", after_numbers)
        decided = plan(module, for_side(options, replay, module))
        panels = {
            p.computation.name: builder.panel(p, f"{side}: {_panel_title(p.computation)}")
            for p in decided.panels
        }
        sides.append(panels)
        scene.notices += [f"{side}, {n}" for n in decided.notices]
    firsts = [side.pop(next(iter(side))) for side in sides]
    scene.panels = [panel for island in split(firsts) for panel in island]
    for name in dict.fromkeys(name for side in sides for name in side):
        for word, panels in zip(("before", "after"), sides, strict=True):
            # Each loop body stands beside itself, though one side may have had no room for it.
            scene.panels.append(panels.get(name) or Panel(f"{word}{len(scene.panels)}", word))
    _arrange(scene, step=2)
    return scene


def _futures(
    replay: Replay, numbers: Mapping[Instruction, str]
) -> tuple[dict[Instruction, str], dict[str, str]]:
    """For each instruction before: the kernels it is in after; and the name of each kernel."""
    inside = members(replay.events)
    kernel_of: dict[str, list[str]] = {}
    titles: dict[str, str] = {}
    for kernel, number in numbers.items():
        titles[number] = kernel.name
        for name in inside.get(kernel.name, {kernel.name: None}):
            kernel_of.setdefault(name, []).append(number)
    future: dict[Instruction, str] = {}
    for i in replay.before.instructions():
        in_kernels = kernel_of.get(i.name)
        if in_kernels:
            more = f" +{len(in_kernels) - 3}" if len(in_kernels) > 3 else ""
            future[i] = " ".join(in_kernels[:3]) + more
    return future, titles


def _groups(module: Module, future: Mapping[Instruction, str]) -> dict[Instruction, str]:
    """The instructions that lie in one kernel to be with others, as far as a frame can go around them."""
    groups: dict[Instruction, str] = {}
    for computation in module.computations:
        if computation.fusion is not None:
            continue
        order = computation.post_order()
        index = {i: n for n, i in enumerate(order)}
        operands = [[index[o] for o in i.operands if o in index] for i in order]
        label = {
            n: future[i]
            if i in future and " " not in future[i] and i.opcode not in ("constant", "parameter")
            else n
            for n, i in enumerate(order)
        }
        split = convex(range(len(order)), operands, label)
        sizes: dict[object, int] = {}
        for n in split:
            sizes[split[n]] = sizes.get(split[n], 0) + 1
        for n, i in enumerate(order):
            # A kernel whose ops cannot stand in one frame keeps its number on each of them.
            if split[n] == label[n] and sizes[split[n]] > 1 and isinstance(label[n], str):
                groups[i] = str(label[n])
    return groups


def _arrange(scene: Scene, step: int) -> None:
    """Settle how the panels are set out."""
    left_out = sum(thin(panel) for panel in scene.panels)
    if len(scene.panels) == step and all(map(is_too_tall, scene.panels)):
        scene.panels = [column for panel in scene.panels for column in fold(panel)]
        step = len(scene.panels)
    for panel in scene.panels:
        panel.flat = is_tall(panel)
    if left_out:
        scene.lines.append(f"{plural(left_out, 'arrow')} implied by others left out, named in the boxes")
    scene.columns = columns(scene.panels, step, _LEGEND if scene.legend else 0)


def _scene(module: Module, options: Options, line: str) -> Scene:
    return Scene(shorten(module.name, 70), [line], legend=options.legend)


def _panel_title(computation: Computation) -> str:
    name = shorten(computation.name, 50)
    if computation.is_entry:
        return f"entry {name}"
    caller = next(iter(computation.callers), None)
    if caller is None:
        return name
    attribute = next((a for a, c in caller.called if c is computation), "")
    return f"{name}, {labels.role(attribute)} of {shorten(caller.name, 40)}"


def _moved(module: Module) -> int:
    costs = CostAnalysis()
    return sum(costs.instruction(k).bytes_accessed for k in kernels(module))


def _totals(module: Module) -> str:
    return f"{plural(len(kernels(module)), 'kernel')}, {bytes_text(_moved(module))} moved"


def _change(replay: Replay, title: str) -> str:
    before, after = len(kernels(replay.before)), len(kernels(replay.after))
    return (
        f"{title}: {before:,} → {plural(after, 'kernel')}, "
        f"{bytes_text(_moved(replay.before))} → {bytes_text(_moved(replay.after))} moved"
    )
