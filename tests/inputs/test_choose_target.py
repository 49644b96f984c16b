"""Which target a dump is for, where nobody says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hlofuse.inputs import choose_target, load
from hlofuse.inputs.backend import backend_of
from hlofuse.inputs.companions import Companions
from hlofuse.ir import parse_module
from ..running import Run
from .dump_directories import FULL, dump, module_text

GPU = ["0001.fusion.after_sort-iota-fusion.before_priority-fusion", "sm_9.0_gpu_after_optimizations"]
LEGACY = ["0001.fusion.after_fusion.before_fusion_merger", "sm_8.0_gpu_after_optimizations"]
WHOLE = ["before_optimizations", "sm_9.0_gpu_after_optimizations"]
DEVICE = """gpu_device_info { core_count: 132 fpus_per_core: 128
clock_rate_ghz: 1.98 memory_bandwidth: 3352320000000
l2_cache_size: 52428800 threads_per_core_limit: 2048 shared_memory_per_block: 49152
cuda_compute_capability { major: 9 } } platform_name: "CUDA" """


@pytest.mark.parametrize(
    ("stages", "target"), [(FULL, "cpu"), (GPU, "gpu"), (LEGACY, "gpu-legacy"), (WHOLE, "gpu")]
)
def test_the_dumps_of_a_directory_tell(stages: list[str], target: str, tmp_path: Path) -> None:
    dump(tmp_path, stages)
    assert choose_target(Companions(tmp_path)).name == target
    # A file of a dump tells by its neighbours, and is as good as the directory.
    assert choose_target(Companions(next(iter(sorted(tmp_path.iterdir()))))).name == target


def test_modules_of_several_targets_in_one_directory(tmp_path: Path) -> None:
    dump(tmp_path, FULL, "jit_f", 1)
    dump(tmp_path, GPU, "jit_g", 2)
    assert choose_target(Companions(tmp_path, "jit_f")).name == "cpu"
    assert choose_target(Companions(tmp_path, "jit_g")).name == "gpu"


def test_a_device_means_gpu_and_contents_tell_last(tmp_path: Path) -> None:
    plain = tmp_path / "m.hlo"
    plain.write_text(module_text("m"))
    assert choose_target(Companions(plain)).name == "cpu"
    assert choose_target(Companions(plain), device=True).name == "gpu"
    dump(tmp_path, LEGACY)
    assert choose_target(Companions(tmp_path), device=True).name == "gpu-legacy"
    calls = tmp_path / "calls.hlo"
    calls.write_text(
        "HloModule m\n\nENTRY %e {\n  ROOT %c = f32[4]{0} custom-call(),"
        ' custom_call_target="__cublas$gemm"\n}\n'
    )
    found = choose_target(Companions(calls), read=load(calls))
    assert found.name == "gpu"
    assert "__cublas$gemm" in found.evidence


def test_a_gpu_dump_needs_no_more_words(hlofuse: Run, tmp_path: Path) -> None:
    dump(tmp_path, GPU)
    before = next(tmp_path.glob("*.before_priority-fusion.txt"))
    before.write_text(
        "HloModule m\n\nENTRY %e {\n  %p = f32[4]{0} parameter(0)\n  ROOT %n = f32[4]{0} negate(%p)\n}\n"
    )
    after = tmp_path / "module_0000.jit_f.0009.fusion.after_priority-fusion.before_cse.txt"
    after.write_text(before.read_text())
    (tmp_path / "module_0000.jit_f.gpu_target_config.pbtxt").write_text(DEVICE)
    assert "gpu the dump's device" in hlofuse("explain", tmp_path).out
    assert hlofuse("stats", tmp_path).status == 0
    assert hlofuse("diff", tmp_path, tmp_path).status == 0
    verified = hlofuse("verify", tmp_path)
    assert verified.err == ""
    assert "on target gpu" in verified.out
    assert hlofuse("verify", tmp_path, "--order", "estimated").status == verified.status


def test_ids_of_a_file_are_for_one_module(hlofuse: Run, samples: Path) -> None:
    result = hlofuse("verify", samples / "cpu", "--ids", "x.hlo.pb")
    assert result.status == 2
    assert "--order xla" in result.err


OLD = ', metadata={op_name="jit(f)/f" source_file="model.py" source_line=3}'


def module_calling(call: str, metadata: str = "") -> str:
    line = f'ROOT %c = f32[4]{{0}} custom-call(), custom_call_target="{call}"{metadata}'
    return f"HloModule m\n\nENTRY %e {{\n  {line}\n}}\n"


@pytest.mark.parametrize(
    ("call", "target"),
    [
        ("cu_threefry2x32", "gpu"),
        ("cusparse_gtsv2_ffi", "gpu"),
        ("lapack_spotrf_ffi", "cpu"),
        ("mine", "cpu"),
    ],
)
def test_calls_tell(call: str, target: str, tmp_path: Path) -> None:
    file = tmp_path / "m.hlo"
    file.write_text(module_calling(call))
    found = choose_target(Companions(file), read=load(file))
    assert found.name == target
    assert (call in found.evidence) == (call != "mine")


def test_every_file_of_a_corpus_folder_tells_by_its_neighbours(tmp_path: Path) -> None:
    case = tmp_path / "softmax"
    case.mkdir()
    for name in ("before", "01-fusion.fusion-1", "after"):
        (case / f"{name}.hlo").write_text(module_text("m"))
    assert choose_target(Companions(case / "after.hlo")).name == "gpu-legacy"
    assert choose_target(Companions(case / "01-fusion.fusion-1.hlo")).name == "gpu-legacy"


@pytest.mark.parametrize(
    ("folder", "target"),
    [
        ("gpu-legacy", "gpu-legacy"),
        ("gpu-legacy-a100", "gpu-legacy"),
        ("gpu-h100_sxm", "gpu"),
        ("mine", "cpu"),
    ],
)
def test_the_folder_of_a_corpus_tells_by_its_name(folder: str, target: str, tmp_path: Path) -> None:
    case = tmp_path / folder / "softmax"
    case.mkdir(parents=True)
    for name in ("before", "after"):
        (case / f"{name}.hlo").write_text(module_text("m"))
    for path in (case, case / "before.hlo", tmp_path / folder):
        assert choose_target(Companions(path)).name == target
    # Only of a corpus: elsewhere a folder may be called anything.
    (tmp_path / folder / "plain.hlo").write_text(module_text("m"))
    assert choose_target(Companions(tmp_path / folder / "plain.hlo")).name == "cpu"


def test_an_older_release_is_replayed(hlofuse: Run, tmp_path: Path) -> None:
    file = tmp_path / "m.hlo"
    file.write_text(module_calling("mine", OLD))
    found = json.loads(hlofuse("explain", file, "--format", "json").out)
    assert (found["xla"]["release"], found["xla"]["written_by"]) == ("0.7.2", "0.7 or earlier")
    assert found["identified_by"]["release"]["text"] == "0.7 or earlier: source_file in each line"
    file.write_text(module_calling("mine"))
    found = json.loads(hlofuse("explain", file, "--format", "json").out)
    assert (found["xla"]["release"], found["xla"]["written_by"]) == ("0.11.1", None)


GPU_FUSION = """HloModule m, is_scheduled=true

