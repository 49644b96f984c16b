"""Measured time in every report that counts time, and which of two times is compared with which."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import hlofuse as library
from hlofuse.account import Account
from hlofuse.format.units import us_text
from hlofuse.inputs.profile import read_profile
from hlofuse.ir.errors import HlofuseError
from hlofuse.testing import assert_fusion
from ..running import Run
from .test_profiles import needs_jaxlib
from .writing import Plane, gpu_profile

STEP, PROFILE = "step.before_optimizations.txt", "host.xplane.pb"


def profile_of(
    dump: Path, to: Path, time_of: Callable[[str, float], float], device: str = "h100_sxm"
) -> Path:
    """A profile of one run of a module's replay on a GPU; `time_of` has a kernel's name and estimate."""
    account = library.open(dump, device=device).facts.account_after
    kernels, now = list[tuple[str, str, float, float]](), 0.0
    for row in account.rows:
        us = time_of(row.instruction.name, row.us or 0.0)
        for _ in range(row.runs):
            kernels.append((row.instruction.name, row.instruction.name.replace(".", "_"), now, us))
            now += us + 1
    to.write_bytes(gpu_profile(kernels, account.module.name))
    return to


# check


def test_a_budget_is_about_measured_time(recorded: Path, hlofuse: Run) -> None:
    dump, profile = recorded / STEP, recorded / PROFILE
    document = json.loads(
        hlofuse("check", dump, "--profile", profile, "--max-time", "1us", "--format", "json").out
    )
    (module,) = document["modules"]
    step = next(m for m in read_profile(str(profile)).modules if m.name == "jit_step")
    assert module["figures"]["measured_us"] == pytest.approx(step.total_us / 3, abs=0.01)
    assert module["figures"]["us"] > 0  # estimated: no budget of measured time
    assert module["profile"]["runs"] == 3
    (finding,) = module["findings"]
    assert finding["code"] == "max-time"
    assert finding["message"].startswith("measured ")
    shown = hlofuse("check", dump, "--profile", profile, "--max-time", "10s")
    assert shown.status == 0
    assert " µs measured" in shown.out
    assert "Profile: 3 runs of jit_step, 100% of its time matched" in shown.out
    refused = hlofuse("check", dump, "--max-time", "1us")
    assert refused.status == 1
    assert "est." in refused.out


@needs_jaxlib
def test_every_program_of_a_profile_is_checked(recorded: Path, hlofuse: Run) -> None:
    result = hlofuse("check", recorded / PROFILE, "--max-time", "2ms", "--format", "json")
    checked = {m["module"]: m["failed"] for m in json.loads(result.out)["modules"]}
    assert checked == {m.name: m.total_us / 3 > 2000 for m in read_profile(str(recorded / PROFILE)).modules}
    assert result.status == 1


def test_what_did_not_run_is_not_checked(recorded: Path, tmp_path: Path, hlofuse: Run) -> None:
    text = (recorded / STEP).read_text()
    for name in ("jit_step", "jit_other"):
        (tmp_path / f"module_0001.{name}.before_optimizations.txt").write_text(
            text.replace("HloModule jit_step", f"HloModule {name}")
        )
    result = hlofuse("check", tmp_path, "--profile", recorded / PROFILE, "--max-time", "10s")
    assert result.status == 0
    assert "1 module OK" in result.out
    assert "1 module did not run in the profile: not checked" in result.err
    alone = hlofuse(
        "check", tmp_path, "--module", "other", "--profile", recorded / PROFILE, "--max-time", "1s"
    )
    assert alone.status == 2
    assert "has no module jit_other" in alone.err


def test_measured_and_estimated_time_are_never_compared(
    gpt2_whole: Path, on_gpu: Path, tmp_path: Path, hlofuse: Run
) -> None:
    estimated, measured = tmp_path / "estimated.toml", tmp_path / "measured.toml"
    check = ("check", gpt2_whole, "--format", "json", "--baseline")
    assert hlofuse(*check, estimated, "--update").status == 0
    assert hlofuse(*check, measured, "--profile", on_gpu, "--update").status == 0
    assert "measured_us" not in estimated.read_text()
    assert "time_us" in measured.read_text()

    def findings(baseline: Path, *more: object) -> dict[str, tuple[str, str]]:
        document = json.loads(hlofuse(*check, baseline, *more).out)
        return {f["code"]: (f["level"], f["message"]) for m in document["modules"] for f in m["findings"]}

    assert findings(estimated) == findings(measured, "--profile", on_gpu) == {}
    level, message = findings(estimated, "--profile", on_gpu)["time-not-compared"]
    assert level == "warning"
    assert message == (
        "measured time not compared: the baseline has an estimated time only; --update adds the measured one"
    )
    assert findings(estimated, "--profile", on_gpu, "--strict")["time-not-compared"][0] == "error"
    assert findings(measured)["time-not-compared"][1].endswith("give --profile")

    slower = profile_of(gpt2_whole, tmp_path / "slower.xplane.pb", lambda name, _: 1.05 * len(name))
    level, message = findings(measured, "--profile", slower)["more-time"]
    assert (level, message[:9]) == ("error", "measured ")
    assert findings(measured, "--profile", slower, "--tolerance", "6") == {}


@pytest.mark.filterwarnings("ignore:APPROXIMATE")
def test_assertions_take_a_profile(recorded: Path) -> None:
    dump, profile = recorded / STEP, str(recorded / PROFILE)
    found = assert_fusion(dump, max_time="10s", profile=profile)
    assert found.figures.measured_us is not None
    with pytest.raises(AssertionError, match=r"measured .* allowed"):
        assert_fusion(dump, max_time="1us", profile=profile)
    report = library.open(dump, profile=profile)
    assert report.check(max_time="1us").data.failed
    assert not report.check(max_time="1s").data.failed


# diff


def test_a_diff_of_profiles_is_kernel_by_kernel(
    gpt2_whole: Path, on_gpu: Path, tmp_path: Path, hlofuse: Run
) -> None:
    after = profile_of(
        gpt2_whole,
        tmp_path / "after.xplane.pb",
        lambda name, _: len(name) + (9 if name == "loop_multiply_fusion" else -1),
    )
    call = ("diff", gpt2_whole, gpt2_whole, "--profile", on_gpu, "--profile-after", after)
    document = json.loads(hlofuse(*call, "--format", "json").out)
    assert document["timing"] == "measured"
    first, *others = document["kernels"]
    assert first == {
        "before": ["loop_multiply_fusion"],
        "after": ["loop_multiply_fusion"],
        "measured_us": [20.0, 29.0],
    }
    assert all(k["before"] == k["after"] for k in others)
    assert all(k["measured_us"][1] == k["measured_us"][0] - 1 for k in others)
    for side, at in (("before", 0), ("after", 1)):
        total = sum(k["measured_us"][at] for k in document["kernels"])
        assert document[side]["totals"]["measured_us"] == pytest.approx(total)
    for columns in (80, 160):
        shown = hlofuse(*call, columns=columns).out
        assert "kernels, measured   slower first; time of one run" in shown
        assert "20.00 µs → 29.00 µs (+45%)" in shown
        assert all(len(line) <= columns for line in shown.splitlines())
    assert "kernels, measured" in hlofuse(*call, "--format", "markdown").out


@needs_jaxlib
def test_two_profiles_need_no_dump(recorded: Path, hlofuse: Run) -> None:
    document = json.loads(hlofuse("diff", recorded / PROFILE, recorded / PROFILE, "--format", "json").out)
    assert document["same"]
    assert document["timing"] == "measured"
    assert len(document["kernels"]) == document["before"]["totals"]["kernels"]
    assert all(k["before"] == k["after"] for k in document["kernels"])


def test_one_profile_is_not_compared_with_an_estimate(recorded: Path, hlofuse: Run) -> None:
    dump = recorded / STEP
    document = json.loads(
        hlofuse("diff", dump, dump, "--profile", recorded / PROFILE, "--format", "json").out
    )
    assert (document["timing"], document["kernels"]) == ("estimated", [])
    shown = hlofuse("diff", dump, dump, "--profile", recorded / PROFILE, columns=120).out
    assert "after: no profile, so measured times are not compared" in shown


# why, stats, what-if


def test_the_kernels_that_an_answer_names_have_their_time(recorded: Path, hlofuse: Run) -> None:
    dump, profile = recorded / STEP, recorded / PROFILE
    kernels = json.loads(hlofuse("kernels", dump, "--profile", profile, "--format", "json").out)["kernels"]
    slowest = max(kernels, key=lambda k: k["measured"]["total_us"] if k["measured"] else 0)
    story = json.loads(hlofuse("why", dump, slowest["name"], "--profile", profile, "--format", "json").out)
    assert story["instruction"]["measured"] == slowest["measured"]
    assert "µs × 24 measured" in hlofuse("why", dump, slowest["name"], "--profile", profile, columns=120).out
    (module,) = json.loads(hlofuse("stats", dump, "--profile", profile, "--format", "json").out)["modules"]
    assert module["heaviest"][0]["measured"] == slowest["measured"]
    assert module["totals"]["measured_us"] == pytest.approx(
        sum(k["measured"]["total_us"] for k in kernels if k["measured"]) / 3, abs=1e-3
    )
    assert "µs measured" in hlofuse("what-if", dump, "--profile", profile).out


# What is left to save.


@pytest.fixture
def scan(samples: Path) -> Path:
    """A module with changes that save time on a GPU."""
    return samples / "cartpole" / "gpu" / "no_concatenate"


def trials(report: library.Report) -> dict[str, tuple[float, float | None]]:
    """Estimated and scaled saving of every change that was tried."""
    rows = report.what_if().to_json()
    found = {r["rule"]: (r["us_saved"], r["scaled_us_saved"]) for r in rows["relaxed"]}
    return found | {
        s["text"]: (s["tried"]["us_saved"], s["tried"]["scaled_us_saved"]) for s in rows["suggestions"]
    }


def test_savings_are_the_estimates_where_these_are_what_was_measured(
    scan: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What takes as long as the model says saves what the model says; ten times slower, ten times that. No
    kernel of a profile waits for the host."""
    monkeypatch.setattr(Account, "host_wait_us", lambda *_, **__: 0.0)
    as_modelled = profile_of(scan, tmp_path / "a.xplane.pb", lambda _, us: us)
    report = library.open(scan, device="h100_sxm", profile=str(as_modelled))
    found = trials(report)
    assert any(us > 100 for us, _ in found.values())
    for us, scaled in found.values():
        assert scaled == pytest.approx(us, abs=0.02 * max(u for u, _ in found.values()))
    document = report.explain().to_json()
    left = document["verdict"]["headroom"]["most_us"]
    assert document["verdict"]["scaled_us_left"] == pytest.approx(left, rel=0.01)

    ten_times = profile_of(scan, tmp_path / "b.xplane.pb", lambda _, us: 10 * us)
    slower = library.open(scan, device="h100_sxm", profile=str(ten_times))
    (best,) = (s.trial for s in slower.verdict.suggestions[:1])
    assert best.scaled_us_saved is not None
    assert best.us_saved is not None
    assert best.scaled_us_saved == pytest.approx(10 * best.us_saved, rel=0.02)
    assert best.scaled_us_saved < document["totals"]["measured_us"] * 10
    shown = str(slower.explain())
    assert "scaled to measured time" in shown
    assert "Inputs and results moved once: " in shown


