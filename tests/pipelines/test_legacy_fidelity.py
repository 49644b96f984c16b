"""Target `gpu-legacy` against XLA 0.4.35: the module after every pass, names, the decisions it logs."""

from __future__ import annotations

import pytest

from hlofuse.compilation import compile
from hlofuse.ir import parse_module
from hlofuse.reports.verify import Verdict, find_cases, verify, verify_module

from ..tools.decision_log import our_decisions, without_repeats, xla_decisions
from ..tools.module_checks import verify_module as graph_problems
from .cases import CORPUS
from .legacy_cases import cases

DEVICES = {"gpu-legacy-a100": "a100_sxm_40", "gpu-legacy-v100": "v100"}

# Users were listed in an order that the text does not give away (`hlofuse.pipelines.legacy_users`), and
# the results of a kernel stand in that order: the kernels agree.
ORDER_UNKNOWN = {f"a100_sxm_40/random_100{n}" for n in (384, 625, 778)}


NAMES = sorted(cases())


def verdict(name: str) -> Verdict:
    case = cases()[name]
    last = case.passes[-1][1] if case.passes else case.before
    return verify_module(
        parse_module(case.before),
        parse_module(last),
        target="gpu-legacy",
        device=name.partition("/")[0],
        after_passes=[(run, parse_module(text)) for run, text in case.passes],
    )


def test_there_is_something_to_compare() -> None:
    assert len(NAMES) > 500
    assert {name.partition("/")[0] for name in NAMES} == set(DEVICES.values())


@pytest.mark.parametrize("name", NAMES)
def test_every_pass_is_xlas(name: str) -> None:
    v = verdict(name)
    assert v.partition, str(v.difference)
    if name in ORDER_UNKNOWN:
        assert not v.exact  # once it is, the entry has to go
        return
    assert v.exact, str(v.difference)
    assert all(p.exact for p in v.passes), str(v.difference)
    assert v.fusion_names == v.fusions


def decisions_agree(log: list[str], before: str, device: str) -> bool:
    actual = our_decisions(compile(parse_module(before), "gpu-legacy", device=device))
    return actual == log or without_repeats(actual) == without_repeats(log)


def test_decisions_are_xlas_in_xlas_order() -> None:
    """Pairs, verdicts and reasons, line for line, of every second module."""
    given = {name: cases()[name] for name in NAMES[::2]}
    other = {n for n, c in given.items() if not decisions_agree(c.log, c.before, n.partition("/")[0])}
    assert len(other) <= len(given) // 50, other


@pytest.mark.parametrize("name", NAMES[::7])
def test_the_graph_stays_sound(name: str) -> None:
    result = compile(parse_module(cases()[name].before), "gpu-legacy", device=name.partition("/")[0])
    assert graph_problems(result.after) == []


@pytest.mark.parametrize("corpus", DEVICES)
def test_the_whole_corpus_is_exact(corpus: str) -> None:
    if not (CORPUS / corpus).is_dir():
        pytest.skip("the whole corpus is not beside this checkout")
    found, _ = find_cases(CORPUS / corpus, target="gpu-legacy")
    report = verify(found, target="gpu-legacy", device=DEVICES[corpus])
    assert len(report.verdicts) >= 62
    for v in report.verdicts:
        assert v.exact, f"{v.name}: {v.error or v.difference}"
        assert all(p.exact for p in v.passes), v.name
        assert v.fusion_names == v.fusions, v.name


def test_most_logs_of_the_corpus_agree_line_for_line() -> None:
    folders = [CORPUS / name for name in DEVICES]
    if not all(f.is_dir() for f in folders):
        pytest.skip("the whole corpus is not beside this checkout")
    agree = total = 0
    for folder in folders:
        for log in sorted(folder.glob("*/decisions.log")):
            before = log.with_name("before.hlo").read_text(encoding="utf-8")
            lines = xla_decisions(log.read_text(encoding="utf-8").splitlines())
            agree += decisions_agree(lines, before, DEVICES[folder.name])
            total += 1
    assert total == 124
    assert agree >= 114
