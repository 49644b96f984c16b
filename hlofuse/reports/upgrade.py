"""One module by two releases of XLA, and the changes between these that make the difference."""

from collections.abc import Callable, Sequence

from rich.text import Text

from hlofuse.account import Totals, observed_replay
from hlofuse.account.replaying import account_on
from hlofuse.compilation import Compilation, CompilationInput, ReplayConfig, compile
from hlofuse.format import change_percent, fields, plural, printable, us_text
from hlofuse.format.terminal import Page, indented, print_rows
from hlofuse.ir import Json, Module, Record, Strings
from hlofuse.pipelines.differences import ReleaseDifference, differences
from hlofuse.releases import Release
from hlofuse.reports.common.model import totals_json
from hlofuse.reports.comparison.text import figures
from .common.facts import EdgeNames, Facts, edges_inside
from .comparison.model import Comparison, compare_builds, flipped_json
from .comparison.text import print_flipped

ConfigOf = Callable[[Release], ReplayConfig]
"""The configuration of a replay by a release, which may be a mixed one."""


class Cause(Record):
    """One change between the releases that changes what is launched."""

    difference: ReleaseDifference
    totals: Totals  # Totals of the old release with this one change, or of the new one without it
    is_undone: bool = False  # `totals` are of the new release without the change: alone it does nothing


class Upgrade(Record):
    """One module by two releases. Times of both are by the cost model of the new one."""

    name: str
    comparison: Comparison
    before: Totals
    after: Totals
    """Launches of the new release for the same module."""
    causes: tuple[Cause, ...]
    considered: tuple[ReleaseDifference, ...]
    """All that is known to differ between the releases for the target."""
    is_modelled: bool  # Times are by XLA's cost model, not by rates of a CPU
    compiled: Totals | None = None
    """Launches of the program as compiled by the new release; None if that is not available."""
    own: Totals | None = None
    """Totals of XLA's own final module next to the input, by the old release; None without one."""

    @property
    def final(self) -> Totals:
        """The totals after the upgrade: as the new release compiled the program, else as replayed."""
        return self.compiled if self.compiled is not None else self.after

    @property
    def same(self) -> bool:
        """True if the fusion passes of both releases decide the same."""
        return not self.comparison.flipped and _launches(self.before) == _launches(self.after)

    @property
    def change_us(self) -> float | None:
        """The change of the time of one run in microseconds; None without a device."""
        if self.before.us is None or self.final.us is None:
            return None
        return self.final.us - self.before.us

    @property
    def worst_first(self) -> tuple[float, ...]:
        """A key to sort by: the largest increase of time, else of kernels and bytes, first."""
        kernels = self.final.kernels - self.before.kernels
        moved = self.final.cost.bytes_accessed - self.before.cost.bytes_accessed
        return (-(self.change_us or 0.0), -kernels, -moved)


def upgrade(
    name: str,
    input: CompilationInput,
    old: Release,
    new: Release,
    config_of: ConfigOf,
    compiled: Compilation | None = None,
    attach: Callable[[Compilation], None] | None = None,
) -> Upgrade:
    """Replay `input` by both releases and, where the results differ, by the old one with each change alone,
    or, where none alone does anything, by the new one without each. `compiled` is the replay of the program
    as the new release brings it to the input of fusion. `attach` joins a replay with XLA's own module."""
    first, second = (observed_replay(input, config_of(release)) for release in (old, new))
    if attach is not None:
        attach(first.replay)
    comparison = compare_builds(first, second)
    considered = differences(first.replay.target, (old.name, new.name))
    before, after = _totals(first.replay, new), _totals(second.replay, new)
    causes = []
    if comparison.flipped or _launches(before) != _launches(after):
        sides = (first.replay, before, old, new), (second.replay, after, new, old)
        for usual, usual_totals, own, other in sides:
            as_usual = _inside(usual), _launches(usual_totals)
            for difference in considered:
                changed = compile(input, config_of(difference.flipped_in(own, other)))
                totals = _totals(changed, new)
                if (_inside(changed), _launches(totals)) != as_usual:
                    causes.append(Cause(difference, totals, own is new))
            if causes:
                break
    return Upgrade(
        name,
        comparison,
        before,
        after,
        tuple(causes),
        considered,
        first.replay.config.device is not None,
        _totals(compiled, new) if compiled is not None else None,
        _totals(first.replay, old, first.replay.final) if first.replay.has_xla_final else None,
    )


def _launches(totals: Totals) -> tuple[int, int]:
    """Kernels and bytes, which show that other kernels run; times are the model's."""
    return totals.kernels, totals.cost.bytes_accessed


def _inside(done: Compilation) -> set[EdgeNames]:
    return edges_inside(Facts(done))


def _totals(done: Compilation, release: Release, final: Module | None = None) -> Totals:
    build, module = done.config.build, final or done.replayed_final
    return account_on(module, done.config.device, build.backend, release, build.flags, is_final=True).totals


