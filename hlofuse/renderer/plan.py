"""What is drawn open, what closed: decided before any box is made, so that the picture stays small."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from hlofuse.analysis.kernels import launched_computations
from hlofuse.ir import Computation, HlofuseError, Instruction, Module
from hlofuse.present.escape import shorten
from hlofuse.present.units import plural
from hlofuse.renderer.names import lookup, part_number
from hlofuse.renderer.options import HARD_LIMIT, Options
from hlofuse.renderer.parts import Part, divide

# Bookkeeping that is drawn, if at all, as part of the arrows or of another box.
_THREADS = frozenset({"get-tuple-element", "constant", "tuple"})


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


def units(computation: Computation) -> list[Instruction]:
    """The instructions that get a box, or a share in one, operands first."""
    return [i for i in computation.post_order() if has_box(i)]


def has_box(i: Instruction) -> bool:
    """True for what is drawn as itself: not for what only threads values, nor for numbers."""
    if i.opcode == "constant":
        return i.is_root or not i.shape.is_effective_scalar
    return i.opcode not in _THREADS


def inner_boxes(fusion: Instruction) -> int:
    """How many boxes the inside of a fusion takes."""
    return sum(i.opcode not in ("parameter", "constant", "tuple") for i in fusion.fused_computation)


def plan(module: Module, options: Options) -> Plan:
    """Decide for a whole module, within `options.max_nodes` boxes unless told to open more."""
    wanted, parts_wanted = _asked(module, options.open)
    closed, _ = _asked(module, options.collapse)
    result = Plan()
    if options.focus is not None:
        found = lookup(module, options.focus)
        if isinstance(found, Instruction):
            result.panels = [_neighbourhood(found, options, wanted, closed, result.notices)]
            return result
        if found.fusion is not None and inner_boxes(found.fusion) <= options.max_nodes:
            result.panels = [_neighbourhood(found.fusion, options, wanted, closed, result.notices)]
            return result
        computations = [found]
    else:
        launched = launched_computations(module)
        computations = launched + [c for c in wanted if isinstance(c, Computation) and c not in launched]
    left = options.max_nodes
    hidden = []
    for number, computation in enumerate(computations):
        if number and computation not in wanted and (computation in closed or len(units(computation)) > left):
            hidden.append(computation)
            continue
        room = options.max_nodes if computation in wanted else max(left, 1)
        panel = _fit(computation, room, wanted, closed, parts_wanted if not number else set(), result)
        left -= _size(panel)
        result.panels.append(panel)
    result.hidden = hidden
    if hidden:
        names = ", ".join(shorten(c.name, 40) for c in hidden[:3]) + (", …" if len(hidden) > 3 else "")
        result.notices.append(
            f"{plural(len(hidden), 'called computation')} not drawn ({names}): --open NAME or --focus NAME"
        )
    return result


def _asked(module: Module, names: Iterable[str]) -> tuple[set[Instruction | Computation], set[int]]:
    """What a list of names means: fusions, computations, and numbers of parts."""
    things: set[Instruction | Computation] = set()
    numbers: set[int] = set()
    for name in names:
        number = part_number(name)
        if number is not None:
            numbers.add(number)
            continue
        found = lookup(module, name)
        if isinstance(found, Computation) and found.fusion is not None:
            found = found.fusion
        if isinstance(found, Instruction) and found.opcode != "fusion":
            if not found.called:
                raise HlofuseError(f"{shorten(name, 80)!r} calls no computation: nothing to open or collapse")
            things.update(found.called_computations)
        else:
            things.add(found)
    return things, numbers


def _fit(
    computation: Computation,
    room: int,
    wanted: set[Instruction | Computation],
    closed: set[Instruction | Computation],
    parts_wanted: set[int],
    result: Plan,
) -> PanelPlan:
    """Open every fusion if that fits; else none; else the computation in parts."""
    everything = units(computation)
    fusions = [i for i in everything if i.opcode == "fusion" and i not in closed]
    opened = sum(inner_boxes(f) - 1 for f in fusions)
    panel = PanelPlan(computation)
    if len(everything) + opened <= room:
        panel.open = set(fusions)
    elif len(everything) <= room:
        panel.open = _opened(
            [f for f in fusions if f in wanted], HARD_LIMIT - len(everything), result.notices
        )
        count = len(fusions) - len(panel.open)
        if count:
            result.notices.append(
                f"{_where(computation)}: {plural(count, 'fusion')} drawn closed to stay within "
                f"{plural(room, 'box', 'boxes')}: --open FUSION, --focus NAME or a greater --max-nodes"
            )
    else:
        _collapse(panel, everything, room, wanted, closed, parts_wanted, result)
    return panel


def _collapse(
    panel: PanelPlan,
    everything: list[Instruction],
    room: int,
    wanted: set[Instruction | Computation],
    closed: set[Instruction | Computation],
    parts_wanted: set[int],
    result: Plan,
) -> None:
    # Parameters would swamp the overview; what is read is said in the tooltips.
    work = [u for u in everything if u.opcode not in ("parameter", "constant")]
    parts = in_parts(work, room)
    if parts_wanted:
        missing = parts_wanted - {p.number for p in parts}
        if missing:
            raise HlofuseError(f"there is no part{min(missing)}: the overview has parts 1 to {len(parts)}")
    keep = []
    spare = HARD_LIMIT - len(parts)
    opened: list[Instruction] = []
    for part in parts:
        if len(part.instructions) == 1:
            continue
        if part.number in parts_wanted and len(part.instructions) <= spare:
            spare -= len(part.instructions)
            opened += part.instructions
            continue
        keep.append(part)
    panel.parts = keep
    inside = {i for p in keep for i in p.instructions}
    asked = [f for f in work if f in wanted and f not in inside]
    panel.open = _opened(asked, HARD_LIMIT - len(parts) - len(opened), result.notices)
    room -= len(parts) + len(opened)
    for fusion in opened:
        if fusion.opcode == "fusion" and fusion not in closed and inner_boxes(fusion) <= room:
            room -= inner_boxes(fusion)
            panel.open.add(fusion)
    by = "source scope and order of execution" if any(p.scope for p in parts) else "order of execution"
    result.notices.append(
        f"{_where(panel.computation)}: {plural(len(work), 'instruction')} collapsed into "
        f"{plural(len(keep), 'part')} by {by}: --open partN, --focus NAME --radius N"
    )


def in_parts(work: Sequence[Instruction], room: int) -> list[Part]:
    """`work` as an overview of at most `room` boxes has it."""
    # Boxes of parts are large and their arrows many: a quarter of the room makes them readable.
    return divide(work, max(1, min(room, max(12, room // 4))), _waits_for)


def part_panel(whole: PanelPlan, part: Part, options: Options) -> PanelPlan:
    """One part of an overview, with what it is tied to named by the parts that holds it."""
    where = {i: f"part {p.label}" for p in whole.parts for i in p.instructions}
    for value in whole.computation:
        if value not in where and has_box(value):
            where[value] = "parameters" if value.opcode == "parameter" else "constants"
    panel = PanelPlan(whole.computation, shown=set(part.instructions), elsewhere=where)
    if len(part.instructions) > options.max_nodes:
        panel.parts = in_parts(part.instructions, options.max_nodes)
        for inner in panel.parts:
            inner.within = part.label
        return panel
    room = options.max_nodes - len(part.instructions)
    for i in part.instructions:
        if i.opcode == "fusion" and (inside := inner_boxes(i)) <= room:
            room -= inside
            panel.open.add(i)
    return panel


def _size(panel: PanelPlan) -> int:
    return sum(inner_boxes(f) for f in panel.open) + (len(panel.parts) or len(units(panel.computation)))


def _neighbourhood(
    centre: Instruction,
    options: Options,
    wanted: set[Instruction | Computation],
    closed: set[Instruction | Computation],
    notices: list[str],
) -> PanelPlan:
    """What lies within `radius` arrows of `centre`, as far as there is room."""
    marked = {centre}
    computation = centre.computation
    assert computation is not None
    fusion = computation.fusion
    if fusion is not None and fusion.computation is not None and inner_boxes(fusion) <= options.max_nodes:
        centre, computation = fusion, fusion.computation
        marked.add(centre)
    shown = {centre: 0}
    queue = deque([centre])
    crowded = 0
    while queue:
        here = queue.popleft()
        if shown[here] == options.radius:
            continue
        # Everything meets in a parameter: its neighbours are nobody's.
        if here is not centre and here.opcode in ("parameter", "constant"):
            continue
        for there in (*_drawn(here.operands, up=True), *_drawn(here.users, up=False)):
            if there in shown:
                continue
            if len(shown) >= options.max_nodes:
                crowded += 1
                continue
            shown[there] = shown[here] + 1
            queue.append(there)
    if crowded:
        notices.append(
            f"only the nearest {plural(len(shown), 'instruction')} within radius {options.radius}: "
            "a smaller --radius or a greater --max-nodes"
        )
    panel = PanelPlan(computation, shown=set(shown), marked=frozenset(marked))
    room = options.max_nodes - len(shown)
    for near in shown:  # nearest first
        if near.opcode == "fusion" and near not in closed:
            inside = inner_boxes(near)
            if inside <= room or (near in marked and inside <= options.max_nodes):
                room -= inside
                panel.open.add(near)
    asked = [near for near in shown if near in wanted and near not in panel.open]
    panel.open |= _opened(asked, HARD_LIMIT - options.max_nodes, notices)
    return panel


def _opened(fusions: list[Instruction], room: int, notices: list[str]) -> set[Instruction]:
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


def _waits_for(i: Instruction) -> list[Instruction]:
    return _drawn((*i.operands, *i.control_predecessors), up=True)


def _drawn(neighbours: Iterable[Instruction], up: bool) -> list[Instruction]:
    """`neighbours`, with what has no box of its own replaced by what lies behind it."""
    found: dict[Instruction, None] = {}
    stack = list(neighbours)[::-1]
    while stack:
        i = stack.pop()
        if has_box(i):
            found[i] = None
        elif up and i.opcode == "get-tuple-element" and i.operands[0].opcode == "tuple":
            stack += i.operands[0].operands[i.tuple_index : i.tuple_index + 1]
        else:
            stack.extend(reversed(i.operands if up else i.users))
    return list(found)


def _where(computation: Computation) -> str:
    return "entry" if computation.is_entry else shorten(computation.name, 40)
