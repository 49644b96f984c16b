"""The boxes of the page, followed decision by decision, end as the module that the replay ends with."""

from __future__ import annotations

import pytest

from hlofuse.account import observed_replay
from hlofuse.analysis.kernels import is_kernel, kernels, launched_computations
from hlofuse.compilation import Compilation, compile, replay_config
from hlofuse.explorer.collect import MOST_OPERATIONS, Boxes, page_of
from hlofuse.ir import parse_module
from ..pipelines.cases import packed
from ..pipelines.gpu_cases import cases as gpu_cases
from ..pipelines.legacy_cases import cases as legacy_cases


def followed(run: Compilation) -> Boxes:
    operations = [i for c in launched_computations(run.before) for i in c.post_order()]
    constants = {n for n, i in enumerate(operations) if i.opcode == "constant"}
    boxes = Boxes([i.name for i in operations], [is_kernel(i) for i in operations], constants)
    for event in run.events:
        boxes.follow(event)
    return boxes


def assert_same_kernels(run: Compilation) -> None:
    boxes = followed(run)
    wanted = {i.name for i in kernels(run.after)}
    current = boxes.current()
    assert wanted <= current.keys()
    assert boxes.kernels == len(wanted)


@pytest.mark.parametrize("name", sorted(packed("cpu"))[::4])
def test_cpu(name: str) -> None:
    assert_same_kernels(compile(parse_module(packed("cpu")[name].before), "cpu"))


@pytest.mark.parametrize("name", sorted(gpu_cases("gpu"))[::4])
def test_gpu(name: str) -> None:
    assert_same_kernels(gpu_cases("gpu")[name].replay(ids=True))


@pytest.mark.parametrize("name", sorted(legacy_cases())[::4])
def test_legacy(name: str) -> None:
    device = name.partition("/")[0]
    assert_same_kernels(compile(parse_module(legacy_cases()[name].before), "gpu-legacy", device=device))


def test_regions_hold_every_operation_in_whole_kernels() -> None:
    for name in sorted(packed("cpu"))[:20]:
        module = parse_module(packed("cpu")[name].before)
        run = page_of({"": observed_replay(module, replay_config("cpu", None))}).runs[0]
        refused: dict[int, set[int]] = {}
        for region in run.regions:
            sizes = [len(inside) for _, inside in region.kernels]
            assert sum(sizes) <= MOST_OPERATIONS or sum(sizes) - max(sizes) <= MOST_OPERATIONS
            for box, inside in region.kernels:
                assert box not in refused
                refused[box] = set(inside)
        for n in range(len(run.operations)):
            assert n in refused[run.ends_as[n]]
