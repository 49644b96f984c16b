"""What XLA said of pairs that involve Triton fusions: figures to the tick, refusals, tile sizes.

The modules kept here run anywhere; where the reference corpus lies beside the checkout, all of it does.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from hlofuse.cost.gpu.device import load_device
from hlofuse.ir.text.reader import parse_module

from .records import Checker, load, load_compact

HERE = Path(__file__).parent
MODULES = sorted((HERE / "modules").glob("*.hlo"))
FUSED = sorted((HERE / "fused").glob("*.hlo"))
CORPUS = HERE.parents[3] / "shared" / "corpus"


@pytest.mark.parametrize("path", MODULES, ids=lambda p: p.stem)
def test_first_records_of_compact_modules(path: Path) -> None:
    checker = Checker(load_device(path.stem.partition("-")[0]))
    module, steps = load_compact(path)
    checker.check(path.stem, module, steps)
    assert checker.wrong == []
    assert sum(n for what, n in checker.counts.items() if what.endswith(" ok")) == len(steps)


@pytest.mark.parametrize("path", FUSED, ids=lambda p: p.stem)
def test_tile_sizes_of_fusions_that_xla_made(path: Path) -> None:
    checker = Checker(load_device(path.stem.partition("-")[0]))
    checker.made(path.stem, None, parse_module(path.read_text(), path.name))
    assert checker.wrong == []
    assert checker.counts["tiles ok"] == 1


@pytest.mark.parametrize("device", ["h100_sxm", "a100_sxm_40", "b200"])
@pytest.mark.skipif(not CORPUS.is_dir(), reason="the reference corpus is not beside the checkout")
def test_the_whole_corpus(device: str) -> None:
    checker = Checker(load_device(device))
    for folder in sorted((CORPUS / f"gpu-{device}").iterdir()):
        if (folder / "priority_fusion.txtpb").exists():
            checker.check(folder.name, *load(folder))
            checker.check_made(folder.name, folder)
    assert checker.wrong == []
    assert checker.counts["priority ok"] + checker.counts["twin ok"] > 60
    assert checker.counts["tiles ok"] > 30
