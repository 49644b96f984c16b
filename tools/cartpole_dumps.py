"""Compile the programs of samples/cartpole/programs.py and keep what XLA's fusion did.

    cartpole_dumps.py cpu|gpu|gpu-legacy [-o samples/cartpole]

Compiles ahead of time, no GPU needed, on GPU targets for the device DEVICE below. `cpu` and `gpu` want
jax and jaxlib 0.11.1 (gpu also jax-cuda12-plugin[with-cuda]), `gpu-legacy` jax, jaxlib, jax-cuda12-plugin
and jax-cuda12-pjrt, all 0.4.35: `make cartpole-dumps` sets both up.

Every program becomes a folder OUT/TARGET/NAME with before.hlo, after.hlo, on CPU the module after each
pass, on GPU the unique ids (before.hlo.pb) and XLA's record of PriorityFusion; large files are compressed.
"""

from __future__ import annotations

import argparse
import gzip
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SAMPLES = ROOT / "samples" / "cartpole"
DEVICE = "rtx2080ti"
LARGE = 40_000
"""Bytes from which a file is compressed."""
CUSTOM_CALL = "baseline"
"""The program whose random numbers come from a library call on GPU, as in JAX at the time of the paper."""

SAME_ON_CPU = "baseline_today"

_DUMP = re.compile(r"module_\d+\.jit_(\w+?)\.(?:cl_\d+\.)?(\d{4})\.(.+?)\.after_(.+?)(?:\.before_(.+))?\.txt")
_FLAGS = {
    "cpu": "",
    "gpu": "--xla_dump_hlo_as_proto",
    "gpu-legacy": "--xla_gpu_enable_priority_fusion=false --xla_gpu_autotune_level=0",
}
Dump = tuple[int, str, str, Path]
"""Number, pipeline, the pass just done, and the file."""
_CPU_PIPELINE = "HLO_passes_after_layout_assignment"
_CPU_PASSES = ("fusion", "fusion-wrapper")


def compile_all(target: str, device: Path) -> None:
    """Child: compile every program, leaving XLA's dumps."""
    import jax

    sys.path.insert(0, str(SAMPLES))
    from programs import PROGRAMS

    jax.config.update("jax_hlo_source_file_canonicalization_regex", ".*/")
    sharding = None
    if target != "cpu":
        from jax.experimental import topologies

        if target == "gpu-legacy":
            _call_gpus_cuda()
        topology = topologies.get_topology_desc(
            platform="cuda", target_config=device.read_text(), topology="1x1x1"
        )
        mesh = jax.sharding.Mesh(topology.devices[:1], ("x",))
        sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
    for name, (function, shapes) in PROGRAMS.items():
        if (target, name) == ("cpu", SAME_ON_CPU):
            continue
        if target != "cpu":
            shapes = jax.tree.map(lambda s: jax.ShapeDtypeStruct(s.shape, s.dtype, sharding=sharding), shapes)
        jax.config.update("jax_threefry_gpu_kernel_lowering", name == CUSTOM_CALL)
        function.__name__ = function.__qualname__ = name
        try:
            jax.jit(function).lower(*shapes).compile()
        except Exception as e:  # without a device XLA stops at the very end; the dumps are there
            print(f"{name}: {type(e).__name__}: {str(e)[:200]}", file=sys.stderr)


def _call_gpus_cuda() -> None:
    """JAX 0.4.35 does not know that `gpu` means `cuda` on a machine without one."""
    from jax._src import xla_bridge

    cached = xla_bridge.canonicalize_platform
    xla_bridge.canonicalize_platform = lambda name: "cuda" if name in ("gpu", "cuda") else cached(name)


