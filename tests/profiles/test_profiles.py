"""Profiles: what is read, that it agrees with xprof, and that every event finds its instruction."""

from __future__ import annotations

import gzip
import importlib.util
import json
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from hlofuse.account.measured import attach, measured_of
from hlofuse.format.units import us_text
from hlofuse.inputs import load
from hlofuse.inputs.profile import Profile, is_profile, read_profile
from hlofuse.inputs.wire_format import entry_names
from hlofuse.ir.errors import HlofuseError
from hlofuse.ir.text.reader import parse_module
from ..explorer.browser import Visit
from ..running import Run
from .writing import Plane, gpu_profile, message, nsight_export

needs_jaxlib = pytest.mark.skipif(
    importlib.util.find_spec("jaxlib") is None, reason="needs jaxlib (Python 3.12 or newer)"
)


def times_of(profile: Profile) -> dict[str, tuple[int, float]]:
    """Launches and microseconds by `program|name`."""
    return {f"{m.program}|{t.name}": (t.calls, t.total_us) for m in profile.modules for t in m.times.values()}


def test_the_sums_are_those_of_xprof(recorded: Path) -> None:
    expected = json.loads((recorded / "xprof.json").read_text())
    found = times_of(read_profile(str(recorded / "host.xplane.pb")))
    assert found.keys() == expected.keys()
    for name, (calls, us) in expected.items():
        assert found[name][0] == calls
        assert found[name][1] == pytest.approx(us, rel=1e-6)


def test_a_trace_says_the_same(recorded: Path) -> None:
    by_name = {
        (m.name, t.name): t
        for m in read_profile(str(recorded / "host.xplane.pb")).modules
        for t in m.times.values()
    }
    trace = read_profile(str(recorded / "host.trace.json.gz"))
    assert {m.name for m in trace.modules} == {"jit_step", "jit_small", "jit_block"}
    for module in trace.modules:
        for t in module.times.values():
            same = by_name[module.name, t.name]
            assert (t.calls, t.lines) == (same.calls, same.lines)
            assert (t.total_us, t.median_us, t.max_us) == pytest.approx(
                (same.total_us, same.median_us, same.max_us), rel=1e-3
            )


def test_loops_and_branches_contain_what_they_run(recorded: Path) -> None:
    modules = {m.name: m for m in read_profile(str(recorded / "host.xplane.pb")).modules}
    step = modules["jit_step"]
    assert len(step.containers) == 1
    (loop,) = step.containers
    assert step.total_us == pytest.approx(
        sum(t.total_us for t in step.times.values()) - step.times[loop].total_us
    )
    assert len(modules["jit_small"].containers) == 1


@needs_jaxlib
@pytest.mark.parametrize("name", ["jit_step", "jit_small", "jit_block"])
def test_every_event_finds_its_instruction(recorded: Path, name: str) -> None:
    module = load(recorded / "host.xplane.pb", name)
    found = measured_of(module)
    assert found is not None
    assert (found.found_calls, round(found.share, 6), found.runs) == (found.calls, 1.0, 3)
    assert set(found.times) == set(found.source.times)


@needs_jaxlib
def test_the_kernels_of_the_account_are_all_that_took_time(recorded: Path) -> None:
    from hlofuse.account import Account

    for name in ("jit_step", "jit_small", "jit_block"):
        account = Account(load(recorded / "host.xplane.pb", name), backend="cpu")
        assert account.measured is not None
        total = account.measured.source.total_us / account.measured.runs
        assert account.totals.measured_us == pytest.approx(total)


# With a dump.


def test_a_replay_has_the_times_under_its_final_names(recorded: Path, hlofuse: Run) -> None:
    dump, profile = recorded / "step.before_optimizations.txt", recorded / "host.xplane.pb"
    result = hlofuse("explain", dump, "--profile", profile, "--format", "json")
    document = json.loads(result.out)
    assert document["profile"]["found"]["share"] == 1.0
    kernels = {k["name"]: k for k in document["kernels"]}
    modules = {m.name: m for m in read_profile(str(profile)).modules}
    for t in modules["jit_step"].times.values():
        if t.name not in modules["jit_step"].containers:
            assert kernels[t.name]["measured_us"] == pytest.approx(t.us, abs=1e-4)
            assert kernels[t.name]["measured"]["calls"] == t.calls
    assert document["totals"]["measured_us"] == pytest.approx(modules["jit_step"].total_us / 3, abs=1e-3)


