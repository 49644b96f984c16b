"""Words for the parts of a diff. Plain text: whoever prints it makes it safe for where it goes."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from hlofuse.diff.model import (
    Accounts,
    Detail,
    FlagChange,
    FusionChange,
    FusionKind,
    Kind,
    ModuleDiff,
    only_annotations,
)
from hlofuse.format import (
    bytes_text,
    change_percent,
    listing,
    plural,
    quantity,
    ranges,
    shorten,
    times,
    us_text,
)
from hlofuse.format.paths import layer_of, shown_file
from hlofuse.inputs.stage import stage_of
from hlofuse.ir import Instruction, InstructionSequence, Module
from hlofuse.matching.structure import TRIVIAL
from hlofuse.reports.common.phrases import loops_line
from hlofuse.reports.common.profile import joined_line
from .model import Cluster, SourceLine, Summary

ARROW = "→"
LONGEST_VALUE = 60
ALL = tuple("kernels fusions sources instructions header".split())


def names(instructions: InstructionSequence, limit: int = 6) -> str:
    """`a, b, c, … 4 more`, each name once: computations may use the same."""
    return listing([*dict.fromkeys(i.name for i in instructions)], limit)


def opcodes(instructions: Iterable[Instruction], limit: int = 10) -> str:
    """`add ×3, multiply, constant`: the frequent first, the trivial last; parameters are not listed."""
    found = list(instructions)
    counts = Counter(i.opcode for i in found if not i.is_parameter) or Counter(i.opcode for i in found)
    ranked = sorted(counts.items(), key=lambda item: (item[0] in TRIVIAL, -item[1]))
    parts = [times(*pair) for pair in ranked[:limit]]
    if len(counts) > limit:
        parts.append("…")
    return ", ".join(parts)


def line_shown(line: SourceLine) -> str:
    """`model.py:37 (was 35)`."""
    if line.removed:
        return f"{line.source} in BEFORE"
    if line.source == line.source_before:
        return line.source
    return f"{line.source} (was {_number_only(line.source_before, line.source)})"


def moved_lines_note(moved: Mapping[str, str]) -> str:
    """`3 source lines moved: model.py:35 → 37, …`; empty for none."""
    if not moved:
        return ""
    pairs = [f"{old} {ARROW} {_number_only(new, old)}" for old, new in sorted(moved.items(), key=_in_order)]
    return (
        f"{plural(len(pairs), 'source line')} moved, matched by function and structure: {listing(pairs, 3)}"
    )


def _number_only(source: str, other: str) -> str:
    file, _, number = source.rpartition(":")
    return number if file == other.rpartition(":")[0] else source


def _in_order(pair: tuple[str, str]) -> tuple[str, int]:
    file, _, number = pair[0].rpartition(":")
    return file, int(number)


def sources(module: Module, instructions: Iterable[Instruction], limit: int = 3) -> str:
    """`Net/Dense_1: model.py:12–14, 20`: the layers and the lines the instructions came from."""
    members = list(instructions)
    lines: dict[str, set[int]] = {}
    for i in members:
        place = module.source_of(i)
        if place is not None:
            lines.setdefault(shown_file(place.file), set()).add(place.line)
    parts = []
    for file, found in lines.items():
        names = sorted(n for n in found if n)
        parts.append(f"{file}:{ranges(names)}" if names else file)
    if len(parts) > limit:
        parts[limit:] = [f"… {plural(len(parts) - limit, 'more file')}"]
    layers = [layer for layer in dict.fromkeys(layer_of(i.op_name) for i in members) if layer]
    if len(layers) > 2:
        layers[2:] = [f"… {len(layers) - 2} more"]
    return ": ".join(filter(None, ("; ".join(layers), "; ".join(parts))))


def change_of(before: float, after: float, unit: str = "") -> str:
    """`12 MB → 4 MB (−67%)`, the difference itself for small ones; `12` where nothing changed that shows."""
    delta = after - before
    if abs(delta) <= max(before, after) * 1e-4 or quantity(before, unit) == quantity(after, unit):
        return quantity(after, unit)
    if max(before, after) < 1000 or not before:
        relative = f"{'+' if delta > 0 else '−'}{quantity(abs(delta), unit)}"
    else:
        relative = change_percent(before, after)
    return f"{quantity(before, unit)} {ARROW} {quantity(after, unit)} ({relative})"


def time_change_of(
    before: float,
    after: float,
    *,
    bounds: tuple[bool, bool] = (False, False),
    is_open: bool = False,
) -> str:
    """`12.5 µs → 4.00 µs (−68%)`; `bounds`: which are lower bounds; `is_open`: the sign may change."""
    texts = us_text(before, bounds[0]), us_text(after, bounds[1])
    if texts[0] == texts[1]:
        return texts[1]
    if is_open:
        return f" {ARROW} ".join(texts)
    percent = f" ({change_percent(before, after)})" if before else ""
    return f"{texts[0]} {ARROW} {texts[1]}{percent}"


def count_change_of(before: int, after: int) -> str:
    """`1,234 → 1,200 (−34)`: kernels are counted, not rounded; `12` where nothing changed."""
    if before == after:
        return f"{after:,}"
    return f"{before:,} {ARROW} {after:,} ({'+' if after > before else '−'}{abs(after - before):,})"


def saved(change: FusionChange, accounts: Accounts) -> str:
    """`−8.4 MB  −4.20 µs`, of all iterations: what is known of it; nothing of what did not change."""
    parts: list[tuple[float, Callable[[float], str]]] = [
        (accounts.change_of(change, lambda row: row.cost.bytes_accessed * row.runs) or 0, bytes_text)
    ]
    if accounts.timing is not None:
        parts.append((round(accounts.change_of(change, accounts.us) or 0.0, 2), us_text))
    return "  ".join(f"{'+' if more > 0 else '−'}{text(abs(more))}" for more, text in parts if more)


def detail(d: Detail) -> str:
    if d.kind is Kind.ANNOTATION and d.name == "backend_config":
        return "backend_config: " + config_changes(d.before, d.after)
    if d.kind is Kind.OPERAND:
        title = f"operand {d.name}"
    elif d.kind is Kind.ROOT and d.name != "results":
        title = f"root of {d.name}"
    elif d.kind is Kind.ORDER:
        title = "operands reordered"
    elif d.name:
        title = d.name
    else:
        title = str(d.kind)
    return f"{title}: {value(d.before)} {ARROW} {value(d.after)}"


def value(text: str | None) -> str:
    """A value, cut where it is too long."""
    return "none" if text is None else shorten(text, LONGEST_VALUE)


def config_changes(before: str | None, after: str | None, limit: int = 4) -> str:
    """The changed fields of a JSON config: `num_warps 2 → 4`."""
    actual, expected = dict(_fields(_json(before))), dict(_fields(_json(after)))
    if not actual and not expected:
        return f"{value(before)} {ARROW} {value(after)}"
    paths = [p for p in dict.fromkeys([*actual, *expected]) if actual.get(p) != expected.get(p)]
    parts = [f"{p} {value(actual.get(p))} {ARROW} {value(expected.get(p))}" for p in paths[:limit]]
    if len(paths) > limit:
        parts.append(f"… {len(paths) - limit} more fields")
    return ", ".join(parts)


def _json(text: str | None) -> Any:
    try:
        return json.loads(text or "{}")
    except (ValueError, RecursionError):
        return None


def _fields(config: Any, path: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(config, dict):
        for key, item in config.items():
            # The last name says it; what it is inside of is the same everywhere.
            yield from _fields(item, key)
    elif isinstance(config, list) and any(isinstance(item, dict) for item in config):
        for n, item in enumerate(config):
            yield from _fields(item, f"{path}[{n}]")
    elif isinstance(config, list):
        yield path, ",".join(map(str, config))
    elif config is not None:
        yield path, str(config)


def side_of(fusions: Iterable[Instruction], others: InstructionSequence) -> str:
    """One side of a fusion's change, with what was outside of it."""
    parts = [i.name for i in fusions]
    if others:
        parts.append(names(others, 4))
    return " + ".join(parts)


