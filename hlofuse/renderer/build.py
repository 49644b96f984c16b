"""From a plan to boxes, frames and arrows: one panel for one computation."""

from __future__ import annotations

from collections.abc import Mapping

from hlofuse.analysis.cost import CostAnalysis
from hlofuse.analysis.kernels import is_kernel, launched_computations
from hlofuse.ir import Instruction, Module
from hlofuse.present.escape import printable, shorten
from hlofuse.present.units import bytes_text, plural, ranges
from hlofuse.renderer import labels
from hlofuse.renderer.boxed import units
from hlofuse.renderer.palette import category
from hlofuse.renderer.panel_plan import PanelPlan
from hlofuse.renderer.parts import Part
from hlofuse.renderer.scene import Arrow, Box, Frame, Panel
from hlofuse.renderer.text import cut
from hlofuse.renderer.values import leaf_bytes, sources

MANY_RESULTS = 24

CROWD = 6
"""A parameter with more readers than this is written into their boxes: its arrows would cover all."""


class Builder:
    """Makes the panels of one module; keys go on counting from `prefix`."""

    def __init__(
        self,
        module: Module,
        prefix: str = "n",
        numbers: Mapping[Instruction, str] | None = None,
        future: Mapping[Instruction, str] | None = None,
        titles: Mapping[str, str] | None = None,
        notes: Mapping[Instruction, str] | None = None,
    ) -> None:
        """`numbers` says what kernel an instruction is, or is to be; `future` groups those of one kernel.

        `notes` are words that single an instruction out.
        """
        self.module = module
        self.costs = CostAnalysis()
        self.numbers = kernel_numbers(module) if numbers is None else numbers
        self.future = future or {}
        self.titles = titles or {}
        self.notes = notes or {}
        self._prefix = prefix
        self._count = 0

    def key(self) -> str:
        self._count += 1
        return f"{self._prefix}{self._count}"

    def panel(self, plan: PanelPlan, title: str) -> Panel:
        return _PanelBuilder(self, plan, title).build()


def kernel_numbers(module: Module) -> dict[Instruction, str]:
    """`K1`, `K2`… operands first, so that the numbers grow from the top of the picture down."""
    launched = (i for c in launched_computations(module) for i in c.post_order() if is_kernel(i))
    return {k: f"K{n}" for n, k in enumerate(launched, 1)}