%fused (p: f32[8]) -> f32[8] {
  %p = f32[8]{0} parameter(0)
  ROOT %n = f32[8]{0} negate(%p)
}

ENTRY %e (a: f32[8]) -> f32[8] {
  %a = f32[8]{0} parameter(0)
  ROOT %NAME = f32[8]{0} fusion(%a), kind=kLoop, calls=%fused
}
"""


@pytest.mark.parametrize(
    ("text", "backend"),
    [
        # Only XLA:GPU names fusions by their emitter, and renames everything right before it fuses.
        (GPU_FUSION.replace("NAME", "loop_negate_fusion"), "gpu"),
        (GPU_FUSION.replace("NAME", "negate_fusion").replace("%n ", "%neg.1.0 "), "gpu"),
        (GPU_FUSION.replace("NAME", "negate_fusion"), None),
        (module_calling("cuda_stencil"), "gpu"),
        (module_calling("te_softmax_forward"), "gpu"),
        (module_calling("CuteDSLRT_NvJaxCutlassCall"), "gpu"),
        (module_calling("AwsNeuronGelu"), "neuron"),
        (module_calling("Poputil::cast"), "poplar"),
        (
            (
                "HloModule m\n\nadd {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n"
                "  ROOT c = f32[] add(a, b)\n}\n\nENTRY e {\n  p = f32[8]{0} parameter(0)\n"
                "  ROOT r = f32[8]{0} all-reduce(p), to_apply=add, backend_config="
                '{"operation_queue_id":"0","collective_backend_config":{"is_sync":true}}\n}\n'
            ),
            "gpu",
        ),
    ],
)
def test_a_module_tells_its_backend(text: str, backend: str | None) -> None:
    found = backend_of(parse_module(text))
    assert (found.value if found is not None else None) == backend


def test_the_file_s_own_name_tells_backend_and_device_last(hlofuse: Run, tmp_path: Path) -> None:
    file = tmp_path / "module_0001.m.sm_8.0_gpu_after_optimizations.txt"
    file.write_text(GPU_FUSION.replace("NAME", "fusion"))
    found = hlofuse("explain", file, "--format", "json")
    document = json.loads(found.out)
    assert (document["stage"], document["xla"]["device"]) == ("scheduled", "a100_sxm_40")
    assert "sm_8.0" in document["identified_by"]["device"]["text"]
    other = tmp_path / "gfx942.hlo"
    other.write_text(file.read_text())
    assert json.loads(hlofuse("explain", other, "--format", "json").out)["xla"]["device"] == "mi300x"
    unknown = tmp_path / "gfx1100.hlo"
    unknown.write_text(file.read_text())
    listed = hlofuse("kernels", unknown, "--format", "json")  # a fused module needs no device
    assert {(k["run_by"], k["rule"]) for k in json.loads(listed.out)["kernels"]} == {("not known", None)}
    unknown.write_text(FOR_ROCM)
    refused = hlofuse("explain", unknown)
    assert (refused.status, "gfx1100" in refused.err) == (2, True)
    assert hlofuse("stats", other).status == 0


FOR_ROCM = """HloModule jit_r, entry_computation_layout={(f32[8]{0})->f32[8]{0}}

