"""Compare the replay of a release with XLA pass by pass, and write what differs, unattended.

    bring_up.py VERSION [-o DIR] [--python PYTHON] [--targets cpu,gpu] [--random N] [--minutes M] [--hours H]

Installs jaxlib VERSION into DIR/env (or takes PYTHON), compiles the programs of tools/corpus and N fresh
random programs for the CPU and for an absent H100, with a dump after every pass. Each pass is run on XLA's
own module before it; the modules where the two results differ are grouped by pass. The smallest of each group
is tried with every known behaviour the other way and, on the CPU, reduced while the difference stays.
DIR/report.md, written after every step, has the passes that only one side runs, the kernels from before
optimizations to the end, and the groups. Exit status 1 if anything differs.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
_DUMP = "--xla_dump_hlo_pass_re=.* --xla_dump_hlo_as_text --xla_dump_to={}"
_LOG = {
    "JAX_SKIP_CUDA_CONSTRAINTS_CHECK": "1",
    "TF_CPP_MIN_LOG_LEVEL": "0",
    "TF_CPP_VMODULE": "hlo_pass_pipeline=1",
}
_PASS = re.compile(
    r"Running HLO pass pipeline on module \S+: (?P<pipeline>.*)|\]\s+HLO pass (?P<name>\S+)\s*$"
)
_DEVICE = "h100_sxm"
_FILES = ("programs.py", "models.py")


# In the Python of the release, without hlofuse.


def compile_programs(file: str, config: str) -> None:
    """Child: compile every entry of PROGRAMS in a file, or one HLO text, leaving XLA's dumps."""
    import jax

    if file.endswith(".hlo"):
        _compile_text(Path(file))
        return
    sys.path.insert(0, str(Path(file).parent))
    place = None
    if config:
        from hlofuse.capture.ahead_of_time.devices import gpu_topology

        text = Path(config).read_text(encoding="utf-8")
        devices = gpu_topology(text, "1x1x1")[0].devices  # without the fields that this XLA does not know
        mesh = jax.sharding.Mesh(devices[:1], ("x",))
        place = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
    for name, (function, arguments) in _programs(file):

        def entry(*values: Any, function: Callable[..., Any] = function) -> Any:
            return function(*values)

        entry.__name__ = entry.__qualname__ = name
        shapes = jax.tree.map(lambda s: jax.ShapeDtypeStruct(s.shape, s.dtype, sharding=place), arguments)
        try:
            jax.jit(entry).lower(*shapes).compile()
        except Exception as error:  # what fails late has left its dumps
            print(f"{name}: {type(error).__name__}: {str(error)[:200]}", file=sys.stderr)


def _programs(file: str) -> Iterator[tuple[str, Any]]:
    first, colon, last = file.partition(":")
    if colon:
        from tests.tools.random_programs import random_program

        yield from ((f"random_{seed}", random_program(seed)) for seed in range(int(first), int(last)))
    else:
        yield from __import__(Path(file).stem).PROGRAMS.items()


def _compile_text(file: Path) -> None:
    import jax
    import jaxlib._hlo
    import jaxlib._jax
    from jax._src.interpreters import mlir
    from jax._src.lib.mlir import ir

    device = jax.devices("cpu")[0]
    devices, options = jaxlib._jax.DeviceList((device,)), jaxlib._jax.CompileOptions()
    module = jaxlib._hlo.hlo_module_from_text(file.read_text(encoding="utf-8"))
    text = jaxlib._jax.mlir.hlo_to_stablehlo(module.as_serialized_hlo_module_proto())
    with mlir.make_ir_context():
        device.client.compile_and_load(ir.Module.parse(text), devices, options)


# In this Python.


@dataclass
class Release:
    """A release that compiles, and where its dumps are."""

    version: str
    python: str
    out: Path

    def compile(self, what: str, target: str, folder: Path) -> str:
        """XLA's log of a compilation that leaves its dumps in `folder`."""
        folder.mkdir(parents=True, exist_ok=True)
        config = ""
        if target == "gpu":
            from hlofuse.capture.target_config import target_config_of

            config = str(self.out / f"{_DEVICE}.txtpb")
            Path(config).write_text(target_config_of(_DEVICE)[1], encoding="utf-8")
        paths = os.pathsep.join(filter(None, (os.environ.get("BRING_UP_PATH"), str(ROOT))))
        environment = {**os.environ, **_LOG, "XLA_FLAGS": _DUMP.format(folder), "PYTHONPATH": paths}
        if target == "cpu":
            environment["JAX_PLATFORMS"] = "cpu"
        command = [self.python, __file__, self.version, "--child", what, "--config", config]
        return subprocess.run(command, env=environment, capture_output=True, text=True).stderr


def passes_of_log(log: str) -> list[str]:
    """`pipeline: pass` in the order in which XLA ran them first."""
    found, pipeline = list[str](), ""
    for line in log.splitlines():
        if m := _PASS.search(line):
            if m["pipeline"]:
                pipeline = m["pipeline"].strip().replace(" ", "_")
            else:
                found.append(f"{pipeline}: {m['name']}")
    return list(dict.fromkeys(found))