def test_the_library_has_the_same(recorded: Path, hlofuse: Run) -> None:
    from hlofuse import open as open_report

    dump, profile = recorded / "step.before_optimizations.txt", recorded / "host.xplane.pb"
    report = open_report(dump, profile=str(profile))
    printed = json.loads(hlofuse("kernels", dump, "--profile", profile, "--format", "json").out)
    assert report.kernels.to_json() == printed
    assert report.totals.measured_us == pytest.approx(
        sum(k["measured"]["total_us"] for k in printed["kernels"] if k["measured"]) / 3
    )
    compared = json.loads(hlofuse("model-error", profile, dump, "--format", "json").out)
    assert report.model_error.to_json() == compared
    named = hlofuse("model-error", dump, "--profile", profile, "--format", "json")
    assert json.loads(named.out) == compared
    twice = hlofuse("model-error", profile, dump, "--profile", profile)
    assert (twice.status, twice.out) == (2, "")
    assert "give PROFILE DUMP, or DUMP --profile PROFILE" in twice.err


def test_another_operation_of_the_same_name_is_not_joined(recorded: Path) -> None:
    profile = read_profile(str(recorded / "host.xplane.pb"))
    modules = {m.name: m for m in profile.modules}
    name = next(n for n in modules["jit_step"].times if "fusion" in n)
    other = parse_module(
        f"HloModule jit_step\n\nENTRY main {{\n  p = f32[7]{{0}} parameter(0)\n  ROOT {name} ="
        " f32[7]{0} negate(p)\n}\n"
    )
    attach(other, profile)
    found = measured_of(other)
    assert found is not None
    assert found.refused == (name,)
    assert not found.times
    assert found.share == 0.0


def test_a_module_that_did_not_run_is_an_error(recorded: Path) -> None:
    module = parse_module("HloModule jit_stp\n\nENTRY main {\n  ROOT p = f32[7]{0} parameter(0)\n}\n")
    with pytest.raises(HlofuseError, match=r"has no module jit_stp.*jit_step"):
        attach(module, read_profile(str(recorded / "host.xplane.pb")))


# What commands say.


@needs_jaxlib
def test_explain_takes_the_costliest_module(recorded: Path, hlofuse: Run) -> None:
    profile = recorded / "host.xplane.pb"
    costliest = read_profile(str(profile)).modules[0]
    result = hlofuse("explain", profile, columns=120)
    assert result.status == 0
    assert result.out.startswith(f"{costliest.name}: after all passes · cpu · XLA 0.11.1")
    assert f"Profile: 3 runs of {costliest.name}, 100% of its time matched to kernels" in result.out
    assert "Slowest kernels, measured" in result.out
    assert all(len(line) <= 120 for line in result.out.splitlines())
    small = hlofuse("explain", profile, "--module", "small").out
    assert small.startswith("jit_small: ")


def test_an_overview_lists_the_programs(recorded: Path, hlofuse: Run) -> None:
    shown = hlofuse(recorded / "host.xplane.pb", columns=120).out
    assert "profile with 3 modules" in shown
    for module in read_profile(str(recorded / "host.xplane.pb")).modules:
        assert f"  {module.label}  " in shown
    assert "model-error" in shown
    assert "--profile" in hlofuse(recorded / "host.trace.json.gz").out


@needs_jaxlib
def test_model_error_says_that_a_cpu_has_no_model(recorded: Path, hlofuse: Run) -> None:
    result = hlofuse(
        "model-error", recorded / "host.xplane.pb", "--module", "step", "--limit", 3, columns=110
    )
    assert "XLA:CPU has no time model" in result.out
    assert "more (--limit 0 shows all)" in result.out
    document = json.loads(hlofuse("model-error", recorded / "host.xplane.pb", "--format", "json").out)
    assert document["schema"] == "hlofuse.model-error/3"
    off = [k["estimate_us"] - k["measured_run_us"] for k in document["kernels"]]
    assert off == sorted(off)


