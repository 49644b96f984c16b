"""Every answer about some programs, text and figures: a change of one is seen, and has to be meant."""

from __future__ import annotations

import tarfile
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from math import copysign, log1p
from pathlib import Path
from typing import Any

import pytest

import hlofuse as library
from hlofuse.format.terminal import printed
from hlofuse.ir.errors import HlofuseError
from ..running import Golden

TESTS = Path(__file__).parents[1]
CPU = {"target": "cpu"}
H100 = {"target": "gpu", "device": "h100_sxm"}
A100 = {"target": "gpu", "device": "a100_sxm_40"}
PROGRAMS: list[tuple[str, str, dict[str, Any]]] = [
    ("data/cpu", "corpus/mlp_grad_bf16/before.hlo", CPU),
    ("data/cpu-unoptimized", "programs/random_3060/before.hlo", CPU),
    ("data/gpu", "h100_sxm/dus_twice_loop/before.hlo", H100),
    ("data/gpu", "h100_sxm/softmax_column/before.hlo", {**H100, "xla": "0.9.0"}),
    ("data/gpu", "a100_sxm_40/sort_and_topk/before.hlo", A100),
    ("data/gpu-h100_sxm-unoptimized", "programs/big_scalar_reduction/before.hlo", H100),
    ("data/gpu-legacy", "v100/sgd_many_small/before.hlo", {"target": "gpu-legacy", "device": "v100"}),
    ("data/partitioned", "gpu/ns_moe/before.hlo", H100),
    ("data/tpu", "tpu/gpt2_block/after.hlo", {"device": "v5e"}),
    ("data/cpu-final", "scatter_add/final.hlo", CPU),
    ("data/cpu-multi-output", "own/random_63/before.hlo", CPU),
    ("data/gpu-h100_sxm-final", "cartpole_unrolled_10/final.hlo", H100),
    ("data/gpu-models", "h100_sxm/flash_scan_bf16/before.hlo", H100),
    ("data/gpu-triton-multi-output", "b200/mo_attn/before.hlo", {"target": "gpu", "device": "b200"}),
    ("recipes/data", "ring-not-shift/cpu/before/unoptimized.hlo", CPU),
    ("recipes/data", "compute-before-the-loop/h100_sxm/before/unoptimized.hlo", H100),
]
RECIPES = (
    *("sum-before-the-psum/h100_sxm", "scan-not-cumsum/cpu", "max-with-argmax/h100_sxm"),
    *("unroll-the-scan/h100_sxm", "donate-the-argument/h100_sxm", "slice-before-the-gather/h100_sxm"),
)
"""Each has a module before and one after the change, which are compared as well."""
PROGRAMS += [("recipes/data", f"{r}/before/input.hlo", CPU if "cpu" in r else H100) for r in RECIPES]
QUESTIONS: list[tuple[str, dict[str, Any]]] = [("explain", {"details": True})]
QUESTIONS += [("what_if", {"without_pass": ("all",)})]
QUESTIONS += [(question, {}) for question in ("explain", "what_if", "kernels_of", "stats_of", "memory")]


def opened(archive: str, member: str, options: dict[str, Any]) -> library.Report:
    with tarfile.open(TESTS / f"{archive}.tar.xz") as tar:
        tar.extract(member, filter="data")
    return library.open(member, **options)


def text(answer: Callable[[], Any], limit: int = 10, details: bool | None = None) -> str:
    """All lines; then of each part of the JSON report how many values it has, and a sum over its numbers.

    Of each number the logarithm counts, so that none is lost beside a larger one."""
    try:
        found = answer()
        is_whole = details is None
        lines = found.to_text(limit=limit) if is_whole else printed(partial(found.body, details=details), 100)
    except HlofuseError as error:
        return f"{error}\n"
    parts = [(key, list(leaves(value))) for key, value in found.to_json().items()]
    sums = [(key, len(values), sum(map(size, values))) for key, values in parts]
    return f"{lines}JSON: {', '.join(f'{key} {count} {total:.3f}' for key, count, total in sums if total)}\n"


def size(value: Any) -> float:
    return copysign(log1p(abs(value)), value) if isinstance(value, int | float) else float(value is None)


def leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict | list | tuple):
        for x in value.values() if isinstance(value, dict) else value:
            yield from leaves(x)
    else:
        yield value


@pytest.mark.parametrize(("archive", "member", "options"), PROGRAMS, ids=[m for _, m, _ in PROGRAMS])
def test_answers_about_a_program(
    archive: str,
    member: str,
    options: dict[str, Any],
    golden: Golden,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    report = opened(archive, member, options)
    found = [
        f"{q} {how}\n{text(partial(getattr(report, q), **how), 0 if how else 10)}" for q, how in QUESTIONS
    ]
    entry = report.loaded.module.entry
    pairs = [(o.name, x.name) for x in entry for o in x.operands if o.operands]
    pairs += [(b, a) for a, b in pairs[::3]] + [(a[0], b[1]) for a, b in pairwise(pairs[::5])]
    names = [(x.name,) for x in entry if x.operands]
    for n, query in enumerate([*names[:: len(names) // 9 + 1], *pairs[:: len(pairs) // 9 + 1]]):
        found.append(f"why {' '.join(query)}\n{text(partial(report.why, *query), 0, bool(n % 3))}")
    golden(f"answers/{member.removesuffix('.hlo').replace('/', '-')}.txt", "\n".join(found))


@pytest.mark.parametrize("recipe", RECIPES)
def test_differences(recipe: str, golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    options = CPU if recipe.endswith("cpu") else H100
    a, b = (opened("recipes/data", f"{recipe}/{side}/input.hlo", options) for side in ("before", "after"))
    found = text(partial(a.diff, b), 0) + text(partial(b.diff, a))
    golden(f"answers/diff-{recipe.replace('/', '-')}.txt", found)
