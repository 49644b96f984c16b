"""Which moment of a compilation a module shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from hlofuse.inputs import load
from hlofuse.inputs.backend import backend_of
from hlofuse.inputs.stage import BEFORE, FUSED, INPUT, SCHEDULED, StageError, require_input_stage, stage_of
from hlofuse.ir import parse_module
from ..running import Run
from .dump_directories import FULL, dump


def module(body: str, header: str = "", before: str = "") -> str:
    entry = f"ENTRY %main (p: f32[4,2]) -> f32[4,2] {{\n  %p = f32[4,2]{{1,0}} parameter(0)\n{body}\n}}\n"
    return f"HloModule m{header}\n{before}\n{entry}"


FUSION = """
%f (q: f32[4,2]) -> f32[4,2] {
  %q = f32[4,2]{1,0} parameter(0)
  ROOT %m = f32[4,2]{1,0} negate(%q)
}
"""
NEGATE = "  ROOT %n = f32[4,2]{1,0} negate(%p)"
LIBRARY = (
    "  ROOT %n = f32[4,2]{1,0} fusion(%p), kind=kCustom, calls=%f,"
    ' backend_config={"fusion_config":{"kind":"__ynn_fusion"}}'
)


def stage(text: str) -> tuple[str, str | None]:
    found = stage_of(parse_module(text))
    return found.name, found.backend


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (module(NEGATE), (INPUT, None)),
        (module(NEGATE, ", is_scheduled=true"), (SCHEDULED, None)),
        (module("  ROOT %n = f32[4,2]{1,0} fusion(%p), kind=kLoop, calls=%f", before=FUSION), (FUSED, None)),
        # Library fusions are made before the fusion pass: normal in its input.
        (module(LIBRARY, before=FUSION), (INPUT, "cpu")),
        (module("  %r = f32[8]{0} reshape(%p)\n  ROOT %n = f32[4,2]{1,0} reshape(%r)"), (BEFORE, None)),
        (module("  ROOT %n = f32[4,2]{1,0} call(%p), to_apply=%f", before=FUSION), (BEFORE, None)),
        (
            module("  %c = f32[] constant(1)\n  %d = f32[] constant(1)\n  %e = f32[] add(%c, %d)\n" + NEGATE),
            (BEFORE, None),
        ),
        # Passes that copy computations may leave equal constants, and only passes make bitcasts.
        (
            module(
                "  %c = f32[] constant(1)\n  %d = f32[] constant(1)\n  %e = f32[] add(%c, %d)\n"
                "  %b = f32[8]{0} bitcast(%p)\n  ROOT %n = f32[4,2]{1,0} bitcast(%b)"
            ),
            (INPUT, None),
        ),
        (module('  ROOT %n = f32[4,2]{1,0} custom-call(%p), custom_call_target="Sharding"'), (BEFORE, None)),
        (
            module('  ROOT %n = f32[4,2]{1,0} custom-call(%p), custom_call_target="__cublas$gemm"'),
            (INPUT, "gpu"),
        ),
        (module("  ROOT %n = f32[4,2]{1,0:T(8,128)} negate(%p)"), (INPUT, "tpu")),
    ],
)
def test_by_what_is_in_it(text: str, expected: tuple[str, str | None]) -> None:
    assert stage(text) == expected


def test_every_sample_is_what_its_name_says(samples: Path) -> None:
    for folder in sorted([*(samples / "cpu").glob("*/"), *(samples / "cartpole" / "cpu").glob("*/")]):
        assert stage_of(load(folder)).name == INPUT, folder.name
        for after in folder.glob("after.hlo*"):
            assert stage_of(load(after)).name == FUSED, folder.name


def test_by_the_files_beside_it(tmp_path: Path) -> None:
    dump(tmp_path, FULL)
    found = {
        p.name.split(".")[2]: stage_of(load(p)) for p in tmp_path.glob("module_*") if "buffer" not in p.name
    }
    assert found["0002"].name == INPUT
    assert found["before_optimizations"].name == found["0000"].name == found["0001"].name == BEFORE
    assert found["0003"].name == found["0006"].name == FUSED
    assert found["cpu_after_optimizations"].name == SCHEDULED
    right = found["before_optimizations"].right_file
    assert right is not None
    assert right.name.split(".")[2] == "0002"


def refusal(text: str, target: str = "cpu") -> str:
    with pytest.raises(StageError) as e:
        require_input_stage(parse_module(text), target)
    return str(e.value)


def test_the_refusal_names_the_flags() -> None:
    text = refusal(module(NEGATE, ", is_scheduled=true"))
    assert "after all optimizations, fused and scheduled (header has is_scheduled=true)" in text
    assert 'XLA_FLAGS="--xla_dump_to=DIR --xla_dump_hlo_pass_re=.*"' in text
    assert "--assume-input" in text


@pytest.mark.parametrize("command", ["replay", "render"])
def test_every_command_that_replays_asks_for_the_right_stage(
    command: str, hlofuse: Run, tmp_path: Path
) -> None:
    path, out = tmp_path / "m.hlo", tmp_path / "out.dot"
    path.write_text(module(NEGATE, ", is_scheduled=true"))
    more = ["--view", "after"] if command == "render" else []
    result = hlofuse(command, path, "-o", out, *more)
    assert result.status == 2
    assert result.err.endswith("add --assume-input.\n")
    assert not out.exists()
    assert hlofuse(command, path, "-o", out, "--assume-input", *more).status == 0


def test_what_a_corpus_calls_the_input_is_taken_for_it(tmp_path: Path) -> None:
    text = module("  %r = f32[8]{0} reshape(%p)\n  ROOT %n = f32[4,2]{1,0} reshape(%r)")
    (tmp_path / "before.hlo").write_text(text)
    assert stage_of(load(tmp_path / "before.hlo")).name == BEFORE
    (tmp_path / "after.hlo").write_text(text)
    assert stage_of(load(tmp_path / "before.hlo")).name == INPUT


def test_what_a_corpus_calls_the_result_is_fused_whatever_is_in_it(tmp_path: Path) -> None:
    text = "HloModule m\nENTRY e {\n  p = f32[8] parameter(0)\n  ROOT n = f32[8] negate(p)\n}\n"
    for name in ("after.hlo", "01-priority-fusion.hlo"):
        (tmp_path / name).write_text(text)
        assert stage_of(load(tmp_path / name)).name == INPUT  # nothing beside it tells
    (tmp_path / "before.hlo").write_text(text)
    for name in ("after.hlo", "01-priority-fusion.hlo"):
        found = stage_of(load(tmp_path / name))
        assert (found.name, found.right_file) == (FUSED, tmp_path / "before.hlo")
    assert stage_of(load(tmp_path / "before.hlo")).name == INPUT


def test_the_refusal_points_at_the_right_file(tmp_path: Path) -> None:
    dump(tmp_path, FULL)
    with pytest.raises(StageError, match=r"is next to it: .*0002\.after_layout_assignment"):
        require_input_stage(load(next(tmp_path.glob("*.before_optimizations.txt"))))


def test_a_module_of_another_backend() -> None:
    text = refusal(module("  ROOT %n = f32[4,2]{1,0:T(8,128)} negate(%p)"))
    assert "is a module for TPU (n has a tiled layout" in text


def test_a_gpu_dump_directory(tmp_path: Path) -> None:
    dump(tmp_path, ["before_optimizations", "sm_9.0_gpu_after_optimizations"])
    found = stage_of(load(next(tmp_path.glob("*.before_optimizations.txt"))))
    assert found.backend == "gpu"


def test_a_buffer_that_a_library_asks_for_tells_no_backend() -> None:
    """Eigenvalues on CUDA have it, too."""
    text = (
        'HloModule m\n\nENTRY e {\n  b = f32[8]{0} custom-call(), custom_call_target="AllocateBuffer"\n'
        "  ROOT n = f32[8]{0} negate(b)\n}\n"
    )
    assert backend_of(parse_module(text)) is None