def what_happened(change: FusionChange) -> str:
    """Old names and new ones."""
    left, right = side_of(change.before, change.joined), side_of(change.after, change.left)
    if change.kind is FusionKind.NEW:
        return f"{right}  from {left}" if left else right
    if change.kind is FusionKind.VANISHED:
        return f"{left}  now {right}" if right else left
    return left if left == right else f"{left} {ARROW} {right}"


def inside(change: FusionChange) -> list[str]:
    """The content of a changed fusion, and its details."""
    kind = (change.after or change.before)[0].fusion_kind or "fusion"
    lines = [f"{kind}: {opcodes(change.members)}"]
    if change.added:
        lines.append(f"added: {names(change.added)}")
    if change.removed:
        lines.append(f"removed: {names(change.removed)}")
    return lines + [shorten(detail(d), 200) for d in change.details]


def what_is_in(cluster: Cluster) -> str:
    """The opcodes of what went and of what came."""
    return f" {ARROW} ".join(opcodes(side) for side in cluster.sides)


def verdict(diff: ModuleDiff) -> str:
    """The first line: the same or not, and in what."""
    actual, expected = diff.before.module.name, diff.after.module.name
    name = actual if actual == expected else f"{actual} and {expected}"
    if diff.same:
        return f"{name}: same {'including fusions' if is_fused(diff) else '(both before fusion)'}"
    fusions = fusions_text(diff.fusions)
    if diff.same_program:
        return f"{name}: same program, different fusions: {fusions}"
    fusions = fusions or "fusions unchanged"
    if not diff.edits:
        return f"{name}: same program, different module header; {fusions}"
    if only_annotations(diff.edits):
        count = plural(len(diff.edits), "instruction")
        return f"{name}: same program, different annotations on {count}; {fusions}"
    counts = Counter(type(e).__name__.lower() for e in diff.edits)
    reported = ", ".join(f"{counts[w]} {w}" for w in ("removed", "added", "changed", "moved") if counts[w])
    return f"{name}: different program ({reported}); {fusions}"


