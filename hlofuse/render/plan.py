"""Plans open and closed fusions before any box, so that the picture stays small."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import reduce
from itertools import accumulate, takewhile
from operator import or_

from msgspec import Struct

from hlofuse.analysis.components import components
from hlofuse.analysis.kernels import launched_computations
from hlofuse.format import bytes_text, plural, shorten
from hlofuse.ir import (
    Computation,
    HlofuseError,
    Instruction,
    Instructions,
    InstructionSequence,
    Ints,
    Module,
    Strings,
    grouped,
    numbered,
    post_order,
    values,
)
from hlofuse.ir.errors import any_of
from .labels import lookup, part_number
from .scene import HARD_LIMIT, Arrow, Box, Options, Panel

# Bookkeeping that is drawn, if at all, as part of the arrows or of another box.
_THREADS = values("get-tuple-element constant tuple")


def units(computation: Computation) -> Instructions:
    """The instructions with a box, or a share in one, operands first."""
    return [i for i in computation.post_order() if has_box(i)]


def has_box(i: Instruction) -> bool:
    """True for instructions drawn as themselves: neither those that only pass values on, nor numbers."""
    if i.is_constant:
        return i.is_root or not i.shape.is_effective_scalar
    return i.opcode not in _THREADS


def inner_boxes(fusion: Instruction) -> int:
    return sum(i.opcode not in ("parameter", "constant", "tuple") for i in fusion.fused_computation)


def boxed_neighbours(neighbours: Iterable[Instruction], up: bool) -> Instructions:
    """`neighbours`, with those without a box replaced by their own neighbours."""
    found: dict[Instruction, None] = {}
    stack = list(neighbours)[::-1]
    while stack:
        i = stack.pop()
        if has_box(i):
            found[i] = None
        elif up and i.is_get_tuple_element and i.operand.opcode == "tuple":
            stack += i.operand.operands[i.tuple_index : i.tuple_index + 1]
        else:
            stack.extend(reversed(i.operands if up else i.users))
    return list(found)


def plan(module: Module, options: Options) -> Plan:
    """The plan of a whole module, within `options.max_nodes` boxes unless `options.open` names more."""
    wanted, parts_wanted = _look_up_names(module, options.open)
    result = Plan()
    if options.focus:
        centres, computations = [], list[Computation]()
        for found in (lookup(module, name) for name in options.focus):
            if isinstance(found, Instruction):
                centres.append(found)
            elif found.fusion is not None and inner_boxes(found.fusion) <= options.max_nodes:
                centres.append(found.fusion)
            else:
                computations.append(found)
        around: dict[Computation, dict[Instruction, None]] = {}
        marked = set(centres)
        for centre in centres:
            fusion = centre.fusion_around
            if fusion is not None and inner_boxes(fusion) <= options.max_nodes:
                centre = fusion
                marked.add(centre)
            around.setdefault(centre.parent, {})[centre] = None
        shared = marked, options, wanted, result.notices
        result.panels = [_neighbourhood(c, [*own], *shared) for c, own in around.items()]
    else:
        launched = launched_computations(module)
        computations = launched + [c for c in wanted if isinstance(c, Computation) and c not in launched]
    left = options.max_nodes
    hidden = []
    for number, computation in enumerate(computations):
        if number and computation not in wanted and len(units(computation)) > left:
            hidden.append(computation)
            continue
        room = options.max_nodes if computation in wanted else max(left, 1)
        panel = _fit(computation, room, wanted, parts_wanted if not number else set(), result)
        left -= sum(inner_boxes(f) for f in panel.open) + (len(panel.parts) or len(units(panel.computation)))
        result.panels.append(panel)
    if hidden:
        names = ", ".join(shorten(c.name, 40) for c in hidden[:3]) + (", …" if len(hidden) > 3 else "")
        result.notices.append(
            f"{plural(len(hidden), 'called computation')} not drawn ({names}): --open NAME or --focus NAME"
        )
    return result


def _look_up_names(module: Module, names: Iterable[str]) -> tuple[set[Instruction | Computation], set[int]]:
    """The fusions, computations, and numbers of parts in a list of names."""
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
        if isinstance(found, Instruction) and not found.is_fusion:
            if not found.called:
                raise HlofuseError(f"{shorten(name, 80)!r} calls no computation: nothing to open")
            things.update(found.called_computations)
        else:
            things.add(found)
    return things, numbers


def _fit(
    computation: Computation,
    room: int,
    wanted: set[Instruction | Computation],
    parts_wanted: set[int],
    result: Plan,
) -> PanelPlan:
    """Open every fusion if that fits; else none; else the computation in parts."""
    everything = units(computation)
    fusions = [i for i in everything if i.is_fusion]
    opened = sum(inner_boxes(f) - 1 for f in fusions)
    panel = PanelPlan(computation)
    if len(everything) + opened <= room:
        panel.open = set(fusions)
    elif len(everything) <= room:
        panel.open = fitting_fusions(
            [f for f in fusions if f in wanted], HARD_LIMIT - len(everything), result.notices
        )
        count = len(fusions) - len(panel.open)
        if count:
            suggestions = ["--open FUSION", "--focus NAME"] + ["a greater --max-nodes"] * (room < HARD_LIMIT)
            result.notices.append(
                f"{_where(computation)}: {plural(count, 'fusion')} collapsed "
                f"(limit {plural(room, 'box', 'boxes')}): "
                f"{any_of(suggestions)}"
            )
    else:
        _collapse(panel, everything, room, wanted, parts_wanted, result)
    return panel


def _collapse(
    panel: PanelPlan,
    everything: Instructions,
    room: int,
    wanted: set[Instruction | Computation],
    parts_wanted: set[int],
    result: Plan,
) -> None:
    # Parameters would swamp the overview; what is read is said in the tooltips.
    work = [u for u in everything if u.opcode not in ("parameter", "constant")]
    # Boxes of parts are large and their arrows many: a quarter of the room makes them readable.
    parts = divide(
        work,
        max(1, min(room, max(12, room // 4))),
        lambda i: boxed_neighbours(i.predecessors, up=True),
    )
    if parts_wanted:
        missing = parts_wanted - {p.number for p in parts}
        if missing:
            raise HlofuseError(f"there is no part{min(missing)}: the overview has parts 1 to {len(parts)}")
    keep = []
    spare = HARD_LIMIT - len(parts)
    opened = []
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
    requested = [f for f in work if f in wanted and f not in inside]
    panel.open = fitting_fusions(requested, HARD_LIMIT - len(parts) - len(opened), result.notices)
    room -= len(parts) + len(opened)
    for fusion in opened:
        if fusion.is_fusion and inner_boxes(fusion) <= room:
            room -= inner_boxes(fusion)
            panel.open.add(fusion)
    by = "source scope and order of execution" if any(p.scope for p in parts) else "order of execution"
    result.notices.append(
        f"{_where(panel.computation)}: {plural(len(work), 'instruction')} collapsed into "
        f"{plural(len(keep), 'part')} by {by}: --open partN, --focus NAME --radius N"
    )


def _where(computation: Computation) -> str:
    return "entry" if computation.is_entry else shorten(computation.name, 40)


# Every part is convex (`convex` below), so parts and what stays outside form a graph without cycles.

_DIGITS = re.compile(r"\d+")


class Part(Struct):
    number: int
    scope: str  # Their scope in the user's program; empty where the dump has none
    instructions: Instructions


def divide(
    units: InstructionSequence, wanted: int, users_of: Callable[[Instruction], Iterable[Instruction]]
) -> list[Part]:
    """`units` (operands first) in about `wanted` parts, in the order of their first instructions. `users_of`
    gives the units that wait for a unit, past instructions without a box."""
    index = numbered(units)
    operands = [[index[o] for o in users_of(u) if o in index] for u in units]
    scopes = _scopes(units, operands)
    order = range(len(units))
    groups = {}
    for depth in range(max(map(len, scopes), default=0), -1, -1):
        label = {n: scopes[n][:depth] for n in order}
        level = levels(order, operands, label)
        groups = grouped(((label[n], level[n]), n) for n in order)
        if len(groups) <= wanted:
            break
    largest = max(1, -(-len(units) // wanted))
    last = list(range(len(units)))
    for n, own in enumerate(operands):
        for o in own:
            last[o] = n
    change = [0] * (len(units) + 2)
    for n, end in enumerate(last):
        change[n + 1] += 1
        change[end + 1] -= 1
    cost = list(accumulate(change))[: len(units)]
    parts = []
    for members in groups.values():
        parts += _stretches(members, largest, cost)
    parts.sort(key=lambda p: p[0])
    return [
        Part(number, _scope_span([scopes[n] for n in part]), [units[n] for n in part])
        for number, part in enumerate(parts, 1)
    ]


def _stretches(members: list[int], largest: int, cost: Ints) -> list[list[int]]:
    """`members` cut, near every `largest`-th, where the fewest values cross."""
    parts = []
    start = 0
    while len(members) - start > largest + largest // 2:
        first, last = start + max(1, largest // 2), min(len(members) - 1, start + largest + largest // 2)
        cut = min(range(first, last + 1), key=lambda i: (cost[members[i]], abs(i - start - largest)))
        parts.append(members[start:cut])
        start = cut
    parts.append(members[start:])
    return parts


def _scopes(units: InstructionSequence, operands: Sequence[Ints]) -> list[Strings]:
    """Each unit's scope in the user's program, from `op_name` without the operation itself. A unit without
    one takes that of an operand, or else of a user: XLA created it for them."""
    found: list[Strings | None] = []
    for n, unit in enumerate(units):
        op_name = unit.op_name
        if op_name:
            found.append(tuple(op_name.split(";", 1)[0].split("/")[:-1]))
        else:
            found.append(next((s for o in operands[n] if (s := found[o]) is not None), None))
    for n in range(len(units) - 1, -1, -1):
        for o in operands[n]:
            if found[o] is None:
                found[o] = found[n]
    return [s or () for s in found]


def _scope_span(scopes: Sequence[Strings]) -> str:
    """The common scope, and the range of the rest: `fwd/layer_0 … layer_7`."""
    ends = zip(min(scopes), max(scopes), strict=False)
    n = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], ends))
    common = "/".join(scopes[0][:n])
    # A scope may be left in passing, for a single operation: ends that are deeper say where it was.
    level = [s[n] for s in scopes if len(s) > n] or [""]
    first, last = level[0], level[-1]
    if first != last and _stem(first) == _stem(last):
        return f"{common}/{first} … {last}" if common else f"{first} … {last}"
    return common


def _stem(name: str) -> str:
    """The name without its number: layers of one kind share it."""
    return _DIGITS.sub("", name)


def _neighbourhood(
    computation: Computation,
    centres: InstructionSequence,
    marked: set[Instruction],
    options: Options,
    wanted: set[Instruction | Computation],
    notices: list[str],
) -> PanelPlan:
    shown = dict.fromkeys(centres[: options.max_nodes], 0)
    queue = deque(shown)
    crowded = len(centres) - len(shown)
    while queue:
        here = queue.popleft()
        if shown[here] == options.radius:
            continue
        # Everything reads parameters: their neighbours are unrelated.
        if here not in marked and here.opcode in ("parameter", "constant"):
            continue
        for there in (*boxed_neighbours(here.operands, up=True), *boxed_neighbours(here.users, up=False)):
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
        if near.is_fusion:
            inside = inner_boxes(near)
            if inside <= room or (near in marked and inside <= options.max_nodes):
                room -= inside
                panel.open.add(near)
    requested = [near for near in shown if near in wanted and near not in panel.open]
    panel.open |= fitting_fusions(requested, HARD_LIMIT - options.max_nodes, notices)
    return panel


class PanelPlan(Struct):
    """One computation to draw, with its options."""

    computation: Computation
    open: set[Instruction] = set()  # Fusions drawn with their contents
    parts: list[Part] = []  # Lists of instructions drawn as one box; empty where nothing is collapsed
    shown: set[Instruction] | None = None  # The only instructions drawn; None for all
    marked: frozenset[Instruction] = frozenset()


class Plan(Struct):
    """The panels of one module, and notices about omissions."""

    panels: list[PanelPlan] = []
    notices: list[str] = []


def fitting_fusions(fusions: Instructions, room: int, notices: list[str]) -> set[Instruction]:
    """The requested fusions that fit into a picture."""
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


Groups = Mapping[int, Hashable]  # The group of each node


def levels(order: Ints, operands: Sequence[Ints], group: Groups) -> dict[int, int]:
    """For each node, the maximum of group changes on a path to it. Nodes of the same group and level can
    always be drawn as one: an edge between different groups raises the level, and none lowers it."""
    level: dict[int, int] = {}
    for node in order:
        own = group[node]
        level[node] = max((level[o] + (group[o] != own) for o in operands[node]), default=0)
    return level


def convex(order: Ints, operands: Sequence[Ints], group: Groups) -> dict[int, Hashable]:
    """`group` with the groups on a cycle split up; the others are unchanged. `order` has the nodes operands
    first, `group` the group of every node (a single node has its own)."""
    result: dict[int, Hashable] = dict(group)
    guilty = _cyclic_groups(order, operands, result)
    if guilty:
        level = levels(order, operands, group)
        # Splitting the guilty alone may, rarely, leave a cycle through what was innocent before.
        for node in order:
            if result[node] in guilty:
                result[node] = ("split", group[node], level[node])
        if _cyclic_groups(order, operands, result):
            result = {node: ("split", group[node], level[node]) for node in order}
    return result


def _cyclic_groups(order: Ints, operands: Sequence[Ints], group: Groups) -> set[Hashable]:
    successors: dict[Hashable, dict[Hashable, None]] = {}
    for node in order:
        own = group[node]
        edges = successors.setdefault(own, {})
        for o in operands[node]:
            if group[o] != own:
                edges[group[o]] = None
    return {member for cycle in components(successors) for member in cycle}


# An arrow from A to B is implied where another way leads from A to B. What a training step keeps for its
# backward pass would otherwise run the length of the picture, once for every layer.

MANY = 60
PER_BOX = 1.8  # A panel is thinned when it has more than `MANY` arrows and more than this many to a box


def thin(panel: Panel) -> int:
    """Write the implied arrows of a crowded panel into their heads; returns their number."""
    boxes = {b.key: b for b in panel.all_boxes()}
    outer = [a for a in panel.arrows if not a.inside]
    if len(outer) <= MANY or len(outer) <= PER_BOX * len(boxes):
        return 0
    implied = _implied_arrows(boxes, panel.arrows)
    removed = {id(a) for a in implied}
    panel.arrows = [a for a in panel.arrows if id(a) not in removed]
    for head, arrows in grouped((a.head, a) for a in sorted(implied, key=lambda a: -a.bytes)).items():
        box = boxes[head]
        names = [_short_name(boxes[a.source_box]) for a in arrows]
        more = f" +{len(names) - 3}" if len(names) > 3 else ""
        total = bytes_text(sum(a.bytes for a in arrows))
        box.lines.append(f"also reads {total} from {', '.join(names[:3])}{more}")
        for a in arrows[:12]:
            box.tooltip.append(f"also from {_short_name(boxes[a.source_box])}: {bytes_text(a.bytes)}")
    return len(implied)


def _implied_arrows(boxes: Mapping[str, Box], arrows: list[Arrow]) -> list[Arrow]:
    """Arrows between kernels with a longer path (transitive reduction)."""
    heads: dict[str, list[str]] = {key: [] for key in boxes}
    for a in arrows:
        heads[a.source_box].append(a.head)
    if components(heads):
        return []  # arrows in a circle: nothing is sure
    bit = {key: 1 << n for n, key in enumerate(boxes)}
    below: dict[str, int] = {}
    for key in post_order(boxes, heads.__getitem__):
        below[key] = reduce(or_, (bit[head] | below[head] for head in heads[key]), 0)
    implied = []
    for a in arrows:
        if not a.inside and not a.control and a.values:
            others = (below[head] for head in heads[a.source_box] if head != a.head)
            if reduce(or_, others, 0) & bit[a.head]:
                implied.append(a)
    return implied


def _short_name(box: Box) -> str:
    return box.kernels or box.title
