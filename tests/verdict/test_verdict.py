"""The answer first: one screen for any module, bounds that hold, and suggestions that were tried."""

from __future__ import annotations

import json
import linecache
import re
from pathlib import Path

import pytest

import hlofuse as library
from hlofuse.account import observed_replay
from hlofuse.compilation import CompilationInput, replay_config
from hlofuse.ir import parse_module
from hlofuse.reports.common.edits import edit_of
from hlofuse.reports.common.facts import Facts
from hlofuse.reports.verdict import candidates, cut, phrases
from hlofuse.reports.verdict import verdict as module
from hlofuse.reports.verdict.model import Verdict
from ..fixtures import companion_texts, packed, read_cases, unpacked
from ..running import Run

TEXTS = companion_texts(__file__)

PARTITIONED = Path(__file__).parents[1] / "data" / "partitioned.tar.xz"
RECIPES = Path(__file__).parents[1] / "recipes" / "data.tar.xz"
H100 = ("--target", "gpu", "--device", "h100_sxm")

# rsqrt(mean(x²) + ε): XLA makes two kernels of it, and one where the summands are scaled (7.06 → 6.05 µs).
RMS = TEXTS["rms"]
# A sum over 33 elements on CPU: three kernels, one without tree_reduction_rewriter, as XLA compiles it.
COS_SUM = TEXTS["cos_sum"]


def rms(text: str = RMS) -> Verdict:
    observed = observed_replay(CompilationInput(parse_module(text)), replay_config("gpu", "h100_sxm"))
    return module.verdict(observed, Facts(observed.replay, observed.costs))


def test_a_suggestion_stands_with_what_it_gains_on_this_module() -> None:
    found = rms()
    assert found.totals.kernels == 2
    assert found.totals.us == pytest.approx(7.06, abs=0.01)
    first = found.suggestions[0]
    assert (first.kind, first.recipe, first.rule) == ("code", "scale-the-summands", "PF009")
    assert first.trial.totals is not None
    assert first.trial.totals.kernels == 1
    assert first.trial.totals.us == pytest.approx(6.05, abs=0.01)
    assert found.best is first.trial


def test_a_narrow_suggestion_has_its_line_and_its_recipe(hlofuse: Run, tmp_path: Path) -> None:
    """Folders have no room, counts stand below; every report has the same order."""
    file = "a/long/way/to/the/project/of/somebody/layers/normalization.py"
    plain = "dimensions={1}, to_apply=plus"
    path = tmp_path / "rms.hlo"
    path.write_text(RMS.replace(plain, f'{plain}, metadata={{source_file="{file}" source_line=35}}'))
    whole = f"−1.02 µs (14%) · {file}:35 · hlofuse recipe scale-the-summands · 2 → 1 kernels"
    command = (path, *H100, "--stage", "fusion-input", "--xla", "0.7.2")
    assert f"\n   {whole}\n" in hlofuse("explain", *command, columns=160).out
    assert f"\nBest: {whole}\n" in hlofuse("what-if", *command, columns=160).out
    narrow = f"\n   {whole.replace(file, 'normalization.py').replace(' · 2', chr(10) + '     2')}\n"
    assert narrow in hlofuse("explain", *command, columns=82).out
    shown = hlofuse("explain", *command, columns=60).out
    assert all(len(line) <= 60 for line in shown.splitlines())
    assert "normalization.py:35\n     hlofuse recipe scale-the-summands · 2 → 1 kernels\n" in shown