@dataclass
class Group:
    """The modules where a pass differs."""

    name: str
    places: list[str] = field(default_factory=list)
    smallest: tuple[int, Path | None, str] = (1 << 60, None, "")
    """Instructions, XLA's module before the pass and the program's before optimizations."""
    explained: list[str] = field(default_factory=list)
    reduced: str = ""


class Comparison:
    """XLA's dumps of one target against the passes of a release."""

    def __init__(self, release: Release, target: str) -> None:
        from hlofuse.cost.gpu.device import load_device
        from hlofuse.pipelines.targets import after_fusion, before_fusion
        from hlofuse.releases import nearest, release_of

        self.name = nearest(release.version)[0]
        self.release, self.target = release, target
        self._behaviour = release_of(self.name)
        device = load_device(_DEVICE) if target == "gpu" else None
        self._lists = lambda behaviour: (
            *before_fusion(target, device, (), behaviour),
            *(after_fusion(target, device, (), behaviour) if target == "gpu" else ()),
        )
        self.groups: dict[str, Group] = {}
        self.programs = self.same_number = 0
        self.kernels = list[str]()

    def own_passes(self) -> list[str]:
        """`pipeline: pass` of the lists of the release."""
        from hlofuse.passes.base import Pipeline

        tops = [p for top in self._lists(self._behaviour) for p in top.flattened() if isinstance(p, Pipeline)]
        return [f"{p.name}: {s.name}" for p in tops for s in p.steps]

    def compare(self, folder: Path) -> None:
        """Every pass on XLA's own modules, and the kernels of whole replays."""
        from hlofuse.inputs.dump_directory import DumpDirectory

        for dumped in DumpDirectory(folder).modules:
            for name, given in self._differing(dumped, self._behaviour):
                group = self.groups.setdefault(name, Group(name))
                group.places.append(dumped.name)
                size = len(given.read_text(encoding="utf-8").splitlines())
                whole = str(dumped.whole.get("before_optimizations", ""))
                if size < group.smallest[0]:
                    group.smallest = (size, given, whole)
            self._count(dumped)

    def _differing(self, dumped: Any, behaviour: Any) -> Iterator[tuple[str, Path]]:
        from hlofuse.inputs import load
        from hlofuse.passes.base import UnimplementedPass
        from hlofuse.trace import Recorder
        from tests.tools.compare_passes import runs, same_structure, with_ids

        for step, given, left in runs(dumped, self._lists(behaviour)):
            if left is None and isinstance(step, UnimplementedPass):
                continue
            module = with_ids(load(given.path))
            try:
                did = step.run(module, Recorder())
                same = same_structure(module, with_ids(load((left or given).path)))
            except Exception as error:
                did, same = True, False
                print(f"{dumped.name}: {step.name}: {type(error).__name__}: {error}", file=sys.stderr)
            if not same and (did or left is not None):
                yield step.name, given.path

    def _count(self, dumped: Any) -> None:
        from hlofuse.analysis.kernels import kernels
        from hlofuse.compilation import CompilationInput, compile, replay_config
        from hlofuse.inputs import load
        from hlofuse.pipelines.stage import Stage

        before, final = dumped.whole.get("before_optimizations"), dumped.finished
        if before is None or final is None:
            return
        config = replay_config(self.target, _DEVICE if self.target == "gpu" else None, xla=self.name)
        given = CompilationInput(load(before), stage=Stage.BEFORE)
        self.programs += 1
        try:
            own = len(kernels(compile(given, config, until=Stage.SCHEDULED).replayed_final))
        except Exception as error:
            self.kernels.append(f"{dumped.name}: {type(error).__name__}: {error}")
            return
        actual = len(kernels(load(final)))
        self.same_number += own == actual
        if own != actual:
            self.kernels.append(f"{dumped.name}: XLA has {actual}, the replay {own}")

    def explain(self, group: Group, deadline: float) -> None:
        """Try every behaviour around fusion the other way; reduce the smallest module on the CPU."""
        from hlofuse.inputs import load
        from hlofuse.ir.errors import HlofuseError
        from hlofuse.judge.reduction import Reduction
        from hlofuse.releases import behaviours

        whole = group.smallest[2]
        if self.target != "cpu" or not whole:
            return

        def differs(text: str, behaviour: Any = self._behaviour) -> bool:
            if time.monotonic() > deadline:
                return False
            folder = self.release.out / "try"
            shutil.rmtree(folder, ignore_errors=True)
            file = self.release.out / "try.hlo"
            file.write_text(text, encoding="utf-8")
            self.release.compile(str(file), "cpu", folder)
            return self._differs_in(folder, group.name, behaviour)

        text = Path(whole).read_text(encoding="utf-8")
        if not differs(text):
            return
        for name in behaviours(around=True):
            change: dict[str, Any] = {name: not getattr(self._behaviour, name)}
            if not self._differs_in(self.release.out / "try", group.name, replace(self._behaviour, **change)):
                group.explained.append(name)
        with suppress(HlofuseError):  # it differs no more where the module came through StableHLO
            group.reduced = Reduction(load(whole), differs).run()

    def _differs_in(self, folder: Path, name: str, behaviour: Any) -> bool:
        from hlofuse.inputs.dump_directory import DumpDirectory
        from hlofuse.ir.errors import HlofuseError

        try:
            modules = DumpDirectory(folder).modules
        except HlofuseError:
            return False
        return any(name == found for dumped in modules for found, _ in self._differing(dumped, behaviour))


