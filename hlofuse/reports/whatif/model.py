"""Rankings, the worth of each rule switched off alone, and sweeps, replays over a grid of knobs' values."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

from hlofuse.account import PRIORITY_FUSION, Account, Observed, SharedStart, Totals, observed_replay
from hlofuse.account.account import compared_us, scaled_saving
from hlofuse.compilation import Checkpoint, Compilation, CompilationInput, ReplayConfig
from hlofuse.cost.gpu.summary_table import SharedTables
from hlofuse.format import fields
from hlofuse.ir import HlofuseError, Json, Progress, Record, Strings, replace
from hlofuse.ir.copy import same_module
from hlofuse.passes.registry import single_passes
from hlofuse.reports.common.model import Refusal, refusal_json, totals_json
from hlofuse.reports.comparison.model import Comparison, compare, difference_json, result_of
from hlofuse.reports.explain.explain import blocking_rules_of
from hlofuse.reports.explain.model import BlockingRule, Explanation
from hlofuse.rules.catalogue import Rule, catalogue, family_of
from hlofuse.rules.settings import all_knobs


class SweepAxis(Record):
    """A knob, or device number, and the values it takes in a sweep."""

    name: str
    values: Strings  # As the user wrote them
    unit: str = ""
    summary: str = ""


class Point(Record):
    device: str | None
    values: Strings  # One for each axis; empty for XLA's own replay on the device
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
    changes: Strings
    """Changes that every point has in common."""
    axes: tuple[SweepAxis, ...]
    devices: tuple[str | None, ...]
    xla_values: tuple[Strings, ...]
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
    changes: Strings
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


_JOINS = "multi_output_fusion"
_OF_JOINS = "GM"
_NO_RULES_OF_JOINS = frozenset({"variadic-op-splitter", "sort-iota-fusion", PRIORITY_FUSION, "cse", "dce"})


def rank(
    input: CompilationInput,
    config: ReplayConfig,
    *,
    attach: Callable[[Compilation], object] | None = None,
    cache: SharedTables | None = None,
    progress: Progress | None = None,
    narrowed: Callable[[Observed], Explanation] | None = None,
    goes_on: Callable[[], bool] = lambda: True,
) -> Ranking:
    """Relax every rule that refused something, one at a time; rules that refused nothing are left out.
    `attach` joins the kernels of the replay with all rules to a profile; `cache` is an earlier replay's.
    `narrowed` explains the kernels alone that the question is about: then only the rules count that keep
    another kernel apart from these. It ends where `goes_on` says so. A rule that says no only where another
    has, or only cause another, comes out as saving nothing."""
    base = replace(config, xla=None)
    structures = cache or SharedTables()
    begun = Checkpoint(base.passes[0]) if base.passes else None
    start = _start_of_joins(base, begun)
    observed = observed_replay(input, base, cache=structures, start=start, begun=begun)
    if attach is not None:
        attach(observed.replay)
    xla_run = result_of(observed)
    explanation = narrowed(observed) if narrowed else None
    found = explanation.blocking_rules if explanation else blocking_rules_of(xla_run.facts)
    blocking_rules = {o.rule.code: o for o in found}
    events = () if narrowed else observed.replay.events
    counts = Counter(e.rule for e in events if e.event == "ineligible" and e.rule is not None)
    for code, blocking in blocking_rules.items():
        counts.setdefault(code, blocking.edges)  # the cost model's verdict is no event of its own
    rules = catalogue()
    codes = [c for c in counts if c in rules and c not in config.settings.disabled]
    relaxable = [c for c in codes if not rules[c].fixed]
    relaxed, fixed = [], []
    for done, code in enumerate(relaxable):
        if progress is not None:
            progress(done, len(relaxable))
        if not goes_on():
            break
        settings = replace(config.settings, disabled=config.settings.disabled | {code})
        without = replace(base, settings=settings)
        same = start if family_of(code) == _OF_JOINS and input.record is None else None
        try:
            changed = observed_replay(
                input, without, cache=structures, start=same, begun=begun, totals_only=True
            )
        except HlofuseError:  # too many decisions
            continue
        equal = same_module(observed.replay.after, changed.replay.after)
        result = xla_run if equal else result_of(changed)
        difference = compare(xla_run, result, (*config.changes, f"without {code}"))
        relaxed.append(
            RelaxedRule(xla_run.facts.rule(code), difference, _blocked(blocking_rules, code), counts[code])
        )
    for code in codes:
        if rules[code].fixed and not (rules[code].outcome or rules[code].estimated):
            blocks = _blocked(blocking_rules, code)
            fixed.append(FixedRule(xla_run.facts.rule(code), rules[code].fixed, blocks, counts[code]))
    relaxed.sort(key=lambda r: (*(-x for x in r.trial.gain), -len(r.blocks), r.rule.code))
    fixed.sort(key=lambda f: (-sum(r.bytes_between for r in f.blocks), -f.refusals, f.rule.code))
    return Ranking(
        input.module.name,
        input.module.filename,
        config.target,
        observed.replay.device,
        config.release.title,
        config.changes,
        xla_run.facts.totals_before,
        xla_run.totals,
        tuple(relaxed),
        tuple(fixed),
        explanation.selected.name if explanation and explanation.selected else None,
        observed,
    )


def _start_of_joins(config: ReplayConfig, begun: Checkpoint | None) -> SharedStart | None:
    """Without a rule of GPU's MultiOutputFusion: as before until it; None if earlier passes may ask it."""
    passes = config.passes
    if config.device is None or _JOINS not in passes:
        return None
    place = passes.index(_JOINS)
    if _names(passes[:place]) <= _NO_RULES_OF_JOINS and PRIORITY_FUSION not in _names(passes[place:]):
        return SharedStart(Checkpoint(_JOINS, earlier=begun))
    return None