ENTRY main {
  a = f32[8]{0} parameter(0)
  t = f32[8]{0} custom-call(a), custom_call_target="CALL"
  ROOT n = f32[8]{0} negate(t)
}
"""


@pytest.mark.parametrize(
    "call", ["hip_threefry2x32_ffi", "hipsolver_geqrf_ffi", "rocsolver_getrf", "hipblas_x"]
)
def test_calls_of_rocm_ask_for_an_amd_device(hlofuse: Run, tmp_path: Path, call: str) -> None:
    file = tmp_path / "m.hlo"
    file.write_text(FOR_ROCM.replace("CALL", call))
    refused = hlofuse("explain", file)
    assert (refused.status, "the AMD GPU to replay, such as --device mi300x" in refused.err) == (2, True)
    chosen = hlofuse("explain", file, "--target", "gpu")
    assert ["another --target" in result.err for result in (refused, chosen)] == [True, False]
    notes = {
        device: json.loads(hlofuse("explain", file, "--device", device, "--format", "json").out)["notes"]
        for device in ("h100_sxm", "mi300x")
    }
    assert [call in n for n in notes["h100_sxm"]] == [True]
    assert ["only the fusion passes" in n for n in notes["mi300x"]] == [True]


@pytest.mark.parametrize(("device", "notes"), [("h100_sxm", 0), ("mi300x", 2)])
def test_calls_of_cuda_are_no_amd_gpu_s(hlofuse: Run, tmp_path: Path, device: str, notes: int) -> None:
    file = tmp_path / "m.hlo"
    file.write_text(FOR_ROCM.replace("CALL", "cusolver_getrf_ffi"))
    assert "such as --device h100_sxm" in hlofuse("explain", file).err
    found = json.loads(hlofuse("explain", file, "--device", device, "--format", "json").out)["notes"]
    assert len(found) == notes


def test_a_final_module_of_an_unknown_gpu_is_explained_without_reasons(hlofuse: Run, tmp_path: Path) -> None:
    file = tmp_path / "m.hlo"
    text = FOR_ROCM.replace("CALL", "hip_x").replace("jit_r,", "jit_r, is_scheduled=true,")
    file.write_text(text)
    document = json.loads(hlofuse("explain", file, "--format", "json").out)
    assert (document["totals"]["kernels"], document["totals"]["time_us"]) == (2, None)


def test_another_compiler_s_module_is_taken_for_cpu_and_that_is_said(hlofuse: Run, tmp_path: Path) -> None:
    file = tmp_path / "m.hlo"
    file.write_text(module_calling("AwsNeuronGelu"))
    document = json.loads(hlofuse("explain", file, "--format", "json").out)
    assert (document["front_end"], document["xla"]["backend"]) == ("Neuron", "cpu")
    assert "Neuron" in document["identified_by"]["backend"]["text"]
