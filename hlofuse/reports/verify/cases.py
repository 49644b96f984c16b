"""Cases to verify at a path: a pair of files, a dump directory, a corpus."""

import re
from functools import cache
from pathlib import Path
from typing import Literal

from hlofuse.format import listing, printable
from hlofuse.inputs.companions import Companions
from hlofuse.inputs.dump_directory import (
    FUSION_STAGES,
    DumpDirectory,
    DumpedModule,
    DumpFile,
    corpus_cases,
    corpus_file,
    is_corpus_case,
)
from hlofuse.inputs.many import dump_text
from hlofuse.ir import HlofuseError, Module, Record, Strings, grouped, parse_module
from hlofuse.pipelines import TARGETS

Until = Literal["fusion", "end"]  # The end of a replay: after the fusion passes, or with the launched kernels
_NUMBERED = re.compile(r"(\d{1,6})-(.+)\.hlo(?:\.gz)?")
_OF_PIPELINE = re.compile(r"([^.]+)\.(.+?)(?:-(\d))?")


class Case(Record):
    name: str
    before: Path
    after: Path
    passes: tuple[tuple[str, Path], ...] | None = None
    """Dumps after the passes that changed something, in order; None where that is not known."""
    recorded: Strings | None = None  # The passes whose dumps were kept if they left one, where not all were
    record: Path | None = None  # XLA's own record of PriorityFusion
    complete: bool = True  # Every pass that changed the module left a dump; False where some may lack
    doubt: str | None = None  # Why `before` may not be the module as it enters the fusion passes

    def load(self) -> tuple[Module, Module, list[tuple[str, Module]] | None]:
        """Everything parsed; a file that stands for two things is read once."""
        read = cache(lambda path: parse_module(dump_text(path), str(path)))
        passes = [(name, read(path)) for name, path in self.passes] if self.passes is not None else None
        return read(self.before), read(self.after), passes


def find_cases(
    path: Path,
    *,
    target: str = "cpu",
    option: str | None = None,
    module: str | None = None,
    until: Until = "fusion",
) -> tuple[list[Case], list[str]]:
    """The cases at `path`, and what had to be left out with the reason. A folder with before.hlo and
    after.hlo (with `until="end"` after_optimizations.hlo) is one case, a folder of such folders a corpus;
    anything else is taken for a dump directory."""
    if is_corpus_case(path):
        return [_corpus_case(path, target, until)], []
    folders = corpus_cases(path)
    if folders:
        if module is not None:
            folders = [p for p in folders if p.name == module]
            if not folders:
                raise HlofuseError(f"{printable(str(path))}: no module {printable(module)}")
        return [_corpus_case(p, target, until) for p in folders], []
    wanted = [step.name for step in TARGETS[target].listed(option)]
    directory = DumpDirectory(path)
    chosen = [directory.pick(module)] if module is not None else directory.modules
    cases = []
    skipped = []
    for m in chosen:
        label = m.name if sum(x.name == m.name for x in directory.modules) == 1 else m.label
        try:
            if until != "end":
                cases.append(_dumped_case(m, label, target, wanted))
                continue
            before = m.pass_input(target)
            if m.finished is None:
                raise HlofuseError(f"{printable(m.label)}: no dump after all optimizations")
            cases.append(Case(label, before, m.finished))
        except HlofuseError as e:
            if module is not None or len(chosen) == 1:
                raise
            skipped.append(e.first_line)
    if not cases:
        stage = FUSION_STAGES.get(target)
        flags = [f'XLA_FLAGS="{stage.flags}" writes the dumps needed.'] if stage is not None else []
        parts = (line.partition(": ") for line in skipped)
        groups = grouped((text, name) for name, _, text in parts).items()
        flags = [f"{listing(names, 3)}: {text}" for text, names in groups] + flags
        raise HlofuseError("\n".join(["nothing to verify:", *flags]))
    return cases, skipped


def _corpus_case(path: Path, target: str, until: Until) -> Case:
    if until == "end":
        before, final = corpus_file(path, "before"), corpus_file(path, "after_optimizations")
        if before is None or final is None:
            raise HlofuseError(f"{printable(str(path))} has before.hlo but no after_optimizations.hlo")
        return Case(path.name, before, final)
    passes = sorted(
        (int(m[1]), name_of_run(m[2], target), p)
        for p in path.iterdir()
        if (m := _NUMBERED.fullmatch(p.name))
    )
    before, after = corpus_file(path, "before"), corpus_file(path, "after")
    if before is None or after is None:
        raise HlofuseError(f"{printable(str(path))} has before.hlo but no after.hlo")
    if not passes and before.read_bytes() != after.read_bytes():
        return Case(path.name, before, after, record=Companions(before).record)  # without the steps between
    recorded = FUSION_STAGES[target].passes if target in FUSION_STAGES else None
    return Case(
        path.name,
        before,
        after,
        tuple((name, p) for _, name, p in passes),
        recorded,
        Companions(before).record,
    )


def name_of_run(name: str, target: str) -> str:
    """Pass and run in the form of dump directories, of `PASS` or `PIPELINE.PASS-RUN`."""
    m = _OF_PIPELINE.fullmatch(name)
    if m is None or target not in FUSION_STAGES:
        return name
    passes = [step.name for step in TARGETS[target].steps]
    return FUSION_STAGES[target].name_of_run(passes, m[1], m[2], int(m[3] or 1))


def _dumped_case(module: DumpedModule, label: str, target: str, wanted: list[str]) -> Case:
    """HlofuseError where the directory lacks the input of the passes, or every result of them."""
    stage = FUSION_STAGES[target]
    before, passes = module.stages(target, wanted)
    files = module.between
    first = next(k for k, f in enumerate(files) if f.path == before)
    following = next((f for f in files if f.pipeline == stage.next_pipeline), None)
    if following is None or following.after != "pipeline-start":
        following = None
    if _is_complete(module, stage.pipelines, first, following):
        return Case(
            label,
            before,
            passes[-1][1] if passes else before,
            tuple(passes),
            record=Companions(before).record,
        )
    if following is not None and stage.next_follows:
        after = following.path
    elif passes:
        after = passes[-1][1]
    else:
        raise HlofuseError(
            f"{printable(module.label)} has no dump after a fusion pass of target {target}.\n"
            f'Run the program again with XLA_FLAGS="{stage.flags}".'
        )
    doubt = None
    if files[first].pipeline not in stage.pipelines:
        doubt = f"The dump at the fusion input may be missing: the replay starts at {printable(before.name)}."
    return Case(label, before, after, tuple(passes), None, Companions(before).record, False, doubt)


def _is_complete(module: DumpedModule, pipelines: Strings, first: int, following: DumpFile | None) -> bool:
    """True if every pass that changed the module before `following` (the next pipeline) left a dump. XLA
    dumps the module after a pass and where a pipeline starts, if `--xla_dump_hlo_pass_re` matches the pass
    before or after; for `.*` only passes that changed the module. The start of a pipeline changes nothing: if
    its dump differs from the one before, a pass between left none. Dumps of one module have one size."""
    files = module.between
    starts = [k for k in range(1, first + 1) if files[k].after == "pipeline-start"]
    if following is None or len(starts) < 2 or not any(files[k].pipeline in pipelines for k in starts):
        return False
    starts.append(files.index(following))
    sizes = [f.path.stat().st_size for f in files]
    return all(sizes[k - 1] == sizes[k] for k in starts)
