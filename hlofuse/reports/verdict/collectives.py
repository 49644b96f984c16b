"""The collectives of the first screen: who takes part, bytes on the wire, and what hides them."""

import re
from collections.abc import Callable, Iterable, Iterator

from hlofuse.account.collectives import Collective, sources, started_by
from hlofuse.analysis.custom_calls import custom_call_target
from hlofuse.analysis.kernels import inside
from hlofuse.format import bytes_text, fields, listing, more, plural, printable, times, us_json, us_text
from hlofuse.format.paths import source_text
from hlofuse.ir import Instruction, Json, Module, Record, grouped, reach, replace, values
from hlofuse.passes.algebraic.context import is_scalar_zero
from hlofuse.passes.common.shapes import numbers_of, ranges_of
from hlofuse.passes.control_flow.partition import shardings_of
from hlofuse.passes.loop.parts import condition_of, gathers_again
from hlofuse.reports.advice.matching import origins
from hlofuse.reports.common.model import Place, time_kind
from hlofuse.reports.common.phrases import times_text

_SHOWN = 3
_GATHERED = "gathered_bytes is_whole share work?"
_NEAR = 50  # instructions in which a line is looked for
_ITERATED = (
    "iterates over a divided dimension, gathered each time",
    "divide another, as by x.reshape(n, steps, …).swapaxes(0, 1)",
)
_UNCHANGED = (
    "gathers the same array each time",
    "once if it fits, by with_sharding_constraint before the loop",
)
_SLICED = (
    "gathers a divided dimension to read or write it at one computed place",
    "x[jnp.array([i, i])][0] or x.at[ids].set(rows) sends the rows alone; so does jnp.roll by a static shift",
)
_BY_ROWS = "with_sharding_constraint of ids and x[ids], or of what is added, to P(), then back"
_REPEATED = re.compile(r"transpose\(.*/(remat2|rematted_computation)\b")  # in an operation's name
_VIEWS = values("bitcast concatenate copy get-tuple-element")
_SUMS = values("all-reduce reduce-scatter")
_ADDING = values("all-reduce all-reduce-start scatter")
_PASSED = values("bitcast convert copy fusion parameter reshape")


class CollectiveRow(Record):
    place: Place
    near: str  # `a.py:3 asks for P('x')`; without an own line `for` a reader's, or `from` an operand's; or ""
    collective: Collective

    @property
    def weight(self) -> tuple[float, int]:
        """Time, then bytes, of all runs."""
        c = self.collective
        return (c.us or 0.0) * c.runs, (c.exchange.bytes_on_wire or 0) * c.runs


def collective_rows(
    collectives: Iterable[Collective], place_of: Callable[[Instruction], Place]
) -> tuple[CollectiveRow, ...]:
    """The collectives, those that take longest or send most first."""
    rows = (CollectiveRow(place_of(c.instruction), _line_near(c, place_of), c) for c in collectives)
    return tuple(sorted(rows, key=lambda r: (-r.weight[0], -r.weight[1])))


def with_constraints(rows: Iterable[CollectiveRow], program: Module) -> tuple[CollectiveRow, ...]:
    """The rows, each gather with the constraint of `program`, the module before optimizations, by which every
    device has the whole dimension, if it asks that of all values with the gather's `op_name` and length."""
    requests = dict[tuple[Instruction, int], str]()
    for x in program.instructions():
        specs = shardings_of(x, "sharding")[:1] if custom_call_target(x) == "Sharding" else []
        line = source_text(program.called_from(x) or program.source_of(x)) if specs else None
        for spec in specs if line else ():
            same = [o for o in (x, *origins(x.operand)) if o.sizes == x.sizes]
            whole = [(o, d) for o in same for d, axes in enumerate(spec) if not axes]
            names = ", ".join(repr(axes[0] if len(axes) == 1 else axes or None) for axes in spec)
            requests |= dict.fromkeys(whole, f"{line} asks for P({names})")  # as `jax.P` is shown
    places = ((x, d) for x in program.instructions() for d in range(x.rank) if requests and x.op_name)
    constraints = grouped(((x.op_name, d, x.sizes[d:][:1]), requests.get((x, d))) for x, d in places)
    found = []
    for r in rows:
        x = r.collective.instruction
        results = [shape.dimensions for shape in x.shape.leaf_shapes][-x.operand_count :]
        for d in numbers_of(x, "dimensions") if r.collective.exchange.kind == "all-gather" else ():
            texts = {text for n in results for text in constraints.get((x.op_name, d, n[d:][:1]), [None])}
            r = replace(r, near=(texts.pop() if len(texts) == 1 else None) or r.near)
        found.append(r)
    return tuple(found)