def is_fused(diff: ModuleDiff) -> bool:
    """The fusion passes have been over one of the two at least."""
    return any(stage_of(side.module).is_fused for side in (diff.before, diff.after))


def fusions_text(changes: Iterable[FusionChange]) -> str:
    """`2 merged, 3 new`."""
    counts = Counter(c.kind for c in changes)
    return ", ".join(f"{counts[kind]} {kind}" for kind in FusionKind if counts[kind])


def figure_pairs(summary: Summary) -> list[tuple[str, str]]:
    """Label and figure of what runs: kernels, launches, copies, bytes, FLOP, and time on a device."""
    accounts = summary.accounts
    b, a = accounts.before.totals, accounts.after.totals
    pairs = [("kernels", count_change_of(b.kernels, a.kernels))]
    if (b.launches, a.launches) != (b.kernels, a.kernels):
        pairs.append(("launches", count_change_of(b.launches, a.launches)))
    if b.copies or a.copies:
        pairs.append(("copies", count_change_of(b.copies, a.copies)))
    without = " without custom calls" if b.cost.unknown != a.cost.unknown else ""
    pairs += [
        ("bytes", change_of(b.cost.bytes_accessed, a.cost.bytes_accessed, "B")),
        (f"FLOP{without}", change_of(b.cost.flops, a.cost.flops)),
    ]
    if temporary := accounts.temporary_bytes:
        pairs.append(("temporary memory", change_of(*temporary, "B")))
    if b.cost.unknown or a.cost.unknown:
        pairs.append(("custom calls not counted:", count_change_of(b.cost.unknown, a.cost.unknown)))
    if accounts.timing == "measured" and b.measured_us is not None and a.measured_us is not None:
        pairs.append(("measured time", time_change_of(b.measured_us, a.measured_us)))
    if accounts.devices is not None and b.us is not None and a.us is not None:
        devices = f" {ARROW} ".join(dict.fromkeys(accounts.devices))
        # What equal kernels take beyond their bounds cancels out.
        is_open = (b.floors, b.floor_us, b.without_time) != (a.floors, a.floor_us, a.without_time)
        is_open |= b.open_ended + a.open_ended > 0  # nor is the whole known then
        bounds = b.is_floor, a.is_floor
        text = time_change_of(b.us, a.us, bounds=bounds, is_open=is_open)
        pairs.append((f"estimated time on {devices}:", text))
        if b.floor_us or a.floor_us:
            floors = time_change_of(b.floor_us or 0.0, a.floor_us or 0.0, bounds=bounds, is_open=is_open)
            pairs.append(("lower bounds included, outside XLA's model:", floors))
    return pairs


def profile_notes(accounts: Accounts) -> Iterator[str]:
    """The source of each side's measured times, and sides without."""
    sides = (("before", accounts.before.measured), ("after", accounts.after.measured))
    if any(measured for _, measured in sides):
        for word, measured in sides:
            nothing = "no profile, so measured times are not compared"
            yield f"{word}: {joined_line(measured) if measured is not None else nothing}"


def loop_notes(accounts: Accounts) -> list[str]:
    sides = accounts.before.loops, accounts.after.loops
    before, after = (loops_line(found) if found else "" for found in sides)
    if before == after:
        return [before] if before else []
    return [f"{word}: {line or 'no loops'}" for word, line in (("before", before), ("after", after))]


def flags_note(changes: Iterable[FlagChange]) -> str:
    """`XLA flags that differ: --xla_x 3 → 4, --xla_y default → true`; empty for none."""
    texts = []
    for name, *sides in changes:
        before, after = ("default" if v is None else shorten(v, LONGEST_VALUE) for v in sides)
        texts.append(f"{name} {before} {ARROW} {after}")
    return f"XLA flags that differ: {listing(texts, 6)}" if texts else ""


def side_notes(accounts: Accounts) -> Iterator[str]:
    """The flags that differ, and the side whose final module is replayed next to XLA's own on the other."""
    if note := flags_note(accounts.flags):
        yield note
    if set(accounts.counted) == {"xla", "replayed"}:
        side = "before" if accounts.counted[0] == "replayed" else "after"
        yield f"{side}: final kernels are replayed, since the input has no module after all passes"
