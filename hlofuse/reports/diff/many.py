"""Changes of many modules: totals, then a row each. Text, Markdown and JSON."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from rich.table import Table
from rich.text import Text

from hlofuse.diff.model import Accounts, FlagChange, FusionKind, ModuleDiff, only_annotations
from hlofuse.format import fields, plural, printable
from hlofuse.format.terminal import Page, print_command, print_lines
from hlofuse.inputs.many import Many
from hlofuse.ir import HlofuseError, Ints, Progress, Record, Strings
from .json import flags_json
from .phrases import change_of, count_change_of, flags_note, time_change_of


class ModuleChange(Record):
    """The change of one module in figures; each pair is BEFORE and AFTER."""

    name: str
    files: tuple[str, str]
    kernels: tuple[int, int] = (0, 0)
    bytes: tuple[int, int] = (0, 0)
    unknown: tuple[int, int] = (0, 0)  # Custom calls, which `bytes` leave out
    us: tuple[float, float] | None = None
    temporary: tuple[int, int] | None = None
    """Bytes of temporary memory at its peak; None where one side's is not known."""
    flags: tuple[FlagChange, ...] = ()
    same: bool = False
    same_program: bool = False  # Nothing but fusions differs, or notes for later passes and the runtime
    fusions: Mapping[FusionKind, int] | None = None
    error: str | None = None  # Why it could not be compared

    @property
    def weight(self) -> float:
        """The size of the change: time if known, else bytes."""
        pair = self.us or self.bytes
        return abs(pair[1] - pair[0])


class BatchDiff(Record):
    modules: tuple[ModuleChange, ...]  # The largest change first, equal modules last
    only_before: Strings = ()
    only_after: Strings = ()
    skipped: Strings = ()  # Inputs that could not be read, with the reason

    @property
    def same(self) -> bool:
        """Every module has its like."""
        return not (self.only_before or self.only_after) and all(m.same for m in self.modules)

    @property
    def compared(self) -> tuple[ModuleChange, ...]:
        return tuple(m for m in self.modules if m.error is None)


def diff_many(
    old: Many,
    new: Many,
    compare: Callable[[str], tuple[ModuleDiff, Accounts]],
    progress: Progress,
) -> BatchDiff:
    """Compare what has the same name on both sides; one module at a time is in memory. A module that cannot
    be read is reported in its row, not raised. HlofuseError where no name matches."""
    before, after = old.files, new.files
    both = [name for name in before if name in after]
    if not both:
        raise HlofuseError("nothing to compare: no module of BEFORE has the same name as one of AFTER")
    rows = []
    for done, name in enumerate(both):
        progress(done, len(both))
        files = str(before[name]), str(after[name])
        try:
            rows.append(_row(name, files, *compare(name)))
        except HlofuseError as e:
            rows.append(ModuleChange(name, files, error=e.first_line))
    rows.sort(key=lambda r: (r.error is not None, r.same, -r.weight, r.name))
    return BatchDiff(
        tuple(rows),
        tuple(name for name in before if name not in after),
        tuple(name for name in after if name not in before),
        (*old.skipped, *new.skipped),
    )


def _row(
    name: str,
    files: tuple[str, str],
    found: ModuleDiff,
    accounts: Accounts,
) -> ModuleChange:
    b, a = accounts.before.totals, accounts.after.totals
    return ModuleChange(
        name,
        files,
        (b.kernels, a.kernels),
        (b.cost.bytes_accessed, a.cost.bytes_accessed),
        (b.cost.unknown, a.cost.unknown),
        (b.us, a.us) if b.us is not None and a.us is not None else None,
        accounts.temporary_bytes,
        accounts.flags,
        found.same,
        not found.edits or only_annotations(found.edits),
        Counter(change.kind for change in found.fusions),
    )


_MARK = " *"


def verdict(found: BatchDiff) -> str:
    """The first line: how many are the same, how many are not, and in what."""
    modules = found.compared
    same = sum(m.same for m in modules)
    if found.same:
        return f"{plural(same, 'module')}, all the same including fusions"
    count = sum(m.same_program and not (m.same or m.fusions) for m in modules)
    differently = sum(m.same_program and not m.same for m in modules) - count
    parts = [
        f"{same} the same" if same else "",
        f"{count} same except annotations" if count else "",
        f"{differently} fused differently" if differently else "",
        f"{n} with a different program" if (n := len(modules) - same - count - differently) else "",
        f"{n} not comparable" if (n := len(found.modules) - len(modules)) else "",
        f"{len(found.only_before)} only in BEFORE" if found.only_before else "",
        f"{len(found.only_after)} only in AFTER" if found.only_after else "",
    ]
    return f"{plural(len(found.modules), 'module')} compared: {', '.join(filter(None, parts))}"


