"""The panels of a picture: the module as it is, after a replay, or both side by side."""

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

from hlofuse.account import Account
from hlofuse.analysis.kernels import kernels
from hlofuse.compilation import Compilation
from hlofuse.format import plural, shorten
from hlofuse.ir import Computation, HlofuseError, Instruction, Module, numbered, replace
from .build import Builder, kernel_numbers
from .labels import lookup, part_number, role
from .plan import convex, has_box, plan, thin
from .scene import VIEWS, ModulePair, Options, Panel, Scene, pair_of


def compose(drawn: Module | Compilation | ModulePair, view: str | None, options: Options) -> Scene:
    """The scene for `drawn`; a bare module is drawn as it is, a pair side by side."""
    if view is not None and view not in VIEWS:
        raise HlofuseError(f"no view is called {view!r}; there are {', '.join(VIEWS)}")
    if isinstance(drawn, ModulePair):
        if view in (None, "both"):
            scene = _both(drawn, options)
            scene.lines[:0] = [drawn.title] if drawn.title else []
            return scene
        module = drawn.before if view == "before" else drawn.after
        builder = _numbered(module, notes=drawn.notes, final_names=options.final_names)
        return _one(builder, side_options(options, drawn, module), f"{view}: {_totals(module)}")
    names, times = options.final_names, options.times
    if isinstance(drawn, Module):
        if view in ("after", "both"):
            raise HlofuseError(f"view {view!r} needs a replay of the module")
        builder = _numbered(drawn, final_names=names, times=times)
        return _one(builder, options, f"as it is: {_totals(drawn)}")
    pair = pair_of(drawn)
    if view == "both":
        return _both(pair, options)
    if view == "before":
        builder = _numbered(pair.before, final_names=names)
        return _one(builder, options, f"before {pair.title}: {_totals(pair.before)}")
    builder = _numbered(pair.after, final_names=names, times=times)
    return _one(builder, side_options(options, pair, pair.after), _change(pair))


def _numbered(module: Module, prefix: str = "n", **more: Any) -> Builder:
    return Builder(module, prefix, kernel_numbers(module), **more)


def _one(builder: Builder, options: Options, line: str) -> Scene:
    scene = Scene(shorten(builder.module.name, 70), [line], legend=options.legend)
    decided = plan(builder.module, options)
    scene.panels = [builder.panel(p, _panel_title(p.computation)) for p in decided.panels]
    scene.notices = decided.notices
    _arrange(scene, math.ceil(math.sqrt(len(scene.panels))))
    return scene


def _both(pair: ModulePair, options: Options) -> Scene:
    sides = []
    scene = Scene(shorten(pair.after.name, 70), [_change(pair)], legend=options.legend)
    names, times = options.final_names, options.times
    after = _numbered(pair.after, "a", notes=pair.notes, final_names=names, times=times)
    for side, builder in (("before", _before_builder(pair, options)), ("after", after)):
        decided = plan(builder.module, side_options(options, pair, builder.module))
        panels = {
            p.computation.name: builder.panel(p, f"{side}: {_panel_title(p.computation)}")
            for p in decided.panels
        }
        sides.append(panels)
        scene.notices += [f"{side}, {n}" for n in decided.notices]
    scene.panels = [side.pop(next(iter(side))) for side in sides]
    for name in dict.fromkeys(name for side in sides for name in side):
        for word, panels in zip(("before", "after"), sides, strict=True):
            # Each loop body is next to its counterpart, though one side may have had no room for it.
            scene.panels.append(panels.get(name) or Panel(f"{word}{len(scene.panels)}", word))
    _arrange(scene, 2)
    return scene


def _before_builder(pair: ModulePair, options: Options) -> Builder:
    """Draws the module before: instructions with the kernels they are in after, in frames of these."""
    numbers, final_names = kernel_numbers(pair.after), options.final_names
    titles = {number: final_names.get(kernel.name, kernel.name) for kernel, number in numbers.items()}
    future = {}
    for i, computed_in in pair.kernels.items():
        found = dict.fromkeys(numbers[k] for k in computed_in if k in numbers)
        in_kernels = sorted(found, key=lambda number: int(number[1:]))
        if in_kernels:
            more = f" +{len(in_kernels) - 3}" if len(in_kernels) > 3 else ""
            future[i] = " ".join(in_kernels[:3]) + more
    return Builder(pair.before, "b", future, _groups(pair.before, future), titles, pair.notes)


