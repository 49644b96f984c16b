"""Compare the replay of a release with XLA pass by pass, and write what differs, unattended.

    bring_up.py VERSION [-o DIR] [--python PYTHON] [--targets cpu,gpu] [--random N] [--minutes M] [--hours H]

Installs jaxlib VERSION into DIR/env (or takes PYTHON), compiles the programs of tools/corpus and N fresh
random programs for the CPU and for an absent H100, with a dump after every pass. Each pass is run on XLA's
own module before it; the modules where the two results differ are grouped by pass. The smallest of each group
are tried with every known behaviour the other way, and the program of one is reduced while it differs.
DIR/report.md, written after every step, has the passes that only one side runs, the kernels from before
optimizations to the end, and the groups. Exit status 1 if anything differs.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
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
_TRIED = 4  # Modules of a group that each behaviour is tried on
_FUSION = "fusion: "  # Before the names of fusion passes, of which passes around them have some, too


# In the Python of the release, without hlofuse.


def compile_programs(request: dict[str, Any]) -> None:
    """Child: compile every entry of PROGRAMS in a file, or one HLO text, leaving XLA's dumps."""
    from hlofuse.capture.ahead_of_time.compiling import compile_function, compile_module, read_module
    from hlofuse.capture.ahead_of_time.devices import add_flags, devices_of, find_nvcc
    from hlofuse.capture.ahead_of_time.programs import resolve

    add_flags(request["flags"])
    find_nvcc()
    devices = devices_of(request)
    file = request["what"]
    if file.endswith(".hlo"):
        compile_module(read_module(Path(file)), devices)
        return
    sys.path.insert(0, str(Path(file).parent))
    for name, program in _programs(file):
        try:
            compile_function(name, *resolve(program), devices)
        except Exception as error:  # what fails late has left its dumps
            print(f"{name}: {type(error).__name__}: {str(error)[:200]}", file=sys.stderr)


def _programs(file: str) -> Iterator[tuple[str, Any]]:
    first, colon, last = file.partition(":")
    if colon:
        from tests.tools.random_programs import random_program

        yield from ((f"random_{seed}", random_program(seed)) for seed in range(int(first), int(last)))
    else:
        yield from __import__(Path(file).stem).PROGRAMS.items()


# In this Python.


@dataclass
class Release:
    """A release that compiles, and where its dumps are."""

    version: str
    python: str
    out: Path

    def compile(self, what: str, target: str, folder: Path) -> str:
        """XLA's log of a compilation that leaves its dumps in `folder`."""
        from hlofuse.capture.capturing import FLAGS_OF_RELEASES, target_config_of

        folder.mkdir(parents=True, exist_ok=True)
        config = self.out / f"{_DEVICE}.txtpb"
        config.write_text(target_config_of(_DEVICE)[1], encoding="utf-8")
        request = {"what": what, "target": target, "target_config": str(config), "topology": "1x1x1"}
        request |= {"flags": FLAGS_OF_RELEASES.get(target, [])}
        paths = os.pathsep.join(filter(None, (os.environ.get("BRING_UP_PATH"), str(ROOT))))
        environment = {**os.environ, **_LOG, "XLA_FLAGS": _DUMP.format(folder), "PYTHONPATH": paths}
        if target == "cpu":
            environment["JAX_PLATFORMS"] = "cpu"
        command = [self.python, __file__, self.version, "--child", json.dumps(request)]
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
class Found:
    """XLA's dumps of a module, where a pass differs."""

    module: Any
    case: Any
    given: Path  # XLA's module before the pass

    @property
    def size(self) -> int:
        return self.given.stat().st_size


@dataclass
class Group:
    """The modules where a pass differs."""

    name: str
    found: dict[str, Found] = field(default_factory=dict)
    """By module."""
    explained: dict[str, int] = field(default_factory=dict)
    """The number of the smallest modules that are XLA's with another value of a behaviour."""
    reduced: str = ""

    @property
    def smallest(self) -> list[Found]:
        return sorted(self.found.values(), key=lambda f: f.size)[:_TRIED]


