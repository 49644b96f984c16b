"""One module by two releases of XLA, and the changes between these that make the difference."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from hlofuse.account import Account, KernelTimes, Totals, observed_replay
from hlofuse.compilation import Compilation, CompilationInput, ReplayConfig, compile
from hlofuse.format.fields import fields
from hlofuse.pipelines.differences import ReleaseDifference, differences
from hlofuse.releases import Release
from hlofuse.reports.common.facts import EdgeNames, Facts, edges_inside
from hlofuse.reports.common.json import totals_json
from hlofuse.reports.comparison.json import flipped_json
from hlofuse.reports.comparison.model import Comparison, compare_builds

ConfigOf = Callable[[Release], ReplayConfig]
"""The configuration of a replay by a release, which may be a mixed one."""


@dataclass(frozen=True, slots=True)
class Cause:
    """One change between the releases that changes what is launched."""

    difference: ReleaseDifference
    totals: Totals
    """Totals of the old release with this one change, or of the new one without it."""
    is_undone: bool = False
    """`totals` are of the new release without the change: alone it does nothing."""


@dataclass(frozen=True, slots=True)
class Upgrade:
    """One module by two releases. Times of both are by the cost model of the new one."""

    name: str
    comparison: Comparison
    before: Totals
    after: Totals
    """Launches of the new release for the same module."""
    causes: tuple[Cause, ...]
    considered: tuple[ReleaseDifference, ...]
    """All that is known to differ between the releases for the target."""
    compiled: Totals | None = None
    """Launches of the program as compiled by the new release; None if that is not available."""

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
) -> Upgrade:
    """Replay `input` by both releases and, where the results differ, by the old one with each change alone,
    or, where none alone does anything, by the new one without each.

    `compiled` is the replay of the program as the new release brings it to the input of fusion.
    """
    first, second = (observed_replay(input, config_of(release)) for release in (old, new))
    comparison = compare_builds(first, second)
    considered = differences(first.replay.target, (old.name, new.name))
    before, after = _totals(first.replay, new), _totals(second.replay, new)
    causes: list[Cause] = []
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
        _totals(compiled, new) if compiled is not None else None,
    )


def _launches(totals: Totals) -> tuple[int, int]:
    """Kernels and bytes, which show that other kernels run; times are the model's."""
    return totals.kernels, totals.cost.bytes_accessed


def _inside(done: Compilation) -> set[EdgeNames]:
    return edges_inside(Facts(done))


def _totals(done: Compilation, release: Release) -> Totals:
    device, module = done.config.device, done.final
    if device is not None:
        return KernelTimes(device, release).account(module, is_final=True).totals
    return Account(module, backend=done.config.build.backend, is_final=True).totals


SCHEMA = "hlofuse.upgrade/3"


def upgrade_json(found: Sequence[Upgrade], old: str, new: str) -> dict[str, Any]:
    """The modules, worst first, as JSON values."""
    return {
        "schema": SCHEMA,
        "from": old,
        "to": new,
        "changes": [_difference(d) for d in found[0].considered] if found else [],
        "modules": [
            {
                **fields(f, "name same"),
                **fields(f, "totals_from=before totals_to=after totals_compiled=compiled", totals_json),
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


def _difference(d: ReleaseDifference) -> dict[str, Any]:
    return fields(d, "kind name title xla=releases mirrors=source")
