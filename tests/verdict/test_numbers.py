"""Verdicts: sums, shares and thresholds worked out by hand, with a case on both sides of each."""

from __future__ import annotations

import math
import re
from functools import partial
from itertools import pairwise
from types import SimpleNamespace
from typing import Any
from unittest.mock import ANY

import pytest

from hlofuse.account import Totals, observed_replay
from hlofuse.account.bound import FusionFloor
from hlofuse.account.collectives import Overlap
from hlofuse.analysis.cost import Cost
from hlofuse.compilation import CompilationInput, replay_config
from hlofuse.ir import parse_module
from hlofuse.ir.record import replace
from hlofuse.reports.common.facts import Facts
from hlofuse.reports.common.model import Place
from hlofuse.reports.verdict import candidates, phrases, text
from hlofuse.reports.verdict import verdict as module
from hlofuse.reports.verdict.collectives import _overlap, collective_rows
from hlofuse.reports.verdict.model import Share, Suggestion, Verdict
from hlofuse.reports.whatif.model import Trial, rank
from .test_verdict import RMS

BASE = Totals(2, Cost(bytes_read=1000, bytes_written=500), launches=2, modelled_us=90.0, floor_us=10.0)
without_limit = partial(candidates.Budget, math.inf)
FLAG = "--xla_gpu_unsupported_enable_triton_multi_output_fusion=true"


def observed_rms() -> tuple[Any, Facts]:
    observed = observed_replay(CompilationInput(parse_module(RMS)), replay_config("gpu", "h100_sxm"))
    return observed, Facts(observed.replay, observed.costs)


def account(us: float, libraries: int = 0, work: object = "same") -> Any:
    """What a verdict on a flag asks of an account."""
    rows = [SimpleNamespace(kind="library")] * libraries
    totals = replace(BASE, modelled_us=us - 10.0)
    return SimpleNamespace(totals=totals, rows=rows, bounded_work=work, times=None)


@pytest.mark.parametrize(
    ("after", "touched", "saved"),
    [
        # A twentieth of the estimate.
        (account(94.9), 0.05, 5.1),
        (account(95.1), 0.05, None),
        (account(101.0), 0.05, None),
        # Another lower bound cannot be compared, unless it is higher. It may save what it touches.
        (account(99.0, work="other"), 0.05, ...),
        (account(99.0, work="other"), 0.049, None),
        (account(100.0, work="other"), 0.05, ...),
        (account(101.0, work="other"), 0.05, None),
    ],
)
def test_a_flag_is_offered_if_it_saves_a_twentieth(
    monkeypatch: pytest.MonkeyPatch, after: Any, touched: float, saved: Any
) -> None:
    before = account(100.0)
    observed, facts = observed_rms()

    def compiled(_observed: Any, _module: Any, flags: tuple[str, ...]) -> Any:
        return observed, after if FLAG in flags else before

    monkeypatch.setattr(candidates, "compiled", compiled)
    monkeypatch.setattr(candidates, "share_of_change", lambda *_: touched)
    monkeypatch.setattr("hlofuse.reports.whatif.model.scaled_saving", lambda *_: None)
    found = list(candidates.of_flags(facts, parse_module(RMS), without_limit(observed)))
    if saved is None:
        assert found == []
        return
    (suggestion,) = found
    assert (suggestion.kind, suggestion.flag) == ("flag", FLAG)
    assert suggestion.trial.us_saved == (None if saved is ... else pytest.approx(saved))
    assert suggestion.trial.has_fewer_library_calls is False


