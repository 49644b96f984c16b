"""What is drawn open, what closed: decided before any box is made, so that the picture stays small."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hlofuse.analysis.kernels import launched_computations
from hlofuse.format.escape import shorten
from hlofuse.format.units import plural
from hlofuse.ir import Computation, HlofuseError, Instruction, Module
from hlofuse.render.names import lookup, part_number
from hlofuse.render.options import HARD_LIMIT, Options
from hlofuse.render.planning.boxed import drawn, has_box, inner_boxes, units
from hlofuse.render.planning.neighbourhood import neighbourhood
from hlofuse.render.planning.panel_plan import PanelPlan, Plan, that_fit
from hlofuse.render.planning.parts import Part, divide


def plan(module: Module, options: Options) -> Plan:
    """Decide for a whole module, within `options.max_nodes` boxes unless told to open more."""
    wanted, parts_wanted = _asked(module, options.open)
    closed, _ = _asked(module, options.collapse)
    result = Plan()
    if options.focus is not None:
        found = lookup(module, options.focus)
        if isinstance(found, Instruction):
            result.panels = [neighbourhood(found, options, wanted, closed, result.notices)]
            return result
        if found.fusion is not None and inner_boxes(found.fusion) <= options.max_nodes:
            result.panels = [neighbourhood(found.fusion, options, wanted, closed, result.notices)]
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
        panel.open = that_fit(
            [f for f in fusions if f in wanted], HARD_LIMIT - len(everything), result.notices
        )
        count = len(fusions) - len(panel.open)
        if count:
            ways = ["--open FUSION", "--focus NAME"] + ["a greater --max-nodes"] * (room < HARD_LIMIT)
            result.notices.append(
                f"{_where(computation)}: {plural(count, 'fusion')} drawn closed to stay within "
                f"{plural(room, 'box', 'boxes')}: {' or '.join([', '.join(ways[:-1]), ways[-1]])}"
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
    panel.open = that_fit(asked, HARD_LIMIT - len(parts) - len(opened), result.notices)
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


def _waits_for(i: Instruction) -> list[Instruction]:
    return drawn((*i.operands, *i.control_predecessors), up=True)


def _where(computation: Computation) -> str:
    return "entry" if computation.is_entry else shorten(computation.name, 40)
