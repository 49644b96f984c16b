"""What an input is taken for: the same under any name, and said first by every command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hlofuse.inputs import choose_target, load
from hlofuse.inputs.companions import companions_of
from hlofuse.inputs.identity import identify
from hlofuse.pipelines.flags import from_debug_options, merged, parse_flags, ynn_kinds
from ..fixtures import Case, read_cases
from ..running import Run
from .dump_directories import dump

SLOW = Path(__file__).parents[2] / "samples" / "tutorial" / "slow"
STRANGERS = read_cases(Path(__file__).with_name("strangers.hlo"))


@pytest.mark.parametrize("case", STRANGERS, ids=lambda c: c.name)
def test_stage_and_backend_under_any_name(case: Case, tmp_path: Path) -> None:
    for name in ("m.hlo", "module_0001.jit_f.0003.pipeline.after_a.before_b.txt"):
        path = tmp_path / name
        path.write_text(case.text)
        found = identify(module := load(path), choose_target(companions_of(module), read=module))
        assert (found.stage.value, found.backend.value) == (case.options["stage"], case.options["backend"])


@pytest.mark.parametrize("case", [c for c in STRANGERS if "cpu" in c.options], ids=lambda c: c.name)
def test_kernels_from_before_optimizations(case: Case, tmp_path: Path, hlofuse: Run) -> None:
    path = tmp_path / "m.hlo"
    path.write_text(case.text)
    found = json.loads(hlofuse("explain", path, "--format", "json").out)
    assert found["after"]["kernels"] == int(case.options["cpu"])
    assert found["identified_by"]["stage"]["text"]


def penalty() -> Case:
    return next(c for c in STRANGERS if c.name == "penalty")


def test_flags_of_a_dump_are_followed(tmp_path: Path, hlofuse: Run) -> None:
    """A library that computes no sums leaves them to be fused."""
    path = tmp_path / "module_0001.jit_penalty.before_optimizations.txt"
    path.write_text(penalty().text)
    (tmp_path / "module_0001.jit_penalty.debug_options").write_text(
        "xla_cpu_experimental_ynn_fusion_type: LIBRARY_FUSION_TYPE_INDIVIDUAL_CONVOLUTION\n"
        "xla_cpu_experimental_ynn_fusion_type: LIBRARY_FUSION_TYPE_INDIVIDUAL_DOT\n"
        'xla_dump_to: "somewhere"\n'
    )
    expected = int(penalty().options["cpu_without_reduce"])
    for input, *more in (
        (tmp_path,),
        (path,),
        (path, "--xla-flags", "--xla_cpu_experimental_ynn_fusion_type=-reduce"),
    ):
        found = json.loads(hlofuse("explain", input, *more, "--format", "json").out)
        assert found["after"]["kernels"] == expected
        assert list(found["xla"]["flags"]) == ["xla_cpu_experimental_ynn_fusion_type"]
    disabled = ("--xla-flags", "--xla_disable_hlo_passes=fusion --xla_cpu_enable_fast_math=true")
    found = json.loads(hlofuse("explain", path, *disabled, "--format", "json").out)
    assert [p["name"] for p in found["passes"]] == ["fusion-wrapper"]
    assert "Flags whose effect is not modelled: --xla_cpu_enable_fast_math=true" in found["notes"]


@pytest.mark.parametrize(
    ("flag", "note"),
    [
        ("--xla_cpu_no_such_flag=true", "Flags whose effect is not modelled: --xla_cpu_no_such_flag=true"),
        (
            "--xla_cpu_use_xnnpack=true",
            "Not applied (for passes before fusion): --xla_cpu_use_xnnpack=true; give",
        ),
        ("--xla_disable_hlo_passes=dot-library-rewriter", "before_optimizations.hlo"),
        ("--xla_disable_hlo_passes=fusion", ""),
        ("--xla_disable_hlo_passes=fusion,fuson", "not modelled: --xla_disable_hlo_passes=fuson"),
        ("--xla_gpu_of_another_backend=true", ""),
        ("--xla_dump_to=x", ""),
    ],
)
def test_a_flag_that_is_not_applied_is_named(hlofuse: Run, flag: str, note: str) -> None:
    found = json.loads(hlofuse("explain", SLOW, "--xla-flags", flag, "--format", "json").out)["notes"]
    assert note in " ".join(found)
    assert bool(found) == bool(note)


def test_flags_are_read_as_xla_reads_them(hlofuse: Run) -> None:
    assert parse_flags("--xla_dump_to=x --xla_allow_excess_precision") == (
        "--xla_allow_excess_precision=true",
    )
    assert from_debug_options("xla_gpu_enable_cublaslt: true\nnoise\n") == ("--xla_gpu_enable_cublaslt=true",)
    assert merged(("--a=1", "--b=2"), ("--a=3",)) == ("--b=2", "--a=3")
    kinds = "--xla_cpu_experimental_ynn_fusion_type="
    assert ynn_kinds(()) == {"reduce", "individual_dot", "individual_convolution"}
    assert ynn_kinds((f"{kinds}-reduce",)) == {"individual_dot", "individual_convolution"}
    assert ynn_kinds((f"{kinds}LIBRARY_FUSION_TYPE_REDUCE",)) == {"reduce"}
    assert ynn_kinds((kinds,)) == frozenset()
    wrong = hlofuse("explain", "x", "--xla-flags", "xla_dump_to")
    assert wrong.status == 2


def test_the_stage_that_the_user_names_is_taken(tmp_path: Path, hlofuse: Run) -> None:
    path = tmp_path / "m.hlo"
    path.write_text(penalty().text)
    found = json.loads(hlofuse("explain", path, "--stage", "fusion-input", "--format", "json").out)
    assert (found["stage"], found["after"]["kernels"]) == ("fusion-input", 1)
    assert found["identified_by"]["stage"]["source"] == "asked"
    as_fused = hlofuse("explain", path, "--stage", "after-fusion", "--format", "json")
    assert json.loads(as_fused.out)["schema"] == "hlofuse.explain/3"


def test_xla_s_own_result_is_compared_with(tmp_path: Path, hlofuse: Run, samples: Path) -> None:
    found = json.loads(hlofuse("explain", samples / "cpu" / "softmax", "--format", "json").out)
    assert found["xla_result"]["kernels"] == found["xla_result"]["same"] == found["after"]["kernels"]
    dump(tmp_path, ["before_optimizations", "cpu_after_optimizations"], "jit_penalty")
    before = next(tmp_path.glob("*before_optimizations.txt"))
    before.write_text(penalty().text)
    after = next(tmp_path.glob("*cpu_after_optimizations.txt"))
    after.write_text(
        "HloModule jit_penalty, is_scheduled=true\n\nENTRY e {\n  ROOT p = f32[] parameter(0)\n}\n"
    )
    out = hlofuse("explain", tmp_path, columns=200).out
    assert "has 0 kernels, the replay 10; 0 match. Figures are XLA's. Only in the replay: " in out


def test_a_result_for_another_device_or_backend_is_not_compared_with(hlofuse: Run, samples: Path) -> None:
    """`after.hlo` is that of an H100; the tutorial's dump is that of a CPU."""
    case = samples / "gpu" / "softmax"
    assert "XLA's fusion result" in hlofuse("explain", case).out
    assert "XLA's fusion result" not in hlofuse("explain", case, "--device", "v100").out
    on_gpu = samples / "tutorial" / "slow" / "loss" / "before_optimizations.hlo"
    out = hlofuse("explain", on_gpu, "--device", "h100_sxm").out
    assert "XLA's fusion result" not in out
    assert "ynn_fusion" not in out  # XLA:CPU's names