@pytest.mark.parametrize(
    ("kind", "before", "after", "near"),
    [
        ("all-gather", 49, 49, "for z.py:2"),
        ("all-gather", 49, 50, "from a.py:1"),
        ("all-reduce", 49, 49, "from a.py:1"),
        ("all-reduce", 50, 49, "for z.py:2"),
        ("all-reduce", 50, 50, ""),
    ],
)
def test_a_collective_without_a_line_is_near_one_of_49_instructions(
    kind: str, before: int, after: int, near: str
) -> None:
    """The readers first, or the operands of a sum; its own line needs no other."""
    names = ["a", *(f"b{n}" for n in range(1, before)), "c", *(f"d{n}" for n in range(1, after)), "z"]
    lines = [f"  {y} = f32[8]{{0}} negate({x})" for x, y in pairwise(names)]
    text = "\n".join(["HloModule m", "ENTRY e {", "  a = f32[8]{0} parameter(0)", *lines, "}"])
    instruction = parse_module(text.replace("  z =", "  ROOT z =")).find("c")
    assert instruction is not None
    collective: Any = SimpleNamespace(
        instruction=instruction, exchange=SimpleNamespace(kind=kind, bytes_on_wire=None), us=None, runs=1
    )
    sources = {"a": "a.py:1 f", "z": "z.py:2 f"}
    for found in (near, ""):
        (row,) = collective_rows([collective], lambda x: Place(x.name, source=sources.get(x.name)))
        assert row.near == found
        sources["c"] = "c.py:3 f"


@pytest.mark.parametrize("root", ["(f32[8]{0}) tuple(c)", "f32[8]{0} negate(c)"])
def test_a_gather_of_a_result_is_asked_for_by_out_shardings(root: str) -> None:
    gather = "a = f32[1]{0} parameter(0)\n  c = f32[8]{0} all-gather(a), dimensions={0}"
    instruction = parse_module(f"HloModule m\nENTRY e {{\n  {gather}\n  ROOT r = {root}\n}}").find("c")
    exchange = SimpleNamespace(kind="all-gather", bytes_on_wire=None)
    collective: Any = SimpleNamespace(instruction=instruction, exchange=exchange, us=None, runs=1)
    (row,) = collective_rows([collective], lambda x: Place(x.name))
    assert row.near == ("for a whole result (out_shardings)" if "tuple" in root else "")


@pytest.mark.parametrize(
    ("overlap", "is_floor", "hides_exactly", "word"),
    [
        (None, False, True, None),
        (Overlap(False, [], 3.0), False, True, "synchronous"),
        (Overlap(True, [], 3.0), False, True, "exposed"),
        (Overlap(True, [ANY], None), False, True, None),
        (Overlap(True, [ANY], 3.0), True, True, None),
        (Overlap(True, [ANY], 0.0), False, False, "hidden"),
        (Overlap(True, [ANY], 3.0), False, True, "partly exposed"),
        (Overlap(True, [ANY], 3.0), False, False, None),
    ],
)
def test_a_collective_is_hidden_as_far_as_times_say(
    overlap: Overlap | None, is_floor: bool, hides_exactly: bool, word: str | None
) -> None:
    collective: Any = SimpleNamespace(overlap=overlap, is_floor=is_floor, hides_exactly=hides_exactly)
    assert _overlap(collective) == word


@pytest.mark.parametrize(("us", "code", "count"), [(1.0, "PF009", 1), (0.99, "PF009", 0), (1.0, "PF001", 0)])
def test_a_limitation_of_xla_counts_from_a_hundredth_of_the_time(us: float, code: str, count: int) -> None:
    lines = ("a.py:1", None, "a.py:2", "a.py:1")
    blocks = [SimpleNamespace(producer=SimpleNamespace(source=line)) for line in lines]
    rule = SimpleNamespace(code=code, title="t")
    relaxed = [SimpleNamespace(trial=trial(us), rule=rule, blocks=blocks)]
    others = [suggested(2.0, rule="PF001")]
    ranking: Any = SimpleNamespace(after=BASE, relaxed=relaxed)
    found = [(s.kind, s.sources, s.places, s.trial.us_saved) for s in candidates.of_rules(ranking, others)]
    assert found == [("report", ("a.py:1", "a.py:2"), 4, us)] * count
    assert list(candidates.of_rules(SimpleNamespace(after=Totals(1, Cost()), relaxed=relaxed), [])) == []  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("us", "may_lose", "stays"),
    [(15.1, True, True), (15.0, False, False), (0.0, False, True), (-5.0, False, True), (-5.0, True, False)],
)
def test_a_gain_below_the_error_of_estimates_is_to_be_measured(
    us: float, may_lose: bool, stays: bool
) -> None:
    given = trial(us, replace(BASE, modelled_us=90.0 - us))
    found = candidates._of_large_gain(given, may_lose)
    assert found == (given if stays else replace(given, us_saved=None, has_more_code=True))