def _names(passes: Strings) -> set[str]:
    return {text.partition("(")[0] for text in single_passes(passes)}


def _blocked(blocking_rules: dict[str, BlockingRule], code: str) -> tuple[Refusal, ...]:
    return blocking_rules[code].refusals if code in blocking_rules else ()


Vary = Callable[[Mapping[str, str]], ReplayConfig]
"""Makes the variant in which these knobs have these values, on one device."""
MOST_POINTS = 400


def sweep(
    input: CompilationInput,
    devices: Sequence[Vary],
    axes: Mapping[str, Sequence[str]],
    *,
    progress: Progress | None = None,
) -> Sweep:
    """Every combination of the axes' values on every device: several axes make a grid. HlofuseError for an
    unknown knob, a value that is none, or more than `MOST_POINTS` combinations."""
    grid = list(product(*axes.values()))
    total = len(grid) * len(devices)
    if total > MOST_POINTS:
        raise HlofuseError(f"{total} combinations in a sweep; at most {MOST_POINTS} are allowed")
    configs = [[vary(dict(zip(axes, values, strict=True))) for values in grid] for vary in devices]
    points = list[Point]()
    xla_totals, xla_values = [], []
    structures = SharedTables()
    for row in configs:
        base = row[0].xla or row[0]
        observed = observed_replay(input, base, cache=structures)
        xla_run = result_of(observed)
        default = tuple(_default(name, base) for name in axes)
        for values, config in zip(grid, row, strict=True):
            if progress is not None:
                progress(len(points), total)
            same = _equal(values, default) and _fixed_changes(config, axes) == ()
            if same:
                baseline = xla_run
            else:
                alone = replace(config, changes=(), xla=None)
                baseline = result_of(observed_replay(input, alone, cache=structures))
            difference = compare(xla_run, baseline, config.changes)
            points.append(Point(observed.replay.device, values, same, difference))
        xla_totals.append(xla_run.totals)
        xla_values.append(default)
    first = configs[0][0]
    return Sweep(
        input.module.name,
        input.module.filename,
        first.target,
        first.release.title,
        _fixed_changes(first, axes),
        tuple(_axis(name, values) for name, values in axes.items()),
        tuple(row[0].device.name if row[0].device is not None else None for row in configs),
        tuple(xla_values),
        tuple(xla_totals),
        tuple(points),
    )


def _fixed_changes(config: ReplayConfig, axes: Mapping[str, Sequence[str]]) -> Strings:
    return tuple(c for c in config.changes if c.partition("=")[0] not in axes)


def _axis(name: str, values: Sequence[str]) -> SweepAxis:
    knob = all_knobs().get(name)
    if knob is None:
        return SweepAxis(name, tuple(values), "", "device number")
    return SweepAxis(name, tuple(values), knob.unit, knob.summary)


def _default(name: str, xla: ReplayConfig) -> str:
    knob = all_knobs().get(name)
    value = knob.value_in(xla.release) if knob is not None else getattr(xla.device, name, "")
    return f"{value:.12g}" if isinstance(value, float) else str(value)


def _equal(values: Sequence[str], default: Sequence[str]) -> bool:
    def number(text: str) -> float | str:
        try:
            return float(text)
        except ValueError:
            return text

    return [number(v) for v in values] == [number(d) for d in default]


def sweep_json(s: Sweep) -> Json:
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