class _PanelBuilder:
    def __init__(self, context: Builder, plan: PanelPlan, title: str) -> None:
        self.context = context
        self.plan = plan
        self.panel = Panel(context.key(), title)
        self.box: dict[Instruction, Box] = {}
        self.frame: dict[Instruction, Frame] = {}
        self.written: dict[Instruction, str] = {}
        """Values without a box: what stands for them in the boxes that use them."""
        self.arrows: dict[tuple[str, str, bool], Arrow] = {}
        self.home: dict[str, str] = {}
        """The frame of each framed box."""
        self.parts_beside: dict[tuple[str, bool], Box] = {}

    def build(self) -> Panel:
        plan, computation = self.plan, self.plan.computation
        collapsed = {i: p for p in plan.parts for i in p.instructions}
        self.shown = [u for u in units(computation) if plan.shown is None or u in plan.shown]
        self._write_values(bool(plan.parts))
        part_boxes: dict[int, Box] = {}
        for unit in self.shown:
            if unit in self.written:
                continue
            part = collapsed.get(unit)
            if part is not None:
                if part.number not in part_boxes:
                    part_boxes[part.number] = self._part(part)
                    self.panel.boxes.append(part_boxes[part.number])
                self.box[unit] = part_boxes[part.number]
            elif unit in plan.open:
                self._open(unit)
            else:
                self._place(unit, self._box(unit))
        if plan.shown is None:
            self._elements_of_parameters()
        self._connect()
        if plan.shown is not None:
            self._stubs()
        self._results(computation.root)
        self.panel.arrows = list(self.arrows.values())
        return self.panel

    # ------------------------------------------------------------ boxes

    def _write_values(self, overview: bool) -> None:
        """Scalars, and parameters that everybody reads, are written where they are used."""
        for i in self.plan.computation:
            if i.opcode == "constant" and (overview or i.shape.is_effective_scalar) and not i.is_root:
                self.written[i] = labels.constant_text(i)
            elif (overview or len(i.users) > CROWD) and self._may_be_written(i):
                self.written[i] = shorten(labels.value_title(i), 16)
        for i in self.plan.computation:
            if len(i.users) > 2 and self._spreads_constant(i):
                self.written[i] = self.written[i.operands[0]]

    def _may_be_written(self, i: Instruction) -> bool:
        return i.opcode == "parameter" and not (i.is_root or i.shape.is_tuple or i in self.plan.marked)

    def _place(self, unit: Instruction, box: Box) -> None:
        self.box[unit] = box
        kernel = self.context.future.get(unit)
        # Frames are convex among instructions; among collapsed parts they need not be.
        if kernel is None or self.plan.parts:
            self.panel.boxes.append(box)
            return
        frame = next((f for f in self.panel.frames if f.kernels == kernel and not f.kind), None)
        if frame is None:
            title = self.context.titles.get(kernel, "")
            frame = Frame(self.context.key(), "", shorten(title, 40), kernels=kernel)
            frame.tooltip = [f"becomes kernel {kernel}: {cut(title, 200)}"]
            self.panel.frames.append(frame)
        box.kernels = ""
        frame.boxes.append(box)

    def _box(self, i: Instruction, inner: bool = False) -> Box:
        style = category(i.opcode)
        box = Box(self.context.key(), style, i.opcode, marked=i in self.plan.marked)
        box.tooltip = labels.tooltip(self.context.module, i, None if inner else self.context.costs)
        if not inner:
            box.kernels = self.context.numbers.get(i, "")
        if i.opcode in ("parameter", "constant"):
            box.title, box.lines = labels.value_title(i), [labels.shape_of(i)]
        elif i.opcode == "fusion":
            box.title, box.aside = labels.name_of(i), labels.detail(i)
            ops = list(i.fused_computation)
            box.lines = [f"{plural(labels.op_count(ops), 'op')}: {labels.summary(ops)}"]
            box.lines.append(labels.traffic(self.context.costs.instruction(i)))
        else:
            box.aside = " ".join(filter(None, (labels.detail(i), self._arguments(i))))
            box.lines = [labels.name_of(i), labels.shape_of(i)]
            if style == "control" and i.called:
                names = [f"{labels.role(a)} {shorten(c.name, 24)}" for a, c in i.called[:2]]
                box.lines += names
                box.opens = max((c for _, c in i.called), key=len).name
        box.note = self.context.notes.get(i, "")
        box.name = i.name
        return box

    def _arguments(self, i: Instruction) -> str:
        """Where the constants stand among the operands: `(·, 0.9)`."""
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

    def _open(self, fusion: Instruction) -> None:
        """A frame with the fused operations in it."""
        frame = Frame(
            self.context.key(),
            fusion.fusion_kind or "",
            labels.name_of(fusion, 40),
            labels.detail(fusion),
            [labels.traffic(self.context.costs.instruction(fusion))],
            labels.tooltip(self.context.module, fusion, self.context.costs),
            self.context.numbers.get(fusion, ""),
            marked=fusion in self.plan.marked,
            note=self.context.notes.get(fusion, ""),
        )
        body = fusion.fused_computation
        # A constant spread out inside a kernel costs nothing: it reads as the number it is.
        for i in body.post_order():
            if i.opcode == "constant" and i.shape.is_effective_scalar and not i.is_root:
                self.written[i] = labels.constant_text(i)
            elif self._spreads_constant(i):
                self.written[i] = self.written[i.operands[0]]
        for i in body.post_order():
            if i.opcode in ("parameter", "get-tuple-element") or i in self.written:
                continue
            if i.opcode == "tuple" and (i.is_root or i.users):
                continue
            self.box[i] = self._box(i, inner=True)
            frame.boxes.append(self.box[i])
            self.home[self.box[i].key] = frame.key
        if frame.boxes:
            self.panel.frames.append(frame)
            self.frame[fusion] = frame
        else:  # it hands its operands on: a frame around nothing would not be drawn
            self._place(fusion, self._box(fusion))

    def _spreads_constant(self, i: Instruction) -> bool:
        if i.opcode != "broadcast" or i.is_root or not i.users or i in self.plan.marked:
            return False
        return i.operands[0] in self.written

    def _part(self, part: Part) -> Box:
        ops = [o for i in part.instructions for o in (i.fused_computation if i.opcode == "fusion" else (i,))]
        launched = [i for i in part.instructions if is_kernel(i)]
        box = Box(self.context.key(), "part", f"part {part.label}", opens=f"part{part.label}")
        if part.scope:
            box.aside = _scope_tail(part.scope)
        box.lines = [f"{plural(labels.op_count(ops), 'op')} in {plural(len(launched), 'kernel')}"]
        box.lines.append(labels.summary(ops))
        # Of the side before, several may become one kernel, and one may go into several.
        kernels = {n[1:] for i in launched for n in self.context.numbers.get(i, "").split()}
        numbers = [n for n in kernels if n.isdigit()]
        if numbers:
            box.kernels = shorten("K" + ranges(sorted(map(int, numbers))), 20)
        moved = sum(self.context.costs.instruction(i).bytes_accessed for i in launched)
        box.lines.append(f"{bytes_text(moved)} moved")
        box.tooltip = [f"part {part.label}: {cut(part.scope, 300)}"]
        if not part.within:
            box.tooltip.append(f"open it with --open part{part.number}")
        box.tooltip += [labels.name_of(i, 60) for i in part.instructions[:12]]
        if len(part.instructions) > 12:
            box.tooltip.append(f"… {len(part.instructions) - 12:,} more")
        return box

    def _elements_of_parameters(self) -> None:
        """A loop body takes one tuple apart: each element used is a parameter to the reader."""
        if self.plan.parts:
            return
        for i in self.plan.computation:
            if i.opcode == "get-tuple-element" and i.operands[0].opcode == "parameter" and not i.is_root:
                parameter = i.operands[0]
                box = Box(self.context.key(), "value", f"{labels.value_title(parameter)}[{i.tuple_index}]")
                box.lines = [labels.shape_of(i)]
                box.tooltip = labels.tooltip(self.context.module, i)
                self.box[i] = box
                self.panel.boxes.append(box)
                whole = self.box.get(parameter)
                if whole is not None and all(u.opcode == "get-tuple-element" for u in parameter.users):
                    self.box.pop(parameter)
                    self.panel.boxes.remove(whole)

    def _results(self, root: Instruction) -> None:
        """A box for each value returned, near what computes it; a single one where they are many."""
        if root.opcode != "tuple" or not 0 < len(root.operands) <= MANY_RESULTS or self.plan.parts:
            returned = [("result" if root.opcode != "tuple" else "results", root)]
        else:
            returned = [(f"result[{n}]", o) for n, o in enumerate(root.operands)]
        for title, value in returned:
            tails = [leaf for leaf in sources(value, self.frame, self.box) if leaf[0] in self.box]
            if not tails:
                continue
            box = Box(self.context.key(), "value", title, lines=[labels.shape_of(value)])
            box.tooltip = [f"{title} of {printable(self.plan.computation.name)}"]
            self.panel.boxes.append(box)
            self._arrows_from(value, box, None)

    # ------------------------------------------------------------ arrows

    def _connect(self) -> None:
        for i, box in list(self.box.items()):
            if i.opcode == "get-tuple-element":
                continue
            inner = box.key in self.home
            for operand in i.operands:
                self._arrows_from(operand, box, self.home[box.key] if inner else None)
            for before in i.control_predecessors:
                tail = self.box.get(before)
                if tail is not None and tail is not box:
                    key = (tail.key, box.key, True)
                    self.arrows[key] = Arrow(tail.key, box.key, control=True, tooltip=["runs before"])

    def _arrows_from(self, value: Instruction, head: Box, frame: str | None) -> None:
        for leaf in sources(value, self.frame, self.box):
            origin = leaf[0]
            tail = self.box.get(origin)
            if tail is None or tail is head or origin in self.written:
                continue
            inside = frame is not None and self.home.get(tail.key) == frame
            size = leaf_bytes(leaf)
            said = f"{shorten(origin.name, 60)}{''.join(f'#{n}' for n in leaf[1])}: {bytes_text(size)}"
            arrow = self.arrows.get((tail.key, head.key, False))
            if arrow is None:
                self.arrows[tail.key, head.key, False] = Arrow(
                    tail.key, head.key, size, inside=inside, tooltip=[said]
                )
            elif said not in arrow.tooltip:
                arrow.values += 1
                arrow.bytes += size
                arrow.tooltip.append(said)

    def _stubs(self) -> None:
        """Say of what lies at the edge of the neighbourhood that it goes on."""
        shown = set(self.shown)
        for unit in self.shown:
            anchor = self.box.get(unit)
            frame = self.frame.get(unit)
            if anchor is None and frame is None:
                continue
            first = anchor or (frame.boxes[0] if frame else None)
            last = anchor or (frame.boxes[-1] if frame else None)
            assert first is not None
            assert last is not None
            more = [
                leaf[0]
                for o in unit.operands
                for leaf in sources(o, self.frame, shown)
                if leaf[0] not in shown and leaf[0] not in self.written and leaf[0] not in self.box
            ]
            if more:
                self._stub(list(dict.fromkeys(more)), first, "operand", up=True)
            users = [u for u in _behind(unit) if u not in shown]
            users = [u for u in users if u.opcode != "tuple" or not u.is_root]
            if users and unit.opcode not in ("parameter", "constant"):
                self._stub(users, last, "user", up=False)

    def _stub(self, what: list[Instruction], anchor: Box, noun: str, up: bool) -> None:
        if self.plan.elsewhere:
            self._stubs_of_parts(what, anchor, up)
            return
        stub = Box(self.context.key(), "stub", f"+ {plural(len(what), noun)}")
        stub.tooltip = [labels.name_of(i, 60) for i in what[:12]]
        self.panel.boxes.append(stub)
        tail, head = (stub, anchor) if up else (anchor, stub)
        self.arrows[tail.key, head.key, False] = Arrow(tail.key, head.key, values=0)

    def _stubs_of_parts(self, what: list[Instruction], anchor: Box, up: bool) -> None:
        """One for each part of the module that something comes from or goes to."""
        by_part: dict[str, list[Instruction]] = {}
        for i in what:
            by_part.setdefault(self.plan.elsewhere.get(i, ""), []).append(i)
        for part, members in by_part.items():
            stub = self.parts_beside.get((part, up))
            if stub is None:
                title = f"{'from' if up else 'to'} {part or 'elsewhere'}"
                stub = Box(self.context.key(), "stub", title, opens=part.replace(" ", ""))
                self.parts_beside[part, up] = stub
                self.panel.boxes.append(stub)
            names = [labels.name_of(i, 60) for i in members]
            stub.tooltip = list(dict.fromkeys([*stub.tooltip, *names]))[:12]
            tail, head = (stub, anchor) if up else (anchor, stub)
            self.arrows[tail.key, head.key, False] = Arrow(tail.key, head.key, values=0)


def _behind(unit: Instruction) -> list[Instruction]:
    """The users of a value, past the get-tuple-elements."""
    found: dict[Instruction, None] = {}
    stack = list(unit.users)[::-1]
    while stack:
        i = stack.pop()
        if i.opcode == "get-tuple-element":
            stack.extend(reversed(i.users))
        else:
            found[i] = None
    return list(found)


def _scope_tail(scope: str) -> str:
    """The end of a scope, where scopes differ."""
    text = "/".join(printable(scope).split("/")[1:])  # the first is the program's
    return text if len(text) <= 36 else "…" + text[-35:]
