"""Captures made by JAX itself."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from ..running import Run

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("jax") is None, reason="needs jax (Python 3.12 or newer)"
)
PROGRAM = """
import jax, jax.numpy as jnp
RUN_BY_THE_IMPORT = jnp.ones(3) + 1

def f(x, p):
    return jax.nn.softmax(jnp.tanh(x) * p["w"])

def shapes():
    return jnp.ones((64, 32)), {"w": jnp.ones(32)}

listed = [*shapes()]
inner = jax.jit(lambda x, f, n: f(x) * n if n > 1 else x, static_argnums=(1, 2), donate_argnums=0)
def step(x, f, n): return inner(x, f, n), f
def leaves(): return jnp.ones((8, 8)), jnp.tanh, 3
step.lower = inner.lower
"""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "program.py").write_text(PROGRAM)
    return tmp_path


def test_our_replay_is_what_was_captured(hlofuse: Run, program: Path) -> None:
    result = hlofuse("capture", "program.py:f", "--args", "f32[64,32], {'w': f32[32]}", "-o", "out")
    assert (result.status, result.err) == (0, "")
    assert sorted(p.name for p in Path("out").iterdir()) == ["f", "manifest.json"]
    assert "Kernels agree: 1 of 1\n  exact on target cpu" in hlofuse("verify", "out").out
    repeated_call = hlofuse("capture", "program.py:f", "--args-from", "shapes", "-o", "again")
    assert repeated_call.status == 0
    assert (program / "again/f/before.hlo").read_text() == (program / "out/f/before.hlo").read_text()
    assert hlofuse("capture", "out/f/before_optimizations.hlo", "-o", "lowered").status == 0
    assert hlofuse("verify", "lowered").status == 0


@pytest.mark.parametrize("given", [["--args", "f32[64,32], {'w': f32[32]}"], ["--args-from", "listed"]])
def test_upgrade_compiles_a_function_with_its_arguments(
    hlofuse: Run, program: Path, given: list[str]
) -> None:
    result = hlofuse("upgrade", "program.py:f", *given, "--to", "0.12.0.1", columns=120)
    assert result.status in (0, 1)
    assert "0.12.0.1" in result.out
    assert hlofuse("upgrade", "program.py:f", "--to", "0.12.0.1").status == 2
    assert hlofuse("upgrade", "program.py:f", *given).status == 2


def test_what_is_wrong_with_the_program_is_said(hlofuse: Run, program: Path) -> None:
    wrong = hlofuse("capture", "program.py:g")
    assert (wrong.status, wrong.out) == (2, "")
    assert "program.py has no g; it has f, shapes" in wrong.err
    wrong = hlofuse("capture", "program.py:f", "--args", "f32[64,32]")
    assert wrong.status == 2
    assert "arguments do not match f(x, p): 1 given" in wrong.err
    wrong = hlofuse("capture", "program.py:f", "--args", "f32[64,32], {'w': f32[31]}")
    assert wrong.status == 2
    assert "nothing was compiled for cpu" in wrong.err
    assert sorted(p.name for p in program.iterdir() if p.name != "__pycache__") == ["program.py"]


def test_dumps_go_to_one_folder(hlofuse: Run, program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    call = ("capture", "program.py:f", "--args", "f32[64,32], {'w': f32[32]}", "-o", "out")
    refused = hlofuse(*call, "--flags=--xla_dump_to=other")
    assert (refused.status, refused.out) == (2, "")
    assert "--flags cannot set --xla_dump_to: the dumps go to the folder that -o names" in refused.err
    assert not (program / "out").exists()
    monkeypatch.setenv("XLA_FLAGS", "--xla_dump_to=other")
    warned = hlofuse(*call)
    assert warned.status == 0
    assert "XLA_FLAGS has --xla_dump_to=other, where nothing was written: it is all in out" in warned.err
    assert not (program / "other").exists()


def test_from_python(program: Path) -> None:
    import jax.numpy as jnp

    import hlofuse

    def scaled(x: object) -> object:
        return jnp.exp(x) * 2

    captured = hlofuse.capture(scaled, jnp.ones(100), out=program / "scaled")
    assert captured.module().before == program / "scaled/scaled/before.hlo"
    replayed = hlofuse.replay(hlofuse.load(captured.module().before))
    assert [i.opcode for i in replayed.after.entry] == ["parameter", "fusion"]


SEVERAL = """
import jax, jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec as P

def named(x):
    return jax.lax.with_sharding_constraint(jnp.sin(x), P("data", "model")).sum()
alone = jax.jit(lambda x: jnp.sin(x).sum())

if jax.device_count() > 1:
    mesh = jax.make_mesh((jax.device_count(),), ("i",))
    local = jax.shard_map(lambda x: jax.lax.psum(x, "i"), mesh=mesh, in_specs=P("i"), out_specs=P())

def shapes():
    return (jax.ShapeDtypeStruct((64, 32), "float32", sharding=NamedSharding(mesh, P("i"))),)
