"""Recipes: the pages are in the form, XLA's stored modules bear them out, and so does the jaxlib installed.

`tests/recipes/data.tar.xz` is written by `tools/recipes.py --write`: XLA's modules at the input of
fusion and after it, for each device of the page and both sides.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hlofuse.account import Observed
from hlofuse.account.replaying import compiled, final_account
from hlofuse.cost.gpu.summary_table import SharedTables
from hlofuse.cost.tpu import tpu_devices
from hlofuse.ir import parse_module
from hlofuse.ir.record import replace
from hlofuse.library import loading
from hlofuse.library.loading import Loaded
from hlofuse.library.options import ReplayOptions
from hlofuse.matching.kernels import KernelKeys
from hlofuse.reports.advice.catalogue import RECIPES, WRITTEN
from hlofuse.reports.advice.recipe import Finding, Recipe
from hlofuse.reports.advice.written import prepared
from hlofuse.reports.common.facts import Facts
from hlofuse.reports.common.recipe_page import gain_on_a_tpu
from hlofuse.reports.verdict.candidates import rewritten, tried, tried_around
from hlofuse.reports.verdict.cut import Cutter
from hlofuse.reports.verdict.phrases import suggestions_title
from hlofuse.reports.verdict.verdict import verdict
from hlofuse.reports.whatif.model import trial_of
from ..running import load_tool
from .values import archive, situation_of

ROOT = Path(__file__).parents[2]
HAS_JAX = importlib.util.find_spec("jax") is not None
needs_jax = pytest.mark.skipif(not HAS_JAX, reason="needs jax (Python 3.12 or newer)")


TOOL = load_tool("recipes")
PAGES = {page.name: page for page in TOOL.pages()}
BY_NAME = {recipe.name: recipe for recipe in reversed(RECIPES)}
CASES = [(name, d) for name, page in PAGES.items() for d in page.devices if d not in tpu_devices()]
ON_TPU = [(name, d) for name, page in PAGES.items() for d in page.rows if d in tpu_devices()]


def stored(name: str) -> dict[str, str]:
    """XLA's modules of a recipe by DEVICE/SIDE/FILE."""
    own = f"{name}/"
    return {n.removeprefix(own): text for n, text in archive(TOOL.DATA).items() if n.startswith(own)}


@pytest.fixture
def read(tmp_path: Path) -> Callable[[str, str, str], Loaded]:
    """Reads the fusion input of one side of a recipe on a device."""

    def read(name: str, device: str, side: str) -> Loaded:
        path = tmp_path / side / "before.hlo"
        path.parent.mkdir(exist_ok=True)
        path.write_text(stored(name)[f"{device}/{side}/input.hlo"])
        release = PAGES[name].rows[device].split(" | ")[1]
        flags = PAGES[name].flags[side] or None
        target, own = ("cpu", None) if device == "cpu" else ("gpu", device)
        return loading.read(ReplayOptions(str(path), target=target, device=own, xla=release, xla_flags=flags))

    return read


def findings(recipe: Recipe, observed: Observed) -> list[Finding]:
    return list(recipe.find(situation_of(observed)))


def figures(observed: Observed) -> Any:
    return TOOL.figures_of(Facts(observed.replay, observed.costs).totals_after)


def test_every_recipe_has_a_page_and_every_page_a_recipe() -> None:
    assert sorted(PAGES) == sorted(BY_NAME) == sorted({n.partition("/")[0] for n in archive(TOOL.DATA)})
    assert len({recipe.text for recipe in RECIPES}) == len(RECIPES)
    for recipe in RECIPES:
        assert recipe.unrolls == recipe.name.startswith("unroll-")
        assert len(recipe.text) <= 70, recipe.name
        assert not recipe.text.endswith("."), recipe.name
    for page in PAGES.values():
        assert tuple(page.rows) == tuple(dict.fromkeys((*page.devices, *page.rows))), page.name
        assert page.path.read_text(encoding="utf-8").rstrip().endswith(TOOL.measured_line(page))
    assert (TOOL.DOCS / "README.md").read_text(encoding="utf-8") == TOOL.index()