@pytest.mark.parametrize(("before", "after", "fewer"), [(2, 1, True), (1, 1, False), (1, 2, False)])
def test_a_flag_says_whether_libraries_do_less(
    monkeypatch: pytest.MonkeyPatch, before: int, after: int, fewer: bool
) -> None:
    observed, facts = observed_rms()
    accounts = {True: account(50.0, after), False: account(100.0, before)}
    monkeypatch.setattr(candidates, "compiled", lambda o, _m, flags: (o, accounts[FLAG in flags]))
    monkeypatch.setattr(candidates, "share_of_change", lambda *_: 1.0)
    monkeypatch.setattr("hlofuse.reports.whatif.model.scaled_saving", lambda *_: None)
    (found,) = candidates.of_flags(facts, parse_module(RMS), without_limit(observed))
    assert found.trial.has_fewer_library_calls is fewer
    # Without the module before optimizations, or where that gives another module, nothing is compared.
    assert list(candidates.of_flags(facts, None, without_limit(observed))) == []
    accounts[False].totals = replace(BASE, kernels=3)
    assert list(candidates.of_flags(facts, parse_module(RMS), without_limit(observed))) == []


def trial(us: float | None, totals: Totals | None = BASE, launches: int = 0) -> Trial:
    return Trial(totals, "replayed", us, 0, launches, 0)


def suggested(us: float, **how: Any) -> Suggestion:
    return replace(Suggestion("code", "Do it", "", (), 1, trial(us)), **how)


def test_of_equal_rule_and_place_the_greatest_gain_stands_and_what_gains_nothing_is_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    observed, facts = observed_rms()
    us = facts.totals_after.us
    assert us is not None
    recipes = [
        suggested(1.0, text="less", rule="PF009", sources=("a.py:1",)),
        suggested(2.0, text="more", rule="PF009", sources=("a.py:1",)),
        suggested(0.5, text="elsewhere", rule="PF009", sources=("a.py:2",)),
        suggested(us * 0.0011, text="just enough"),
        suggested(us * 0.0009, text="too little"),
        suggested(0.0, text="untried", trial=candidates.UNKNOWN),
        suggested(0.0, text="flag without a gain", kind="flag", flag="--f"),
    ]
    monkeypatch.setattr(candidates, "of_recipes", lambda *_: recipes)
    monkeypatch.setattr(candidates, "of_flags", lambda *_: [])
    monkeypatch.setattr(candidates, "of_rules", lambda *_: [])
    found = module.verdict(observed, facts)
    assert [s.text for s in found.suggestions] == ["more", "elsewhere", "just enough"]
    assert [s.text for s in found.untried] == ["untried", "flag without a gain"]
    assert found.best is not None
    assert found.best.us_saved == 2.0
    assert found.best_of == "more"


def test_shares_add_up_to_the_total_with_launches_as_their_own_kind() -> None:
    observed, facts = observed_rms()
    found = module.verdict(observed, facts)
    shares = {s.kind: s for s in found.shares}
    assert set(shares) == {"fused kernels", "launches"}
    overhead = facts.account_after.launch_overhead_us
    assert overhead == 1.0
    assert (shares["launches"].count, shares["launches"].us) == (2, 2 * overhead)
    assert shares["fused kernels"].count == 2
    assert sum(s.us or 0.0 for s in found.shares) == pytest.approx(found.totals.us)
    assert shares["fused kernels"].bytes_accessed == found.totals.cost.bytes_accessed
    assert [s.kind for s in found.shares] == ["fused kernels", "launches"]


def verdict_of(fused_us: float, measured: float | None, floor_us: float, launches: Share | None) -> Verdict:
    shares = [Share("fused kernels", 8, fused_us, 100, measured_us=measured)]
    shares += [launches] if launches is not None else []
    return Verdict(BASE, tuple(shares), FusionFloor(10, floor_us), None, (), is_ranked=True)