def _gathered(r: CollectiveRow) -> dict[str, int]:
    """The shapes of the results, which follow the operands in an asynchronous gather, and their bytes."""
    x = r.collective.instruction
    sizes = grouped((s.text_without_layout, s.byte_size) for s in x.shape.leaf_shapes[-x.operand_count :])
    return {text: sum(own) for text, own in sizes.items()}


def _line_near(c: Collective, place_of: Callable[[Instruction], Place]) -> str:
    """XLA's partitioner gives no line to what it adds to an argument or to a gradient."""
    if place_of(c.instruction).source:
        return ""
    start = started_by(c.instruction)
    if c.exchange.kind == "all-gather" and _is_result(start):
        return "for a whole result (out_shardings)"
    sides = [("for", "users"), ("from", "operands")]
    for word, side in reversed(sides) if c.exchange.kind in _SUMS else sides:
        pending = [start]
        for x in pending:  # it grows
            if line := place_of(x).source:
                return f"{word} {line.partition(' ')[0]}"
            pending += getattr(x, side) if len(pending) < _NEAR else ()
    return ""


def _is_result(x: Instruction) -> bool:
    """True if only results of the program are made of it, without a kernel."""
    is_view = x.opcode in ("tuple", "get-tuple-element", "bitcast") or "all-gather" in x.opcode
    if x.is_root or not is_view:
        return is_view and x.computation is not None and x.computation.is_entry
    return bool(x.users) and all(map(_is_result, x.users))


def _overlap(c: Collective) -> str | None:
    """`synchronous`, `exposed`, `partly exposed` or `hidden`; None where it is not known."""
    if c.overlap is None or not c.overlap.is_asynchronous:
        return None if c.overlap is None else "synchronous"
    if not c.overlap.between:
        return "exposed"
    if c.overlap.exposed_us is None or c.is_floor:
        return None
    if not c.overlap.exposed_us:
        return "hidden"
    return "partly exposed" if c.hides_exactly else None


def _exposed_us(c: Collective) -> float | None:
    """Microseconds of one run that no kernel hides; None where they are not known."""
    return c.overlap.exposed_us if c.overlap is not None and c.hides_exactly and not c.is_floor else None