@pytest.mark.parametrize(("factor", "is_suggested"), [(1, True), (1e-4, False)])
def test_no_change_is_suggested_of_kernels_that_take_no_time(
    samples: Path, tmp_path: Path, factor: float, is_suggested: bool
) -> None:
    """A scan is unrolled for its launches, unless a profile says that they take next to nothing."""
    loop = samples / "cartpole" / "gpu" / "precomputed_noise"
    rows = library.open(loop, device="h100_sxm").facts.account_after.rows
    inside = {r.instruction.name for r in rows if r.runs > 1}
    profile = profile_of(
        loop, tmp_path / "a.xplane.pb", lambda name, us: us * (factor if name in inside else 1e5)
    )
    found = library.open(loop, device="h100_sxm", profile=str(profile)).suggestions.data
    assert ("unroll-the-scan" in {s.recipe for s in found}) is is_suggested


def test_flags_are_searched_for_by_measured_time(gpt2_whole: Path, on_gpu: Path, hlofuse: Run) -> None:
    def measured(*options: str) -> dict[str, Any]:
        command = ("optimize", gpt2_whole, "--passes", flag, "--format", "json", *options)
        return dict(json.loads(hlofuse(*command).out))

    flag = "--xla_disable_hlo_passes=triton-softmax-rewriter"
    with_profile, without = measured("--profile", str(on_gpu)), measured()
    assert with_profile["profile"]["found"]["share"] == 1
    assert (with_profile["objective"], without["objective"]) == ("measured-time", "time")
    explained = library.open(gpt2_whole, profile=str(on_gpu)).account.totals.measured_us
    assert with_profile["default"]["scaled_us"] == pytest.approx(explained)
    assert with_profile["found"]["scaled_us"] != pytest.approx(explained)
    assert with_profile["found"]["time_us"] == without["found"]["time_us"]
    assert without["found"]["scaled_us"] is None
    refused = hlofuse("optimize", gpt2_whole, "--objective", "measured-time")
    assert refused.status == 2
    assert "give a profile of this program" in refused.err


