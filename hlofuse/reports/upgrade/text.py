"""`hlofuse upgrade` for the terminal."""

from collections.abc import Sequence

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from hlofuse.format.escape import printable
from hlofuse.format.terminal import print_more, print_rows
from hlofuse.format.units import plural, us_text
from hlofuse.reports.comparison.phrases import figures
from hlofuse.reports.comparison.text import print_flipped
from hlofuse.reports.upgrade.model import Cause, Upgrade

HEADINGS = tuple("module kernels moved time change cause".split())


def _count_text(kernels: str) -> str:
    return f"{kernels} kernel" if kernels == "1" else f"{kernels} kernels"


def _launch_text(kernels: str, moved: str, time: str) -> str:
    return ", ".join(filter(None, (_count_text(kernels), f"{moved} moved", time)))


def change_text(found: Upgrade) -> str:
    """`+1.2 µs (+3.4%)`; empty without a device or a difference."""
    if found.change_us is None or not found.before.us or abs(found.change_us) < 0.005:
        return ""
    sign = "+" if found.change_us > 0 else "-"
    return f"{sign}{us_text(abs(found.change_us))} ({found.change_us / found.before.us:+.1%})"


def headline(found: Upgrade, old: str, new: str) -> str:
    """The effect of the upgrade on a program, the figure first."""
    launched = _launch_text(*figures(found.before, found.final))
    end = f", {changed}" if (changed := change_text(found)) else ""
    if old == new and found.compiled is None:
        return f"Nothing to compare: both releases are XLA {old}; give --from or --to."
    if found.same and found.compiled is None:
        return f"XLA {old} and {new} create the same fusions: {launched}."
    return f"From XLA {old} to {new}: {launched}{end}."


def compiled_line(found: Upgrade) -> str:
    """The part of the passes before fusion; empty where the new release did not compile it."""
    if found.compiled is None:
        return ""
    fusion, earlier = (figures(*s)[0] for s in ((found.before, found.after), (found.after, found.compiled)))
    return f"Fusion passes alone: {_count_text(fusion)}; passes before fusion: {earlier}."


def cause_phrases(cause: Cause, found: Upgrade) -> tuple[str, str]:
    """The difference, and its effect alone."""
    d = cause.difference
    what = f"{d.name}: {d.title}" if d.kind == "rule" else d.title
    what += f" (XLA {d.releases})" if d.releases else ""
    sides = (cause.totals, found.after) if cause.is_undone else (found.before, cause.totals)
    return what, f"{'without and with it' if cause.is_undone else 'alone'}: {_launch_text(*figures(*sides))}"


def unexplained(found: Upgrade) -> str:
    """For a difference that no single change makes; empty otherwise."""
    if found.same or found.causes:
        return ""
    changes = plural(len(found.considered), "change")
    return f"No single one of the {changes} causes it; several together do."


def cause_text(found: Upgrade) -> str:
    """The codes and names of the causes, briefly."""
    if found.same:
        return "earlier passes" if found.final.kernels != found.after.kernels else ""
    return ", ".join(c.difference.name for c in found.causes) or "several changes together"


def row(found: Upgrade) -> tuple[str, ...]:
    return (printable(found.name), *figures(found.before, found.final), change_text(found), cause_text(found))


def summary(all_found: Sequence[Upgrade], old: str, new: str) -> str:
    """Over many modules."""
    changed = [f for f in all_found if not f.same]
    slower = sum((f.change_us or 0) > 0.005 for f in all_found)
    faster = sum((f.change_us or 0) < -0.005 for f in all_found)
    times = f"; {slower} slower, {faster} faster by XLA {new}'s cost model" if slower or faster else ""
    many = plural(len(all_found), "module")
    return f"{len(changed):,} of {many} fused differently by XLA {new} than by {old}{times}."


def print_upgrade(found: Sequence[Upgrade], old: str, new: str, console: Console, *, limit: int = 10) -> None:
    """One module in full; of several a table, worst first, and the first of them in full."""
    if len(found) > 1:
        console.print(Text(summary(found, old, new), style="bold"))
        rows = [[Text(cell) for cell in row(f)] for f in found]
        columns = [(heading, "left" if heading in ("module", "cause") else "right") for heading in HEADINGS]
        print_rows(console, columns, rows[: limit or None])
        print_more(console, len(rows[limit:]) if limit else 0)
        console.print()
        found = [f for f in found if not f.same][:1]
    for f in found:
        _print_one(f, old, new, console, limit)


def _print_one(found: Upgrade, old: str, new: str, console: Console, limit: int) -> None:
    console.print(Text(f"{found.name}: {headline(found, old, new)}", style="bold"))
    line = compiled_line(found)
    if line:
        console.print(Text(line))
    if found.same:
        return
    console.print(Text("Cause", style="bold cyan"))
    for cause in found.causes:
        what, alone = cause_phrases(cause, found)
        console.print(Padding(Text(what, style="bold"), (0, 0, 0, 2)))
        console.print(Padding(Text(alone), (0, 0, 0, 6)))
    if unexplained(found):
        console.print(Padding(Text(unexplained(found)), (0, 0, 0, 2)))
    if found.comparison.flipped:
        print_flipped(found.comparison, console, limit=limit)