class Comparison:
    """XLA's dumps of one target against the passes of a release."""

    def __init__(self, release: Release, target: str) -> None:
        from hlofuse.cost.gpu.device import load_device
        from hlofuse.pipelines.targets import after_fusion, before_fusion
        from hlofuse.releases import nearest, release_of

        self.name = nearest(release.version)[0]
        self.release, self.target = release, target
        self._behaviour = release_of(self.name)
        self._device = _DEVICE if target == "gpu" else None
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
        for module, case in self._dumped(folder):
            for name, given in self._differing(module, case, self._behaviour):
                group = self.groups.setdefault(name, Group(name))
                group.found.setdefault(str(given.parent / module.label), Found(module, case, given))
            self._count(module)

    def _dumped(self, folder: Path) -> list[tuple[Any, Any]]:
        """The modules of a folder, each with what `verify` compares of it."""
        from hlofuse.inputs.dump_directory import DumpDirectory
        from hlofuse.ir.errors import HlofuseError
        from hlofuse.reports.verify import find_cases

        cases: dict[Path, Any] = {}
        with suppress(HlofuseError):  # none has fusion passes that changed something
            cases = {case.before: case for case in find_cases(folder, target=self.target)[0]}
        found = list[tuple[Any, Any]]()
        for module in DumpDirectory(folder).modules:
            case = None
            with suppress(HlofuseError):
                case = cases.get(module.pass_input(self.target))
            found.append((module, case))
        return found

    def _differing(
        self,
        dumped: Any,
        case: Any,
        behaviour: Any,
        only: str = "",
    ) -> Iterator[tuple[str, Path]]:
        from hlofuse.inputs import load
        from hlofuse.ir.copy import copy_module
        from hlofuse.passes.base import UnimplementedPass
        from hlofuse.trace import Recorder
        from tests.tools.compare_passes import runs, same_structure, with_ids

        lists = () if only.startswith(_FUSION) else self._lists(behaviour)
        read: dict[Path, Any] = {}
        for step, given, left in runs(dumped, lists):
            if (left is None and isinstance(step, UnimplementedPass)) or step.name != (only or step.name):
                continue
            if given.path not in read:  # many passes are given the same module
                read = {given.path: with_ids(load(given.path))}
            module = copy_module(read[given.path])
            try:
                did = step.run(module, Recorder())
                truth = with_ids(load(left.path)) if left is not None else read[given.path]
                same = same_structure(module, truth)
            except Exception as error:
                did, same = True, False
                print(f"{dumped.name}: {step.name}: {type(error).__name__}: {error}", file=sys.stderr)
            if not same and (did or left is not None):
                yield step.name, given.path
        is_wanted = not only or only.startswith(_FUSION)
        if is_wanted and case is not None and (name := self._fused(case, behaviour)):
            yield _FUSION + name, case.before

    def _fused(self, case: Any, behaviour: Any) -> str:
        """The first fusion pass that leaves other kernels than XLA's, on XLA's own module before fusion."""
        from hlofuse.compilation import CompilationInput, replay_config
        from hlofuse.inputs.ordered import replay_input
        from hlofuse.reports.verify.verify import verify_module

        config = replay_config(self.target, self._device, mixed=behaviour)
        before, after, passes = case.load()
        ordered = replay_input(before, config)
        given = CompilationInput(ordered.module, ordered.ids)
        found = verify_module(
            given, after, config, after_passes=passes, recorded=case.recorded, complete=case.complete
        )
        return "" if found.partition else next((p.name for p in found.passes if not p.partition), "fusion")

    def _count(self, dumped: Any) -> None:
        from hlofuse.analysis.kernels import kernels
        from hlofuse.compilation import compile, replay_config
        from hlofuse.inputs import load
        from hlofuse.inputs.stage import lowering_in_creation_order
        from hlofuse.pipelines.targets import Stage

        before, final = dumped.whole.get("before_optimizations"), dumped.finished
        if before is None or final is None:
            return
        config = replay_config(self.target, self._device, xla=self.name)
        given = lowering_in_creation_order(load(before), config).fusion_input
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
        """Try every behaviour the other way on the smallest modules; reduce the program of the smallest."""
        from hlofuse.inputs import load
        from hlofuse.ir.errors import HlofuseError
        from hlofuse.judge.reduction import Reduction

        for name, changed in self._flips():
            if time.monotonic() > deadline:
                return
            equal = [f for f in group.smallest if not self._differs_in(f.module, f.case, group.name, changed)]
            if equal:
                group.explained[name] = len(equal)

        def differs(text: str) -> bool:
            if time.monotonic() > deadline:
                return False
            folder = self.release.out / "try"
            shutil.rmtree(folder, ignore_errors=True)
            file = self.release.out / "try.hlo"
            file.write_text(text, encoding="utf-8")
            self.release.compile(str(file), self.target, folder)
            try:
                dumped = self._dumped(folder)
            except HlofuseError:
                return False
            return any(self._differs_in(*one, group.name, self._behaviour) for one in dumped)

        whole = group.smallest[0].module.whole.get("before_optimizations")
        if whole is not None:
            with suppress(HlofuseError):  # it differs no more where the module came through StableHLO
                group.reduced = Reduction(load(whole), differs).run()

    def _flips(self) -> Iterator[tuple[str, Any]]:
        """Each difference between releases, on and around fusion, with the release that has it otherwise."""
        from hlofuse.pipelines.differences import differences
        from hlofuse.releases import behaviours
        from hlofuse.releases.named import NAMES, release_of

        for name in behaviours(around=True):
            change: dict[str, Any] = {name: not getattr(self._behaviour, name)}
            yield name, replace(self._behaviour, **change)
        for difference in differences(self.target, NAMES):
            own = difference.value_in(self._behaviour)
            others = (r for r in map(release_of, NAMES) if difference.value_in(r) != own)
            if (other := next(others, None)) is not None:
                yield difference.name, difference.flipped_in(self._behaviour, other)

    def _differs_in(self, dumped: Any, case: Any, name: str, behaviour: Any) -> bool:
        return any(name == found for found, _ in self._differing(dumped, case, behaviour, name))


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
    for group in sorted(found.groups.values(), key=lambda g: -len(g.found)):
        names = [f.module.name for f in group.found.values()]
        lines += ["", f"## {group.name}: {len(names)} modules", "", ", ".join(names[:8])]
        lines += [f"Smallest input: {group.smallest[0].given}"]
        of = len(group.smallest)
        lines += [f"With the other value of {n}: XLA's in {k} of {of}" for n, k in group.explained.items()]
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
    a = parser.parse_args()
    if a.child:
        compile_programs(json.loads(a.child))
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
