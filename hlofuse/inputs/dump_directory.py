"""A directory written by `--xla_dump_to`: its modules, their stages, and the parts of a file's name."""

import os
import re
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import TypeVar

from msgspec import Struct

from hlofuse.format import bytes_text, plural, printable
from hlofuse.ir import AnyPath, HlofuseError, Record, Strings, replace
from hlofuse.pipelines.targets import pass_names_of
from .suggest import did_you_mean

_T = TypeVar("_T")
RANKED = "hlofuse batch DIR -o OUT ranks them by time"  # The hint where several modules could be meant
_LISTED = 12
_SEARCHED = 2_000  # the limit of entries searched in each level below a folder without dumps
_FAR = 10
_BEFORE = "before_optimizations"

# Parts of a dump file's name (`xla/service/dump.cc`).
# `module_0042.jit_step.0017.fusion.after_priority-fusion.before_cse.txt`: module 42, jit_step, the 18th file
# of this compilation, pipeline `fusion`, between two passes.

_FILE = re.compile(
    r"(?:(?P<prefix>.+?)\.)?module_(?P<id>\d+)\.(?P<middle>.+)\.(?:txt|hlo|hlo\.pb)(?:\.gz)?", re.DOTALL
)
_BETWEEN = re.compile(
    # The name may end in a number of its own, as that of jit_f.1367 does: it reaches as far as it can.
    r"(?P<name>.+)\.(?P<number>\d{4,9})\.(?P<pipeline>.+?)"
    r"\.(?:after_(?P<after>.+?)(?:\.before_(?P<before>.+))?|before_(?P<only_before>.+))",
    re.DOTALL,
)
_CHANGE_LIST = re.compile(r"\.cl_\d+$")
_WHOLE = re.compile(
    r"(?P<name>.+?)\.(?:cl_\d+\.)?(?P<stage>before_optimizations|(?:cpu_|gpu_|sm_[\w.]+?_gpu_|gfx\w+?_gpu_|tpu_)?after_optimizations|after_codegen)",
    re.DOTALL,
)


class DumpFile(Record):
    path: Path
    prefix: str
    module_id: int
    module: str
    number: int | None = None  # The number of the file within one compilation, in writing order
    pipeline: str | None = None
    after: str | None = None
    before: str | None = None
    whole: str | None = None
    """The stage of a dump of the whole module: `before_optimizations`, `cpu_after_optimizations`, …"""


def read_name(path: Path) -> DumpFile | None:
    """The parts of a dump's file name; None for other files."""
    m = _FILE.fullmatch(path.name)
    if m is None:
        return None
    prefix, module_id = m["prefix"] or "", int(m["id"][:18])
    between = _BETWEEN.fullmatch(m["middle"])
    if between is not None:
        return DumpFile(
            path,
            prefix,
            module_id,
            _CHANGE_LIST.sub("", between["name"]),
            int(between["number"]),
            between["pipeline"],
            between["after"],
            between["before"] or between["only_before"],
        )
    whole = _WHOLE.fullmatch(m["middle"])
    if whole is not None:
        return DumpFile(path, prefix, module_id, whole["name"], whole=whole["stage"])
    return None


# The place of each target's fusion passes in a compilation, by dump file names: data.


class FusionStage(Record):
    """The files around the fusion passes of one target."""

    pipeline: str
    passes: Strings  # Passes whose results are compared, in order; the first one's input is the fusion input
    next_pipeline: str | None
    """The pipeline right after them; its first dump ends the stage where no pass changed the module."""
    flags: str  # XLA_FLAGS that write all needed dumps
    more_pipelines: tuple[tuple[str, str], ...] = ()
    """Further compared pipelines right after the first, each with its first pass."""
    also_before: Strings = ()
    """Earlier passes that a replay can also start before: those between change nothing."""
    next_follows: bool = True  # True if no pass runs between the last of these and the next pipeline

    @property
    def pipelines(self) -> Strings:
        return (self.pipeline, *dict(self.more_pipelines))

    def is_fused_by(self, file: DumpFile) -> bool:
        """True for a dump after one of the passes that fuse."""
        first = self.also_before[-1] if self.also_before else self.passes[0]
        return file.pipeline in self.pipelines and file.after in self.passes[self.passes.index(first) :]

    def name_of_run(
        self,
        passes: Sequence[str],
        pipeline: str,
        name: str,
        number: int,
    ) -> str:
        """The name of the `number`th run of a pass within a pipeline, counted over all pipelines: `cse-3`.
        `passes` are those of all pipelines in order; a pass that runs once has its plain name."""
        first = dict(self.more_pipelines).get(pipeline, "")
        before = list(passes).index(first) if first in passes else 0
        return f"{name}-{passes[:before].count(name) + number}" if passes.count(name) > 1 else name


