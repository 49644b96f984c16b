"""Directories written by --xla_dump_to: modules, stages, and the words where something is missing."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from hlofuse.inputs import choose_target, load
from hlofuse.inputs.companions import Companions
from hlofuse.inputs.dump_directory import DumpDirectory, read_name
from hlofuse.inputs.stage import stage_of
from hlofuse.ir.errors import HlofuseError
from hlofuse.pipelines import passes_of
from hlofuse.pipelines.targets import Stage
from hlofuse.releases import AROUND_FUSION as RELEASE
from .dump_directories import FULL, PIPELINE, dump, module_text


def test_the_input_is_the_last_dump_before_the_first_fusion_pass(tmp_path: Path) -> None:
    dump(tmp_path, FULL)
    assert load(tmp_path).name == "s0002"
    _, after = DumpDirectory(tmp_path).pick().stages()
    assert [name for name, _ in after] == ["fusion", "fusion-wrapper"]


def test_a_dump_of_the_fusion_passes_alone(tmp_path: Path) -> None:
    dump(
        tmp_path,
        [
            "before_optimizations",
            f"0000.{PIPELINE}.after_reshape-decomposer.before_fusion",
            f"0001.{PIPELINE}.after_fusion.before_fusion-wrapper",
        ],
    )
    assert load(tmp_path).name == "s0000"


def test_passes_that_changed_nothing_leave_no_dump(tmp_path: Path) -> None:
    dump(tmp_path, [s for s in FULL if "after_fusion" not in s])
    module = DumpDirectory(tmp_path).pick()
    path, after = module.stages()
    assert (path.name.split(".")[2], after) == ("0002", [])
    dump(tmp_path, [f"0003.{PIPELINE}.after_fusion-wrapper.before_x"])
    path, after = DumpDirectory(tmp_path).pick().stages()
    assert (path.name.split(".")[2], [n for n, _ in after]) == ("0002", ["fusion-wrapper"])


def test_of_a_directory_the_best_stage_that_is_there_is_taken(tmp_path: Path) -> None:
    """`--xla_dump_to` alone writes the module before optimizations and after."""
    dump(tmp_path, ["before_optimizations", "cpu_after_optimizations"])
    (module,) = DumpDirectory(tmp_path).modules
    assert module.best() == module.whole["before_optimizations"]
    assert load(tmp_path).filename == str(module.best())
    module.best().unlink()
    (module,) = DumpDirectory(tmp_path).modules
    assert module.best() == module.finished
    with pytest.raises(HlofuseError) as e:
        module.pass_input()
    assert "found: cpu_after_optimizations" in str(e.value)
    assert 'XLA_FLAGS="--xla_dump_to=DIR --xla_dump_hlo_pass_re=.*"' in str(e.value)


def test_the_clone_of_a_tpus_64_bit_types_is_the_module_that_was_begun(tmp_path: Path) -> None:
    """XLA:TPU goes on with a clone of another number, and names the device beside the first."""
    begun, clone = (tmp_path / f"module_000{k}.jit_f.cl_7.x" for k in (1, 4))
    for path, stage in ((begun, "before_optimizations"), (clone, "after_optimizations")):
        path.with_name(path.name[:-1] + stage + ".txt").write_text(module_text("jit_f"))
    arguments = tmp_path / "module_0001.jit_f.cl_7.target_arguments.txt"
    arguments.write_text('  version: TPU_VERSION_VIPERFISH\n  variant: "lite"\n')
    (module,) = DumpDirectory(tmp_path).modules
    assert (module.module_id, sorted(module.whole)) == (4, ["after_optimizations", "before_optimizations"])
    for path in module.whole.values():
        assert Companions(path).tpu == ("v5e", arguments.name)
        assert Companions(path).before_optimizations == module.whole["before_optimizations"]


def test_modules_are_picked_by_name_or_number(tmp_path: Path) -> None:
    dump(tmp_path, FULL, "jit_step", 3)
    dump(tmp_path, FULL, "jit_init", 12)
    directory = DumpDirectory(tmp_path)
    for name in ("jit_init", "init", "module_0012.jit_init", "module_0012", "12"):
        assert directory.pick(name).module_id == 12
    with pytest.raises(HlofuseError, match="has 2 modules; select one with --module"):
        directory.pick()
    with pytest.raises(HlofuseError, match="no module jit_stp; did you mean jit_step"):
        directory.pick("jit_stp")


def test_a_module_that_dwarfs_the_others_is_taken(tmp_path: Path) -> None:
    dump(tmp_path, FULL, "jit_convert_element_type", 1)
    dump(tmp_path, FULL, "jit_step", 3)
    small, step = (next(tmp_path.glob(f"*{name}.before_optimizations.txt")) for name in ("type", "step"))
    step.write_text("x" * (20 * small.stat().st_size))
    assert DumpDirectory(tmp_path).pick().name == "jit_step"
    step.write_text("x" * (5 * small.stat().st_size))
    with pytest.raises(HlofuseError, match="has 2 modules"):
        DumpDirectory(tmp_path).pick()


def test_the_same_name_twice_needs_the_number(tmp_path: Path) -> None:
    dump(tmp_path, FULL, "jit_f", 1)
    dump(tmp_path, FULL, "jit_f", 2)
    with pytest.raises(
        HlofuseError, match=r"2 modules are named jit_f; select one: module_0001\.jit_f, module_0002"
    ):
        load(tmp_path, "jit_f")
    assert load(tmp_path, "module_0002.jit_f").name == "s0002"


def test_directories_that_are_no_dumps(tmp_path: Path) -> None:
    with pytest.raises(HlofuseError, match="no module dumps"):
        load(tmp_path)
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(HlofuseError, match=r"no module dumps.* written by XLA_FLAGS=--xla_dump_to=DIR$"):
        load(tmp_path)
    (tmp_path / "step.hlo").write_text("HloModule m")
    with pytest.raises(HlofuseError, match=r"; or give a file, such as .*step\.hlo$"):
        load(tmp_path)


def test_a_text_is_taken_before_the_proto_of_the_same_dump(tmp_path: Path) -> None:
    (tmp_path / "module_0001.jit_f.before_optimizations.hlo.pb").write_bytes(b"\n")
    (tmp_path / "module_0001.jit_f.before_optimizations.txt").write_text(module_text("text"))
    (module,) = DumpDirectory(tmp_path).modules
    assert [p.suffix for p in module.whole.values()] == [".txt"]
    assert load(tmp_path).name == "text"


def test_one_dump_after_fusion_is_a_fused_module(tmp_path: Path) -> None:
    for between, stage in (
        ("0044.fusion.after_priority-fusion.before_cse", Stage.FUSED),
        ("0044.fusion.after_sort-iota-fusion.before_priority-fusion", Stage.INPUT),
    ):
        folder = tmp_path / stage.value
        folder.mkdir()
        (folder / f"module_0001.jit_f.{between}.txt").write_text(module_text("f"))
        assert stage_of(load(folder), "gpu").name is stage


def test_hosts_with_the_same_modules_are_one_directory(tmp_path: Path) -> None:
    for host, names in (("host0", "f"), ("host1", "f"), ("host2", "fg")):
        for name in names:
            (tmp_path / host).mkdir(exist_ok=True)
            dump = tmp_path / host / f"module_0001.jit_{name}.before_optimizations.txt"
            dump.write_text(module_text(f"{name}_{host}"))
    with pytest.raises(HlofuseError, match=r"Subdirectories have dumps; give one of them: .*host0.*host2"):
        load(tmp_path)
    shutil.rmtree(tmp_path / "host2")
    found = load(tmp_path)
    assert found.name == "f_host0"
    assert found.text_note == "host0, the first of 2 folders with the same modules"


def test_the_target_of_hosts_is_that_of_their_dumps(tmp_path: Path) -> None:
    for host in ("host0", "host1"):
        (tmp_path / host).mkdir()
        dump(tmp_path / host, ["sm_9.0_gpu_after_optimizations"])
    assert choose_target(Companions(tmp_path)).name == "gpu"
    assert load(tmp_path).name == "ssm_9"


def test_a_corpus_is_picked_from_by_name(samples: Path) -> None:
    assert load(samples / "cpu", "softmax").name == "jit_softmax"
    assert load(samples / "cpu" / "softmax").name == "jit_softmax"
    with pytest.raises(HlofuseError, match="no module sofmax; did you mean softmax"):
        load(samples / "cpu", "sofmax")
    with pytest.raises(HlofuseError, match="has several modules"):
        load(samples / "cpu")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("module_0001.f.1367.before_optimizations.txt", "f.1367, None, None, None, before_optimizations"),
        ("module_1.f.sm_9_gpu_after_optimizations.txt", "f, None, None, None, sm_9_gpu_after_optimizations"),
        ("module_0001.f.1367.0002.p.after_a.before_b.txt", "f.1367, 2, a, b, None"),
        ("module_0001.f.0001.p.before_two.txt", "f, 1, None, two, None"),
        ("module_0001.a.b.0007.fusion.after_cse.before_dce.txt.gz", "a.b, 7, cse, dce, None"),
        ("module_0001.jit_f.cl_4242.0007.fusion.after_cse.txt", "jit_f, 7, cse, None, None"),
        ("proc_3.module_0001.jit_f.0007.fusion.after_cse.before_dce.txt", "jit_f, 7, cse, dce, None"),
        ("module_0001.jit_f.cpu_after_optimizations-buffer-assignment.txt", ""),
        ("module_0001.jit_f.before_optimizations.hlo.pb", "jit_f, None, None, None, before_optimizations"),
        ("module_0001.jit_f.before_optimizations.pb", ""),
        ("notes.txt", ""),
    ],
)
def test_file_names(name: str, expected: str) -> None:
    file = read_name(Path(name))
    parts = () if file is None else (file.module, file.number, file.after, file.before, file.whole)
    assert ", ".join(map(str, parts)) == expected


def test_passes_of_a_variant_are_found_when_asked_for(tmp_path: Path) -> None:
    dump(tmp_path, FULL)
    dump(tmp_path, [f"0004.{PIPELINE}.after_tuple-simplifier.before_x"], number=0)
    module = DumpDirectory(tmp_path).pick()
    assert [n for n, _ in module.stages()[1]] == ["fusion", "fusion-wrapper"]
    wanted = ["fusion", "fusion-wrapper", "tuple-simplifier"]
    assert sorted(n for n, _ in module.stages("cpu", wanted)[1]) == wanted


def test_a_gpu_dump_given_to_the_cpu_is_told_apart(tmp_path: Path) -> None:
    dump(
        tmp_path,
        ["0001.fusion.after_sort-iota-fusion.before_priority-fusion", "sm_9.0_gpu_after_optimizations"],
    )
    with pytest.raises(HlofuseError, match="It is a GPU dump; give --target gpu"):
        load(tmp_path, target="cpu")


def test_a_second_run_is_told_by_the_pass_before_it(tmp_path: Path) -> None:
    dump(
        tmp_path,
        [
            "0001.fusion.after_pipeline-start.before_variadic-op-splitter",
            "0002.fusion.after_priority-fusion.before_cse",
            "0003.fusion.after_multi_output_fusion.before_cse",
            "0004.fusion.after_cse.before_dce",
        ],
    )
    _, after = DumpDirectory(tmp_path).pick().stages("gpu", passes_of("gpu", RELEASE))
    assert [name for name, _ in after] == ["priority-fusion", "multi_output_fusion", "cse-2"]