def _groups(module: Module, future: Mapping[Instruction, str]) -> dict[Instruction, str]:
    """The instructions grouped by future kernel, as far as a frame can surround them."""
    groups = {}
    for computation in module.computations:
        if computation.fusion is not None:
            continue
        order = computation.post_order()
        index = numbered(order)
        operands = [[index[o] for o in i.operands if o in index] for i in order]
        label = {
            n: future[i]
            if i in future and " " not in future[i] and i.opcode not in ("constant", "parameter", "fusion")
            else n
            for n, i in enumerate(order)
        }
        split = convex(range(len(order)), operands, label)
        sizes = Counter(split.values())
        for n, i in enumerate(order):
            # A kernel whose ops cannot stand in one frame keeps its number on each of them.
            if split[n] == label[n] and sizes[split[n]] > 1 and isinstance(label[n], str):
                groups[i] = str(label[n])
    return groups


def _arrange(scene: Scene, columns: int) -> None:
    left_out = sum(thin(panel) for panel in scene.panels)
    if left_out:
        scene.lines.append(f"{plural(left_out, 'arrow')} implied by others left out, named in the boxes")
    scene.columns = columns


def _panel_title(computation: Computation) -> str:
    name = shorten(computation.name, 50)
    if computation.is_entry:
        return f"entry {name}"
    caller = computation.first_caller
    if caller is None:
        return name
    attribute = next((a for a, c in caller.called if c is computation), "")
    return f"{name}, {role(attribute)} of {shorten(caller.name, 40)}"


def _totals(module: Module) -> str:
    t = Account(module).totals
    return f"{plural(t.kernels, 'kernel')}, {t.moved_text} moved"


def _change(pair: ModulePair) -> str:
    before, after = pair.totals or (Account(pair.before).totals, Account(pair.after).totals)
    head = f"{pair.title}: " if pair.same_names else ""
    drawn = len(kernels(pair.after))
    note = f" ({drawn:,} drawn, as fusion leaves them)" if drawn != after.kernels else ""
    return (
        f"{head}{before.kernels:,} → {plural(after.kernels, 'kernel')}{note}, "
        f"{before.moved_text} → {after.moved_text} moved"
    )


def side_options(options: Options, pair: ModulePair, module: Module) -> Options:
    """`options` with names in `module`, one side of `pair`; `HlofuseError` for a name on neither."""
    return replace(
        options,
        focus=tuple(_counterpart(name, pair, module) for name in options.focus),
        open=_present_names(options.open, pair, module),
    )


def _present_names(names: tuple[str, ...], pair: ModulePair, module: Module) -> tuple[str, ...]:
    """The names in `module`; raises for a name that neither side has."""
    other = pair.before if module is pair.after else pair.after
    for name in names:
        if part_number(name) is None and not _has(module, name):
            lookup(other, name)
    return tuple(n for n in names if part_number(n) is not None or _has(module, n))


def _counterpart(name: str, pair: ModulePair, module: Module) -> str:
    """`name`, or the kernel that computes it after, or an instruction of that kernel before."""
    name = name.lstrip("%")
    if _has(module, name) and (pair.same_names or module is pair.before):
        return name
    if module is pair.after:
        if not _has(pair.before, name):
            lookup(module, name)
            return name
        found = pair.before.find(name)
        kernels = pair.kernels.get(found, ()) if found is not None else ()
        if kernels:
            return kernels[-1].name
        if _has(module, name):  # a computation, or what is no kernel: the name is all there is to go by
            return name
    else:
        found = pair.after.find(name)
        if found is None:
            lookup(pair.after, name)
        else:
            # Producers come first: the last is the one the others were fused into.
            original = _last_of(pair, found) or _last_of(pair, found.fusion_around)
            if original is not None:
                return original.name
    raise HlofuseError(f"{shorten(name, 80)} is on one side only: --view before or --view after shows it")


def _last_of(pair: ModulePair, kernel: Instruction | None) -> Instruction | None:
    members = [i for i, kernels in pair.kernels.items() if kernel in kernels and has_box(i)]
    launched = [i for i in members if i.fusion_around is None]
    return launched[-1] if launched else members[-1] if members else None


def _has(module: Module, name: str) -> bool:
    name = name.lstrip("%")
    return module.find(name) is not None or module.find_computation(name) is not None
