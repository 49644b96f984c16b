"""The arrows of a panel: from where a value is computed to who reads it, and stubs where the picture ends."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from hlofuse.format.escape import shorten
from hlofuse.format.units import bytes_text, plural
from hlofuse.ir import Instruction
from hlofuse.render.labels import leaf_bytes, name_of, sources
from hlofuse.render.planning.plan import PanelPlan
from hlofuse.render.scene import Arrow, Box, Outline, Panel


@dataclass(slots=True)
class Drawn:
    """One computation as far as it is drawn."""

    plan: PanelPlan
    panel: Panel
    key: Callable[[], str]
    """Another key for a box or a frame."""
    box: dict[Instruction, Box] = field(default_factory=dict)
    outline: dict[Instruction, Outline] = field(default_factory=dict)
    written: dict[Instruction, str] = field(default_factory=dict)
    """Values without a box: what stands for them in the boxes that use them."""
    computation_of: dict[str, str] = field(default_factory=dict)
    """The frame of each framed box."""


class Arrows:
    """Draws them once all boxes are there."""

    def __init__(self, drawn: Drawn) -> None:
        self._drawn = drawn
        self._arrows: dict[tuple[str, str, bool], Arrow] = {}

    @property
    def found(self) -> list[Arrow]:
        """In the order in which they were drawn."""
        return list(self._arrows.values())

    def between_boxes(self) -> None:
        """All of them, also who runs before whom."""
        for i, box in list(self._drawn.box.items()):
            if i.opcode == "get-tuple-element":
                continue
            for operand in i.operands:
                self.into(box, operand, self._drawn.computation_of.get(box.key))
            for before in i.control_predecessors:
                source_box = self._drawn.box.get(before)
                if source_box is not None and source_box is not box:
                    key = (source_box.key, box.key, True)
                    self._arrows[key] = Arrow(source_box.key, box.key, control=True, tooltip=["runs before"])

    def into(self, head: Box, value: Instruction, outline: str | None = None) -> None:
        """From all that `value` comes out of; `outline` is the one that `head` is in."""
        for leaf in sources(value, self._drawn.outline, self._drawn.box):
            origin = leaf[0]
            source_box = self._drawn.box.get(origin)
            if source_box is None or source_box is head or origin in self._drawn.written:
                continue
            inside = outline is not None and self._drawn.computation_of.get(source_box.key) == outline
            size = leaf_bytes(leaf)
            text = f"{shorten(origin.name, 60)}{''.join(f'#{n}' for n in leaf[1])}: {bytes_text(size)}"
            arrow = self._arrows.get((source_box.key, head.key, False))
            if arrow is None:
                self._arrows[source_box.key, head.key, False] = Arrow(
                    source_box.key, head.key, size, inside=inside, tooltip=[text]
                )
            elif text not in arrow.tooltip:
                arrow.values += 1
                arrow.bytes += size
                arrow.tooltip.append(text)

    def stubs(self, units: Sequence[Instruction]) -> None:
        """Say of what lies at the edge of the neighbourhood that it goes on."""
        shown = set(units)
        for unit in units:
            anchor = self._drawn.box.get(unit)
            outline = self._drawn.outline.get(unit)
            if anchor is None and outline is None:
                continue
            first = anchor or (outline.boxes[0] if outline else None)
            last = anchor or (outline.boxes[-1] if outline else None)
            assert first is not None
            assert last is not None
            more = [
                leaf[0]
                for o in unit.operands
                for leaf in sources(o, self._drawn.outline, shown)
                if leaf[0] not in shown
                and leaf[0] not in self._drawn.written
                and leaf[0] not in self._drawn.box
            ]
            if more:
                self._stub(list(dict.fromkeys(more)), first, "operand", up=True)
            users = [u for u in _users_past_elements(unit) if u not in shown]
            users = [u for u in users if u.opcode != "tuple" or not u.is_root]
            if users and unit.opcode not in ("parameter", "constant"):
                self._stub(users, last, "user", up=False)

    def _stub(self, what: list[Instruction], anchor: Box, noun: str, up: bool) -> None:
        stub = Box(self._drawn.key(), "stub", f"+ {plural(len(what), noun)}")
        stub.tooltip = [name_of(i, 60) for i in what[:12]]
        self._drawn.panel.boxes.append(stub)
        source_box, head = (stub, anchor) if up else (anchor, stub)
        self._arrows[source_box.key, head.key, False] = Arrow(source_box.key, head.key, values=0)


def _users_past_elements(unit: Instruction) -> list[Instruction]:
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
