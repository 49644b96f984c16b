"""Recipes: what a rewrite makes of a module computes the same values, as XLA:CPU runs both."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from hlofuse.judge.judge import Judge
from hlofuse.library.loading import Loaded, read
from hlofuse.library.options import ReplayOptions
from ..running import load_tool
from .values import REWRITES, archive, judge_rewrites

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("jax") is None, reason="needs jax (Python 3.12 or newer)"
)
TOOL = load_tool("recipes")
PAGES = {page.name: page for page in TOOL.pages()}
CORPORA = Path(__file__).parent.parent / "data"
OWN = [
    (name, device)
    for name in REWRITES
    for is_cpu in (False, True)
    for device in [d for d in PAGES[name].devices if (d == "cpu") == is_cpu][:1]
]
CORPUS = [tuple(line.split()) for line in (Path(__file__).parent / "on_corpora.txt").read_text().splitlines()]
"""Of each corpus the smallest modules to which a recipe applies; `judge_recipes.py` runs all."""


def verdicts(judge: Judge, loaded: Loaded, name: str) -> list[tuple[str, str, str]]:
    return [(n, j.verdict, j.reason) for n, j in judge_rewrites(judge, loaded, [name])]


@pytest.mark.parametrize(("name", "device"), OWN)
def test_on_its_own_module(name: str, device: str, judge: Judge, tmp_path: Path) -> None:
    path = tmp_path / "before.hlo"
    path.write_text(archive(TOOL.DATA)[f"{name}/{device}/before/input.hlo"])
    release, flags = PAGES[name].rows[device].split(" | ")[1], PAGES[name].flags["before"] or None
    target = "cpu" if device == "cpu" else "gpu"
    own = None if device == "cpu" else device
    loaded = read(ReplayOptions(str(path), target=target, device=own, xla=release, xla_flags=flags))
    assert verdicts(judge, loaded, name) == [(name, "same", "all outputs agree")]


@pytest.mark.parametrize(("corpus", "member", "name"), CORPUS)
def test_on_a_module_of_a_corpus(corpus: str, member: str, name: str, judge: Judge, tmp_path: Path) -> None:
    path = tmp_path / "before.hlo"
    path.write_text(archive(CORPORA / f"{corpus}.tar.xz")[member])
    device = member.partition("/")[0] if corpus.startswith("gpu") else None
    loaded = read(ReplayOptions(str(path), target="gpu" if device else "cpu", device=device))
    assert verdicts(judge, loaded, name) == [(name, "same", "all outputs agree")]