def _names(passes: list[str]) -> dict[str, str]:
    """The pipeline of each pass where it comes first."""
    first = dict[str, str]()
    for text in passes:
        pipeline, _, name = text.partition(": ")
        first.setdefault(name, pipeline)
    return first


def report(found: Comparison, log: str) -> str:
    """The section of one target."""
    xla, own = passes_of_log(log), found.own_passes()
    used = {p.partition(": ")[0] for p in own}
    in_xla, in_list = _names(xla), _names(own)  # the log does not say where a pipeline inside another ends
    lines = [
        f"# {found.target}",
        "",
        f"{found.same_number} of {found.programs} programs have XLA's number of kernels.",
    ]
    lines += [f"- {line}" for line in found.kernels]
    lines += ["", "Passes that only XLA runs, in pipelines of the list:", ""]
    lines += [f"- {n} ({p})" for n, p in in_xla.items() if n not in in_list and p in used] or ["- none"]
    lines += ["", "Passes that only the list has:", ""]
    lines += [f"- {n} ({p})" for n, p in in_list.items() if n not in in_xla] or ["- none"]
    lines += ["", f"{len(found.groups)} groups of differences:" if found.groups else "No pass differs."]
    for group in sorted(found.groups.values(), key=lambda g: -len(set(g.places))):
        names = list(dict.fromkeys(group.places))
        lines += ["", f"## {group.name}: {len(names)} modules", "", ", ".join(names[:8])]
        lines += [f"Smallest input: {group.smallest[1]}"]
        lines += (
            [f"The same as XLA with the other value of {', '.join(group.explained)}"]
            if group.explained
            else []
        )
        lines += ["", "```", group.reduced.strip(), "```"] if group.reduced else []
    return "\n".join(lines) + "\n"


def _environment(version: str, out: Path, targets: list[str]) -> str:
    python = out / "env" / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(out / "env")], check=True)
        packages = [f"jax=={version}", f"jaxlib=={version}", "msgspec"]
        packages += [f"jax-cuda12-plugin[with-cuda]=={version}"] if "gpu" in targets else []
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", *packages], check=True)
    return str(python)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("version")
    parser.add_argument("-o", "--out", type=Path)
    parser.add_argument("--python")
    parser.add_argument("--targets", default="cpu,gpu")
    parser.add_argument("--files", default=",".join(_FILES), help="of tools/corpus")
    parser.add_argument("--random", type=int, default=100, metavar="N")
    parser.add_argument("--seed", type=int, default=50_000, help="the first of the random programs")
    parser.add_argument("--minutes", type=float, default=5, help="to reduce the module of one group")
    parser.add_argument("--hours", type=float, default=3, help="after which no group is explained any more")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--config", default="", help=argparse.SUPPRESS)
    a = parser.parse_args()
    if a.child:
        compile_programs(a.child, a.config)
        return 0
    out = (a.out or Path("out/bring_up") / a.version).resolve()
    out.mkdir(parents=True, exist_ok=True)
    targets = a.targets.split(",")
    release = Release(a.version, a.python or _environment(a.version, out, targets), out)
    work = [str(ROOT / "tools" / "corpus" / name) for name in a.files.split(",") if name]
    work += [f"{a.seed}:{a.seed + a.random}"] if a.random else []
    text, differs = f"Release {a.version}, replayed as {Comparison(release, targets[0]).name}.\n\n", False
    end = time.monotonic() + 3600 * a.hours

    def write(found: Comparison, log: str) -> str:
        """The report so far: what a time limit from outside leaves."""
        whole = text + report(found, log) + "\n"
        (out / "report.md").write_text(whole, encoding="utf-8")
        return whole

    for target in targets:
        found, log = Comparison(release, target), ""
        for number, what in enumerate(work):
            folder = out / f"{target}-{number}"
            log += release.compile(what, target, folder)
            found.compare(folder)
            write(found, log)
            print(f"{target}: {found.same_number} of {found.programs} after {Path(what).name}", flush=True)
        for group in found.groups.values():
            found.explain(group, min(end, time.monotonic() + 60 * a.minutes))
            write(found, log)
        text = write(found, log)
        differs |= bool(found.groups) or found.same_number < found.programs
    print(f"wrote {out / 'report.md'}")
    return int(differs)


if __name__ == "__main__":
    sys.exit(main())