def _passes(target: str, elsewhere: Sequence[str] = ()) -> Strings:
    """The names of a target's passes, each once and without options, except those in `elsewhere`."""
    return tuple(name for name in pass_names_of(target) if name not in elsewhere)


FUSION_STAGES: dict[str, FusionStage] = {
    "cpu": FusionStage(
        "HLO_passes_after_layout_assignment",
        _passes("cpu", elsewhere=("tuple-simplifier",)),
        "simplification_after_layout_assignment",
        "--xla_dump_to=DIR --xla_dump_hlo_pass_re=.*",
        next_follows=False,
    ),
    "gpu": FusionStage(
        "fusion",
        _passes("gpu"),
        "post-fusion_optimization",
        "--xla_dump_to=DIR --xla_dump_hlo_pass_re=.* --xla_dump_hlo_as_text --xla_dump_hlo_as_proto",
        also_before=("sort-iota-fusion", "priority-fusion"),
    ),
    "gpu-legacy": FusionStage(
        "fusion",
        _passes("gpu-legacy"),
        "post-fusion_optimization",
        "--xla_gpu_enable_priority_fusion=false --xla_dump_to=DIR --xla_dump_hlo_pass_re=.* "
        "--xla_dump_hlo_as_text",
        more_pipelines=(("horizontal_fusion", "horizontal_loop_fusion"),),
        also_before=("fusion",),
    ),
}
AFTER_CODEGEN = "after_codegen"  # XLA:TPU's dump of the module that runs, with its estimates in cycles
TPU_PIPELINES = ("Main_fusion", "multi_output_fusion_and_bf16_folding")
"""The fusion pipelines of XLA:TPU, which is closed and therefore no target."""


