"""Sweeps and rankings: plain data, printed by the reports."""

from dataclasses import dataclass, field

from hlofuse.account import Account, Observed, Totals
from hlofuse.account.account import compared_us, scaled_saving
from hlofuse.format.fields import fields
from hlofuse.ir.record import Json, Record
from hlofuse.reports.common.json import refusal_json, totals_json
from hlofuse.reports.common.model import Refusal
from hlofuse.reports.comparison.model import Comparison, difference_json
from hlofuse.rules.catalogue import Rule


class SweepAxis(Record):
    """A knob, or device number, and the values it takes in a sweep."""

    name: str
    values: tuple[str, ...]  # As the user wrote them
    unit: str = ""
    summary: str = ""


class Point(Record):
    device: str | None
    values: tuple[str, ...]  # One for each axis; empty for XLA's own replay on the device
    is_xla: bool  # Every knob has XLA's value, and nothing else is changed
    difference: Comparison  # Against XLA's own replay on the same device

    @property
    def totals(self) -> Totals:
        return self.difference.replayed


class Sweep(Record):
    """All combinations of the axes' values, on each device."""

    module: str
    filename: str | None
    target: str
    release: str
    changes: tuple[str, ...]
    """Changes that every point has in common."""
    axes: tuple[SweepAxis, ...]
    devices: tuple[str | None, ...]
    xla_values: tuple[tuple[str, ...], ...]
    """For each device: XLA's values of the axes."""
    xla: tuple[Totals, ...]
    """For each device: what XLA's own passes leave."""
    points: tuple[Point, ...]
    """The first axis changes slowest, the devices slower still."""

    @property
    def timed(self) -> bool:
        return all(t.us is not None for t in self.xla)


MIN_TEMPORARY = 1 << 20  # The least temporary memory that is worth saving, in bytes
_SLOWER = 0.01  # the part of the time that saved memory may cost
_MEMORY = 0.25  # the part of the temporary memory that makes a change worth naming, whatever its time
_LITTLE = 0.1  # the part of the time that may come on top where kernels of unknown time go
_MORE_WORK, _MORE_CODE = 1.02, 1.1
"""Growth of operations, and of instructions, from which saved bytes and launches prove nothing."""