def totals(found: BatchDiff) -> list[tuple[str, str]]:
    """Label and figure of what all modules do together."""
    modules = found.compared
    rows = [
        ("kernels", count_change_of(*_sum(m.kernels for m in modules))),
        ("bytes", change_of(*_sum(m.bytes for m in modules), "B")),
    ]
    unknown = _sum(m.unknown for m in modules)
    if any(unknown):
        rows.append(("custom calls not counted", count_change_of(*unknown)))
    if peaks := [m.temporary for m in modules if m.temporary is not None]:
        before, after = map(max, zip(*peaks, strict=True))
        rows.append(("largest temporary memory", change_of(before, after, "B")))
    if timed := [m.us for m in modules if m.us is not None]:
        before, after = (sum(pair[k] for pair in timed) for k in (0, 1))
        rows.append(("estimated time", time_change_of(before, after)))
    if kinds := _kinds(modules):
        rows.append(("fusions", kinds))
    return rows


def notes(found: BatchDiff) -> list[str]:
    """Modules missing on a side, and unreadable ones."""
    lines = [f"only in BEFORE: {', '.join(found.only_before)}" if found.only_before else ""]
    lines.append(flags_note(dict.fromkeys(flag for m in found.compared for flag in m.flags)))
    lines += [f"only in AFTER: {', '.join(found.only_after)}" if found.only_after else ""]
    lines += [f"{m.name}: {m.error}" for m in found.modules if m.error is not None]
    if any(m.unknown[0] != m.unknown[1] for m in found.compared):
        lines.append(
            f"{_MARK.strip()} different numbers of custom calls on the two sides; their bytes and times are"
            " not counted"
        )
    return [*filter(None, lines), *found.skipped]


def draw(found: BatchDiff, console: Page) -> None:
    """Print the report."""
    console.print(verdict(found), style="bold green" if found.same else "bold")
    console.print("   ".join(f"{label} {text}" for label, text in totals(found)))
    rows = [m for m in found.compared if not m.same]
    shown = console.first(rows)
    if shown:
        timed = any(m.us is not None for m in shown)
        grid = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
        for head in heads(timed):
            right = head not in ("module", "fusions")
            grid.add_column(head, justify="right" if right else "left", overflow="fold")
        for m in shown:
            cells = [m.name, count_change_of(*m.kernels), change_of(*m.bytes, "B")]
            cells[2] += _MARK if m.unknown[0] != m.unknown[1] else ""
            if timed:
                cells.append(time_change_of(*m.us) if m.us is not None else "")
            what = "" if m.same_program else "different program; "
            cells.append(what + (_kinds([m]) or "fusions unchanged"))
            grid.add_row(*(Text(printable(cell)) for cell in cells))
        console.print()
        console.print(grid)
    console.print_rest(rows)
    print_lines(console, map(printable, notes(found)), 0, "dim")
    if shown:
        console.print("largest change in detail:", style="dim")
        print_command(console, 2, "diff", *shown[0].files)


def as_dict(found: BatchDiff) -> dict[str, object]:
    """The JSON report; the schema is in docs/json-diff.md."""
    return {
        "schema": "hlofuse.diff-many/3",
        "same": found.same,
        **fields(found, "modules", _module),
        **fields(found, "only_before only_after skipped"),
    }


def _module(m: ModuleChange) -> dict[str, object]:
    return {
        **fields(m, "name files same same_program kernels bytes custom_calls_not_counted=unknown"),
        "temporary_bytes": m.temporary,
        "flags": flags_json(m.flags),
        **fields(m, "us", lambda us: round(us, 3)),
        "fusions": {str(kind): n for kind, n in (m.fusions or {}).items()},
        "error": m.error,
    }


def heads(timed: bool) -> list[str]:
    return ["module", "kernels", "bytes", *(["time"] if timed else []), "fusions"]


def _kinds(modules: Iterable[ModuleChange]) -> str:
    counts: Counter[FusionKind] = Counter()
    for m in modules:
        counts.update(m.fusions or {})
    return ", ".join(f"{counts[kind]:,} {kind}" for kind in FusionKind if counts[kind])


def _sum(pairs: Iterable[Ints]) -> tuple[int, int]:
    found = list(pairs)
    return sum(pair[0] for pair in found), sum(pair[1] for pair in found)