"""


@pytest.mark.parametrize(
    ("function", "options", "parameter"),
    [
        ("named", ["--mesh", "data=2,model=2", "--args", "f32[64@data,32]"], "f32[32,32]"),
        ("named", ["--mesh", "data=2,model=2", "--args", "f32[64,32]"], "f32[32,16]"),  # as jax.jit's
        ("alone", ["--mesh", "4", "--args", "f32[64,32]"], "f32[64,32]"),
        ("local", ["--mesh", "4", "--args-from", "shapes"], "f32[16,32]"),
    ],
)
def test_a_program_for_several_devices(
    hlofuse: Run, program: Path, function: str, options: list[str], parameter: str
) -> None:
    (program / "several.py").write_text(SEVERAL)
    result = hlofuse("capture", f"several.py:{function}", *options, "-o", "out")
    assert (result.status, result.err) == (0, "")
    (text,) = (before.read_text() for before in program.glob("out/*/before.hlo"))
    assert ("num_partitions=4" in text, "all-reduce(" in text) == (True, function != "alone")
    assert re.search(rf"= {re.escape(parameter)}\S* parameter\(0\)", text) is not None


def test_a_module_for_several_devices_asks_for_them(hlofuse: Run, program: Path) -> None:
    (program / "several.py").write_text(SEVERAL)
    options = ["--mesh", "4", "--args-from", "shapes"]
    assert hlofuse("capture", "several.py:local", *options, "-o", "out").status == 0
    (module,) = program.glob("out/*/before_optimizations.hlo")
    refused = hlofuse("capture", module, "-o", "again")
    assert refused.status == 2
    assert "the module is partitioned over 4 devices; give --mesh 4" in refused.err
    assert hlofuse("capture", module, "--mesh", "4", "-o", "again").status == 0
    (again,) = program.glob("again/*/before.hlo")
    assert "num_partitions=4" in again.read_text()
    assert "all-reduce(" in again.read_text()


FUNCTION = """func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.tanh %x {plan.b = #plan.c<d>} : tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""


def test_a_function_without_a_module_around_it(hlofuse: Run, program: Path) -> None:
    (program / "f.mlir").write_text(FUNCTION)
    assert hlofuse("capture", "f.mlir", "-o", "out").status == 0
    call = FUNCTION.replace(".tanh %x", ".custom_call @g(%x)").replace("} :", "} : (tensor<4xf32>) ->")
    (program / "f.mlir").write_text(call)
    assert "one device" not in hlofuse("capture", "f.mlir", "-o", "again").err


def test_an_axis_that_the_mesh_does_not_name(hlofuse: Run, program: Path) -> None:
    refused = hlofuse("capture", "program.py:f", "--args", "f32[8], {'w': f32[64@data]}", "--mesh", "4")
    assert refused.status == 2
    assert "--args: the mesh has no axis data; define it with --mesh data=2" in refused.err


MESHES = """
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

def placed(devices):
    return NamedSharding(Mesh(np.array(devices).reshape(2, -1), ("x", "y")), P("x", "y"))

def four():
    return jax.ShapeDtypeStruct((8, 8), jnp.float32, sharding=placed(jax.devices()[:4])), 3

def six():
    two_by_three = NamedSharding(Mesh(np.array(jax.devices()[:6]).reshape(2, 3), ("x", "y")), P("x", "y"))
    return jax.ShapeDtypeStruct((8, 9), jnp.float32, sharding=two_by_three), 3

def every():
    mesh = Mesh(np.array(jax.devices()), ("x",))
    return jax.ShapeDtypeStruct((8, 8), jnp.float32, sharding=NamedSharding(mesh, P("x"))), 3

def arrays():
    return jax.device_put(jnp.ones((8, 8)), placed(jax.devices())), 3

def f(x, n):
    return x.sum() * n
"""


@pytest.mark.parametrize(
    ("arguments", "mesh", "parameter"),
    [
        ("four", "4", "f32[4,4]"),
        ("every", "4", "f32[2,8]"),
        ("arrays", "4", "f32[4,4]"),
        ("four", None, "f32[4,4]"),
        ("six", None, "f32[4,3]"),
        ("arrays", None, "f32[4,2]"),  # any even number would do: as many as a host has
    ],
)
def test_arguments_stay_on_the_mesh_of_the_program(
    hlofuse: Run, program: Path, arguments: str, mesh: str | None, parameter: str
) -> None:
    (program / "meshes.py").write_text(MESHES)
    options = ["--args-from", arguments, *(["--mesh", mesh] if mesh else [])]
    result = hlofuse("capture", "meshes.py:f", *options, "-o", "out")
    count = mesh or {"four": "4", "six": "6", "arrays": "8"}[arguments]
    warned = f"the program needs several devices and was compiled for {count}; --mesh N sets their number"
    assert (result.status, warned in result.err) == (0, mesh is None)
    (before,) = program.glob("out/*/before.hlo")
    text = before.read_text()
    assert f"num_partitions={count}" in text
    assert "all-reduce(" in text
    assert re.search(rf"= {re.escape(parameter)}\S* parameter\(0\)", text) is not None


def test_leaves_that_are_no_arrays_are_part_of_the_program(hlofuse: Run, program: Path) -> None:
    """A wrapper of jit as by equinox: it has `lower` alone, and takes functions among the arguments."""
    assert hlofuse("capture", "program.py:step", "--args-from", "leaves", "-o", "out").status == 0
    text = (program / "out/step/before_optimizations.hlo").read_text()
    assert ("input_output_alias" in text, "tanh" in text, "ahead_of_time" in text) == (True, True, False)


def test_a_mesh_of_all_devices_needs_their_number(hlofuse: Run, program: Path) -> None:
    (program / "meshes.py").write_text(MESHES)
    refused = hlofuse("capture", "meshes.py:f", "--args-from", "every", "-o", "out")
    assert refused.status == 2
    assert "its arguments are placed on a mesh of one device" in refused.err
    assert "give the number that the program runs on, as in --mesh 8" in refused.err
    assert not (program / "out").exists()
    assert hlofuse("capture", "meshes.py:f", "--args-from", "every", "--mesh", "1", "-o", "out").status == 0
