"""Makes boxes, frames and arrows from a plan: one panel for one computation, and the panels of a picture, of
the module as it is, after a replay, or both side by side."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from hlofuse.account import Account
from hlofuse.account.traffic import KernelCosts
from hlofuse.analysis.kernels import is_kernel, kernels, launched_computations
from hlofuse.compilation import Compilation
from hlofuse.format import bytes_text, plural, printable, ranges, shorten
from hlofuse.ir import Computation, HlofuseError, Instruction, Module, Strings, numbered, replace
from .dot import category
from .labels import (
    NAME_LIMIT,
    constant_text,
    cut,
    detail,
    leaf_bytes,
    lookup,
    op_count,
    part_number,
    role,
    shape_of,
    sources,
    summary,
    tooltip,
    traffic,
    value_title,
)
from .plan import PanelPlan, Part, boxed_neighbours, convex, has_box, plan, thin, units
from .scene import VIEWS, Arrow, Box, ModulePair, Options, Outline, Panel, Scene, pair_of

MANY_RESULTS = 24
CROWD = 6  # The limit of arrows from a parameter; with more readers it is written into their boxes


class Builder(Struct):
    """Makes the panels of one module; keys continue from `prefix`. `numbers` has an instruction's kernel;
    `future` groups those of one. `notes` label instructions; `final_names` come first, `times` by bytes."""

    module: Module
    prefix: str
    numbers: Mapping[Instruction, str]
    future: Mapping[Instruction, str] = {}
    titles: Mapping[str, str] = {}
    notes: Mapping[Instruction, str] = {}
    final_names: Mapping[str, str] = {}
    times: Mapping[str, str] = {}
    costs: KernelCosts = field(default_factory=KernelCosts)
    count: int = 0

    def names(self, i: Instruction, limit: int = NAME_LIMIT) -> list[str]:
        """The final name, then that at the end of fusion; one where the two are equal."""
        final = self.final_names.get(i.name)
        return [shorten(name, limit) for name in (final, i.name) if name is not None]

    def figures(self, kernel: Instruction) -> str:
        """Time, where it is known, and traffic."""
        return ", ".join(filter(None, (self.times.get(kernel.name), traffic(self.costs.instruction(kernel)))))

    def key(self) -> str:
        self.count += 1
        return f"{self.prefix}{self.count}"

    def panel(self, plan: PanelPlan, title: str) -> Panel:
        return _PanelBuilder(self, plan, Panel(self.key(), title)).build()


def kernel_numbers(module: Module) -> dict[Instruction, str]:
    """`K1`, `K2`… operands first, so that the numbers grow from the top of the picture down."""
    launched = (i for c in launched_computations(module) for i in c.post_order() if is_kernel(i))
    return {k: f"K{n}" for n, k in enumerate(launched, 1)}


class _PanelBuilder(Struct):
    context: Builder
    plan: PanelPlan
    panel: Panel
    box: dict[Instruction, Box] = {}
    outline: dict[Instruction, Outline] = {}
    written: dict[Instruction, str] = {}  # Values without a box: their text in the boxes of their users
    computation_of: dict[str, str] = {}
    arrows: dict[tuple[str, str, bool], Arrow] = {}

    def build(self) -> Panel:
        plan, computation = self.plan, self.plan.computation
        collapsed = {i: p for p in plan.parts for i in p.instructions}
        shown = [u for u in units(computation) if plan.shown is None or u in plan.shown]
        overview = bool(plan.parts)
        for i in self.plan.computation:
            if i.is_constant and (overview or i.shape.is_effective_scalar) and not i.is_root:
                self.written[i] = constant_text(i)
            elif not i.is_parameter or i.is_root or i.is_tuple or i in plan.marked:
                continue
            elif overview or i.user_count > CROWD:
                self.written[i] = shorten(value_title(i), 16)
        for i in self.plan.computation:
            if i.user_count > 2 and self._spreads_constant(i):
                self.written[i] = self.written[i.operand]
        part_boxes = {}
        for unit in shown:
            if unit in self.written:
                continue
            part = collapsed.get(unit)
            if part is not None:
                if part.number not in part_boxes:
                    part_boxes[part.number] = self._part(part)
                    self.panel.boxes.append(part_boxes[part.number])
                self.box[unit] = part_boxes[part.number]
            elif unit in plan.open:
                self._add_outline(unit)
            else:
                self._place(unit, self._box(unit))
        if plan.shown is None:
            self._elements_of_parameters()
        self.add_arrows()
        if plan.shown is not None:
            self.stubs(shown)
        self._results(computation.root)
        self.panel.arrows = list(self.arrows.values())
        return self.panel

    def _place(self, unit: Instruction, box: Box) -> None:
        self.box[unit] = box
        kernel = self.context.future.get(unit)
        # Frames are convex among instructions; among collapsed parts they need not be.
        if kernel is None or self.plan.parts:
            self.panel.boxes.append(box)
            return
        outline = next((f for f in self.panel.outlines if f.kernels == kernel and not f.style), None)
        if outline is None:
            title = self.context.titles.get(kernel, "")
            outline = Outline(self.context.key(), "", shorten(title, 40), kernels=kernel)
            outline.tooltip = [f"becomes kernel {kernel}: {cut(title, 200)}"]
            self.panel.outlines.append(outline)
        box.kernels = ""
        outline.boxes.append(box)

    def _box(self, i: Instruction, inner: bool = False) -> Box:
        style = category(i.opcode)
        box = Box(self.context.key(), style, i.opcode, marked=i in self.plan.marked)
        box.tooltip = tooltip(self.context.module, i, None if inner else self.context.costs)
        if not inner:
            box.kernels = self.context.numbers.get(i, "")
        if i.opcode in ("parameter", "constant"):
            box.title, box.lines = value_title(i), [shape_of(i)]
        elif i.is_fusion:
            (box.title, *box.lines), box.aside = self.context.names(i), detail(i)
            ops = list(i.fused_computation)
            box.lines.append(f"{plural(op_count(ops), 'op')}: {summary(ops)}")
            box.lines.append(self.context.figures(i))
        else:
            box.aside = " ".join(filter(None, (detail(i), self._arguments(i))))
            box.lines = [*self.context.names(i), shape_of(i)]
            if not inner and i.name in self.context.times:
                box.lines.append(self.context.figures(i))
            if style == "control" and i.called:
                box.lines += [f"{role(a)} {shorten(c.name, 24)}" for a, c in i.called[:2]]
        box.note = self.context.notes.get(i, "")
        box.name = i.name
        return box

    def _arguments(self, i: Instruction) -> str:
        """The positions of constants among the operands: `(·, 0.9)`."""
        texts = [self._stand_in(o) for o in i.operands]
        if i.opcode in ("reduce", "reduce-window") or not any(texts) or len(texts) > 5:
            return ""
        return "(" + ", ".join(t or "·" for t in texts) + ")"

    def _stand_in(self, operand: Instruction) -> str:
        if operand in self.written:
            return self.written[operand]
        if operand.is_parameter:
            origin = [leaf for leaf, _ in sources(operand, self.plan.open, self.box)]
            if len(origin) == 1 and origin[0] is not operand:
                return self.written.get(origin[0], "")
        return ""

    def _add_outline(self, fusion: Instruction) -> None:
        title, *names = self.context.names(fusion, 40)
        outline = Outline(
            self.context.key(),
            fusion.fusion_kind or "",
            title,
            detail(fusion),
            [*names, self.context.figures(fusion)],
            tooltip(self.context.module, fusion, self.context.costs),
            self.context.numbers.get(fusion, ""),
            marked=fusion in self.plan.marked,
            note=self.context.notes.get(fusion, ""),
        )
        body = fusion.fused_computation
        # A constant spread out inside a kernel costs nothing: it reads as the number it is.
        for i in body.post_order():
            if i.is_constant and i.shape.is_effective_scalar and not i.is_root:
                self.written[i] = constant_text(i)
            elif self._spreads_constant(i):
                self.written[i] = self.written[i.operand]
        for i in body.post_order():
            if i.opcode in ("parameter", "get-tuple-element") or i in self.written:
                continue
            if i.opcode == "tuple" and (i.is_root or i.users):
                continue
            self.box[i] = self._box(i, inner=True)
            outline.boxes.append(self.box[i])
            self.computation_of[self.box[i].key] = outline.key
        if outline.boxes:
            self.panel.outlines.append(outline)
            self.outline[fusion] = outline
        else:  # it hands its operands on: a frame around nothing would not be drawn
            self._place(fusion, self._box(fusion))

    def _spreads_constant(self, i: Instruction) -> bool:
        if not i.is_broadcast or i.is_root or not i.users or i in self.plan.marked:
            return False
        return i.operand in self.written

    def _part(self, part: Part) -> Box:
        ops = [o for i in part.instructions for o in (i.fused_computation if i.is_fusion else (i,))]
        launched = [i for i in part.instructions if is_kernel(i)]
        box = Box(self.context.key(), "part", f"part {part.number}")
        if part.scope:
            scope = "/".join(printable(part.scope).split("/")[1:])  # the first is the program's
            box.aside = scope if len(scope) <= 36 else "…" + scope[-35:]
        box.lines = [f"{plural(op_count(ops), 'op')} in {plural(len(launched), 'kernel')}"]
        box.lines.append(summary(ops))
        # Of the side before, several may become one kernel, and one may go into several.
        kernels = {n[1:] for i in launched for n in self.context.numbers.get(i, "").split()}
        numbers = [n for n in kernels if n.isdigit()]
        if numbers:
            box.kernels = shorten("K" + ranges(sorted(map(int, numbers))), 20)
        moved = sum(self.context.costs.instruction(i).bytes_accessed for i in launched)
        box.lines.append(f"{bytes_text(moved)} moved")
        box.tooltip = [f"{box.title}: {cut(part.scope, 300)}", f"open it with --open part{part.number}"]
        box.tooltip += [shorten(i.name, 60) for i in part.instructions[:12]]
        if len(part.instructions) > 12:
            box.tooltip.append(f"… {len(part.instructions) - 12:,} more")
        return box

    def _elements_of_parameters(self) -> None:
        """A box for each used element of a loop body's tuple, like a parameter."""
        if self.plan.parts:
            return
        for i in self.plan.computation:
            if i.is_get_tuple_element and i.operand.is_parameter and not i.is_root:
                parameter = i.operand
                box = Box(self.context.key(), "value", f"{value_title(parameter)}[{i.tuple_index}]")
                box.lines = [shape_of(i)]
                box.tooltip = tooltip(self.context.module, i)
                self.box[i] = box
                self.panel.boxes.append(box)
                whole = self.box.get(parameter)
                if whole is not None and all(u.is_get_tuple_element for u in parameter.users):
                    self.box.pop(parameter)
                    self.panel.boxes.remove(whole)

    def _results(self, root: Instruction) -> None:
        """A box for each value returned, near its instruction; a single one for many."""
        if root.opcode != "tuple" or not 0 < root.operand_count <= MANY_RESULTS or self.plan.parts:
            returned = [("result" if root.opcode != "tuple" else "results", root)]
        else:
            returned = [(f"result[{n}]", o) for n, o in enumerate(root.operands)]
        for title, value in returned:
            scopes = [leaf for leaf in sources(value, self.outline, self.box) if leaf[0] in self.box]
            if not scopes:
                continue
            box = Box(self.context.key(), "value", title, lines=[shape_of(value)])
            box.tooltip = [f"{title} of {printable(self.plan.computation.name)}"]
            self.panel.boxes.append(box)
            self.add_arrows_into(box, value)

    def add_arrows(self) -> None:
        for i, box in list(self.box.items()):
            if i.is_get_tuple_element:
                continue
            for operand in i.operands:
                self.add_arrows_into(box, operand, self.computation_of.get(box.key))
            for before in i.control_predecessors:
                source_box = self.box.get(before)
                if source_box is not None and source_box is not box:
                    key = (source_box.key, box.key, True)
                    self.arrows[key] = Arrow(source_box.key, box.key, control=True, tooltip=["runs before"])

    def add_arrows_into(self, head: Box, value: Instruction, outline: str | None = None) -> None:
        """Add the arrows from the sources of `value`; `outline` is that of `head`."""
        for leaf in sources(value, self.outline, self.box):
            origin = leaf[0]
            source_box = self.box.get(origin)
            if source_box is None or source_box is head or origin in self.written:
                continue
            inside = outline is not None and self.computation_of.get(source_box.key) == outline
            size = leaf_bytes(leaf)
            text = f"{shorten(origin.name, 60)}{''.join(f'#{n}' for n in leaf[1])}: {bytes_text(size)}"
            key = (source_box.key, head.key, False)
            arrow = self.arrows.get(key)
            if arrow is None:
                self.arrows[key] = Arrow(*key[:2], size, inside=inside, tooltip=[text])
            elif text not in arrow.tooltip:
                arrow.values += 1
                arrow.bytes += size
                arrow.tooltip.append(text)

    def stubs(self, units: Sequence[Instruction]) -> None:
        """Mark boxes at the edge of the neighbourhood with hidden neighbours."""
        shown = set(units)
        for unit in units:
            anchor, outline = self.box.get(unit), self.outline.get(unit)
            boxes = [anchor] if anchor is not None else outline.boxes if outline is not None else []
            if not boxes:
                continue
            more = [
                leaf[0]
                for o in unit.operands
                for leaf in sources(o, self.outline, shown)
                if leaf[0] not in shown and leaf[0] not in self.written and leaf[0] not in self.box
            ]
            if more:
                self._stub(list(dict.fromkeys(more)), boxes[0], "operand")
            users = [u for u in boxed_neighbours(unit.users, up=False) if u not in shown]
            if users and unit.opcode not in ("parameter", "constant"):
                self._stub(users, boxes[-1], "user")

    def _stub(self, what: list[Instruction], anchor: Box, noun: str) -> None:
        stub = Box(self.context.key(), "stub", f"+ {plural(len(what), noun)}")
        stub.tooltip = [shorten(i.name, 60) for i in what[:12]]
        self.panel.boxes.append(stub)
        source_box, head = (stub, anchor) if noun == "operand" else (anchor, stub)
        self.arrows[source_box.key, head.key, False] = Arrow(source_box.key, head.key, values=0)


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


def _present_names(names: Strings, pair: ModulePair, module: Module) -> Strings:
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
