"""Makes boxes, frames and arrows from a plan: one panel for one computation."""

from collections.abc import Mapping, Sequence

from msgspec import Struct, field

from hlofuse.account.traffic import KernelCosts
from hlofuse.analysis.kernels import is_kernel, launched_computations
from hlofuse.format import bytes_text, plural, printable, ranges, shorten
from hlofuse.ir import Instruction, Module
from .dot import category
from .labels import (
    NAME_LIMIT,
    constant_text,
    cut,
    detail,
    leaf_bytes,
    op_count,
    role,
    shape_of,
    sources,
    summary,
    tooltip,
    traffic,
    value_title,
)
from .plan import PanelPlan, Part, boxed_neighbours, units
from .scene import Arrow, Box, Outline, Panel

MANY_RESULTS = 24
CROWD = 6  # The limit of arrows from a parameter; with more readers it is written into their boxes


class Builder(Struct):
    """Makes the panels of one module; keys continue from `prefix`. `numbers` has the present or future kernel
    of an instruction; `future` groups those of one kernel. `notes` label single instructions; `final_names`
    come first, and `times` by the bytes."""

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
            if i.opcode == "constant" and (overview or i.shape.is_effective_scalar) and not i.is_root:
                self.written[i] = constant_text(i)
            elif (overview or len(i.users) > CROWD) and self._may_be_written(i):
                self.written[i] = shorten(value_title(i), 16)
        for i in self.plan.computation:
            if len(i.users) > 2 and self._spreads_constant(i):
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

    def _may_be_written(self, i: Instruction) -> bool:
        return i.opcode == "parameter" and not (i.is_root or i.shape.is_tuple or i in self.plan.marked)

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
        elif i.opcode == "fusion":
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
        if operand.opcode == "parameter":
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
            if i.opcode == "constant" and i.shape.is_effective_scalar and not i.is_root:
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
        if i.opcode != "broadcast" or i.is_root or not i.users or i in self.plan.marked:
            return False
        return i.operand in self.written

    def _part(self, part: Part) -> Box:
        ops = [o for i in part.instructions for o in (i.fused_computation if i.opcode == "fusion" else (i,))]
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
            if i.opcode == "get-tuple-element" and i.operand.opcode == "parameter" and not i.is_root:
                parameter = i.operand
                box = Box(self.context.key(), "value", f"{value_title(parameter)}[{i.tuple_index}]")
                box.lines = [shape_of(i)]
                box.tooltip = tooltip(self.context.module, i)
                self.box[i] = box
                self.panel.boxes.append(box)
                whole = self.box.get(parameter)
                if whole is not None and all(u.opcode == "get-tuple-element" for u in parameter.users):
                    self.box.pop(parameter)
                    self.panel.boxes.remove(whole)

    def _results(self, root: Instruction) -> None:
        """A box for each value returned, near its instruction; a single one for many."""
        if root.opcode != "tuple" or not 0 < len(root.operands) <= MANY_RESULTS or self.plan.parts:
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
            if i.opcode == "get-tuple-element":
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
