"""Ask XLA:CPU what its fusion passes do; the answers are the truth that tests compare with.

    python -m tests.tools.record_xla random FIRST LAST -o DIR [--option multi-output]
    python -m tests.tools.record_xla hlo FILE.hlo... -o DIR [--option multi-output]

Each program or HLO module becomes a folder with before.hlo, NN-PASS.hlo for each fusion pass that changed
something, and after.hlo. Needs jax and jaxlib; hlofuse itself is not used. XLA aborts on a few programs
(with multi-output fusion on); those are compiled again one by one and left out.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PIPELINE, NEXT_PIPELINE = "HLO_passes_after_layout_assignment", "simplification_after_layout_assignment"
PASSES = ("fusion", "fusion-wrapper")
# Without multi-output fusion a tuple-simplifier runs as well, but only after other passes.
MULTI_OUTPUT_PASSES = (*PASSES, "cpu_multi_output_fusion", "tuple-simplifier")
MULTI_OUTPUT = "--xla_backend_extra_options=xla_cpu_use_multi_output_fusion"
NO_LIBRARY = "--xla_cpu_experimental_ynn_fusion_type="
_DUMP = re.compile(
    r"module_\d+\.(?P<name>.+)\.(?P<number>\d{4})\.(?P<pipeline>.+?)\.after_(?P<pass>.+?)(?:\.before_.+)?\.txt"
)


def compile_random(seeds: list[int]) -> None:
    """Child: compile random programs, leaving XLA's dumps."""
    import jax

    from .random_programs import random_program

    for seed in seeds:
        function, shapes = random_program(seed)
        function.__name__ = function.__qualname__ = f"random_{seed}"
        try:
            jax.jit(function).lower(*shapes).compile()
        except Exception as e:  # what the compiler refuses late has left its dumps
            print(f"random_{seed}: {type(e).__name__}: {str(e)[:200]}", file=sys.stderr)


def compile_hlo(files: list[str]) -> None:
    """Child: compile HLO modules given as text."""
    import jax
    import jaxlib._hlo
    import jaxlib._jax
    from jax._src.interpreters import mlir
    from jax._src.lib.mlir import ir

    device = jax.devices("cpu")[0]
    devices, options = jaxlib._jax.DeviceList((device,)), jaxlib._jax.CompileOptions()
    for file in files:
        text = Path(file).read_text(encoding="utf-8")
        name = "jit_" + Path(file).stem.replace(".", "_")
        text = re.sub(r"HloModule [\w.\-]+", f"HloModule {name}", text, count=1)
        module = jaxlib._hlo.hlo_module_from_text(text)
        stablehlo = jaxlib._jax.mlir.hlo_to_stablehlo(module.as_serialized_hlo_module_proto())
        try:
            with mlir.make_ir_context():
                device.client.compile_and_load(ir.Module.parse(stablehlo), devices, options)
        except Exception as e:
            print(f"{file}: {type(e).__name__}: {str(e)[:300]}", file=sys.stderr)


def collect(dump: Path, out: Path, passes: tuple[str, ...]) -> list[str]:
    """Sort XLA's dumps into a folder for each module."""
    modules: dict[str, list[tuple[int, str, str, Path]]] = {}
    for file in dump.glob("module_*.txt"):
        m = _DUMP.fullmatch(file.name)
        if m:
            modules.setdefault(m["name"], []).append((int(m["number"]), m["pipeline"], m["pass"], file))
    found = []
    for name, files in modules.items():
        files.sort()
        end = next((k for k, f in enumerate(files) if f[1] == NEXT_PIPELINE), None)
        if end is None:
            continue
        actual = [k for k, f in enumerate(files[:end]) if f[1] == PIPELINE and f[2] in passes]
        last = actual[0] if actual else end
        while not actual and files[last - 1][1] == PIPELINE and files[last - 1][2] != "pipeline-start":
            last -= 1
        folder = out / name.removeprefix("jit_")
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(files[last - 1][3], folder / "before.hlo")
        for number, k in enumerate(actual, 1):
            shutil.copy(files[k][3], folder / f"{number:02d}-{files[k][2]}.hlo")
        shutil.copy(files[actual[-1] if actual else last - 1][3], folder / "after.hlo")
        found.append(folder.name)
    return found


def record(kind: str, items: list[str], out: Path, flags: str) -> list[str]:
    """Compile in a process of its own and collect; an abort is narrowed down to the item."""
    with tempfile.TemporaryDirectory() as folder:
        dump = f"--xla_dump_to={folder} --xla_dump_hlo_pass_re=.* --xla_dump_hlo_as_text {flags}"
        environment = dict(os.environ, XLA_FLAGS=dump, JAX_PLATFORMS="cpu")
        command = [sys.executable, "-m", "tests.tools.record_xla", "--child", kind, json.dumps(items)]
        status = subprocess.run(command, env=environment).returncode
        if status == 0 or len(items) == 1:
            return collect(Path(folder), out, MULTI_OUTPUT_PASSES if MULTI_OUTPUT in flags else PASSES)
    return [name for item in items for name in record(kind, [item], out, flags)]


def main() -> None:
    if sys.argv[1:2] == ["--child"]:
        kind, items = sys.argv[2], json.loads(sys.argv[3])
        compile_random([int(i) for i in items]) if kind == "random" else compile_hlo(items)
        return
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kind", choices=["random", "hlo"])
    parser.add_argument("items", nargs="+", help="FIRST LAST, or files")
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--option", choices=["multi-output"])
    parser.add_argument("--no-library", action="store_true", help="leave no operation to YNNPACK")
    parser.add_argument(
        "--at-once", type=int, default=20, help="programs a process (an abort costs them all)"
    )
    a = parser.parse_args()
    items = [str(s) for s in range(int(a.items[0]), int(a.items[1]))] if a.kind == "random" else a.items
    flags = f"{MULTI_OUTPUT if a.option else ''} {NO_LIBRARY if a.no_library else ''}"
    total = 0
    for start in range(0, len(items), a.at_once):
        total += len(record(a.kind, items[start : start + a.at_once], a.out, flags))
        print(f"{total} modules of {min(start + a.at_once, len(items))} programs in {a.out}", flush=True)


if __name__ == "__main__":
    main()
