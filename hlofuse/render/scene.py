"""What is to be drawn, before anything is said about DOT: panels of boxes, frames and arrows."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Box:
    """One box: an instruction, a closed fusion, a collapsed part, a note about what lies outside."""

    key: str
    """Unique in the scene, harmless in any format: `n12`."""
    style: str
    """A key of `palette.STYLES`."""
    title: str
    """The opcode, in bold."""
    aside: str = ""
    """Follows the title in plain type."""
    lines: list[str] = field(default_factory=list)
    """Smaller, below the title."""
    tooltip: list[str] = field(default_factory=list)
    kernels: str = ""
    """Numbers of the kernels it is part of: `K3`."""
    marked: bool = False
    """What the picture was asked to focus on."""
    note: str = ""
    """A word that singles it out: `removed`."""
    name: str = ""
    """Of the instruction it is, whole; empty for what is none."""
    opens: str = ""
    """The part or computation it stands for, which may have a picture of its own."""


@dataclass(slots=True)
class Frame:
    """A fusion drawn open, or the ops that will become one kernel: boxes with a line around them."""

    key: str
    kind: str
    """kLoop, kInput…; empty for a kernel to be."""
    title: str
    aside: str = ""
    lines: list[str] = field(default_factory=list)
    tooltip: list[str] = field(default_factory=list)
    kernels: str = ""
    boxes: list[Box] = field(default_factory=list)
    marked: bool = False
    note: str = ""


@dataclass(slots=True)
class Arrow:
    """A value on its way from `tail` to `head` (keys of boxes)."""

    tail: str
    head: str
    bytes: int = 0
    values: int = 1
    inside: bool = False
    """Within one kernel: the value never reaches memory."""
    control: bool = False
    """An ordering, not a value."""
    tooltip: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Panel:
    """One computation of one module."""

    key: str
    title: str
    aside: str = ""
    boxes: list[Box] = field(default_factory=list)
    """Those outside every frame."""
    frames: list[Frame] = field(default_factory=list)
    arrows: list[Arrow] = field(default_factory=list)
    flat: bool = True
    """Boxes inside kernels have one line: right for a tall panel, wrong for a wide one."""

    def all_boxes(self) -> list[Box]:
        """Every box, framed or not."""
        return [*self.boxes, *(b for f in self.frames for b in f.boxes)]


@dataclass(slots=True)
class Scene:
    """A whole picture."""

    title: str
    lines: list[str] = field(default_factory=list)
    caption: list[str] = field(default_factory=list)
    """Lines of the caller's own, ahead of all others; the first stands out."""
    notices: list[str] = field(default_factory=list)
    """What is not shown in full, and how to see it."""
    panels: list[Panel] = field(default_factory=list)
    columns: int = 1
    """Panels to a row."""
    legend: bool = True

    def box_count(self) -> int:
        return sum(len(p.all_boxes()) for p in self.panels)