@pytest.mark.parametrize(("name", "device"), ON_TPU)
def test_xla_bears_it_out_on_a_tpu(name: str, device: str, tmp_path: Path) -> None:
    """XLA's final modules, which are not replayed, are those of the page's row, whether it pays or not."""
    found, row = [], PAGES[name].rows[device]
    for side in TOOL.SIDES:
        (file := tmp_path / f"{side}.hlo").write_text(stored(name)[f"{device}/{side}/final.hlo"])
        found.append(TOOL.xla_figures(file, device, ""))
    assert TOOL.row_of(device, row.split(" | ")[1], *found) == row
    if device not in PAGES[name].devices:
        return
    assert found[1].pays_against(found[0])
    written = prepared(parse_module(stored(name)[f"{device}/before/unoptimized.hlo"]))
    assert name in {r.recipe.name for r in rewritten(written, "tpu")}


@pytest.mark.parametrize(("halved", "backends"), [("divide", {"gpu", "tpu"}), ("subtract", set())])
def test_a_search_is_written_out_on_a_gpu_and_a_tpu(halved: str, backends: set[str]) -> None:
    text = stored("unroll-the-search")["h100_sxm/before/input.hlo"].replace(
        "shift-right-logical(", f"{halved}("
    )
    written, found = prepared(parse_module(text.replace("u32[] constant(1)", "u32[] constant(3)"))), set()
    for backend in ("cpu", "gpu", "tpu"):
        found |= {(backend, r.recipe.name) for r in rewritten(written, backend, loops=True)}
    assert {backend for backend, name in found if name == "unroll-the-search"} == backends


@pytest.mark.parametrize(
    ("name", "gains"), [("max-not-sort", 1), ("write-the-ranks", 0), ("sum-once", 1), ("shift-by-pads", 0)]
)
def test_a_row_says_if_a_tpu_gains(name: str, gains: int) -> None:
    assert (gain_on_a_tpu(name) > 0) is bool(gains)


@pytest.mark.parametrize(("name", "device"), CASES)
def test_xla_bears_it_out(name: str, device: str, read: Callable[[str, str, str], Loaded]) -> None:
    row, structures = PAGES[name].rows[device], KernelKeys()
    observed: dict[str, Observed] = {}
    loaded: dict[str, Loaded] = {}
    for side in TOOL.SIDES:
        loaded[side] = read(name, device, side)
        observed[side] = loaded[side].observe()
        xla = parse_module(stored(name)[f"{device}/{side}/fused.hlo"])
        assert structures.module(observed[side].replay.after).key == structures.module(xla).key, side
    before, after = figures(observed["before"]), figures(observed["after"])
    release, time = row.split(" | ")[1], row.split(" | ")[5].rstrip(" |")
    if device == "cpu":
        measured = float(time.rstrip("×")) if time.endswith("×") else 1.0
        # Times of a CPU are estimates with an error above most gains: what was measured counts.
        assert replace(after, us=None).pays_against(replace(before, us=None), measured)
    else:
        assert after.pays_against(before)
    assert TOOL.without_release(TOOL.row_of(device, release, before, after)) == TOOL.without_release(row)
    recipe = BY_NAME[name]
    if name in WRITTEN:
        module = prepared(parse_module(stored(name)[f"{device}/before/unoptimized.hlo"]))
        places = [x for c in module.computations for x in c.post_order()]
        rewriting = WRITTEN[name]
        assert [x for x in places if x.opcode in rewriting.opcodes.split() and rewriting.change(x)]
        config = loaded["before"].config
        assert config is not None
        assert device == "cpu" or figures(compiled(module, config, config.build.flags)).pays_against(before)
        return
    found = findings(recipe, observed["before"])
    assert found
    assert recipe.unrolls or not findings(recipe, observed["after"])  # a loop may be unrolled further
    if recipe.rewrite is None:
        return
    config = loaded["before"].config
    assert config is not None
    trial = tried(loaded["before"].input, config, recipe, found, SharedTables())
    if trial is None:  # a library's kernel holds it, and is not taken apart
        place = loaded["before"].input.module.find(found[0].at)
        assert place is not None
        assert place.opcode == "fusion"
        return
    result, changed = trial
    assert len(changed) == len(found)
    assert figures(result).kernels == after.kernels
    if after.us is not None and device != "cpu":
        assert figures(result).us == pytest.approx(after.us, rel=0.02)
    facts = Facts(observed["before"].replay, observed["before"].costs)
    around = tried_around(recipe, found, observed["before"], Cutter(facts))
    if around is not None:  # on some kernels it may save less, never more
        whole = trial_of(facts.totals_after, final_account(result).totals, "")
        # On a CPU kernels ahead leave values in a cache or in new memory, and a part has fewer of them.
        most = max(whole.us_saved or 0.0, 0.0) * (1.6 if device == "cpu" else 1) + 0.01
        assert max(around[0].us_saved or 0.0, 0.0) <= most
        assert max(around[0].launches_saved, 0) <= max(whole.launches_saved, 0)