def test_an_environment_rewards_measured_time(gpt2_whole: Path, on_gpu: Path) -> None:
    pytest.importorskip("gymnasium", reason="needs gymnasium")
    from hlofuse.gym.env import HloPassEnv

    how: dict[str, Any] = {"objective": "measured-time", "baseline": "gpu", "device": "h100_sxm"}
    env = HloPassEnv(str(gpt2_whole), **how, profile=str(on_gpu), most_steps=1)
    env.reset(seed=0)
    assert env.step(env.names.index("stop"))[1] == 0
    refused = HloPassEnv(str(gpt2_whole), **how, most_steps=1)
    refused.reset(seed=0)
    with pytest.raises(HlofuseError, match="give a profile of this program"):
        refused.step(refused.names.index("stop"))


def test_the_way_through_the_passes_ends_in_measured_kernels(
    gpt2_whole: Path, on_gpu: Path, hlofuse: Run
) -> None:
    def document(*call: object) -> dict[str, Any]:
        return dict(json.loads(hlofuse(*call, "--profile", on_gpu, "--format", "json").out))

    account = library.open(gpt2_whole, profile=str(on_gpu)).account
    launched = {k["name"]: k["measured"] for k in document("kernels", gpt2_whole)["kernels"]}
    (operation,) = document("trace-op", gpt2_whole, "dot_general.9")["operations"]
    assert len(operation["ends_in"]) == 3
    assert all(k["measured"] and k["measured"] == launched[k["name"]] for k in operation["ends_in"])
    shown = hlofuse("trace-op", gpt2_whole, "dot_general.9", "--profile", on_gpu, columns=100).out
    assert "100% of its time matched to kernels" in shown
    assert "\n  loop_add_fusion: " in shown
    (steps,) = document("timeline", gpt2_whole)["films"]
    assert steps["profile"]["found"]["share"] == 1
    measured = account.totals.measured_us or 0.0
    shown = hlofuse("timeline", gpt2_whole, "--profile", on_gpu, columns=100).out
    assert f"{us_text(measured)} measured in one run of the last dump" in shown


