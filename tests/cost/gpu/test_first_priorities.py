"""What XLA recorded before it fused anything: every figure is a full sum over a producer's users.

The compact modules run anywhere; where the reference corpus lies beside the checkout, all of it does.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from hlofuse.cost.gpu.device import load_device
from hlofuse.cost.gpu.model import KernelModel
from hlofuse.ir.graph import Module
from hlofuse.releases import AROUND_FUSION as RELEASE
from hlofuse.trace.priority_record import PriorityStep
from ...fixtures import Case
from ..records import CORPUS, device_of, first_priorities, load_corpus_case
from .first_priorities import COMPACT, Comparison, compare, load_compact

DEVICES = ("v100", "h100_sxm", "a100_sxm_40", "b200")


def _reported(cases: list[Comparison]) -> list[str]:
    return [f"{c.opcode} {c.record}: we say {c.us_fused}, {c.us_unfused}" for c in cases if not c.agrees]


@pytest.mark.parametrize("case", COMPACT, ids=str)
def test_compact_modules_agree_to_the_tick(case: Case) -> None:
    module, priorities = load_compact(case)
    cases = list(compare(module, KernelModel(device_of(case), RELEASE), priorities))
    assert cases, "the module has records that concern no Triton fusion"
    assert _reported(cases) == []


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.skipif(not CORPUS.is_dir(), reason="the reference corpus is not beside the checkout")
def test_the_whole_corpus_agrees_to_the_tick(device: str) -> None:
    checked = 0
    for folder in sorted((CORPUS / f"gpu-{device}").iterdir()):
        if not (folder / "priority_fusion.txtpb").exists():
            continue
        cases = list(compare(*_with_model(folder, device)))
        assert _reported(cases) == [], folder.name
        checked += len(cases)
    assert checked > 1900


def _with_model(folder: Path, device: str) -> tuple[Module, KernelModel, dict[str, PriorityStep]]:
    module, steps = load_corpus_case(folder)
    return module, KernelModel(load_device(device), RELEASE), first_priorities(steps)