def collective_lines(
    rows: tuple[CollectiveRow, ...],
    exposed: float | None,
    is_floor: bool,
    limit: int,
) -> Iterator[str]:
    """What is exposed, a line for each kind (`limit` 0: all, else three), and what is gathered in vain."""
    if not rows:
        return
    at_least = "≥ " if any(r.collective.exchange.bytes_on_wire is None for r in rows) else ""
    title = f"Collectives: {at_least}{bytes_text(sum(r.weight[1] for r in rows))} sent by each device"
    yield title + (f", {us_text(exposed, is_floor)} not hidden by kernels" if exposed is not None else "")
    equivalent = grouped((row_text(r), r) for r in rows).values()
    kinds = sorted(equivalent, key=lambda same: [-len(same) * figure for figure in same[0].weight])
    shown = kinds[: min(limit, _SHOWN) or None]
    for same in shown:
        yield row_text(same[0], len(same))
    if len(kinds) > len(shown):
        yield f"  {more(len(kinds) - len(shown))}"
    gathers = [r for r in rows if r.collective.exchange.kind == "all-gather"]
    for line, (what, cure) in dict.fromkeys((_line(r), how) for r in rows if (how := _in_vain(r))):
        yield f"  {line.removeprefix('for ').removeprefix('from ')} {what}:"
        yield f"    {cure}"
    named = [(r, r.collective.instruction.op_name or "") for r in gathers]
    forward = {n for r, name in named if "transpose(" not in name for n in _gathered(r)}
    again = [r for r, name in named if _REPEATED.search(name) and not forward.isdisjoint(_gathered(r))]
    if again:
        sent = bytes_text(sum(r.weight[1] for r in again))
        size = sum(sum(_gathered(r).values()) * r.collective.runs for r in again)
        yield f"  {sent} sent to gather again for the gradient (jax.checkpoint):"
        yield f"    a policy that saves what is gathered (checkpoint_name) keeps up to {bytes_text(size)}"
    for line in dict.fromkeys(_line(r) for r in rows if _decides(started_by(r.collective.instruction))):
        yield f"  {line} waits in each iteration until all devices agree to go on:"
        yield "    each goes on alone if jax.shard_map is around the loop"
    for size, whole, devices in dict.fromkeys(p for r in rows for p in _paddings(r.collective)):
        undivided = f"{devices} devices do not divide {size:,}"
        yield f"  {undivided}: a result stays divided only if padded to {whole:,}"
    reshardings = dict.fromkeys(found for r in rows if (found := r.collective.resharding) is not None)
    equal = grouped(((f.is_whole, f.gathered_bytes, f.share, bool(f.work)), f) for f in reshardings)
    for (is_whole, size, share, works), own in equal.items():
        what = times(("the whole array " if is_whole else "") + f"({bytes_text(size)})", len(own))
        names = printable(listing([", ".join(g.name for g in f.gathers) for f in own], 1))
        meanwhile = ", computes with all of it," if works else " on each device, then"
        yield f"  gathers {what}{meanwhile} keeps 1/{share}:"
        work = f"divide {printable(listing([f.work for f in own], 2))} by jax.shard_map"
        yield f"    {work if works else 'name the intermediate sharding'} ({names})"


def _adds(x: Instruction) -> bool:
    return x.opcode in _ADDING and x.to_apply.root.opcode == "add"


def _bytes_added(x: Instruction) -> int:
    """The bytes of the values and indices that a scatter adds to zeros; 0 for any other array."""
    x = _computed(x)
    zeros = _computed(x.operand) if _adds(x) and x.is_array else x
    is_sum = zeros.is_broadcast and is_scalar_zero(_computed(zeros.operand))
    return sum(o.shape.byte_size for o in x.operands[1:]) if is_sum else 0


def _computed(x: Instruction) -> Instruction:
    """The operation that computes `x`, also inside a fusion or before it."""
    while x.opcode in _PASSED and (not x.is_parameter or x.fusion_around is not None):
        x = x.fused_root if x.is_fusion else sources(x)[0]
    return x


def _paddings(c: Collective) -> Iterator[tuple[int, int, int]]:
    """Elements of a dimension of a result without and with the padding that XLA gathers, and the devices."""
    count, moved = c.exchange.participants, ("bitcast", "copy", "transpose")
    if c.exchange.kind != "all-gather" or not c.instruction.is_array:
        return
    lengths = [c.instruction.sizes[d] for d in numbers_of(c.instruction, "dimensions")]
    for x in (c.instruction, *c.instruction.users):
        results = (u for u in x.users if any(r.is_root for r in (u, *u.users)))
        for cut in (i for u in results for i in inside(u) if i.is_slice):
            source = cut.operand.through(*moved)
            sizes = zip(cut.sizes, cut.operand.sizes, ranges_of(cut), strict=True)
            for size, whole, places in sizes if x in (source, *_before(source)) else ():
                if whole in lengths and not places.start and 0 < whole - size == -size % count:
                    yield size, whole, count


def _decides(x: Instruction) -> bool:
    """True for what XLA's partitioner adds to the condition of a loop."""
    loop = x.parent.first_caller
    is_test = loop is not None and loop.is_while and condition_of(loop) is x.computation
    return is_test and "is_spmd_generated" in (x.raw("frontend_attributes") or "")


def _line(r: CollectiveRow) -> str:
    return printable(r.near or r.place.where or r.place.shown)