def test_what_is_left_scales_with_the_measured_time_of_fused_kernels() -> None:
    launches = Share("launches", 16, 20.0, 0)
    # 60 µs estimated and half of the launches, 10 µs, took 140 µs: twice as long; 40 µs are above the floor.
    assert verdict_of(60.0, 140.0, 60.0, launches).scaled_us_left == pytest.approx(2 * 40.0)
    assert verdict_of(60.0, 140.0, 120.0, launches).scaled_us_left == 0.0
    assert verdict_of(60.0, None, 60.0, launches).scaled_us_left is None
    assert verdict_of(60.0, 140.0, 60.0, None).scaled_us_left is None
    assert verdict_of(0.0, 140.0, 60.0, launches).scaled_us_left is None


def many_norms(count: int) -> str:
    """The same two kernels several times, each of its own array."""
    head, _, rest = RMS.partition("ENTRY e {\n")
    body = rest.rstrip().removesuffix("}").replace("ROOT ", "")
    names = re.compile(r"\b(x|square|zero|sum|n|scale|mean|small|epsilon|moved|root)\b")
    copies = [names.sub(rf"\1.{k}", body).replace("parameter(0)", f"parameter({k})") for k in range(count)]
    shape, roots = ", ".join(["f32[4096]{0}"] * count), ", ".join(f"root.{k}" for k in range(count))
    return f"{head}ENTRY e {{\n{''.join(copies)}  ROOT t = ({shape}) tuple({roots})\n}}\n"