class Trial(Record):
    """The result of a change on this module."""

    totals: Totals | None  # The totals with the change; None where nothing was replayed
    how: str  # The way in which it was tried, in words
    us_saved: float | None  # None where no time is estimated
    kernels_saved: int
    launches_saved: int
    bytes_saved: int
    scaled_us_saved: float | None = None
    """`us_saved` scaled to the measured time of the kernels that change; None where nothing says that."""
    temporary_saved: int | None = None  # Bytes of temporary memory; None where they are not known
    memory_saved: int | None = None  # Bytes of all memory
    has_fewer_library_calls: bool = False
    """XLA's own code does what a library did, which may have been faster."""
    has_more_code: bool = False  # The module grows or computes more, which no estimated time accounts for

    roughly_timed: str = ""  # Kernels whose time rests on one measurement of one shape; empty for none
    iteration_us_saved: float = 0.0  # The part of `us_saved` in loops of unknown length, of one iteration

    @property
    def is_to_be_measured(self) -> bool:
        """Only a measurement tells whether it helps, and there is none."""
        return self.has_no_time and (self.has_fewer_library_calls or self.has_more_code)

    @property
    def has_no_time(self) -> bool:
        """Nothing says how many microseconds it saves."""
        return self.us_saved is None and self.scaled_us_saved is None

    @property
    def gain(self) -> tuple[float, int, int]:
        """The ranking key: scaled or estimated time, else launches, then bytes."""
        us = self.compared_us_saved if self.scaled_us_saved is None else self.scaled_us_saved
        return round(us or 0.0, 4), self.launches_saved, self.bytes_saved

    @property
    def compared_us_saved(self) -> float | None:
        """Microseconds of `Totals.compared_us` that it saves; None where no time is estimated."""
        return None if self.us_saved is None else compared_us(self.us_saved, self.iteration_us_saved)

    def relief(self, totals: Totals) -> float:
        """The whole tenths of the bytes lacking that it saves: 1.0 makes it fit; 0 where the program fits."""
        lacking = totals.lacking_bytes
        return min(10 * (self.memory_saved or 0) // lacking, 10) / 10 if lacking else 0.0

    def saves_memory(self, totals: Totals) -> bool:
        """Saves a quarter of the temporary memory in about the same time, or a tenth of the bytes lacking."""
        if totals.lacking_bytes:
            return self.relief(totals) > 0
        if self.us_saved is not None and self.us_saved < -_SLOWER * (totals.us or 0.0):
            return False
        return self.frees_memory(totals)

    def frees_memory(self, totals: Totals) -> bool:
        """Saves a quarter of the temporary memory, in whatever time."""
        return (self.temporary_saved or 0) >= max(_MEMORY * (totals.peak_temporary_bytes or 0), MIN_TEMPORARY)

    def takes_memory(self, totals: Totals) -> bool:
        """Needs a quarter of all memory on top."""
        return -(self.temporary_saved or 0) >= max(_MEMORY * (totals.memory_bytes or 0), MIN_TEMPORARY)

    def replaces_unknown(self, totals: Totals) -> bool:
        """Kernels whose time is not known give way to others, which take little by what is known."""
        after = self.totals
        if after is None or not self.has_no_time or self.is_to_be_measured:
            return False
        is_cheap = (after.us or 0.0) <= (1 + _LITTLE) * (totals.us or 0.0)
        return after.unknown < totals.unknown and is_cheap

    def helps(self, totals: Totals) -> bool:
        """Better than `totals` by a thousandth of the time; without times by a launch, or so many bytes.
        Where times are not comparable, by a launch. A quarter of the temporary memory is a gain, too."""
        if self.saves_memory(totals) or self.replaces_unknown(totals):
            return True
        if self.scaled_us_saved is not None:
            return self.scaled_us_saved > 0.001 * (totals.measured_us or 0.0)
        if (saved := self.compared_us_saved) is not None and totals.compared_us is not None:
            return saved > 0.001 * totals.compared_us
        fewer = totals.us is None and self.bytes_saved > 0.001 * totals.cost.bytes_accessed
        return self.launches_saved >= 0 and (fewer or (self.launches_saved > 0 and self.bytes_saved >= 0))


def trial_of(
    before: Totals, after: Totals, how: str, accounts: tuple[Account, Account] | None = None
) -> Trial:
    """The trial of a replayed change; `accounts` have the measured times from before, if there are any."""
    us, fewer = None, after.unknown < before.unknown
    if before.us is not None and after.us is not None and after.without_time <= before.without_time:
        us = before.us - after.us
        us = None if us < 0 and fewer else us
    grows = (us is None and not fewer) and (
        after.cost.flops > _MORE_WORK * before.cost.flops
        or (accounts is not None and _size(accounts[1]) > _MORE_CODE * _size(accounts[0]))
    )
    return Trial(
        after,
        how,
        us,
        before.kernels - after.kernels,
        before.launches - after.launches,
        before.cost.bytes_accessed - after.cost.bytes_accessed,
        scaled_saving(*accounts) if accounts is not None else after.scaled_saving_us,
        _fewer(before.peak_temporary_bytes, after.peak_temporary_bytes),
        _fewer(before.memory_bytes, after.memory_bytes),
        has_more_code=grows,
        iteration_us_saved=before.iteration_us - after.iteration_us,
    )


def _fewer(before: int | None, after: int | None) -> int | None:
    return before - after if before is not None and after is not None else None


def _size(account: Account) -> int:
    return account.module.instruction_count


class RelaxedRule(Record):
    """A rule that refused something, and what becomes of the module without it."""

    rule: Rule
    difference: Comparison
    blocks: tuple[Refusal, ...]
    """The edges between kernels that it keeps apart in XLA's result, greatest value first."""
    refusals: int  # Pairs that it refused in XLA's replay

    @property
    def trial(self) -> Trial:
        """The gain of the module without it."""
        found = self.difference
        return trial_of(found.xla, found.replayed, f"replayed without {self.rule.code}")

    @property
    def changes_anything(self) -> bool:
        """The module comes out otherwise without it."""
        return not self.difference.same_decisions or self.trial.gain != (0.0, 0, 0)


class FixedRule(Record):
    """A rule that refused something and cannot be relaxed."""

    rule: Rule
    reason: str  # Why not
    blocks: tuple[Refusal, ...]
    refusals: int


@dataclass(frozen=True, slots=True)
class Ranking:
    """Single rules by what they cost a module."""

    module: str
    filename: str | None
    target: str
    device: str | None
    release: str
    changes: tuple[str, ...]
    """Changes made before rules were relaxed; empty for XLA's own passes."""
    before: Totals
    after: Totals
    """The totals with all rules in force."""
    relaxed: tuple[RelaxedRule, ...] = field(repr=False)
    """Greatest saving first."""
    fixed: tuple[FixedRule, ...] = field(repr=False)
    """Most bytes kept apart first."""
    selected: str | None = None
    """The name of the kernels that the rules keep others apart from; None for all rules."""
    observed: Observed | None = field(default=None, repr=False, compare=False)
    """The replay with all rules in force."""


SCHEMA = "hlofuse.what-if/3"


def ranking_json(r: Ranking) -> Json:
    """The ranking as JSON values."""
    return {
        "schema": SCHEMA,
        "about": "rules",
        **fields(r, "module file=filename target device release changes selected"),
        **fields(r, "before", totals_json),
        "after": totals_json(r.after, "replayed"),
        "relaxed": [
            {
                **fields(x, "rule=rule.code title=rule.title refusals"),
                **fields(x.trial, "kernels_saved bytes_saved us_saved~ scaled_us_saved~"),
                "saves": x.trial.helps(x.difference.xla),
                **fields(x, "blocks", refusal_json),
                **fields(x, "difference", difference_json),
            }
            for x in r.relaxed
        ],
        "fixed": [
            {
                **fields(f, "rule=rule.code title=rule.title reason refusals"),
                **fields(f, "blocks", refusal_json),
            }
            for f in r.fixed
        ],
    }


def sweep_json(s: Sweep) -> Json:
    """The sweep as JSON values."""
    names = [a.name for a in s.axes]
    return {
        "schema": SCHEMA,
        "about": "sweep",
        **fields(s, "module file=filename target release changes"),
        "axes": [fields(a, "name values unit summary") for a in s.axes],
        "devices": [
            {
                "device": device,
                "xla_values": dict(zip(names, values, strict=True)),
                "xla": totals_json(xla),
            }
            for device, values, xla in zip(s.devices, s.xla_values, s.xla, strict=True)
        ],
        "points": [
            {
                "device": p.device,
                "values": dict(zip(names, p.values, strict=True)),
                "is_xla": p.is_xla,
                "difference": difference_json(p.difference),
            }
            for p in s.points
        ],
    }
