"""No pass raises or breaks a module, in whatever order passes run."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path

import pytest

from hlofuse.compilation import compile, replay_config
from hlofuse.cost.gpu.device import load_device
from hlofuse.ir.text.printer import print_module
from hlofuse.ir.text.reader import parse_module
from hlofuse.passes.base import FixedPoint, Pass, Pipeline, UnimplementedPass
from hlofuse.passes.registry import make_pass, single_passes
from hlofuse.passes.scatter.gather_scatter import GatherSimplifier, ScatterSimplifier
from hlofuse.pipelines.targets import TARGETS, after_fusion, before_fusion
from hlofuse.releases import REFERENCE, release_of
from hlofuse.trace import Recorder
from ..fixtures import companion_texts
from ..tools.module_checks import check_module
from .packed import archive

TEXTS = companion_texts(__file__)

SAMPLES = Path(__file__).parents[2] / "samples"
LARGEST = 20_000
"""Characters of a module: larger ones say no more and take longer."""


@cache
def every_pass() -> list[Pass]:
    """Each with all the options it has before and after fusion, and all fusion passes of all targets."""
    found: list[Pass] = []
    for target, gpu in (("cpu", None), ("gpu", "h100_sxm"), ("gpu", "v100")):
        device = load_device(gpu) if gpu is not None else None
        tops = (*before_fusion(target, device), *after_fusion(target, device))
        found += [p for top in tops for p in top.flattened()]
    single = [p for p in found if not isinstance(p, Pipeline | FixedPoint | UnimplementedPass)]
    for name, cached in TARGETS.items():
        steps = [cached.steps, *cached.options.values()]
        lists = [tuple(s.text for s in listed) for listed in steps]
        lists += [a.passes for a in cached.optional_passes]
        release = release_of(cached.release or REFERENCE)
        device = load_device("h100_sxm") if cached.needs_device else None
        for text in dict.fromkeys(text for passes in lists for text in single_passes(passes)):
            single.append(make_pass(text, name, release, device=device))
    return single


@cache
def texts() -> list[str]:
    found = [path.read_text(encoding="utf-8") for path in sorted(SAMPLES.rglob("*.hlo"))]
    for name in ("cpu", "gpu-h100_sxm", "cpu-expanders", "gpu-expanders"):
        found += [text for case in archive(name).values() for text in case.values()]
    return [text for text in found if len(text) < LARGEST]


@pytest.mark.parametrize("seed", range(8))
def test_passes_in_random_order_leave_a_whole_module(seed: int) -> None:
    """Fusion passes stop, as XLA's do, at the control dependencies that copy insertion adds after them."""
    chosen = random.Random(seed)
    for text in chosen.sample(texts(), 8):
        module, done = parse_module(text), []
        for step in chosen.sample(every_pass(), 15):
            done.append(step.name)
            try:
                step.run(module, Recorder())
                check_module(module)
                parse_module(print_module(module))
            except Exception as error:
                if "copy-insertion" in done and str(error).endswith("XLA stops here with the same error"):
                    break
                raise AssertionError(f"after {done} of\n{text}") from error


@pytest.mark.parametrize(("step", "kind"), [(GatherSimplifier(), "gather"), (ScatterSimplifier(), "scatter")])
def test_gathers_and_scatters_with_batch_dimensions_are_left_alone_and_recorded(
    step: Pass, kind: str
) -> None:
    """Their normalizer comes first in XLA's order."""
    text = TEXTS["gathers_scatters_batch"]
    module, recorder = parse_module(text), Recorder()
    before = print_module(module)
    recorder.begin_pass(step.name)
    assert not step.run(module, recorder)
    assert print_module(module) == before
    assert [s.reason for s in recorder.left_alone] == [f"a {kind} with batch dimensions"]


def test_a_scalar_reduction_of_triton_writes_a_further_output() -> None:
    module = parse_module(TEXTS["scalar_reduction_triton"])
    result = compile(module, replay_config("gpu", "h100_sxm", option="triton-multi-output"))
    check_module(result.after)
    assert [e.kind for e in result.events if e.event == "fuse"] == ["multi-output"]