def device_text() -> str:
    """The numbers of the device as the text proto of XLA's target configurations."""
    values = tomllib.loads((ROOT / f"hlofuse/cost/gpu/devices/{DEVICE}.toml").read_text())
    major, minor = values["compute_capability"]
    skipped = ("name", "origin", "platform", "compute_capability", "max_blocks_per_multiprocessor")
    numbers = [f"  {k}: {v}" for k, v in values.items() if k not in skipped]
    lines = ["gpu_device_info {", *numbers, "  block_dim_limit_z: 65535", "  device_memory_size: 11554717696"]
    lines += [f"  cuda_compute_capability {{ major: {major} minor: {minor} }}", "}"]
    return "\n".join([*lines, 'platform_name: "CUDA"', f'device_description_str: "{values["name"]}"', ""])


def collect(dump: Path, target: str, out: Path) -> list[str]:
    """Sort XLA's dumps into a folder for each program."""
    programs: dict[str, list[Dump]] = {}
    for file in dump.glob("module_*.txt"):
        m = _DUMP.fullmatch(file.name)
        if m:
            programs.setdefault(m[1], []).append((int(m[2]), m[3], m[4], file))
    for name, files in programs.items():
        files.sort()
        remaining = _of_cpu(files) if target == "cpu" else _of_gpu(files)
        folder = out / target / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for file, source in remaining.items():
            _keep(source, folder / file)
        if target == "gpu":
            shutil.copy(remaining["before.hlo"].with_suffix(".hlo.pb"), folder / "before.hlo.pb")
            (record,) = dump.glob(f"module_*.jit_{name}.priority_fusion_dump.txt")
            text = re.sub(r"(?m)^hlo_module_before_fusion: .*\n", "", record.read_text(encoding="utf-8"))
            _write(folder / "priority_fusion.txtpb", text)
    return sorted(programs)


def _of_cpu(files: list[Dump]) -> dict[str, Path]:
    own = [k for k, f in enumerate(files) if f[1] == _CPU_PIPELINE and f[2] in _CPU_PASSES]
    remaining = {"before.hlo": files[own[0] - 1][3]}
    for number, k in enumerate(own, 1):
        remaining[f"{number:02d}-{files[k][2]}.hlo"] = files[k][3]
    return remaining | {"after.hlo": files[own[-1]][3]}


def _of_gpu(files: list[Dump]) -> dict[str, Path]:
    """The module at the start of the fusion pipeline, and at the start of the one behind all of them."""
    start = {pipeline: file for _, pipeline, done, file in files if done == "pipeline-start"}
    return {"before.hlo": start["fusion"], "after.hlo": start["post-fusion_optimization"]}


def _keep(source: Path, file: Path) -> None:
    text = source.read_text(encoding="utf-8")
    _write(file, re.sub(r'source_file="[^"]*/', 'source_file="', text))


def _write(file: Path, text: str) -> None:
    if len(text) < LARGE:
        file.write_text(text, encoding="utf-8")
    else:
        file.with_name(f"{file.name}.gz").write_bytes(gzip.compress(text.encode(), mtime=0))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("target", choices=list(_FLAGS))
    parser.add_argument("-o", "--out", type=Path, default=SAMPLES)
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    a = parser.parse_args()
    if a.child:
        compile_all(a.target, a.child)
        return
    with tempfile.TemporaryDirectory() as folder:
        device, dump = Path(folder) / "device.txtpb", Path(folder) / "dump"
        device.write_text(device_text())
        flags = f"--xla_dump_to={dump} --xla_dump_hlo_pass_re=.* --xla_dump_hlo_as_text {_FLAGS[a.target]}"
        environment = dict(os.environ, XLA_FLAGS=flags, JAX_SKIP_CUDA_CONSTRAINTS_CHECK="1")
        if a.target == "cpu":
            environment["JAX_PLATFORMS"] = "cpu"
        command = [sys.executable, __file__, a.target, "--child", str(device)]
        subprocess.run(command, env=environment, check=True)
        names = collect(dump, a.target, a.out)
    print(f"{len(names)} programs in {a.out / a.target}: {', '.join(names)}")


if __name__ == "__main__":
    main()