def test_a_kernel_far_above_its_estimate_says_so(scan: Path, tmp_path: Path) -> None:
    """XLA's model knows nothing of what made it slow, so what bounds it there is not said."""

    def marks(factor: float) -> set[str]:
        profile = profile_of(scan, tmp_path / f"{factor}.xplane.pb", lambda _, us: factor * us)
        hot = library.open(scan, device="h100_sxm", profile=str(profile)).verdict.hot_kernels
        return {k.bound_by for k in hot if "estimate" in k.bound_by}

    assert marks(3) == set()
    assert marks(10) == {"10× its estimate"}


def test_a_cpu_keeps_its_estimates_of_bytes(recorded: Path, hlofuse: Run) -> None:
    document = json.loads(
        hlofuse("explain", recorded / STEP, "--profile", recorded / PROFILE, "--format", "json").out
    )
    assert document["verdict"]["scaled_us_left"] is None
    assert all(s["tried"]["scaled_us_saved"] is None for s in document["suggestions"])


def test_changed_settings_do_not_take_measured_times(gpt2_whole: Path, on_gpu: Path) -> None:
    """What was measured is what XLA ran, not what other settings would have made of it."""
    report = library.open(gpt2_whole, profile=str(on_gpu), set={"launch_overhead_us": 9})
    assert report.account.measured is None
    assert report.replayed.xla is not None