class DumpedModule(Struct):
    """One module of a dump directory, its files in the order they were written."""

    name: str
    module_id: int
    prefix: str = ""
    between: list[DumpFile] = []  # Dumps between passes, by number
    whole: dict[str, Path] = {}
    numbers: tuple[int, ...] = ()
    """Its earlier numbers: where XLA:TPU rewrites 64-bit types it goes on with a clone that has its own."""

    @property
    def label(self) -> str:
        """The name with the module's number, which makes it unique: `module_0042.jit_step`."""
        return self.labels[0]

    @property
    def labels(self) -> list[str]:
        prefix = f"{self.prefix}." if self.prefix else ""
        return [f"{prefix}module_{n:04d}.{self.name}" for n in (self.module_id, *self.numbers)]

    def pass_input(self, target: str = "cpu") -> Path:
        """The dump of the module as it enters the fusion passes of `target`: the latest before the first of
        them. `HlofuseError` without one, with instructions to get it."""
        return self.stages(target)[0]

    def best(self, target: str = "cpu") -> Path:
        """The dump that a replay can start from: the input of the fusion passes, else an earlier one. For
        XLA:TPU, whose passes are not replayed, it is the finished module, else that after its fusion passes;
        without a dump before fusion, the finished module, else the latest dump. Else `HlofuseError`."""
        try:
            return self.pass_input(target)
        except HlofuseError:
            if self.of_tpu:
                return self.finished or self.of_tpu[-1].path
            if _BEFORE in self.whole:
                return self.whole[_BEFORE]
            latest = self.finished or (self.between[-1].path if self.between else None)
            if latest is None or (target == "cpu" and "gpu" in latest.name):
                raise
            return latest

    @property
    def finished(self) -> Path | None:
        """The module after all passes; None where the directory lacks it."""
        whole = sorted(self.whole.items())
        ends = (AFTER_CODEGEN, "after_optimizations")
        return next((path for end in ends for name, path in whole if name.endswith(end)), None)

    @property
    def of_tpu(self) -> list[DumpFile]:
        return [f for f in self.between if f.pipeline in TPU_PIPELINES]

    @property
    def size(self) -> int:
        paths = [*self.whole.values(), *(f.path for f in self.between[:1])]
        return max((os.path.getsize(p) for p in paths if p.exists()), default=0)

    def stages(
        self, target: str = "cpu", passes: Sequence[str] | None = None
    ) -> tuple[Path, list[tuple[str, Path]]]:
        """The fusion passes' input, and the dump after each fusion pass that changed the module, in order.
        `passes` names the passes of the requested dumps, if not the target's usual ones."""
        stage = FUSION_STAGES.get(target)
        if stage is None:
            raise HlofuseError(f"dump directories of target {target!r} are not supported")
        end = len(self.between)
        for k, f in enumerate(self.between):
            if f.pipeline == stage.next_pipeline:
                end = k
                break
        own = [k for k in range(end) if self.between[k].pipeline in stage.pipelines]
        exact = next((k for k in own if self.between[k].before == stage.passes[0]), None)
        # With a pass's own dumps only, the first of them shows the module it was given.
        if exact is None and own and self.between[own[0]].before in stage.also_before:
            exact = own[0]
        done = [k for k in own if self.between[k].after in stage.passes]
        if exact is not None:
            start = exact
        elif done and done[0] > 0:
            start = done[0] - 1
        elif not done and end < len(self.between) and own:
            # No fusion pass changed anything: go back over what ran between them and the next pipeline.
            start = end - 1
            while start > 0 and start in own and self.between[start].after != "pipeline-start":
                start -= 1
        else:
            raise HlofuseError(self._no_input(target))
        if passes is not None and (done or exact is not None):
            done = [k for k in own if k > start and self.between[k].after in passes]
        names = _names_of_runs(stage, [self.between[k] for k in done], passes or ())
        return self.between[start].path, list(zip(names, [self.between[k].path for k in done], strict=True))

    def _no_input(self, target: str) -> str:
        stage = FUSION_STAGES[target]
        there = sorted(self.whole) or ["dumps of other passes"]
        whole = ", ".join(printable(self.whole[name]) for name in sorted(self.whole))
        head = (
            f"{printable(self.label)}: no dump at the fusion input of target {target}; found:"
            f" {', '.join(there)}."
        )
        if self.of_tpu or any(w.startswith("tpu") for w in self.whole):
            return (
                f"{printable(self.label)} is a dump of XLA:TPU, whose fusion passes are not public and cannot"
                " be replayed. explain shows what was fused."
            )
        if target == "cpu" and any("gpu" in w for w in self.whole):
            return f"{head}\nIt is a GPU dump; give --target gpu, or gpu-legacy for jaxlib 0.4.35." + (
                f"\n(stats, diff and render also take a single file: {whole})" if whole else ""
            )
        return (
            f'{head}\nRun the program again with XLA_FLAGS="{stage.flags}" and give hlofuse that directory.'
            + (f"\nOr give a file that is there: {whole}" if whole else "")
            + ("\n(the one before optimizations is replayed approximately)" if _BEFORE in self.whole else "")
        )


def _names_of_runs(stage: FusionStage, files: Sequence[DumpFile], passes: Sequence[str]) -> list[str]:
    """The passes that wrote the files; `cse-2` where one runs several times and the next tells which run."""
    names, place = [], -1
    for file in files:
        name = str(file.after)
        if passes.count(name) > 1:
            for k in range(place + 1, len(passes)):
                following = passes[k + 1] if k + 1 < len(passes) else "pipeline-end"
                ends = file.before == "pipeline-end" and following in dict(stage.more_pipelines).values()
                if passes[k] == name and (file.before == following or ends):
                    place = k
                    name = f"{name}-{passes[: k + 1].count(name)}"
                    break
        elif name in passes:
            place = max(place, passes.index(name))
        names.append(name)
    return names


