"""What `hlofuse capture` writes, with a stand-in for the process that compiles."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hlofuse.capture.capturing import flags_for
from hlofuse.capture.model import CaptureError
from hlofuse.inputs.companions import device_in_dump
from hlofuse.releases import NAMES as NAMED
from ..running import Run

FAKE = Path(__file__).with_name("fake_python")
INPUT = """HloModule jit_f

ENTRY e {
  p = f32[4]{0} parameter(0)
  n = f32[4]{0} negate(p)
  ROOT s = f32[4]{0} sine(n)
}
"""
PIPELINE = "HLO_passes_after_layout_assignment"
CPU = {
    "before_optimizations.txt": INPUT,
    f"0001.{PIPELINE}.after_cse.before_fusion.txt": INPUT,
    f"0002.{PIPELINE}.after_fusion.before_fusion-wrapper.txt": INPUT + "// fused\n",
    f"0002.{PIPELINE}.after_fusion.before_fusion-wrapper.hlo.pb": "not of the input",
    f"0001.{PIPELINE}.after_cse.before_fusion.hlo.pb": "ids",
    "0003.simplification_after_layout_assignment.after_pipeline-start.txt": INPUT,
    "cpu_after_optimizations.txt": INPUT + "// scheduled\n",
}
GPU = {
    "0001.fusion.after_pipeline-start.before_variadic-op-splitter.txt": INPUT,
    "0002.fusion.after_priority-fusion.before_cse.txt": INPUT + "// fused\n",
    "gpu_target_config.pbtxt": 'platform_name: "CUDA"\n',
    "priority_fusion_dump.txt": 'hlo_module_before_fusion: "long"\nfusion_steps {\n}\n',
}
TPU = {
    "0001.Main_fusion.after_pipeline-start.txt": INPUT,
    "0002.Main_fusion.after_tpu_fusion.txt": INPUT + "// fused\n",
}


@pytest.fixture
def capture(hlofuse: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    (tmp_path / "program.py").write_text("def f(x): return x\n")
    monkeypatch.chdir(tmp_path)

    def run(fake: dict[str, Any], *text: object) -> Any:
        return hlofuse(
            "capture", "program.py:f", "--python", FAKE, "-o", "out", *text, FAKE_CAPTURE=json.dumps(fake)
        )

    return run


def tree(folder: Path) -> list[str]:
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


def test_a_cpu_program(capture: Any, tmp_path: Path) -> None:
    result = capture({"programs": {"f": CPU}})
    assert (result.status, result.err) == (0, "")
    assert "1 module for cpu in out  (jax 0.11.1, jaxlib 0.11.1)" in result.out
    assert tree(tmp_path / "out") == [
        "f/01-fusion.hlo",
        "f/after.hlo",
        "f/after_optimizations.hlo",
        "f/before.hlo",
        "f/before.hlo.pb",
        "f/before_optimizations.hlo",
        "f/hlofuse.json",
        "manifest.json",
    ]
    assert (tmp_path / "out/f/after.hlo").read_text().endswith("// fused\n")
    assert (tmp_path / "out/f/before.hlo.pb").read_text() == "ids"
    manifest = json.loads((tmp_path / "out/manifest.json").read_text())
    assert manifest["schema"] == "hlofuse.capture/1"
    assert manifest["target"] == "cpu"
    assert manifest["versions"] == {"jax": "0.11.1", "jaxlib": "0.11.1"}
    assert manifest["flags"].startswith("--xla_dump_to=DIR ")
    assert manifest["modules"] == [{"name": "f", "passes": ["fusion"]}]
    assert not [p for p in tmp_path.iterdir() if p.name.startswith(".capture")]


def test_a_gpu_program(capture: Any, tmp_path: Path) -> None:
    result = capture({"programs": {"f": GPU}}, "--device", "h100_sxm")
    assert (result.status, result.err) == (0, "")
    assert (tmp_path / "out/f/priority_fusion.txtpb").read_text() == "fusion_steps {\n}\n"
    assert (tmp_path / "out/f/gpu_target_config.pbtxt").is_file()
    assert json.loads((tmp_path / "out/manifest.json").read_text())["device"] == "h100_sxm"


def test_the_device_is_there_even_where_xla_does_not_come_to_tell_it(capture: Any, tmp_path: Path) -> None:
    early = {name: text for name, text in GPU.items() if "config" not in name}
    assert capture({"programs": {"f": early}}, "--device", "h100_sxm").status == 0
    assert device_in_dump(tmp_path / "out/f/gpu_target_config.pbtxt").name == "h100_sxm"


def test_what_ran_on_the_way_to_a_gpu_program_is_not_spoken_of(capture: Any, tmp_path: Path) -> None:
    result = capture({"programs": {"f": GPU, "eager": CPU}}, "--device", "h100_sxm")
    assert (result.status, result.err) == (0, "")
    assert json.loads((tmp_path / "out/manifest.json").read_text())["left_out"] == {}


def test_where_nothing_was_compiled_for_the_gpu_that_is_said(capture: Any) -> None:
    result = capture({"programs": {"f": CPU}}, "--device", "h100_sxm")
    assert result.status == 2
    assert "module_0001.jit_f: no dump at the fusion input" in result.err


def test_a_tpu_program(capture: Any, tmp_path: Path) -> None:
    result = capture({"programs": {"f": TPU}}, "--target", "tpu")
    assert (result.status, result.err) == (0, "")
    assert tree(tmp_path / "out/f") == [
        "01-Main_fusion.tpu_fusion.hlo",
        "after.hlo",
        "before.hlo",
        "hlofuse.json",
    ]


def test_on_to_explain(capture: Any) -> None:
    longer = {name: text.replace("jit_f", "jit_longer") for name, text in CPU.items()}
    result = capture({"programs": {"f": CPU, "longer": longer}}, "--explain")
    assert result.status == 0
    assert "jit_longer: fusion input" in result.out


def test_on_to_measure(capture: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    explained: list[list[str]] = []

    def explain(_: object, given: list[str]) -> int:
        explained.append(given)
        return 0

    monkeypatch.setattr("hlofuse.cli.capture._explain", explain)
    assert capture({"programs": {"f": CPU}}, "--measure").status == 0
    assert [given[1:] for given in explained] == [["--measure"]]


def test_an_abort_costs_one_program(capture: Any, tmp_path: Path) -> None:
    result = capture({"programs": {"f": CPU, "g": {"abort": "shape"}, "h": CPU}})
    assert result.status == 0
    assert "g: the compiling process was killed by signal 6" in result.err
    assert "check failed: shape" in result.err
    manifest = json.loads((tmp_path / "out/manifest.json").read_text())
    assert [m["name"] for m in manifest["modules"]] == ["f", "h"]


@pytest.mark.parametrize("version", ["0.12.0", "0.4.34", "0.13.1"])
def test_a_release_that_was_not_compared_is_doubted(capture: Any, tmp_path: Path, version: str) -> None:
    result = capture({"jax": version, "programs": {"f": CPU}})
    assert result.status == 0
    assert f"warning: jaxlib {version} is not one of the verified releases (0.4.35," in result.err
    assert json.loads((tmp_path / "out/manifest.json").read_text())["warnings"]


@pytest.mark.parametrize("version", NAMED)
def test_of_a_named_release_there_is_no_doubt(capture: Any, tmp_path: Path, version: str) -> None:
    result = capture(
        {"jax": version, "programs": {"f": CPU}}, "--flags", "--xla_cpu_use_fusion_emitters=false"
    )
    assert (result.status, result.err) == (0, "")
    assert json.loads((tmp_path / "out/f/hlofuse.json").read_text()) == {
        "schema": "hlofuse.stamp/1",
        "jaxlib": version,
        "backend": "cpu",
        "device": None,
        "flags": "--xla_cpu_use_fusion_emitters=false",
        "error": None,
    }


def test_of_a_program_that_did_not_reach_fusion_there_is_advice(capture: Any, tmp_path: Path) -> None:
    stopped = {"before_optimizations.txt": INPUT}
    fake = {"jax": "0.8.3", "programs": {"f": GPU, "g": stopped}, "errors": {"g": "too fragmented"}}
    result = capture({**fake, "flags": "--xla_gpu_autotune_level=0"}, "--device", "h100_sxm")
    assert result.status == 0
    assert "g: too fragmented" in result.err
    assert "--flags=--xla_gpu_enable_triton_gemm=false uses cuBLAS" in result.err
    manifest = json.loads((tmp_path / "out/manifest.json").read_text())
    assert manifest["flags"].startswith("--xla_gpu_autotune_level=0 ")
    assert json.loads((tmp_path / "out/f/hlofuse.json").read_text())["flags"] == "--xla_gpu_autotune_level=0"
    assert "uses cuBLAS" not in capture(fake, "--device", "h100_sxm").err


def test_what_is_missing_is_named(capture: Any, tmp_path: Path) -> None:
    missing = {"kind": "missing", "message": "jax (No module named 'jax')"}
    result = capture({"problem": missing})
    assert result.status == 2
    assert 'pip install ".[capture]"' in result.err
    result = capture({"problem": missing}, "--device", "v100")
    assert "needs jax and jaxlib" in result.err
    assert 'pip install ".[capture-gpu]"' in result.err
    missing = {"kind": "missing", "message": "gpu plugin (topology not implemented for cuda)"}
    result = capture({"problem": missing}, "--device", "v100")
    assert 'pip install ".[capture-gpu]"' in result.err
    assert not (tmp_path / "out").exists()


def test_a_folder_with_spaces(hlofuse: Run, capture: Any, tmp_path: Path) -> None:
    result = capture({"programs": {"f": CPU}}, "-o", "my captures/of f")
    assert (result.status, result.err) == (0, "")
    assert "Next: hlofuse explain 'my captures/of f/f'" in result.out
    assert hlofuse("stats", tmp_path / "my captures/of f/f").status == 0


def test_nothing_is_overwritten_but_a_capture(capture: Any, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/thesis.txt").write_text("mine")
    result = capture({"programs": {"f": CPU}})
    assert result.status == 2
    assert "has other files" in result.err
    (tmp_path / "out/thesis.txt").unlink()
    assert capture({"programs": {"f": CPU}}).status == 0
    assert capture({"programs": {"g": CPU}}).status == 0
    assert (tmp_path / "out/g").is_dir()
    assert not (tmp_path / "out/f").exists()
    failed = capture({"programs": {"f": {"before_optimizations.txt": INPUT}}})
    assert failed.status == 2
    assert "nothing was compiled for cpu" in failed.err
    assert (tmp_path / "out/g").is_dir()


@pytest.mark.parametrize(
    ("text", "attributes"),
    [
        (["nowhere.py:f"], "nowhere.py does not exist"),
        (["program.py"], "give program.py:FUNCTION"),
        (["program.py:f", "--target", "gpu"], "needs a device"),
        (["program.py:f", "--device", "h101"], "no device 'h101'"),
        (["program.py:f", "--device", "v100", "--target", "cpu"], "a device needs target gpu"),
        (["program.py:f", "--args", "f32[2]", "--args-from", "g"], "exclude each other"),
        (["program.py:f", "--python", "/nowhere/python"], "cannot run /nowhere/python"),
        (["--args", "f32[2]", "--", "python", "train.py"], "a running command chooses its own"),
        (["--", "/nowhere/python", "train.py"], "cannot run /nowhere/python"),
        (["nonsense.mlir"], "expected script.py:function or a file with a module"),
    ],
)
def test_wrong_calls(capture: Any, hlofuse: Run, text: list[str], attributes: str) -> None:
    result = hlofuse("capture", *text)
    assert result.status == 2
    assert attributes in result.err
    assert "Traceback" not in result.err


def test_a_command_that_runs(hlofuse: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    answer = tmp_path / "request.json"
    answer.write_text(json.dumps({"answer": str(tmp_path / "answer.json"), "done": []}))
    fake = json.dumps({"programs": {"f": CPU, "g": CPU}})
    result = hlofuse("capture", "-o", "out", "--", FAKE, "train.py", answer, FAKE_CAPTURE=fake)
    assert result.status == 0
    assert "2 modules for cpu in out" in result.out
    assert "the jaxlib release that compiled this is unknown" in result.err


def test_capture_s_own_dump_folder_counts_and_flags_are_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """XLA takes the last of several `--xla_dump_to`."""
    monkeypatch.setenv("XLA_FLAGS", "--xla_dump_to=elsewhere")
    flags = flags_for(tmp_path, "--xla_cpu_enable_fast_math=true").split()
    assert [f for f in flags if f.startswith("--xla_dump_to=")][-1] == f"--xla_dump_to={tmp_path}"
    assert "--xla_cpu_enable_fast_math=true" in flags
    with pytest.raises(CaptureError, match="--flags cannot set --xla_dump_to"):
        flags_for(tmp_path, "--xla_dump_to=elsewhere --xla_cpu_enable_fast_math=true")