# TPU


def test_a_tpu_shows_its_own_estimate(tmp_path: Path, hlofuse: Run) -> None:
    plane, program = Plane("/device:TPU:0"), {"program_id": 5}
    plane.line("XLA Modules", [(plane.event_id("jit_g(5)"), 0, 900, {})])
    negate = plane.event_id("%fusion.1 = f32[1024]{0} fusion(%p)", program)
    plane.line("XLA Ops", [(negate, 0, 8_000_000, {}), (negate, 9_000_000, 8_000_000, {})])
    profile, dump = tmp_path / "tpu.xplane.pb", tmp_path / "g.hlo"
    profile.write_bytes(plane.encoded())
    dump.write_text(
        "HloModule jit_g, is_scheduled=true\n\nf {\n  a = f32[1024]{0:T(1024)} parameter(0)\n  ROOT n ="
        " f32[1024]{0:T(1024)} negate(a)\n}\n\nENTRY main {\n  p = f32[1024]{0:T(1024)} parameter(0)\n  ROOT"
        " fusion.1 = f32[1024]{0:T(1024)} fusion(p), kind=kLoop, calls=f,"
        ' backend_config={"window_config":{"estimated_cycles":"4096"}}\n}\n'
    )
    (kernel,) = json.loads(hlofuse("model-error", profile, dump, "--format", "json").out)["kernels"]
    assert (kernel["cycles"], kernel["measured_run_us"]) == (4096, 8.0)
    shown = hlofuse("model-error", profile, dump, columns=100).out
    assert "XLA's cycles per µs" in shown
    assert " 512 " in shown


# capture --run

SCRIPT = """\
import sys, jax, jax.numpy as jnp
jax.config.update("jax_num_cpu_devices", 2)
step = jax.jit(lambda x: jnp.tanh(x @ x) + 1)
for _ in range(3):
    result = step(jnp.ones((64, 64)))
assert __name__ == "__main__"
open(sys.argv[1], "w").write(f"{sys.argv} {len(jax.devices())}")
sys.exit(int(sys.argv[2]))
"""


