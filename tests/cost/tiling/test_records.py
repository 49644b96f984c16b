"""What XLA said of pairs that involve Triton fusions: figures to the tick, refusals, tile sizes.

The modules kept here run anywhere; where the reference corpus lies beside the checkout, all of it does.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from hlofuse.cost.gpu.device import load_device
from ...fixtures import Case, read_cases
from ..records import CORPUS, first_steps, load_corpus_case, steps_of
from .records import Checker

HERE = Path(__file__).parent
MODULES = read_cases(HERE / "modules")
FUSED = read_cases(HERE / "fused.hlo")


@pytest.mark.parametrize("case", MODULES, ids=str)
def test_first_records_of_compact_modules(case: Case) -> None:
    checker = Checker(load_device(case.options["device"]))
    steps = first_steps(steps_of(case))
    checker.check(case.name, case.module(), steps)
    assert checker.wrong == []
    assert sum(n for what, n in checker.counts.items() if what.endswith(" ok")) == len(steps)


@pytest.mark.parametrize("case", FUSED, ids=str)
def test_tile_sizes_of_fusions_that_xla_made(case: Case) -> None:
    checker = Checker(load_device(case.options["device"]))
    checker.compare_tiles(case.name, None, case.module())
    assert checker.wrong == []
    assert checker.counts["tiles ok"] == 1


@pytest.mark.parametrize("device", ["h100_sxm", "a100_sxm_40", "b200"])
@pytest.mark.skipif(not CORPUS.is_dir(), reason="the reference corpus is not beside the checkout")
def test_the_whole_corpus(device: str) -> None:
    checker = Checker(load_device(device))
    for folder in sorted((CORPUS / f"gpu-{device}").iterdir()):
        if (folder / "priority_fusion.txtpb").exists():
            module, steps = load_corpus_case(folder)
            checker.check(folder.name, module, first_steps(steps))
            checker.check_created(folder.name, folder)
    assert checker.wrong == []
    assert checker.counts["priority ok"] + checker.counts["twin ok"] > 60
    assert checker.counts["tiles ok"] > 30