PARTITIONED = """HloModule m, num_partitions=128

ENTRY e {
  a = f32[8]{0} parameter(0)
  b = f32[8]{0} bitcast(a)
  ROOT n = f32[8]{0} negate(b)
}
"""


def test_a_program_for_many_devices_says_so(tmp_path: Path, hlofuse: Run) -> None:
    path = tmp_path / "m.hlo"
    path.write_text(PARTITIONED)
    for command in ("explain", "kernels", "stats"):
        out = hlofuse(command, path, columns=200).out
        assert " · 128 partitions" in out
        assert "Note: figures are for one of 128 devices; it has no collectives." in out


def test_every_command_says_it_first(tmp_path: Path, hlofuse: Run, samples: Path) -> None:
    case = samples / "cpu" / "softmax"
    start = "jit_softmax: fusion input · cpu · XLA 0.11.1 · from JAX"
    for command, *more in (
        ("explain", case),
        ("why", case, "divide"),
        ("kernels", case),
        ("stats", case),
        ("what-if", case),
        ("check", case, "--max-kernels", 9),
        ("verify", case),
        ("timeline", case),
        ("trace-op", case, "divide"),
        ("diff", case / "before.hlo", case / "after.hlo"),
    ):
        assert hlofuse(command, *more).out.startswith(start), command
    for command, *more in (
        ("replay", case, "-o", tmp_path / "x.hlo"),
        ("explore", case, "-o", tmp_path / "x.html"),
    ):
        assert hlofuse(command, *more).err.startswith(start), command


def test_what_xla_cannot_read_is_not_written_again(tmp_path: Path, hlofuse: Run) -> None:
    path, out = tmp_path / "m.hlo", tmp_path / "out.hlo"
    call = 'custom-call(a), custom_call_target="AwsNeuronGelu", api_version=API_VERSION_UNSPECIFIED'
    path.write_text(
        f"HloModule m\n\nENTRY e {{\n  a = f32[8]{{0}} parameter(0)\n  ROOT c = f32[8]{{0}} {call}\n}}\n"
    )
    assert hlofuse("replay", path, "-o", out).status == 0
    assert "API_VERSION" not in out.read_text()
