"""What sweeps and rankings consist of: plain data, drawn by the reports beside it."""

from dataclasses import dataclass, field

from hlofuse.account import Observed, Totals
from hlofuse.reports.common.model import Refusal, RuleText
from hlofuse.reports.difference.model import Difference


@dataclass(frozen=True, slots=True)
class SweepAxis:
    """A knob, or device number, and the values it takes in a sweep."""

    name: str
    values: tuple[str, ...]
    """As the user wrote them."""
    unit: str = ""
    summary: str = ""


@dataclass(frozen=True, slots=True)
class Point:
    """One replay of a sweep."""

    device: str | None
    values: tuple[str, ...]
    """One for each axis; empty for XLA's own replay on the device."""
    is_xla: bool
    """Every knob has XLA's value, and nothing else is changed."""
    difference: Difference
    """Against XLA's own replay on the same device."""

    @property
    def totals(self) -> Totals:
        """The module as the passes leave it."""
        return self.difference.replayed


@dataclass(frozen=True, slots=True)
class Sweep:
    """All combinations of the axes' values, on each device."""

    module: str
    filename: str | None
    target: str
    release: str
    changes: tuple[str, ...]
    """What every point changes besides the axes."""
    axes: tuple[SweepAxis, ...]
    devices: tuple[str | None, ...]
    xla_values: tuple[tuple[str, ...], ...]
    """For each device: XLA's values of the axes."""
    xla: tuple[Totals, ...]
    """For each device: what XLA's own passes leave."""
    points: tuple[Point, ...] = field(repr=False)
    """The first axis changes slowest, the devices slower still."""

    @property
    def timed(self) -> bool:
        """There is a model of the time."""
        return all(t.us is not None for t in self.xla)


@dataclass(frozen=True, slots=True)
class RelaxedRule:
    """A rule that refused something, and what becomes of the module without it."""

    rule: RuleText
    difference: Difference
    blocks: tuple[Refusal, ...] = field(repr=False)
    """The edges between kernels that it keeps apart in XLA's result, greatest value first."""
    refusals: int
    """How often it said no in XLA's replay, to whatever pair."""

    @property
    def kernels_saved(self) -> int:
        """Negative where there are more without the rule."""
        return self.difference.xla.kernels - self.difference.replayed.kernels

    @property
    def bytes_saved(self) -> int:
        """Bytes that need not be moved without the rule."""
        return self.difference.xla.cost.bytes_accessed - self.difference.replayed.cost.bytes_accessed

    @property
    def us_saved(self) -> float | None:
        """Estimated microseconds; None for targets without a model of the time."""
        x, o = self.difference.xla.us, self.difference.replayed.us
        return x - o if x is not None and o is not None else None

    @property
    def gain(self) -> tuple[float, int, int]:
        """What rules are ranked by: time where it is estimated, then bytes, then kernels."""
        us = self.us_saved
        return (round(us, 4) if us is not None else 0.0, self.bytes_saved, self.kernels_saved)

    @property
    def changes_anything(self) -> bool:
        """The module comes out otherwise without it."""
        return not self.difference.same_decisions or self.gain != (0.0, 0, 0)

    @property
    def saves(self) -> bool:
        """The module would be better without it, by what is worth a word: a thousandth, or a kernel."""
        us, xla = self.us_saved, self.difference.xla
        if us is not None and xla.us is not None:
            return us > 0.001 * xla.us
        return self.bytes_saved > 0.001 * xla.cost.bytes_accessed or (
            self.kernels_saved > 0 and self.bytes_saved >= 0
        )


@dataclass(frozen=True, slots=True)
class FixedRule:
    """A rule that refused something and cannot be relaxed."""

    rule: RuleText
    reason: str
    """Why not."""
    blocks: tuple[Refusal, ...] = field(repr=False)
    refusals: int


@dataclass(frozen=True, slots=True)
class Ranking:
    """Which single rule costs a module most."""

    module: str
    filename: str | None
    target: str
    device: str | None
    release: str
    changes: tuple[str, ...]
    """What was changed before rules were relaxed; empty for XLA's own passes."""
    before: Totals
    after: Totals
    """What the passes leave with all rules in force."""
    relaxed: tuple[RelaxedRule, ...] = field(repr=False)
    """Greatest saving first."""
    fixed: tuple[FixedRule, ...] = field(repr=False)
    """Most bytes kept apart first."""
    selected: str | None = None
    """The name of the kernels that the rules keep others apart from; None for all rules."""
    observed: Observed | None = field(default=None, repr=False, compare=False)
    """The replay with all rules in force."""