def test_the_first_suggestion_shows_the_line_and_the_form_to_write(
    hlofuse: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    plain = "dimensions={1}, to_apply=plus"
    here = f'{plain}, metadata={{source_file="{tmp_path}/norm.py" source_line=2}}'
    Path("rms.hlo").write_text(RMS.replace(plain, here))
    command = ("rms.hlo", *H100, "--stage", "fusion-input")
    after = "jnp.sum(x * (1 / x.shape[-1]), axis=-1)\n"
    shown = hlofuse("explain", *command).out
    assert f"\n   before  jnp.mean(x, axis=-1)\n   after   {after}" in shown
    Path("norm.py").write_text("import jax.numpy as jnp\ny = jnp.mean(x, -1)  # \x1b[31m\n")
    linecache.clearcache()
    written = "\n   norm.py:2  y = jnp.mean(x, -1)  # \\x1b[31m\n   write      "
    written += "y = jnp.sum(x * (1 / x.shape[-1]), -1)  # \\x1b[31m\n"
    for call in (("explain",), ("explain", "--", "norm.py:2"), ("what-if", "--", "norm.py:2")):
        assert written in hlofuse(call[0], *command, *call[1:]).out
    (first, *_) = json.loads(hlofuse("explain", *command, "--format", "json").out)["suggestions"]
    assert first["edit"]["source"] == "norm.py:2"
    Path("norm.py").write_text("import jax.numpy as np\ndef f(x): return np.mean(x, -1)\n")
    linecache.clearcache()
    own = "def f(x): return np.sum(x * (1 / x.shape[-1]), -1)\n"
    assert f"\n   write      {own}" in hlofuse("explain", *command).out
    Path("loop.py").write_text(
        "from jax import lax\na = lax.scan(f, x, y)\nb = lax.scan(f, x, y, unroll=8)\n"
        "c = lax.fori_loop(0, 8, f, x)\n"
    )
    unrolled = edit_of("unroll-the-scan", "Unroll the loop by 8", ["loop.py:2"])
    assert unrolled is not None
    assert unrolled["after"] == "a = lax.scan(f, x, y, unroll=8)"
    whole = edit_of("unroll-the-short-loop", "Pass unroll=True to a short loop", ["loop.py:4"])
    assert whole is not None
    assert whole["after"] == "c = lax.fori_loop(0, 8, f, x, unroll=True)"
    nowhere = edit_of("scale-the-summands", "", ["norm.py:0"])
    assert nowhere is not None
    assert nowhere["source"] == ""
    Path("norm.py").write_text("import jax.numpy as jnp\ny = jnp.mean(x, where=p)\n")
    linecache.clearcache()
    assert f"   before  jnp.mean(x, axis=-1)\n   after   {after}" in hlofuse("explain", *command).out


def test_the_floor_is_what_enters_and_leaves_the_program() -> None:
    floor = rms().floor
    assert floor.bytes_accessed == 4096 * 1024 * 4 + 4096 * 4
    assert floor.us == pytest.approx(1 + floor.bytes_accessed / 3.35e12 * 1e6, rel=0.01)


def test_in_a_large_module_kernels_are_replayed(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = rms()
    monkeypatch.setattr(module, "TRIED_UP_TO", 1)
    found = rms()
    assert not found.is_ranked
    assert found.replays == len(found.suggestions)
    assert [s.trial.how for s in found.suggestions] == ["replayed on the kernels around each place"]
    assert found.suggestions[0].trial.gain == whole.suggestions[0].trial.gain
    monkeypatch.setattr(cut, "TRIED_UP_TO", 14)  # the first of two places is in a larger kernel
    (second,) = rms(TEXTS["rms_twice"]).suggestions
    assert (second.places, second.trial.gain) == (1, whole.suggestions[0].trial.gain)


def test_a_flag_is_compiled_before_it_is_shown(hlofuse: Run, tmp_path: Path) -> None:
    path = tmp_path / "module_0001.jit_f.before_optimizations.txt"
    path.write_text(COS_SUM)
    report = json.loads(hlofuse("explain", path, "--target", "cpu", "--format", "json").out)
    assert report["totals"]["kernels"] == 3
    (flag,) = (s for s in report["suggestions"] if s["kind"] == "flag")
    assert flag["flag"] == "--xla_disable_hlo_passes=tree_reduction_rewriter"
    assert flag["tried"]["kernels"] == 1
    flagged = hlofuse("explain", path, "--target", "cpu", "--xla-flags", flag["flag"], "--format", "json")
    assert json.loads(flagged.out)["totals"]["kernels"] == 1


def test_variants_and_flags_are_rows_of_what_if(hlofuse: Run, tmp_path: Path) -> None:
    path, other = tmp_path / "f.hlo", tmp_path / "g.hlo"
    path.write_text(COS_SUM)
    other.write_text(COS_SUM.replace("33", "32"))
    flag = "--xla_disable_hlo_passes=tree_reduction_rewriter"
    command = ("what-if", path, "--target", "cpu", "--also", other, "--also-flags", flag)
    rows = json.loads(hlofuse(*command, "--format", "json").out)["also"]
    assert [(r["label"], r["tried"]["kernels"]) for r in rows] == [(f"with {other}", 1), (flag, 1)]
    assert all(r["tried"]["us_saved"] > 0 for r in rows)
    assert f"with {other}: the program cos_sum" in hlofuse(*command, columns=300).out
    wrong = hlofuse("what-if", path, "--target", "cpu", "--also-flags", "--xla_gpu_graph_level=0")
    assert wrong.status == 2
    path.write_text(TEXTS["product"])  # by another library its time has only another lower bound
    for name, saved in (("cse", 0.0), ("triton-gemm-rewriter", None)):
        off = ("--also-flags", f"--xla_disable_hlo_passes={name}", "--format", "json")
        assert json.loads(hlofuse("what-if", path, *H100, *off).out)["also"][0]["tried"]["us_saved"] == saved


def test_check_says_what_would_win_a_budget_back(hlofuse: Run, tmp_path: Path) -> None:
    path = tmp_path / "rms.hlo"
    path.write_text(RMS)
    how = (path, *H100, "--stage", "fusion-input", "--max-time", "6.5us")
    failed = hlofuse("check", *how)
    assert failed.status == 1
    assert "recipe scale-the-summands" in " ".join(failed.out.split())
    (found,) = json.loads(hlofuse("check", *how, "--format", "json").out)["modules"]
    assert found["suggestions"][0]["recipe"] == "scale-the-summands"
    assert "\n> " in hlofuse("check", *how, "--format", "markdown").out


@pytest.mark.parametrize("part", range(14))
def test_one_screen_and_bounds_for_any_module(part: int, tmp_path: Path) -> None:
    unpacked(RECIPES, tmp_path)
    of_fusion = (p for p in tmp_path.glob("*/*/*/input.hlo") if "v5e" not in p.parts)
    recipe = sorted({p.parents[2] for p in of_fusion})[part * 4]
    for path in sorted(p for p in recipe.rglob("input.hlo") if "v5e" not in p.parts):
        device = path.parent.parent.name
        given = None if device == "cpu" else device
        report = library.open(path, stage="fusion-input", target="gpu" if given else "cpu", device=given)
        lines = report.explain().to_text(80).splitlines()
        assert len(lines) <= 24
        assert max(map(len, lines)) <= 80
        found = report.verdict
        assert found.floor.bytes_accessed <= found.totals.cost.bytes_accessed
        assert (found.floor.us or 0.0) <= (found.totals.us or 0.0) * 1.001
        assert all(s.trial.helps(found.totals) for s in found.suggestions)
        assert all("Nothing" not in s.text for s in found.suggestions)


def test_a_suggested_flag_leaves_off_what_is_off(hlofuse: Run, tmp_path: Path) -> None:
    path = tmp_path / "module_0001.jit_f.before_optimizations.txt"
    path.write_text(COS_SUM)
    own = "--xla_disable_hlo_passes=zero_sized_hlo_elimination"
    out = hlofuse("explain", path, "--target", "cpu", "--xla-flags", own, "--format", "json").out
    flags = [s["flag"] for s in json.loads(out)["suggestions"] if s["kind"] == "flag"]
    assert f"{own},tree_reduction_rewriter" in flags


FLAGS = {case.name: case.text for case in read_cases(Path(__file__).with_name("flags.hlo"))}


def test_a_pass_that_saves_time_is_not_offered_to_be_switched_off(hlofuse: Run, tmp_path: Path) -> None:
    """Library calls or unmodelled work may change with it: the lower bound alone is worse already."""
    path = tmp_path / "decay.hlo"
    path.write_text(FLAGS["decay"])
    assert "simplify-while-loops" not in hlofuse("explain", path, *H100).out
    without = hlofuse("what-if", path, *H100, "--without-pass", "simplify-while-loops").out
    assert "+" in next(line for line in without.splitlines() if "simplify-while-loops  " in line)


def test_a_flag_that_takes_work_from_a_library_of_a_cpu_has_no_time(hlofuse: Run, tmp_path: Path) -> None:
    """XLA's own loops are several times faster for distances, and slower for maxima of rows."""
    path = tmp_path / "norm.hlo"
    path.write_text(FLAGS["norm"])
    out = hlofuse("explain", path, "--target", "cpu").out
    assert "dot-library-rewriter" not in out
    path.write_text(DISTANCES)
    out = hlofuse("explain", path, "--target", "cpu", columns=200).out
    worth = next(line for line in out.splitlines() if line.startswith("Worth trying (time unknown): "))
    assert "--xla_cpu_experimental_ynn_fusion_type=-reduce (touches" in worth


def test_a_change_whose_partition_is_not_repeated_has_no_gain(hlofuse: Run, tmp_path: Path) -> None:
    """XLA sums the table over all devices also where rows are added to it."""
    path = tmp_path / "embedding.hlo"
    path.write_text(FLAGS["embedding"])
    out = hlofuse("explain", path, *H100, columns=160).out
    assert "all-reduce, 270 MB sent, 8 devices" in out
    assert "Worth trying (not simulated): update-the-rows" in out


DISTANCES = TEXTS["distances"]

# Halved until all are small: XLA tells no number of iterations.
LOOP = TEXTS["loop"]


def test_what_is_counted_for_one_iteration_has_gain_with_the_total(hlofuse: Run, tmp_path: Path) -> None:
    path = tmp_path / "loop.hlo"
    path.write_text(LOOP)
    out = hlofuse("explain", path, *H100).out.splitlines()
    total = next(n for n, line in enumerate(out) if " moved" in line)
    note = re.fullmatch(
        r"Loops of unknown length: (\d) kernels counted for one iteration, .* µs", out[total + 1]
    )
    assert note is not None
    waits = "Each iteration waits for a copy of its condition to the host"
    assert out[total + 2].startswith(f"{waits}; several steps")
    counting = tmp_path / "counting.hlo"
    counting.write_text(TEXTS["counting"])
    shown = hlofuse("explain", counting, *H100).out
    assert f"{waits}; a static length (static_argnums) avoids it" in " ".join(shown.split())
    on_device = hlofuse("explain", path, *H100, "--xla-flags=--xla_gpu_enable_command_buffer=+WHILE").out
    assert waits not in on_device
    assert waits not in hlofuse("explain", path, "--target", "cpu").out
    kernels = out[next(n for n, line in enumerate(out) if line.startswith("Slowest")) + 1 :]
    assert sum("one iteration" in line for line in kernels) == int(note[1])
    named = hlofuse("explain", path, "loop_multiply_fusion", *H100, columns=200).out
    assert "µs for one iteration of a loop of unknown length" in named


def test_a_loop_under_vmap_says_for_how_many_elements_it_goes_on(hlofuse: Run, tmp_path: Path) -> None:
    path = tmp_path / "awaited.hlo"
    path.write_text(TEXTS["awaited"])
    note = "One runs until the last of 4,096 elements is done"
    shown = hlofuse("explain", path, "--target", "cpu").out
    assert f"{note}; for vmap, jax.lax.map(f, xs, batch_size=n) ends each part by itself" in " ".join(
        shown.split()
    )
    assert f"{note}\n" in hlofuse("explain", path, *H100).out
    path.write_text(TEXTS["awaited"].replace("select(open, y, x)", "add(y, x)"))
    assert "One runs until" not in hlofuse("explain", path, "--target", "cpu").out


def test_what_devices_and_library_calls_wait_for(hlofuse: Run, tmp_path: Path) -> None:
    path = tmp_path / "waits.hlo"
    for name, old, new, texts in (
        ("agreed", "is_spmd_generated", "user", ["jax.shard_map is around the loop"]),
        ("slow", "131072", "131071", ["not s64", "1,000 matrices one after another"]),
    ):
        path.write_text(TEXTS[name])
        out = " ".join(hlofuse("explain", path, *H100).out.split())
        path.write_text(TEXTS[name].replace(old, new))
        other = hlofuse("explain", path, *H100).out
        assert all(text in out for text in texts)
        assert texts[0] not in other


DUPLICATES = TEXTS["duplicates"]


def test_kernels_are_a_row_where_they_are_alike(hlofuse: Run, tmp_path: Path) -> None:
    """The same result of other operands is no reason, and a title counts kernels in rows."""
    path = tmp_path / "alike.hlo"
    path.write_text(DUPLICATES)
    lines = hlofuse("explain", path, "--target", "cpu").out.splitlines()
    rows = lines[lines.index("Slowest kernels (launch overhead included)") + 1 :][:2]
    assert [line.split()[3:5] for line in rows] == [["sum.1", "×2"], ["sum.3", "elemental"]]
    verdict = library.open(str(path), target="cpu").verdict
    assert phrases.kernels_title(verdict, 3, 2) == "Slowest kernels (launch overhead included)"
    assert (
        phrases.kernels_title(verdict, 2, 1) == "Slowest kernels (launch overhead included), 2 of 3 in 1 row"
    )
    assert phrases.kernels_title(verdict, 2, 2) == "Slowest kernels (launch overhead included), 2 of 3"


BRANCHES = TEXTS["branches"]


def test_launches_of_a_branch_are_marked(hlofuse: Run, tmp_path: Path) -> None:
    path = tmp_path / "branches.hlo"
    path.write_text(BRANCHES)
    out = hlofuse("explain", path, "--target", "cpu").out
    assert "4 kernels, 3 launches, " in out
    assert "Conditionals: 3 kernels in branches; only the costliest branch counts" in out
    rows = [line for line in out.splitlines() if line.endswith("×") and "µs" in line]
    marked = {line.split()[3].rstrip(","): "in one branch" in line for line in rows}
    assert marked == {"e": True, "f": True, "y": False}
    assert "one branch of a conditional runs" in hlofuse("kernels", path, "--target", "cpu", columns=200).out


def test_small_updates_of_several_results_are_found_too(hlofuse: Run, tmp_path: Path) -> None:
    """As an optimizer with momentum makes them: one kernel an array, with two results."""
    updates = "".join(
        f"""  g{k} = f32[64]{{0}} parameter({3 * k})
  m{k} = f32[64]{{0}} parameter({3 * k + 1})
  p{k} = f32[64]{{0}} parameter({3 * k + 2})
  n{k} = f32[64]{{0}} subtract(g{k}, m{k})
  q{k} = f32[64]{{0}} multiply(p{k}, n{k})
"""
        for k in range(8)
    )
    results = [f"{x}{k}" for k in range(8) for x in "nq"]
    shape = ", ".join(["f32[64]{0}"] * 16)
    path = tmp_path / "update.hlo"
    path.write_text(
        f"HloModule m\nENTRY e {{\n{updates}  ROOT r = ({shape}) tuple({', '.join(results)})\n}}\n"
    )
    out = hlofuse("explain", path, *H100).out
    assert "8 kernels" in out
    assert "hlofuse recipe update-as-one-vector · 8 → 1 kernels" in out


OPEN = TEXTS["open"]


def test_kernels_that_may_take_far_longer_than_their_bound_are_named(hlofuse: Run, tmp_path: Path) -> None:
    """A matrix product reaches its bound nearly; a scatter of distinct places does not wait."""
    file = tmp_path / "open.hlo"
    waits = "input_scatter_fusion (atomic updates of one address wait); "
    for unique, named in (("", waits), (", unique_indices=true", "")):
        file.write_text(OPEN.replace("to_apply=plus\n", f"to_apply=plus{unique}\n"), encoding="utf-8")
        out = hlofuse("explain", file, *H100, columns=160).out
        assert f"Not fully estimated, measure: {named}k (sort)\n" in out
        assert re.search(r"Time: launches .* · matmuls ≥ .* · sorts ≥ ", out)
    windows_first = (
        OPEN.replace("x = f32[1000,8]", "x = f32[8,1000]")
        .replace("s = f32[1000,8]", "s = f32[8,1000]")
        .replace("inserted_window_dims={0}", "inserted_window_dims={1}")
        .replace("operand_dims={0}", "operand_dims={1}")
        .replace("lhs_contracting_dims={1}", "lhs_contracting_dims={0}")
    )
    file.write_text(windows_first, encoding="utf-8")
    strided = hlofuse("explain", file, *H100, columns=160).out
    assert "input_scatter_fusion (updates far apart in memory: put the indexed dimension first" in strided
    one_place = "8,192 updates of each place wait for one another: add in 32 bits, or multiply by one_hot"
    file.write_text(TEXTS["few_places"], encoding="utf-8")
    assert f"input_scatter_fusion ({one_place}" in hlofuse("explain", file, *H100, columns=200).out
    for old, new in (("EQ", "EQ"), ("EQ", "LE"), ("bitcast(c)", "broadcast(d), dimensions={}")):
        copies = " that only copies windows: gather or slice them" if old == new else ""
        file.write_text(TEXTS["patches"].replace(old, new), encoding="utf-8")
        assert f"k (library convolution{copies})" in hlofuse("explain", file, *H100, columns=160).out
    for size, groups, other in (
        (16, 9, "one after another (jax.lax.map)"),
        (16, 10, "one of all"),
        (1, 10, "jnp.einsum"),
    ):
        grouped = TEXTS["patches"].replace("{size=16}", f"{{size={size}}}, feature_group_count={groups}")
        file.write_text(grouped.replace("=EQ", "=LE"), encoding="utf-8")
        found = f"k (library convolution in {groups} groups, may take longer than {other}"
        assert found in hlofuse("explain", file, *H100, columns=160).out


TWO_CHANGES = TEXTS["two_changes"]


def test_changes_of_the_module_before_optimizations_are_tried_together(hlofuse: Run, tmp_path: Path) -> None:
    """One change is about a product, the other about a sort: they gain as much as one after the other."""
    file = tmp_path / "two.hlo"
    file.write_text(TWO_CHANGES, encoding="utf-8")
    document = json.loads(hlofuse("explain", file, "--target", "cpu", "--format", "json").out)
    found = {s["recipe"]: s["gain"]["time_us"] for s in document["suggestions"][:3]}
    assert list(found) == ["max-not-sort", "sort-as-integers", "multiply-the-small-first"]
    gains = [found["max-not-sort"], found["multiply-the-small-first"]]
    together = document["together"]
    assert together["suggestions"] == [1, 3]
    assert together["gain"]["time_us"] == pytest.approx(sum(gains), rel=0.05)


def test_launches_of_kernels_without_a_time_are_no_part_of_the_total(hlofuse: Run, tmp_path: Path) -> None:
    """Nothing is known of a call of the user's own."""
    file = tmp_path / "product.hlo"
    file.write_text(
        TEXTS["launches_kernels_without"],
        encoding="utf-8",
    )
    document = json.loads(hlofuse("explain", file, "--target", "cpu", "--format", "json").out)
    assert document["totals"]["unknown"] == 1
    callbacks = tmp_path / "callbacks.hlo"
    callbacks.write_text(TEXTS["callbacks"], encoding="utf-8")
    once = "q (Python on the host, given what Python returned: call it once for both)"
    assert (
        f"measure: p (Python on the host); {once}"
        in hlofuse("explain", callbacks, "--target", "cpu", columns=200).out
    )
    shares = {s["kind"]: s["time_us"] for s in document["verdict"]["shares"]}
    assert sum(us or 0 for us in shares.values()) == pytest.approx(document["totals"]["time_us"], abs=0.01)


def test_a_lower_bound_is_no_limit_and_gives_a_diff_no_sign(hlofuse: Run, tmp_path: Path) -> None:
    """Twice the updates may take less time or more; another product of the same bound changes nothing."""
    one, two, other = (tmp_path / f"{name}.hlo" for name in ("one", "two", "other"))
    one.write_text(OPEN, encoding="utf-8")
    two.write_text(OPEN.replace("50000,", "90000,"), encoding="utf-8")
    other.write_text(
        OPEN.replace("ROOT t = (f32", "y = f32[1000,8]{1,0} negate(x)\n  ROOT t = (f32").replace(
            "f32[1000,8]{1,0}, u32[4096]{0}) tuple(d, g)",
            "f32[1000,8]{1,0}, u32[4096]{0}, f32[1000,8]{1,0}) tuple(d, g, y)",
        ),
        encoding="utf-8",
    )
    headline = hlofuse("why", one, "input_scatter_fusion", *H100, columns=160).out
    assert re.search(r"input_scatter_fusion.*: ≥ [\d.]+ µs, atomic updates of one address wait\.", headline)
    time = r"estimated time on h100_sxm: ≥ ([\d.]+) µs → ≥ ([\d.]+) µs( \(.+?\))? · "
    for file, sign in ((two, False), (other, True)):
        found = re.search(time, hlofuse("diff", one, file, "--device", "h100_sxm", columns=500).out)
        assert found is not None
        assert float(found[1]) < float(found[2])
        assert (found[3] is not None) is sign


@pytest.mark.parametrize(
    ("operation", "size", "has_gain"), [("power(v, v)", 4096, False), ("add(v, v)", 65536, True)]
)
def test_unrolling_on_a_cpu_has_a_gain_only_where_the_estimate_is_large(
    operation: str, size: int, has_gain: bool, tmp_path: Path
) -> None:
    """Measured, unrolled loops of small estimated gains were as often slower as faster."""
    state = f"(s32[], f32[{size}]{{0}})"
    path = tmp_path / "loop.hlo"
    path.write_text(f"""HloModule m
body {{ s = {state} parameter(0)
  n = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  next = s32[] add(n, one)
  v = f32[{size}]{{0}} get-tuple-element(s), index=1
  y = f32[{size}]{{0}} {operation}
  ROOT t = {state} tuple(next, y) }}
condition {{ s = {state} parameter(0)
  n = s32[] get-tuple-element(s), index=0
  end = s32[] constant(16)
  ROOT less = pred[] compare(n, end), direction=LT }}
ENTRY e {{
  p = f32[{size}]{{0}} parameter(0)
  begin = s32[] constant(0)
  start = {state} tuple(begin, p)
  ROOT l = {state} while(start), condition=condition, body=body
}}
""")
    found = library.open(str(path), target="cpu").verdict.suggestions
    trials = [s.trial for s in found if s.recipe == "unroll-the-scan"]
    assert [t.us_saved is not None for t in trials] == [has_gain]
    assert [t.is_to_be_measured for t in trials] == [not has_gain]


def verdict_of_partitioned(program: str, folder: Path) -> Verdict:
    """The verdict on a dump of all three stages."""
    stages = {"unoptimized": "before_optimizations", "before": "before", "final": "after_optimizations"}
    for stage, name in stages.items():
        (folder / f"{name}.hlo").write_bytes(packed(PARTITIONED)[program][f"{stage}.hlo"])
    return library.open(folder, device="h100_sxm").verdict


def test_changes_are_tried_on_the_part_of_one_device(tmp_path: Path) -> None:
    """Before XLA's partitioner a module is of all devices. XLA's own with the loop unrolled takes 99.5 µs."""
    v = verdict_of_partitioned("gpu/ns_scan_grad", tmp_path)
    (unrolled,) = (s for s in v.suggestions if s.recipe == "unroll-the-short-loop")
    assert unrolled.trial.totals is not None
    assert unrolled.trial.totals.us == pytest.approx(99.5, rel=0.1)
    assert v.totals.us == pytest.approx(247.2, abs=0.1)


def test_what_can_only_be_changed_before_the_partitioner_is_not_tried(tmp_path: Path) -> None:
    v = verdict_of_partitioned("gpu/ns_attention", tmp_path)
    assert [s.recipe for s in v.untried] == ["attention-by-cudnn"]
    assert "attention-by-cudnn" not in {s.recipe for s in v.suggestions}


POWER = TEXTS["power"]


def test_fewer_digits_are_no_suggestion(hlofuse: Run, tmp_path: Path) -> None:
    product = "dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    place = product + ', metadata={source_file="a.py" source_line=7}'
    text = POWER.replace("[1048576]{0}", "[4096,4096]").replace("power(s, b)", place)
    (tmp_path / "f32.hlo").write_text(text)
    options = (tmp_path / "f32.hlo", "--device", "h100_sxm", "--stage", "before-optimizations")
    line = "With fewer digits (values change): multiply-in-bfloat16 −"
    assert line in hlofuse("explain", *options).out
    assert line in hlofuse("explain", options[0], "a.py:7", *options[1:]).out
    assert line not in hlofuse("explain", options[0], "s", *options[1:]).out
    assert not library.open(options[0], device="h100_sxm").verdict.suggestions


def test_an_estimated_gain_within_the_error_is_worth_trying(
    hlofuse: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "power.hlo"
    path.write_text(POWER)
    worth = "Worth trying (time unknown): power-by-a-root (touches"
    for name, value in (("_UNPROVED", 0.15), ("least_saving", lambda *_: -1.0), ("_UNPROVED", 2.0)):
        assert worth not in hlofuse("explain", path, "--target", "cpu").out
        monkeypatch.setattr(candidates, name, value)
    assert worth in hlofuse("explain", path, "--target", "cpu").out
    monkeypatch.setattr(module, "_WORTH_TRYING", 0.0)
    assert worth not in hlofuse("explain", path, "--target", "cpu").out


def test_a_long_window_over_one_channel_has_no_time(hlofuse: Run, tmp_path: Path) -> None:
    file = tmp_path / "channel.hlo"
    named = "Not fully estimated, measure: k (convolution of one channel, 225 taps: fftconvolve may"
    for size, is_long in ((15, True), (14, False)):
        file.write_text(TEXTS["channel"].replace("SIZE", str(size)))
        out = hlofuse("explain", file, *H100, columns=160).out
        assert (named in out) == is_long
        assert ("convolutions not known" in out) == is_long


@pytest.mark.parametrize(
    ("sizes", "other", "edit", "share"),
    [
        ("", "old", None, 0.79),
        ("1024", "old", None, 0),
        ("", "none", None, 0),
        ("", "new", None, 0),
        ("", "old", "multiply(old, g)", 0.42),  # half of a kernel with two results
        ("", "old", "multiply(new, g)", 0),  # the other result needs it
    ],
)
def test_arrays_that_one_condition_may_discard(
    hlofuse: Run, tmp_path: Path, sizes: str, other: str, edit: str | None, share: float
) -> None:
    file = tmp_path / "chosen.hlo"
    text = (
        TEXTS["chosen"].replace("SIZES", sizes).replace("KEPT", other).replace("DIMS", "0" if sizes else "")
    )
    if edit is not None:
        kind = "f32[1024,1024]"
        results = f"  other = {kind} {edit}\n  ROOT both = ({kind}, {kind}) tuple(r, other)\n}}"
        text = text.replace("ROOT r", "r")
        text = text[: text.rindex("}")] + results
    file.write_text(text)
    note = "computes what a condition may discard (a.py:3); jax.lax.cond computes it only if needed"
    out = hlofuse("explain", file, *H100, columns=160).out
    assert (f"({share:.0%}) {note}" in out) == (note in out) == (share > 0)


@pytest.mark.parametrize(
    ("new", "is_noted"),
    [("add(old, g)", False), ("reverse(g), dimensions={0}", True)],
)
def test_on_a_cpu_a_short_loop_leaves_out_what_is_discarded(
    hlofuse: Run, tmp_path: Path, new: str, is_noted: bool
) -> None:
    file = tmp_path / "chosen.hlo"
    text = TEXTS["chosen"].replace("SIZES", "").replace("KEPT", "old").replace("DIMS", "")
    file.write_text(text.replace("add(old, g)", new))
    assert ("what a condition may discard" in hlofuse("explain", file, "--target", "cpu").out) == is_noted
