"""The arrows of a panel: from where a value is computed to who reads it, and stubs where the picture ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from hlofuse.format.escape import shorten
from hlofuse.format.units import bytes_text, plural
from hlofuse.ir import Instruction
from hlofuse.render.labels import leaf_bytes, name_of, sources
from hlofuse.render.planning.plan import PanelPlan
from hlofuse.render.scene import Arrow, Box, Frame, Panel


@dataclass(slots=True)
class Drawn:
    """One computation as far as it is drawn."""

    plan: PanelPlan
    panel: Panel
    key: Callable[[], str]
    """Another key for a box or a frame."""
    box: dict[Instruction, Box] = field(default_factory=dict)
    frame: dict[Instruction, Frame] = field(default_factory=dict)
    written: dict[Instruction, str] = field(default_factory=dict)
    """Values without a box: what stands for them in the boxes that use them."""
    home: dict[str, str] = field(default_factory=dict)
    """The frame of each framed box."""


class Arrows:
    """Draws them once all boxes are there."""

    def __init__(self, drawn: Drawn) -> None:
        self._drawn = drawn
        self._arrows: dict[tuple[str, str, bool], Arrow] = {}
        self._parts_beside: dict[tuple[str, bool], Box] = {}

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
                self.into(box, operand, self._drawn.home.get(box.key))
            for before in i.control_predecessors:
                tail = self._drawn.box.get(before)
                if tail is not None and tail is not box:
                    key = (tail.key, box.key, True)
                    self._arrows[key] = Arrow(tail.key, box.key, control=True, tooltip=["runs before"])

    def into(self, head: Box, value: Instruction, frame: str | None = None) -> None:
        """From all that `value` comes out of; `frame` is the one that `head` is in."""
        for leaf in sources(value, self._drawn.frame, self._drawn.box):
            origin = leaf[0]
            tail = self._drawn.box.get(origin)
            if tail is None or tail is head or origin in self._drawn.written:
                continue
            inside = frame is not None and self._drawn.home.get(tail.key) == frame
            size = leaf_bytes(leaf)
            said = f"{shorten(origin.name, 60)}{''.join(f'#{n}' for n in leaf[1])}: {bytes_text(size)}"
            arrow = self._arrows.get((tail.key, head.key, False))
            if arrow is None:
                self._arrows[tail.key, head.key, False] = Arrow(
                    tail.key, head.key, size, inside=inside, tooltip=[said]
                )
            elif said not in arrow.tooltip:
                arrow.values += 1
                arrow.bytes += size
                arrow.tooltip.append(said)

    def stubs(self, units: Sequence[Instruction]) -> None:
        """Say of what lies at the edge of the neighbourhood that it goes on."""
        shown = set(units)
        for unit in units:
            anchor = self._drawn.box.get(unit)
            frame = self._drawn.frame.get(unit)
            if anchor is None and frame is None:
                continue
            first = anchor or (frame.boxes[0] if frame else None)
            last = anchor or (frame.boxes[-1] if frame else None)
            assert first is not None
            assert last is not None
            more = [
                leaf[0]
                for o in unit.operands
                for leaf in sources(o, self._drawn.frame, shown)
                if leaf[0] not in shown
                and leaf[0] not in self._drawn.written
                and leaf[0] not in self._drawn.box
            ]
            if more:
                self._stub(list(dict.fromkeys(more)), first, "operand", up=True)
            users = [u for u in _behind(unit) if u not in shown]
            users = [u for u in users if u.opcode != "tuple" or not u.is_root]
            if users and unit.opcode not in ("parameter", "constant"):
                self._stub(users, last, "user", up=False)

    def _stub(self, what: list[Instruction], anchor: Box, noun: str, up: bool) -> None:
        if self._drawn.plan.elsewhere:
            self._stubs_of_parts(what, anchor, up)
            return
        stub = Box(self._drawn.key(), "stub", f"+ {plural(len(what), noun)}")
        stub.tooltip = [name_of(i, 60) for i in what[:12]]
        self._drawn.panel.boxes.append(stub)
        tail, head = (stub, anchor) if up else (anchor, stub)
        self._arrows[tail.key, head.key, False] = Arrow(tail.key, head.key, values=0)

    def _stubs_of_parts(self, what: list[Instruction], anchor: Box, up: bool) -> None:
        """One for each part of the module that something comes from or goes to."""
        by_part: dict[str, list[Instruction]] = {}
        for i in what:
            by_part.setdefault(self._drawn.plan.elsewhere.get(i, ""), []).append(i)
        for part, members in by_part.items():
            stub = self._parts_beside.get((part, up))
            if stub is None:
                title = f"{'from' if up else 'to'} {part or 'elsewhere'}"
                stub = Box(self._drawn.key(), "stub", title, opens=part.replace(" ", ""))
                self._parts_beside[part, up] = stub
                self._drawn.panel.boxes.append(stub)
            names = [name_of(i, 60) for i in members]
            stub.tooltip = list(dict.fromkeys([*stub.tooltip, *names]))[:12]
            tail, head = (stub, anchor) if up else (anchor, stub)
            self._arrows[tail.key, head.key, False] = Arrow(tail.key, head.key, values=0)


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