def far_largest(items: Sequence[_T], size: Callable[[_T], int]) -> _T | None:
    """The only item, or the one at least ten times as large as any other."""
    if not items:
        return None
    first, *others = sorted(items, key=size, reverse=True)
    return first if not others or size(first) >= _FAR * size(others[0]) else None


def listed_by_size(modules: Iterable[tuple[str, int]]) -> str:
    """A line for each of the largest modules, given by text and bytes, and how many are left out."""
    ranked = sorted(modules, key=lambda pair: -pair[1])
    lines = [f"  {text} {bytes_text(size):>12}" for text, size in ranked[:_LISTED]]
    if len(ranked) > _LISTED:
        lines.append(f"  … {plural(len(ranked) - _LISTED, 'smaller one')}")
    return "\n".join(lines)


def _listed_names(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError as e:
        raise HlofuseError(f"cannot read {printable(folder)}: {e.strerror or e}") from None


def _dumped_modules(folder: Path, names: Sequence[str]) -> list[DumpedModule]:
    """The modules whose dumps these are; a text is taken where the same dump is there as a proto, too."""
    found = dict[tuple[str, int, str], DumpedModule]()
    same = {}
    for name in sorted(names, key=lambda name: name.endswith((".pb", ".pb.gz")), reverse=True):
        file = read_name(folder / name)
        if file is None:
            continue
        key = (file.prefix, file.module_id, file.module)
        module = found.setdefault(key, DumpedModule(file.module, file.module_id, file.prefix))
        if file.whole is not None:
            module.whole[file.whole] = file.path
        else:
            same[replace(file, path=folder)] = file
    for file in same.values():
        found[file.prefix, file.module_id, file.module].between.append(file)
    for module in found.values():
        module.between.sort(key=lambda f: (f.number or 0, f.path.name))
    return _joined(sorted(found.values(), key=lambda m: (m.prefix, m.module_id, m.name)))


def _joined(modules: Iterable[DumpedModule]) -> list[DumpedModule]:
    """The modules in order; a clone that was finished has the dumps of the module that was begun."""
    joined = list[DumpedModule]()
    begun = {}
    for m in modules:
        key = m.prefix, m.name
        if m.finished is None:
            begun[key] = m
        elif key in begun and _BEFORE in begun[key].whole.keys() - m.whole:
            joined.remove(first := begun.pop(key))
            counted = [replace(f, number=k) for k, f in enumerate(first.between + m.between)]
            m = replace(m, between=counted, whole=first.whole | m.whole, numbers=(first.module_id,))
        joined.append(m)
    return joined


class DumpDirectory:
    """The modules found in a directory, in the order XLA numbered them; of several hosts the first's."""

    def __init__(self, path: AnyPath) -> None:
        """Raises `HlofuseError` where the directory cannot be read or has no module dumps."""
        self.path = Path(path)
        self.hosts = 1  # The folders below it with the same modules, of which `modules` are the first one's
        names = _listed_names(self.path)
        self.modules = _dumped_modules(self.path, names)
        if self.modules:
            return
        below = [(f, _dumped_modules(f, _listed_names(f))) for f in folders_with_dumps(self.path)]
        if below and len({tuple(sorted(m.name for m in modules)) for _, modules in below}) == 1:
            self.hosts, (self.path, self.modules) = len(below), below[0]
        if self.modules:
            return
        text = next((name for name in names if name.endswith((".hlo", ".hlo.gz"))), None)
        hint = f"; or give a file, such as {printable(self.path / text)}" if text else ""
        if below:
            listed = ", ".join(printable(folder) for folder, _ in below[:_LISTED])
            hint = f"\nSubdirectories have dumps; give one of them: {listed}"
        raise HlofuseError(
            f"{printable(path)}: no module dumps; expected files like"
            " module_0001.jit_f.before_optimizations.txt, written by XLA_FLAGS=--xla_dump_to=DIR" + hint
        )

    def main(self) -> DumpedModule | None:
        """The only module, or one much larger than those that JAX compiled before; None for similar ones."""
        return far_largest(self.modules, lambda m: m.size)

    def pick(self, name: str | None = None) -> DumpedModule:
        """The module of that name (`jit_f`, `f`, `module_0042.jit_f` or `42`); the main one for None."""
        if name is None:
            main = self.main()
            if main is not None:
                return main
            raise HlofuseError(
                f"{printable(self.path)} has {len(self.modules)} modules; select one with"
                f" --module:\n{self._listing()}\n{RANKED}"
            )
        matching = [m for m in self.modules if name in (m.label, f"module_{m.module_id:04d}")]
        matching = matching or [m for m in self.modules if m.name in (name, f"jit_{name}")]
        if not matching and name.isascii() and name.isdigit():
            matching = [m for m in self.modules if m.module_id == int(name[:18])]
        if not matching:
            names = [n for m in self.modules for n in (m.name, m.label)]
            raise HlofuseError(
                f"{printable(self.path)} has no module {printable(name)}"
                f"{did_you_mean(name, names)}\n{self._listing()}"
            )
        if len(matching) > 1:
            labels = ", ".join(printable(m.label) for m in matching[:_LISTED])
            raise HlofuseError(f"{len(matching)} modules are named {printable(name)}; select one: {labels}")
        return matching[0]

    def _listing(self) -> str:
        # The step people look for is mostly the largest.
        return listed_by_size((f"{printable(m.label):<50}", m.size) for m in self.modules)


def dumped_module(path: Path) -> DumpedModule | None:
    """All dumps of the module of a dump file; None for another file."""
    file = read_name(path)
    if file is None:
        return None
    try:
        modules = DumpDirectory(path.parent).modules
    except HlofuseError:
        return None
    same = (m for m in modules if (m.prefix, m.name) == (file.prefix, file.module))
    return next((m for m in same if file.module_id in (m.module_id, *m.numbers)), None)


def case_bytes(folder: Path) -> int:
    """The size of the module in a folder of a corpus."""
    file = corpus_file(folder, "before")
    return file.stat().st_size if file is not None else 0


def corpus_file(folder: Path, name: str) -> Path | None:
    """`before.hlo` or another module of a corpus folder, plain or gzipped."""
    for file in (folder / f"{name}.hlo", folder / f"{name}.hlo.gz"):
        if file.is_file():
            return file
    return None


def is_corpus_case(folder: Path) -> bool:
    """True for a folder with `before.hlo`: one program of a corpus."""
    return corpus_file(folder, "before") is not None


def is_tpu_case(folder: Path) -> bool:
    """True for a program's folder with dumps of XLA:TPU's fusion passes."""
    return any(pipeline in p.name for p in folder.iterdir() for pipeline in TPU_PIPELINES)


def require_case(folder: Path, module: str | None) -> None:
    """Raise `HlofuseError` where `module` is not the program of a corpus folder."""
    name = folder.resolve().name
    if module is not None and module not in (name, f"jit_{name}"):
        raise HlofuseError(f"{printable(folder)} has no module {printable(module)}, only {printable(name)}")


def corpus_cases(folder: Path) -> list[Path]:
    """The folders of a corpus, by name; empty for any other folder."""
    return [p for name in _listed_names(folder) if (p := folder / name).is_dir() and is_corpus_case(p)]


def folders_with_dumps(folder: Path) -> list[Path]:
    """Dump directories, captures and corpora up to two levels below a folder."""
    found = []
    for pattern in ("*", "*/*"):
        found += [
            child
            for child in sorted(islice(folder.glob(pattern), _SEARCHED))
            if child.is_dir()
            and child.parent not in found
            and (is_corpus_case(child) or any(any(child.glob(p)) for p in ("module_[0-9]*", "*/before.hlo*")))
        ]
    return found