# Other devices.


def test_a_host_launches_and_a_gpu_runs(tmp_path: Path) -> None:
    path = tmp_path / "gpu.xplane.pb"
    path.write_bytes(gpu_profile([("loop_add_fusion.1", "loop_add_fusion_1", 10, 20)]))
    profile = read_profile(str(path))
    (module,) = profile.modules
    assert [(t.name, t.calls, t.total_us, t.kernels) for t in module.times.values()] == [
        ("loop_add_fusion.1", 1, 20.0, ("loop_add_fusion_1",))
    ]
    (device,) = profile.devices
    assert (device.name, device.span_us, device.busy_us, device.copies_us) == ("GPU:0", 70.0, 25.0, 5.0)
    assert (device.gaps, device.longest_gap_us, device.exposed_us) == (1, 45.0, 5.0)


@needs_jaxlib
@pytest.mark.parametrize(
    ("runs", "apart", "has_line"),
    [(60, 80, True), (60, 2, False), (60, 4000, False), (6, 80, False), (1, 80, False)],
)
def test_waits_between_small_programs_are_dispatch(
    h200: Path, tmp_path: Path, hlofuse: Run, runs: int, apart: int, has_line: bool
) -> None:
    """Gaps within one run, those in which a program may compile, and a few are none."""
    module = read_profile(str(h200 / "profile")).modules[0]
    assert module.proto is not None
    name = max(entry_names(module.proto()) & module.times.keys())
    inside = f"{name}.of_a_loop" if runs == 1 else name
    launches = [(inside, inside, k * (1 + apart), 1.0) for k in range(max(runs, 60 // runs))]
    path = tmp_path / "gpu.xplane.pb"
    path.write_bytes(gpu_profile([*launches[1:], (name, name, 0.0, 1.0)], module.name, module.proto()))
    assert module.runs == 2
    shown = hlofuse("explain", path, columns=200).out
    assert "Slowest kernels" in shown
    assert ("jit the whole loop" in shown) is has_line
    assert ("59 of 59 runs take at most 20 µs on average, each" in shown) is (runs == 60 and not has_line)
    if has_line:
        assert f"59 runs of 1 program, {us_text(apart)} of waiting for the host before each" in shown


def test_every_kernel_of_a_gpu_finds_its_place_in_the_replay(
    gpt2_whole: Path, on_gpu: Path, hlofuse: Run
) -> None:
    document = json.loads(hlofuse("explain", gpt2_whole, "--profile", on_gpu, "--format", "json").out)
    assert document["profile"]["found"]["share"] > 0.95
    assert document["profile"]["runs"] == 2
    kernels = document["kernels"]
    assert [k["measured_us"] for k in kernels] == [len(k["name"]) for k in kernels]


def test_model_error_compares_xlas_model(gpt2_whole: Path, on_gpu: Path, h200: Path, hlofuse: Run) -> None:
    final = (h200 / "profile", "--module", "mlp_grad_bf16")
    heads = {hlofuse(command, *final).out.splitlines()[0] for command in ("model-error", "kernels")}
    assert len(heads) == 1
    result = hlofuse("model-error", on_gpu, gpt2_whole, columns=120)
    assert result.status == 0
    assert "XLA's model: " in result.out
    document = json.loads(hlofuse("model-error", on_gpu, gpt2_whole, "--format", "json").out)
    assert document["device"] == "h100_sxm"
    off = [abs(k["off_us"]) for k in document["kernels"]]
    assert off == sorted(off, reverse=True)
    for k in document["kernels"]:
        assert k["measured_run_us"] == len(k["name"]) * k["runs"]
        if not k["floor"]:
            assert k["off_us"] == pytest.approx(k["estimate_us"] - k["measured_run_us"], abs=1e-4)


# A real GPU. Nearly everything is started by CUDA graphs, of which a profile has the names of kernels alone.


def kernels_of(folder: Path, hlofuse: Run) -> tuple[dict[str, Any], dict[str, Any]]:
    """The object `profile`, and the kernels that run by their names at the end of fusion."""
    document = json.loads(hlofuse("explain", folder, "--format", "json").out)
    return document["profile"], {k["input_name"]: k for k in document["kernels"]}


def test_kernels_of_cuda_graphs_find_their_instructions(h200: Path, hlofuse: Run) -> None:
    profile, kernels = kernels_of(h200 / "mlp_grad_bf16", hlofuse)
    assert profile["found"] == {"share": 1.0, "launches": 20, "of": 20}
    assert {k["measured"]["calls"] for k in kernels.values()} == {2}
    # The autotuner put cuBLAS in the place of a fused product.
    (module,) = (m for m in read_profile(str(h200 / "profile")).modules if m.name == "jit_mlp_grad_bf16")
    library = module.times["custom-call.1"]
    assert "nvjet" in library.kernels[0]
    assert kernels["gemm_fusion_dot.3"]["measured_us"] == pytest.approx(library.us, abs=1e-3)
    # Two fusions with one content share a kernel, whose name is that of the first.
    shared = [t.kernels for n, t in module.times.items() if n.startswith("loop_reduce_fusion")]
    assert shared == [("loop_reduce_fusion_1",)] * 2


def test_copies_of_a_graph_are_found_by_the_schedule(h200: Path, hlofuse: Run) -> None:
    profile, kernels = kernels_of(h200 / "scan_update_buffer", hlofuse)
    assert profile["found"]["share"] == 1.0
    (module,) = (m for m in read_profile(str(h200 / "profile")).modules if m.name == "jit_scan_update_buffer")
    copied = {n: t.calls for n, t in module.times.items() if t.kernels == ("MemcpyD2D",)}
    assert copied == {"copy.3": 126, "copy.8": 2, "loop_dynamic_slice_fusion.1": 126}
    assert all(k["measured"] for k in kernels.values() if k["runs"])


def test_without_a_module_the_slowest_of_the_profile_is_reported(h200: Path, hlofuse: Run) -> None:
    slowest = read_profile(str(h200 / "profile")).modules[0].name
    assert hlofuse("kernels", h200).out.startswith(f"{slowest}: ")
    assert f"hlofuse explain {h200 / slowest.removeprefix('jit_')} " in hlofuse(h200, columns=300).out


def test_what_is_no_kernel_is_named(h200: Path, hlofuse: Run) -> None:
    profile, _ = kernels_of(h200 / "conditional_and_while", hlofuse)
    assert [(t["name"], t["calls"]) for t in profile["unmatched"]] == [("MemcpyD2H of while.5", 20)]
    shown = hlofuse("explain", h200 / "conditional_and_while", columns=160).out
    assert "of its time matched to kernels; not matched: MemcpyD2H of while.5 3" in shown


def test_the_model_counts_the_launch_that_a_small_kernel_is(h200: Path, hlofuse: Run) -> None:
    document = json.loads(hlofuse("model-error", h200 / "mlp_grad_bf16", "--format", "json").out)
    modelled = [k for k in document["kernels"] if not k["floor"]]
    estimate, measured = (sum(k[n] for k in modelled) for n in ("estimate_us", "measured_run_us"))
    assert estimate == pytest.approx(measured, rel=0.25)


@pytest.mark.parametrize(
    ("program", "iterations", "spans"),
    [("scan_update_buffer", 1, (885.3, 949.3)), ("conditional_and_while", 10, (302.7, 336.2))],
)
def test_a_loop_takes_as_long_as_the_host_needs_to_launch_it(
    h200: Path, program: str, iterations: int, spans: tuple[float, float], hlofuse: Run
) -> None:
    """From its first kernel to its last, in two runs on an H200: one launches command buffers, of the other
    the host reads the condition. Kernels take 357 and 42 µs of that."""
    totals = json.loads(hlofuse("explain", h200 / program, "--format", "json").out)["totals"]
    estimate = iterations * (totals["modelled_us"] + totals["floor_us"])
    assert min(spans) / 1.15 < estimate < max(spans) * 1.15


def test_a_flag_of_unknown_gain_is_no_suggestion(h200: Path, hlofuse: Run) -> None:
    """Without split-K the device is sometimes faster and sometimes slower: nothing tells which."""
    document = json.loads(hlofuse("explain", h200 / "mlp_grad_bf16", "--format", "json").out)
    assert not [s for s in document["suggestions"] if s["flag"] and s["tried"]["us_saved"] is None]
    assert "--xla_disable_hlo_passes=splitk-rewriter" in [s["flag"] for s in document["untried"]]


def test_a_tpu_names_programs_and_counts_its_own_time(tmp_path: Path) -> None:
    plane = Plane("/device:TPU:0")
    plane.line("XLA Modules", [(plane.event_id("jit_g(18446744073709551615)"), 0, 900, {})])
    program = {"program_id": -1}
    add = plane.event_id("%add_fusion.1 = f32[8]{0:T(256)} fusion(%p)", program)
    plane.line("XLA Ops", [(add, 0, 700, {"device_duration_ps": 500_000}), (add, 1_000_000, 500_000, {})])
    plane.line("Async XLA Ops", [(plane.event_id("%copy-start = f32[8] copy-start(%p)", program), 0, 99, {})])
    path = tmp_path / "tpu.xplane.pb"
    path.write_bytes(plane.encoded())
    (module,) = read_profile(str(path)).modules
    assert module.label == "jit_g(18446744073709551615)"
    assert [(t.name, t.calls, t.total_us) for t in module.times.values()] == [("add_fusion.1", 2, 1.0)]


def test_several_kernels_of_an_instruction_are_one_launch(tmp_path: Path) -> None:
    path = tmp_path / "gpu.xplane.pb"
    gemm = [("gemm.1", "splitk", 10, 4), ("gemm.1", "reduce", 20, 2), ("gemm.1", "splitk", 30, 6)]
    path.write_bytes(gpu_profile([*gemm, ("gemm.1", "reduce", 40, 2)]))
    (time,) = read_profile(str(path)).modules[0].times.values()
    assert (time.calls, time.total_us, time.us, time.median_us) == (2, 14.0, 7.0, 7.0)
    assert (time.min_us, time.max_us, time.kernels) == (6.0, 8.0, ("splitk", "reduce"))


# Nsight Systems.

KERNELS = [("loop_add_fusion.1", "loop_add_fusion_1", 100_000, 20_000), ("gemm.2", "cutlass", 130_000, 5_000)]


def test_ranges_of_an_export_name_instructions(tmp_path: Path) -> None:
    nsight_export(tmp_path / "a.sqlite", KERNELS, "jit_f")
    profile = read_profile(str(tmp_path / "a.sqlite"))
    (module,) = profile.modules
    assert module.label == "jit_f(3)"
    assert {t.name: t.total_us for t in module.times.values()} == {"loop_add_fusion.1": 20.0, "gemm.2": 5.0}
    assert profile.devices[0].copies_us == 1.5


def test_without_ranges_the_name_of_the_kernel_counts(tmp_path: Path) -> None:
    nsight_export(tmp_path / "a.sqlite", KERNELS, "jit_f", with_ranges=False)
    module = parse_module(
        "HloModule jit_f\n\nENTRY main {\n  p = f32[7]{0} parameter(0)\n  ROOT loop_add_fusion.1 ="
        " f32[7]{0} negate(p)\n}\n"
    )
    attach(module, read_profile(str(tmp_path / "a.sqlite")))
    found = measured_of(module)
    assert found is not None
    assert [t.name for t in found.times.values()] == ["loop_add_fusion.1"]
    assert found.share == pytest.approx(0.8)


# Folders, several hosts, and what is broken.


def test_a_log_folder_has_its_latest_run(recorded: Path, tmp_path: Path) -> None:
    assert not is_profile(str(tmp_path))
    for run in ("2026_01_01", "2026_02_02"):
        folder = tmp_path / "plugins" / "profile" / run
        folder.mkdir(parents=True)
        shutil.copy(recorded / "host.xplane.pb", folder / f"{run}.xplane.pb")
    for path in (tmp_path, tmp_path / "plugins" / "profile", tmp_path / "plugins"):
        assert is_profile(str(path))
        assert read_profile(str(path)).hosts == 1
    folder = tmp_path / "plugins" / "profile" / "2026_02_02"
    shutil.copy(recorded / "host.xplane.pb", folder / "second.xplane.pb")
    both = read_profile(str(folder))
    assert both.hosts == 2
    assert sorted(d.name for d in both.devices) == ["2026_02_02 CPU", "second CPU"]
    one = times_of(read_profile(str(recorded / "host.xplane.pb")))
    assert {n: calls for n, (calls, _) in times_of(both).items()} == {n: 2 * c for n, (c, _) in one.items()}
    assert both.total_us == pytest.approx(2 * read_profile(str(recorded / "host.xplane.pb")).total_us)


def broken(recorded: Path) -> Iterator[tuple[str, bytes, str]]:
    whole = (recorded / "host.xplane.pb").read_bytes()
    trace = gzip.decompress((recorded / "host.trace.json.gz").read_bytes())
    yield "a.xplane.pb", whole[: len(whole) // 2], "is no whole profile: it ends in the middle of a field"
    yield "b.xplane.pb", b"\xff" * 99, "is no whole profile"
    yield "c.xplane.pb", b"", "is empty"
    yield "d.xplane.pb", message(1, message(2, b"/host:CPU")), "has no event that names an HLO instruction"
    yield "e.trace.json.gz", gzip.compress(trace)[:5000], "is no whole gzip file"
    yield "f.trace.json", trace[: len(trace) // 2], "is no whole profile: it ends in the middle of an event"
    yield "g.trace.json", b'{"a": 1}', "is no whole profile: it has no traceEvents"
    yield "h.trace.json", b'{"traceEvents": [{"ph": "X", "name": "f", "ts": 1}]}', "another framework"
    yield "i.sqlite", b"SQLite format 3\0" + bytes(99), "is no export of Nsight Systems"
    yield "j.nsys-rep", b"x", "export it with nsys export --type sqlite"


def test_what_cannot_be_read_is_one_sentence(recorded: Path, tmp_path: Path, hlofuse: Run) -> None:
    for name, data, expected in broken(recorded):
        (tmp_path / name).write_bytes(data)
        result = hlofuse("explain", tmp_path / name)
        assert result.status == 2
        assert expected in result.err
        assert len(result.err.strip().splitlines()) == 1, result.err


def test_times_without_the_module_ask_for_its_dump(recorded: Path, hlofuse: Run) -> None:
    result = hlofuse("explain", recorded / "host.trace.json.gz")
    assert result.status == 2
    assert "has times and no HLO: explain its dump, with --profile" in result.err


def test_any_damage_is_an_error_of_ours(recorded: Path, tmp_path: Path) -> None:
    """Cut anywhere, or with any byte changed, a profile is read or refused, never a traceback."""
    whole = (recorded / "host.xplane.pb").read_bytes()
    for k in range(0, len(whole), len(whole) // 60):
        for data in (whole[:k], whole[:k] + bytes([whole[k] ^ 0xFF]) + whole[k + 1 :]):
            path = tmp_path / f"{k}-{len(data)}.xplane.pb"
            path.write_bytes(data)
            with suppress(HlofuseError):
                read_profile(str(path))


@needs_jaxlib
def test_the_page_ranks_and_colours_by_measured_time(
    recorded: Path, tmp_path: Path, hlofuse: Run, browser: Browser
) -> None:
    dump, profile = recorded / "step.before_optimizations.txt", recorded / "host.xplane.pb"
    page = tmp_path / "page.html"
    assert hlofuse("explore", dump, "--profile", profile, "-o", page).status == 0
    seen = Visit(browser, page, "#tab=kernels&view=fusion")
    assert "slowest first, measured" in seen.page.inner_text("#panel")
    found = json.loads(hlofuse("kernels", dump, "--profile", profile, "--format", "json").out)["kernels"]
    slowest = max(found, key=lambda k: k["measured"]["total_us"] if k["measured"] else 0)
    rows = seen.page.evaluate("explorer.panels.sorted.flat().map((k) => [k.name, k.measured])")
    assert rows[0][0] == slowest["name"]
    assert rows[0][1] == pytest.approx(slowest["measured_us"], rel=1e-3)
    assert "Measured" in seen.page.inner_text(".legend-bar")
    assert not seen.problems