def upgrade_json(found: Sequence[Upgrade], old: str, new: str) -> Json:
    """The modules, worst first, as JSON values."""
    return {
        "schema": "hlofuse.upgrade/3",
        "from": old,
        "to": new,
        "changes": [_difference(d) for d in found[0].considered] if found else [],
        "modules": [
            {
                **fields(f, "name same"),
                **fields(
                    f,
                    "totals_from=before totals_to=after totals_compiled=compiled totals_xla=own",
                    totals_json,
                ),
                "change_us": f.change_us,
                "causes": [
                    {**_difference(c.difference), "undone": c.is_undone, "totals": totals_json(c.totals)}
                    for c in f.causes
                ],
                **fields(f, "flipped=comparison.flipped", flipped_json),
            }
            for f in found
        ],
    }


def _difference(d: ReleaseDifference) -> Json:
    return fields(d, "kind name title xla=releases mirrors=source")


HEADINGS = tuple("module kernels moved time change cause".split())


def _count_text(kernels: str) -> str:
    return f"{kernels} kernel" if kernels == "1" else f"{kernels} kernels"


def _launch_text(kernels: str, moved: str, time: str) -> str:
    return ", ".join(filter(None, (_count_text(kernels), f"{moved} moved", time)))


def change_text(found: Upgrade) -> str:
    """`−1.2 µs (−3.4%)`; empty without a device or a difference."""
    if found.change_us is None or not found.before.us or abs(found.change_us) < 0.005:
        return ""
    sign = "+" if found.change_us > 0 else "−"
    share = change_percent(found.before.us, found.before.us + found.change_us)
    return f"{sign}{us_text(abs(found.change_us))} ({share})"


def headline(found: Upgrade, old: str, new: str) -> str:
    """The effect of the upgrade on a program, the figure first."""
    launched = _launch_text(*figures(found.before, found.final))
    end = f", {changed}" if (changed := change_text(found)) else ""
    if old == new and found.compiled is None:
        return f"Nothing to compare: both releases are XLA {old}; give --from or --to."
    same = releases = f"Two compilations by XLA {old}"
    if old != new:
        same, releases = f"XLA {old} and {new}", f"From XLA {old} to {new}"
    if found.same and _launches(found.final) == _launches(found.after):
        what = "fusions" if found.compiled is None else "kernels"
        return f"{same} create the same {what}: {launched}."
    return f"{releases}: {launched}{end}."


def compiled_line(found: Upgrade) -> str:
    """The part of the passes before fusion; empty where the new release did not compile it."""
    if found.compiled is None or (found.same and _launches(found.compiled) == _launches(found.after)):
        return ""
    fusion = figures(found.before, found.after)[0]
    earlier = figures(found.after, found.compiled)[0]
    return f"Fusion passes alone: {_count_text(fusion)}; passes before fusion: {earlier}."


def own_line(found: Upgrade, old: str) -> str:
    """The figures of XLA's own module, where the replays that are compared have others; else empty."""
    own, replayed = found.own, found.before
    if own is None or (launched := figures(own, own)) == figures(replayed, replayed):
        return ""
    return f"Replayed figures; the final module of XLA {old} in the dump has {_launch_text(*launched)}."


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


def row(found: Upgrade) -> Strings:
    return (printable(found.name), *figures(found.before, found.final), change_text(found), cause_text(found))


def summary(all_found: Sequence[Upgrade], old: str, new: str) -> str:
    changed = [f for f in all_found if not f.same]
    slower = sum((f.change_us or 0) > 0.005 for f in all_found)
    faster = sum((f.change_us or 0) < -0.005 for f in all_found)
    by = f" by XLA {new}'s cost model" if all_found[0].is_modelled else ""
    times = f"; {slower} slower, {faster} faster{by}" if slower or faster else ""
    many = plural(len(all_found), "module")
    return f"{len(changed):,} of {many} fused differently by XLA {new} than by {old}{times}."


def print_upgrade(
    found: Sequence[Upgrade],
    old: str,
    new: str,
    console: Page,
) -> None:
    """One module in full; of several a table, worst first, and the first of them in full."""
    if len(found) > 1:
        console.print(summary(found, old, new), style="bold")
        rows = [[Text(cell) for cell in row(f)] for f in found]
        columns = [(heading, "left" if heading in ("module", "cause") else "right") for heading in HEADINGS]
        print_rows(console, columns, console.first(rows))
        console.print_rest(rows)
        console.print()
        found = [f for f in found if not f.same][:1]
    for f in found:
        _print_one(f, old, new, console)


def _print_one(found: Upgrade, old: str, new: str, console: Page) -> None:
    console.print(f"{found.name}: {headline(found, old, new)}", style="bold")
    if found.is_modelled and old != new:
        console.print(f"Times of both releases are by XLA {new}'s cost model.", style="dim")
    for line in filter(None, (own_line(found, old), compiled_line(found))):
        console.print(line)
    if found.same:
        return
    console.print("Cause", style="bold cyan")
    for cause in found.causes:
        d = cause.difference
        what = f"{d.name}: {d.title}" if d.kind == "rule" else d.title
        indented(console, what + (f" (XLA {d.releases})" if d.releases else ""), 2, "bold")
        sides = (cause.totals, found.after) if cause.is_undone else (found.before, cause.totals)
        effect = "without and with it" if cause.is_undone else "alone"
        indented(console, f"{effect}: {_launch_text(*figures(*sides))}", 6)
    if unexplained(found):
        indented(console, unexplained(found))
    if found.comparison.flipped:
        print_flipped(found.comparison, console)
