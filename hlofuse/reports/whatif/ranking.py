"""The worth of each rule, switched off alone, and replays over a grid of knobs' values."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import product

from hlofuse.account import PRIORITY_FUSION, Observed, SharedStart, observed_replay
from hlofuse.compilation import Checkpoint, Compilation, CompilationInput, ReplayConfig
from hlofuse.cost.gpu.shared_tables import SharedTables
from hlofuse.ir import HlofuseError, replace
from hlofuse.ir.copy import same_module
from hlofuse.passes.registry import single_passes
from hlofuse.reports.common.model import Refusal
from hlofuse.reports.comparison.model import compare, result_of
from hlofuse.reports.explain.explain import blocking_rules_of
from hlofuse.reports.explain.model import BlockingRule, Explanation
from hlofuse.rules.catalogue import catalogue, family_of
from hlofuse.rules.settings import all_knobs
from .model import FixedRule, Point, Ranking, RelaxedRule, Sweep, SweepAxis

_JOINS = "multi_output_fusion"
_OF_JOINS = "GM"
_NO_RULES_OF_JOINS = frozenset({"variadic-op-splitter", "sort-iota-fusion", PRIORITY_FUSION, "cse", "dce"})
Progress = Callable[[int, int], None]  # Called with how many replays are done, of how many


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


def _names(passes: tuple[str, ...]) -> set[str]:
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


def _fixed_changes(config: ReplayConfig, axes: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
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
