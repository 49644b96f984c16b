"""What is drawn of one computation, and of one module."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hlofuse.format.escape import shorten
from hlofuse.format.units import plural
from hlofuse.ir import Computation, Instruction
from hlofuse.render.planning.boxed import inner_boxes
from hlofuse.render.planning.parts import Part


@dataclass(slots=True)
class PanelPlan:
    """One computation to draw, and how."""

    computation: Computation
    open: set[Instruction] = field(default_factory=set)
    """Fusions drawn with their inside."""
    parts: list[Part] = field(default_factory=list)
    """Instructions drawn as one box each list; empty where nothing is collapsed."""
    shown: set[Instruction] | None = None
    """Only these; None for all."""
    marked: frozenset[Instruction] = frozenset()
    elsewhere: Mapping[Instruction, str] = field(default_factory=dict)
    """Of what is not shown: the part it is in."""


@dataclass(slots=True)
class Plan:
    """The panels of one module, and what must be said about what they leave out."""

    panels: list[PanelPlan] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    hidden: list[Computation] = field(default_factory=list)
    """Computations that run and have no panel."""


def that_fit(fusions: list[Instruction], room: int, notices: list[str]) -> set[Instruction]:
    """Those of the fusions asked for that fit into a picture at all."""
    found = set()
    for fusion in fusions:
        inside = inner_boxes(fusion)
        if inside <= room:
            room -= inside
            found.add(fusion)
        else:
            name, body = shorten(fusion.name, 40), shorten(fusion.fused_computation.name, 40)
            notices.append(
                f"{name} is too big to open, {plural(inside, 'op')}: --focus {body} draws it alone"
            )
    return found