def test_what_equal_places_gain_is_counted_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of equal places in a large module one is replayed; all of them save what it saves."""
    config = replay_config("gpu", "h100_sxm")
    observed = observed_replay(CompilationInput(parse_module(many_norms(3))), config)
    facts = Facts(observed.replay, observed.costs)
    whole = next(s for s in module.verdict(observed, facts).suggestions if s.recipe == "scale-the-summands")
    monkeypatch.setattr(module, "TRIED_UP_TO", 0)
    large = next(s for s in module.verdict(observed, facts).suggestions if s.recipe == "scale-the-summands")
    assert large.trial.how == "replayed on the kernels around each place"
    assert (whole.places, large.places) == (3, 3)
    for found in (whole, large):
        assert (found.trial.kernels_saved, found.trial.launches_saved) == (3, 3)
    assert large.trial.us_saved == pytest.approx(whole.trial.us_saved)
    assert large.trial.bytes_saved == whole.trial.bytes_saved > 0


@pytest.mark.parametrize(("run", "whole"), [(9.0, 10.0), (10.0, 10.0), (12.0, 12.0)])
def test_measured_parts_are_at_most_the_whole(run: float, whole: float) -> None:
    """Kernels that run at once, or slower in the profile, take more than the run."""
    shares = (Share("sorts", 1, 5.0, 100, measured_us=7.0), Share("copies", 1, 1.0, 10, measured_us=3.0))
    found = replace(verdict_of(1.0, None, 1.0, None), shares=shares, totals=replace(BASE, measured_us=run))
    assert found.measured_whole == whole


def test_a_trial_is_made_if_one_as_long_as_the_longest_ends_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = iter([0.0, 1.0, 5.0, 8.0, 8.0])
    monkeypatch.setattr(candidates, "process_time", lambda: next(seconds))
    budget = candidates.Budget(9.0, observed_rms()[0])
    assert [budget.allows() for _ in range(4)] == [True, True, False, False]
    assert budget.skipped == 2


def test_what_is_left_out_for_time_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hlofuse.reports.verdict.verdict._SECONDS", 0.0)
    observed, facts = observed_rms()
    found = module.verdict(observed, facts, unoptimized=lambda: parse_module(RMS))
    assert found.skipped
    assert found.suggestions == ()
    assert phrases.suggestions_title(found, 0).startswith("No suggestions: some trials were left out")
    smaller = Suggestion("code", "in parts", "", (), 1, replace(candidates.UNKNOWN, temporary_saved=3 << 30))
    left = replace(found, skipped=0, is_ranked=True, slower=(smaller,))
    assert "saves time; one frees 3.22 GB" in phrases.suggestions_title(left, 0)
    ranking = rank(observed.replay.input, observed.replay.config)
    assert not module.verdict(observed, facts, ranking=ranking).skipped


def test_exposed_gathers_of_a_loop_name_the_flag_that_overlaps_them() -> None:
    def flags(kind: str, runs: int, us: float, *own: str) -> list[str]:
        gather = SimpleNamespace(exchange=SimpleNamespace(kind=kind), runs=runs, exposed=(us, True))
        account: Any = SimpleNamespace(totals=replace(MOVED, measured_us=100.0), collectives=[gather])
        return [s.flag for s in candidates.of_pipelining(account, own)]

    [flag] = flags("all-gather", 16, 5.1)
    assert flag == "--xla_gpu_enable_pipelined_all_gather=true"
    assert flags("reduce-scatter", 16, 5.1) == ["--xla_gpu_enable_pipelined_all_reduce=true"]
    # XLA 0.11.1 takes longer with such a flag for the all-reduces of a backward scan.
    others = (("all-gather", 1, 50.0), ("all-gather", 16, 4.9), ("all-reduce", 16, 50.0))
    assert not any(flags(*other) for other in others)
    assert not flags("all-gather", 16, 50.0, flag)


MOVED = Totals(20, Cost(), launches=30, modelled_us=90.0, floor_us=10.0, measured_us=200.0)
PLAIN = replace(MOVED, measured_us=None)
GAINS = [
    (Trial(MOVED, "", 10.0, 0, 0, 0), PLAIN, "−10.00 µs (10%)"),
    (Trial(MOVED, "", -10.0, 0, 0, 0), PLAIN, "+10.00 µs (10%)"),
    (Trial(MOVED, "", 0.0, 0, 0, 0), PLAIN, "−0 µs"),
    # With a profile estimates say so, unless they are scaled to it.
    (Trial(MOVED, "", 10.0, 0, 0, 0), MOVED, "−10.00 µs (10%) est."),
    (Trial(MOVED, "", 10.0, 0, 0, 0, 30.0), MOVED, "−30.00 µs (15%) scaled"),
    (Trial(MOVED, "measured", 10.0, 0, 0, 0, 30.0), MOVED, "−30.00 µs (15%) measured"),
    # Kernels, and launches where they are not those of the kernels; bytes where no time says more.
    (Trial(MOVED, "", 10.0, 1, 1, 0), PLAIN, "−10.00 µs (10%) · 20 → 19 kernels"),
    (Trial(MOVED, "", 10.0, 1, 0, 0), PLAIN, "−10.00 µs (10%) · 20 → 19 kernels"),
    (Trial(MOVED, "", 10.0, -1, 2, 5), PLAIN, "−10.00 µs (10%) · 20 → 21 kernels, 30 → 28 launches"),
    (Trial(MOVED, "", 10.0, 0, 1, 5), PLAIN, "−10.00 µs (10%) · 30 → 29 launches"),
    (Trial(MOVED, "", None, 0, 0, 2000), PLAIN, "time unknown: library calls change · −2.00 kB moved"),
    (Trial(MOVED, "", None, 0, 0, -2000), PLAIN, "time unknown: library calls change · +2.00 kB moved"),
    (Trial(None, "", 10.0, 1, 1, 0), PLAIN, "−10.00 µs (10%)"),
]


@pytest.mark.parametrize(("trial", "totals", "line"), GAINS)
def test_a_change_names_its_gain_and_what_it_changes(trial: Trial, totals: Totals, line: str) -> None:
    gain, _, counts = line.partition(" · ")
    assert phrases.change_line(trial, totals, (), "name") == " · ".join(filter(None, (gain, "name", counts)))


def test_a_long_line_goes_on_further_in_and_names_are_not_cut() -> None:
    lines = [part for part, _ in text._whole(["  one two-three four"], 14)]
    assert lines == ["  one", "    two-three", "    four"]