@pytest.mark.parametrize(
    ("name", "device"), [("scale-the-summands", "h100_sxm"), ("unroll-the-scan", "h100_sxm")]
)
def test_in_a_large_module_it_is_tried_around_its_places(
    name: str, device: str, read: Callable[[str, str, str], Loaded], monkeypatch: pytest.MonkeyPatch
) -> None:
    observed = read(name, device, "before").observe()
    facts = Facts(observed.replay, observed.costs)
    whole = next(s for s in verdict(observed, facts).suggestions if s.recipe == name)
    monkeypatch.setattr("hlofuse.reports.verdict.verdict.TRIED_UP_TO", 0)
    large = verdict(observed, facts)
    (around,) = (s for s in large.suggestions if s.recipe == name)
    assert around.trial.gain == whole.trial.gain
    assert around.trial.kernels_saved == whole.trial.kernels_saved
    assert around.places == whole.places
    assert suggestions_title(large, 1) == "Suggestions, replayed around each place"


@needs_jax
def test_the_jaxlib_that_is_installed_bears_them_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XLA_FLAGS", f"{os.environ.get('XLA_FLAGS', '')} --xla_backend_optimization_level=0")
    on_cpu = [page for page in PAGES.values() if "cpu" in page.devices]
    compiled: dict[str, str] = {}
    for page, folders in TOOL.compiled(on_cpu, "cpu", tmp_path):
        files = [folders[side] / "after_optimizations.hlo" for side in TOOL.SIDES]
        compiled[page.name] = " → ".join(str(TOOL.xla_figures(file, "cpu", "").kernels) for file in files)
    assert compiled == {page.name: page.rows["cpu"].split(" | ")[2] for page in on_cpu}


@needs_jax
@pytest.mark.parametrize("name", PAGES)
def test_both_sides_compute_the_same(name: str) -> None:
    import jax
    import numpy as np

    if jax.device_count() < PAGES[name].mesh:
        return  # test_both_sides_compute_the_same_on_a_mesh
    names = PAGES[name].namespace()
    if names.get("equal") is False:
        assert "`equal`" in PAGES[name].path.read_text(encoding="utf-8"), "the page says what differs"
        return
    random = np.random.default_rng(0)

    def values(shape: Any) -> Any:
        kind = np.dtype(shape.dtype).kind
        if kind in "iub":
            return random.integers(0, 2 if kind == "b" else 8, shape.shape).astype(shape.dtype)
        real = random.uniform(0.5, 1.5, shape.shape)
        imaginary = 1j * random.uniform(0.5, 1.5, shape.shape) if kind == "c" else 0
        return (real + imaginary).astype(shape.dtype)

    assert "arguments_after" not in names, "only a page whose sides take the same arguments is `equal`"
    given = jax.tree.map(values, names["arguments"])
    before, after = (jax.tree.leaves(jax.jit(names[side])(*given)) for side in TOOL.SIDES)
    assert len(before) == len(after)
    for a, b in zip(before, after, strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        precise = np.dtype(a.dtype).itemsize >= 4
        wide = [np.asarray(x, dtype=np.result_type(x.dtype, np.float64)) for x in (a, b)]
        scale = max(float(np.abs(wide[0]).max()), 1e-6)
        assert float(np.abs(wide[0] - wide[1]).max()) <= scale * (1e-4 if precise else 3e-2)


@needs_jax
def test_both_sides_compute_the_same_on_a_mesh() -> None:
    meshes = [page for page in PAGES.values() if page.mesh > 1]
    same = f"{__file__}::{test_both_sides_compute_the_same.__name__}"
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={meshes[0].mesh}"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    command += [f"{same}[{page.name}]" for page in meshes]
    subprocess.run(command, env={**os.environ, "XLA_FLAGS": flags}, check=True)