def _in_vain(r: CollectiveRow) -> tuple[str, str] | None:
    """The excess over what is read or added, and what avoids it; None without."""
    c, x = r.collective, started_by(r.collective.instruction)
    if _adds(c.instruction):
        others = c.exchange.participants - 1
        sums = [(o.shape.byte_size, others * _bytes_added(o)) for o in x.operands]
        few = [(size, rows) for size, rows in sums if 0 < rows * (others + 1) < size * others]
        size, rows = (bytes_text(sum(n)) for n in zip((0, 0), *few, strict=True))
        return (f"sums {size}, to which other devices add rows of {rows}", _BY_ROWS) if few else None
    if c.exchange.kind != "all-gather":
        return None
    if gathers_again(x):
        return _ITERATED if _is_cut(x, by_numbers=True) else _UNCHANGED
    return _SLICED if c.resharding is None and _is_cut(x) else None


def _is_cut(x: Instruction, by_numbers: bool = False) -> bool:
    """True if all that reads it, or it with a part written, takes a slice alone; `by_numbers`: reads it at a
    place that only numbers tell, as a loop counts."""

    def takes_slice(u: Instruction) -> bool:
        is_written = u.opcode == "dynamic-update-slice" and u.operand is x
        if u.opcode in _VIEWS or u.opcode.endswith("-done") or (is_written and not by_numbers):
            return _is_cut(u, by_numbers)
        if u.opcode in ("fusion", "async-start"):
            inside = zip(u.called_computations[0].parameters, u.operands, strict=True)
            return all(_is_cut(p, by_numbers) for p, o in inside if o is x)
        is_slice = u.opcode == "dynamic-slice" and u.operand is x and 2 * u.element_count <= x.element_count
        return is_slice and not (by_numbers and any(i.sizes for i in reach(u.operands[1:], _before)))

    fusion = x.fusion_around
    users = fusion.users if x.is_root and fusion is not None else x.users
    return bool(users) and all(map(takes_slice, users))


def _before(x: Instruction) -> Iterable[Instruction]:
    """The values of which `x` is computed, also in the iteration before."""
    is_carried = x.is_get_tuple_element and x.operand.is_parameter
    return [x.parent.root.operands[x.tuple_index]] if is_carried else sources(x)


def row_text(r: CollectiveRow, count: int = 1) -> str:
    """The line of `count` equal collectives; time and bytes are of all runs of all of them."""
    c, e = r.collective, r.collective.exchange
    runs = c.runs * count
    us = f"{us_text(c.us * runs, c.is_floor)} " if c.us is not None else ""
    often = times(e.kind, count) + times_text(c.runs)
    sent = f"{bytes_text(e.bytes_on_wire * runs)} sent" if e.bytes_on_wire is not None else "bytes not known"
    devices = plural(e.participants, "device")
    if len(e.groups) > 1 and e.kind != "collective-permute":
        devices = f"{len(e.groups)} groups of {devices}"
    is_overlapped = c.overlap is not None and c.overlap.between
    overlap = _overlap(c) or ("exposed time not known" if is_overlapped else "overlap not known")
    if overlap == "partly exposed":
        overlap = f"{us_text((_exposed_us(c) or 0.0) * runs)} exposed"
    return f"  {us}{often}, {sent}, {devices}, {_line(r)}, {overlap}"


def collective_json(r: CollectiveRow) -> Json:
    """A collective; `time_us` and `bytes_on_wire` are of one run."""
    c = r.collective
    names = [g.name for g in c.resharding.gathers] if c.resharding is not None else []
    return {
        **fields(r, "name=place.label source=place.source near?"),
        **fields(c.exchange, "kind participants groups bytes_on_wire"),
        **fields(c, "runs time_us=us~"),
        "time_kind": time_kind(c.us, c.is_floor),
        "overlap": _overlap(c),
        "between": [i.name for i in c.overlap.between] if c.overlap is not None else [],
        "exposed_us": us_json(_exposed_us(c)),
        "sharding": c.sharding,
        "resharding": {"gathers": names, **fields(c.resharding, _GATHERED)} if names else None,
    }