@pytest.mark.parametrize("status", [0, 3])
def test_a_script_is_run_with_dump_and_profile(tmp_path: Path, status: int, hlofuse: Run) -> None:
    pytest.importorskip("jax", reason="needs jax")
    script, written, out = tmp_path / "train.py", tmp_path / "written", tmp_path / "captured"
    script.write_text(SCRIPT)
    result = hlofuse("capture", "--run", "-o", out, script, "--", written, status, JAX_PLATFORMS="cpu")
    assert result.status == status, result.err
    assert written.read_text() == f"{[str(script), str(written), str(status)]} 2"
    assert ("the program exited with status 3" in result.err) == bool(status)
    folder = next(f for f in out.iterdir() if (f / "before.hlo").exists() and "lambda" in f.name)
    document = json.loads(hlofuse("explain", folder, "--format", "json").out)
    assert document["profile"]["runs"] == 3
    assert document["profile"]["found"]["share"] == 1.0
    # The whole script was recorded: how busy the device was says nothing.
    assert document["profile"]["devices"] == []
    whole = json.loads(hlofuse("explain", out, "--module", folder.name, "--format", "json").out)
    assert (whole["profile"], whole["kernels"]) == (document["profile"], document["kernels"])


OWN_TRACE = """\
import sys, jax, jax.numpy as jnp
step = jax.jit(lambda x: jnp.tanh(x @ x) + 1)
x = step(jnp.ones((64, 64)))
with jax.profiler.trace(sys.argv[1]):
    for _ in range(4):
        x = step(x)
    x.block_until_ready()
step(x)
"""


def test_a_script_that_profiles_itself_keeps_its_profile(tmp_path: Path, hlofuse: Run) -> None:
    pytest.importorskip("jax", reason="needs jax")
    script, log, out = tmp_path / "train.py", tmp_path / "log", tmp_path / "captured"
    script.write_text(OWN_TRACE)
    result = hlofuse("capture", "--run", "-o", out, script, "--", log, JAX_PLATFORMS="cpu")
    assert (result.status, result.err) == (0, "")
    folder = next(f for f in out.iterdir() if (f / "before.hlo").exists() and "lambda" in f.name)
    for input in (folder, *log.glob("plugins/profile/*/*.xplane.pb")):
        document = json.loads(hlofuse("explain", input, "--format", "json").out)
        assert document["profile"]["runs"] == 3  # of four, without the first
        assert document["profile"]["found"]["share"] == 1.0


def test_a_script_that_is_not_there_is_one_sentence(tmp_path: Path, hlofuse: Run) -> None:
    result = hlofuse("capture", "--run", "-o", tmp_path / "out", tmp_path / "no.py")
    assert (result.status, result.err.strip()) == (2, f"error: {tmp_path / 'no.py'}: no such script")
    assert not (tmp_path / "out").exists()


def test_a_folder_with_dumps_and_a_profile_is_a_dump(recorded: Path, tmp_path: Path, hlofuse: Run) -> None:
    run = tmp_path / "plugins" / "profile" / "run"
    run.mkdir(parents=True)
    (run / PROFILE).write_bytes((recorded / PROFILE).read_bytes())
    (tmp_path / "module_0001.jit_step.before_optimizations.txt").write_bytes((recorded / STEP).read_bytes())
    document = json.loads(hlofuse("explain", tmp_path, "--format", "json").out)
    assert document["profile"]["runs"] == 3
    assert len(document["profile"]["devices"]) == 1
    (tmp_path / "module_0001.jit_step.before_optimizations.txt").write_text(
        (recorded / STEP).read_text().replace("HloModule jit_step", "HloModule jit_other")
    )
    assert "profile" not in json.loads(hlofuse("explain", tmp_path, "--format", "json").out)


def test_nothing_measured_is_an_error(recorded: Path, tmp_path: Path) -> None:
    path = tmp_path / "other.hlo"
    path.write_text(
        "HloModule jit_step\n\nENTRY e {\n  p = f32[4]{0} parameter(0)\n  ROOT n = f32[4]{0} negate(p)\n}\n"
    )
    with pytest.raises(HlofuseError, match="no kernel of the module has a measured time"):
        assert_fusion(path, max_time="1s", target="cpu", profile=str(recorded / PROFILE))
