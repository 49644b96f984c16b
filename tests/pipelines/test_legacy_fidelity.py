"""Target `gpu-legacy` against XLA 0.4.35: the module after every pass, names, the decisions it logs."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

import pytest

from hlofuse.compilation import (
    Compilation,
    CompilationInput,
    PassObserver,
    ReplayConfig,
    compile,
    replay_config,
)
from hlofuse.ir import parse_module
from hlofuse.reports.verify import find_cases, verify
from hlofuse.reports.verify.model import Verdict
from hlofuse.reports.verify.verify import verify_module
from ..tools.decision_log import our_decisions, without_repeats, xla_decisions
from ..tools.module_checks import verify_module as graph_problems
from .cases import CORPUS
from .legacy_cases import cases

DEVICES = {"gpu-legacy-a100": "a100_sxm_40", "gpu-legacy-v100": "v100"}

# Users were listed in an order that the text does not give away (`hlofuse.pipelines.legacy_users`), and
# the results of a kernel stand in that order: the kernels agree.
ORDER_UNKNOWN = {f"a100_sxm_40/random_100{n}" for n in (384, 625, 778)}

# Lines of the log are in another order, or name another of two equal users.
LOG_DIFFERS = ORDER_UNKNOWN | {
    *(f"a100_sxm_40/random_100{n}" for n in ("056", "394", "420", "630", "809")),
    *("a100_sxm_40/mlp_grad_bf16", "a100_sxm_40/scan_update_buffer"),
    *("v100/order_gqa_grad", "v100/random_100208", "v100/scan_update_buffer"),
}
LOG_DIFFERS_IN_CORPUS = {
    *("cartpole_unrolled_10", "gpt2_block_grad", "gpt2_train_step", "mlp_grad_bf16", "scan_update_buffer")
}

# Of random ones every second, and those that differ.
NAMES = [n for k, n in enumerate(sorted(cases())) if "/random_" not in n or k % 2 or n in LOG_DIFFERS]


@pytest.fixture
def replays(monkeypatch: pytest.MonkeyPatch) -> list[Compilation]:
    """The replays that are compared with XLA's modules, in order."""
    found: list[Compilation] = []

    def recorded(
        input: CompilationInput, config: ReplayConfig, observers: Sequence[PassObserver]
    ) -> Compilation:
        found.append(compile(input, config, observers))
        return found[-1]

    monkeypatch.setattr(import_module(verify_module.__module__), "compile", recorded)
    return found


def verdict(name: str) -> Verdict:
    case = cases()[name]
    last = case.passes[-1][1] if case.passes else case.before
    return verify_module(
        CompilationInput(parse_module(case.before)),
        parse_module(last),
        replay_config("gpu-legacy", name.partition("/")[0]),
        after_passes=[(run, parse_module(text)) for run, text in case.passes],
    )


def decisions_agree(log: list[str], replay: Compilation) -> bool:
    """Pairs, verdicts and reasons, line for line."""
    actual = our_decisions(replay)
    return actual == log or without_repeats(actual) == without_repeats(log)


def test_there_is_something_to_compare() -> None:
    assert len(NAMES) > 450
    assert {name.partition("/")[0] for name in NAMES} == set(DEVICES.values())


@pytest.mark.parametrize("name", NAMES)
def test_every_pass_and_decision_is_xlas(name: str, replays: list[Compilation]) -> None:
    v = verdict(name)
    (replay,) = replays
    assert v.partition, str(v.difference)
    # Once they agree, the entry has to go.
    assert decisions_agree(cases()[name].log, replay) is (name not in LOG_DIFFERS)
    assert graph_problems(replay.after) == []
    if name in ORDER_UNKNOWN:
        assert not v.exact
        return
    assert v.exact, str(v.difference)
    assert all(p.exact for p in v.passes), str(v.difference)
    assert v.fusion_names == v.fusions


@pytest.mark.parametrize("corpus", DEVICES)
def test_the_whole_corpus_is_exact(corpus: str, replays: list[Compilation]) -> None:
    if not (CORPUS / corpus).is_dir():
        pytest.skip("the whole corpus is not beside this checkout")
    found, _ = find_cases(CORPUS / corpus, target="gpu-legacy")
    report = verify(found, target="gpu-legacy", device=DEVICES[corpus])
    assert len(report.verdicts) == len(replays) == 62
    for v, replay in zip(report.verdicts, replays, strict=True):
        assert v.exact, f"{v.name}: {v.error or v.difference}"
        assert all(p.exact for p in v.passes), v.name
        assert v.fusion_names == v.fusions, v.name
        log = (CORPUS / corpus / v.name / "decisions.log").read_text(encoding="utf-8")
        agree = decisions_agree(xla_decisions(log.splitlines()), replay)
        assert agree is (v.name not in LOG_DIFFERS_IN_CORPUS), v.name
