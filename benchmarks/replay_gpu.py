"""How long PriorityFusion and the whole of target gpu take, beside XLA, and how that grows with the layers.

    python benchmarks/replay_gpu.py [BEFORE.hlo ...] --device v100 [--layers 1,4,16,64,256,1024]
    python benchmarks/replay_gpu.py --device v100 --programs PROGRAMS.py --spec v100.txtpb [--only NAME,...]

The second form needs jax with its CUDA plugin (no GPU): it compiles the programs, PROGRAMS being a dict of
names to (function, arguments), for the device that the spec (a target config as XLA dumps it) describes,
and replays what XLA dumped. XLA's time is the distance between the dumps before and after the pass, with
none in between, so it holds writing one dump and the pass's own record.
Ours is given in elapsed time, as XLA's has to be, and in processor time; best of --repeat on both sides.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from replay import count, stacked

from hlofuse.compilation import compile
from hlofuse.ir import parse_module
from hlofuse.ir.graph import Module
from hlofuse.trace import Recorder

SAMPLES = Path(__file__).parent.parent / "samples" / "gpu"


class Times(NamedTuple):
    """Milliseconds."""

    fusion: float
    fusion_processor: float
    pipeline: float


class _Stopwatch:
    """Notes when each pass of a replay begins."""

    def __init__(self) -> None:
        self.marks: list[tuple[str, float, float]] = []

    def __enter__(self) -> _Stopwatch:
        marks, self._begin = self.marks, Recorder.begin_pass

        def begin(recorder: Recorder, name: str) -> None:
            marks.append((name, time.perf_counter(), time.process_time()))
            self._begin(recorder, name)

        Recorder.begin_pass = begin  # type: ignore[method-assign]
        return self

    def __exit__(self, *_: object) -> None:
        Recorder.begin_pass = self._begin  # type: ignore[method-assign]


def measure(module: Module, device: str, repeat: int) -> Times:
    """The best of several replays, parsing and printing not counted."""
    runs = []
    for _ in range(repeat):
        start = time.process_time()
        with _Stopwatch() as watch:
            compile(module, "gpu", device=device)
        whole = time.process_time() - start
        for (name, wall, processor), (_, wall_after, after) in zip(
            watch.marks, watch.marks[1:], strict=False
        ):
            if name == "priority-fusion":
                runs.append((wall_after - wall, after - processor, whole))
    return Times(*[min(column) * 1e3 for column in zip(*runs, strict=True)])


def print_row(name: str, module: Module, times: Times, xla: float | None) -> None:
    ratio = f"{xla:9.1f} {times.fusion / xla:6.2f}" if xla else f"{'':9} {'':6}"
    print(
        f"{name[:32]:32} {count(module):12} {times.fusion:9.1f} {ratio} {times.fusion_processor:10.1f}"
        f" {times.pipeline:9.1f}",
        flush=True,
    )


def compare_with_xla(programs: Path, spec: Path, only: list[str], device: str, repeat: int) -> None:
    """Compile each program, replay what was dumped, print both times."""
    folder = Path(tempfile.mkdtemp(prefix="hlofuse-bench-"))
    os.environ["XLA_FLAGS"] = (
        f"--xla_dump_to={folder} --xla_dump_hlo_pass_re=priority-fusion --xla_dump_hlo_as_text"
    )
    os.environ.update(JAX_PLATFORMS="cpu", JAX_SKIP_CUDA_CONSTRAINTS_CHECK="1")
    import jax
    from jax.experimental import topologies

    found = importlib.util.spec_from_file_location("programs", programs)
    assert found is not None
    assert found.loader is not None
    source: Any = importlib.util.module_from_spec(found)
    found.loader.exec_module(source)
    topology = topologies.get_topology_desc(platform="cuda", target_config=spec.read_text(), topology="1x1x1")
    mesh = jax.sharding.Mesh(topology.devices[:1], ("x",))
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
    for name, (function, shapes) in source.PROGRAMS.items():
        if only and name not in only:
            continue
        arguments = jax.tree.map(lambda s: jax.ShapeDtypeStruct(s.shape, s.dtype, sharding=sharding), shapes)
        xla, actual = float("inf"), Times(float("inf"), float("inf"), float("inf"))
        module: Module | None = None
        for _ in range(repeat):
            for old in folder.iterdir():
                old.unlink()
            jax.clear_caches()
            try:
                jax.jit(function).lower(*arguments).compile()
            except Exception as error:  # what fails after the pass has dumped it all the same
                print(f"{name}: {str(error).splitlines()[0][:80]}", file=sys.stderr)
            starts = sorted(folder.glob("*before_priority-fusion*.txt"))
            ends = sorted(folder.glob("*after_priority-fusion*.txt"))
            if len(starts) != 1 or len(ends) != 1:
                continue
            xla = min(xla, (ends[0].stat().st_mtime_ns - starts[0].stat().st_mtime_ns) / 1e6)
            module = module or parse_module(starts[0].read_text())
            # In turns with XLA: a machine that is slow for a while is slow for both.
            actual = Times(*map(min, actual, measure(module, device, 2)))
        if module is not None:
            print_row(name, module, actual, xla)


def main() -> None:
    """Print the modules, then the growth."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("dumps", nargs="*", type=Path, help="the samples unless given")
    parser.add_argument("--device", default="h100_sxm")
    parser.add_argument("--programs", type=Path)
    parser.add_argument("--spec", type=Path)
    parser.add_argument("--only", default="", help="names of programs, separated by commas")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--layers", default="1,4,16,64,256,1024", help="layers stacked, separated by commas")
    a = parser.parse_args()
    print(
        f"{'module':32} {'instructions':>12} {'fusion ms':>9} {'XLA ms':>9} {'ratio':>6} {'processor':>10}"
        f" {'pipeline':>9}"
    )
    if a.programs is not None and a.spec is not None:
        compare_with_xla(a.programs, a.spec, a.only.split(",") if a.only else [], a.device, a.repeat)
    else:
        for path in a.dumps or sorted(SAMPLES.glob("*/before.hlo")):
            module = parse_module(path.read_text())
            print_row(path.parent.name, module, measure(module, a.device, a.repeat), None)
    columns = f"{'layers stacked':>14} {'instructions':>12} {'fusion ms':>9} {'us each':>8}"
    print(f"\n{columns} {'pipeline':>9} {'us each':>8} {'peak MB':>8}")
    for layers in [int(n) for n in a.layers.split(",") if n]:
        module = stacked(layers)
        n, times = count(module), measure(module, a.device, 1)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(
            f"{layers:14} {n:12} {times.fusion_processor:9.1f} {times.fusion_processor / n * 1e3:8.1f}"
            f" {times.pipeline:9.1f} {times.pipeline / n * 1e3:8.1f} {peak:8.0f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
