"""The module that a replay leaves, and replays against XLA's own result, of a module or of a directory."""

import os
from collections.abc import Sequence
from pathlib import Path

from hlofuse.compilation import Compilation, ModuleTexts, PassResult
from hlofuse.compilation.config import release_for
from hlofuse.inputs.choose_target import choose_target, target_of_files
from hlofuse.inputs.companions import Companions
from hlofuse.inputs.ordered import in_creation_order
from hlofuse.inputs.stage import FUSED, StageError
from hlofuse.inputs.wire_format import unique_ids_for
from hlofuse.ir import HlofuseError, Module, OrderSource, Record, Strings, copy_module, print_module
from hlofuse.pipelines import NEEDS_DEVICE, TARGETS, device_of, passes_of
from hlofuse.pipelines.flags import merged, parse_flags
from hlofuse.pipelines.targets import Stage, target_by_flags
from hlofuse.releases import release_of
from hlofuse.reports.verify import Case, Until, find_cases
from hlofuse.reports.verify.model import Report, report_json
from hlofuse.reports.verify.text import print_report
from hlofuse.trace import Event
from .answer import Answer
from .loading import Loaded, require_end
from .options import SILENT, Listener
from .program import Program


def verify(
    path: str | Path,
    after: str | Path | None = None,
    *,
    module: str | None = None,
    target: str | None = None,
    device: str | None = None,
    xla: str | None = None,
    xla_flags: str | None = None,
    option: str | None = None,
    order: OrderSource | None = None,
    ids: str | None = None,
    ties: str = "ours",
    until: Until = "fusion",
    jobs: int | None = 1,
    listener: Listener = SILENT,
) -> Answer[Report]:
    """The agreement of replays with XLA's own results, as `hlofuse verify`: see `data.agrees`. `path` is the
    module before the fusion passes and `after` the one after them, or `path` is a dump directory. `jobs` are
    processes; None for one per CPU. The other options are those of the command."""
    from hlofuse.reports.verify import verify

    path, after = Path(path), Path(after) if after is not None else None
    if target is None:  # what the dumps were made by counts more than what they are asked about
        companions = Companions(path, module)
        chosen = target_of_files(companions) or choose_target(companions, device=device is not None)
        target = chosen.name
    # What is wrong with the call is reported before anything is read.
    passes_of(target, release_of(release_for(target, xla)), option)
    if device is not None:
        device_of(target, device)
    if ids is not None and after is None:
        raise HlofuseError("--ids FILE needs BEFORE AFTER; for a directory give --order xla")
    if until == "end":
        require_end(target, device_of(target, device)[0] if device is not None else None)
    cases, skipped = _cases(path, after, target, option, module, until)
    flags = parse_flags(xla_flags) if xla_flags is not None else ()
    by_flags = _target_by_flags(target, cases, flags, xla if xla != "auto" else None)
    if by_flags != target:
        target = by_flags
        cases, skipped = _cases(path, after, target, option, module, until)
    has_device = device is not None or not TARGETS[target].needs_device
    if not has_device and not any(Companions(c.before).recorded_device for c in cases):
        raise HlofuseError(f"target {target} {NEEDS_DEVICE}")
    if jobs is None:  # of few modules, starting processes would take longer
        jobs = (os.cpu_count() or 1) if len(cases) >= 8 else 1
    with listener.progress("verifying") as progress:
        found = verify(
            cases,
            target=target,
            device=device,
            xla=xla,
            option=option,
            order=order,
            ids=ids,
            until=until,
            ties_from_record=ties == "xla",
            flags=flags,
            jobs=jobs,
            skipped=skipped,
            progress=progress,
        )
    if after is not None and found.verdicts[0].error is not None:
        raise HlofuseError(found.verdicts[0].error)
    return Answer(
        "verification",
        lambda: found,
        json=report_json,
        body=lambda console, every=False: print_report(found, console, every=every),
        rows_of="verdicts",
        heads=[v.head for v in found.verdicts],
    )


def _target_by_flags(target: str, cases: list[Case], flags: Strings, xla: str | None) -> str:
    """The target whose passes the flags of the call and of a capture choose, in the release that it says."""
    companions = Companions(cases[0].before)
    stamp = companions.stamp
    version = xla or (stamp.jaxlib if stamp is not None else None)
    if not version:
        return target
    return target_by_flags(target, release_for(target, version), merged(companions.flags, flags))


def _cases(
    path: Path,
    after: Path | None,
    target: str,
    option: str | None,
    module: str | None,
    until: Until,
) -> tuple[list[Case], list[str]]:
    """The pairs to compare, and the modules of a directory without one."""
    if after is not None:
        if module is not None:
            raise HlofuseError("--module needs a directory, and two files were given")
        if folder := next((p for p in (path, after) if p.is_dir()), None):
            raise HlofuseError(f"{folder} is a directory; give hlofuse verify {folder}, or two files")
        return [Case(path.name, path, after)], []
    if path.is_dir():
        return find_cases(path, target=target, option=option, module=module, until=until)
    if path.exists():
        raise HlofuseError(f"{path}: no result to compare with; give hlofuse verify BEFORE AFTER")
    raise HlofuseError(f"{path} does not exist")


class Replayed(Record):
    loaded: Loaded
    module: Module
    events: Sequence[Event]
    passes: Sequence[PassResult] = ()  # Fusion passes that changed the module, with its text
    not_repeated: Sequence[str] = ()
    note: str = ""
    was_fused: bool = False

    @property
    def head(self) -> str:
        """The comment that says that the text is approximate; empty where it is not."""
        return f"// {self.loaded.note}\n" if self.loaded.note else ""

    @property
    def text(self) -> str:
        return self.head + print_module(self.module)


def replayed_until(report: Program, until: str, with_texts: bool = False) -> Replayed:
    """The module after the fusion passes, or after all with `end`, which takes a fused one too."""
    if until not in ("fusion", "end"):
        raise HlofuseError(f"until {until!r}: expected fusion or end")
    try:
        loaded = report.at_fusion
    except StageError as error:
        if until != "end" or error.stage.name != FUSED:
            raise
        return _finished(report)
    assert loaded.config is not None
    if until == "end":
        require_end(loaded.target, loaded.config.device)
    done = loaded.replay([ModuleTexts()] if with_texts else [])
    passes = [p for p in done.passes if p.changed]
    if until == "fusion":
        return Replayed(loaded, done.after, done.events, passes)
    last = done.span(Stage.SCHEDULED)
    return Replayed(loaded, last.module, [*done.events, *last.events], passes, tuple(last.not_repeated))


def _finished(report: Program) -> Replayed:
    loaded = report.loaded
    loaded.note_device()
    if loaded.config is None:
        raise HlofuseError(loaded.problem)
    if loaded.identity.shown.foreign_to(loaded.target):
        raise HlofuseError(
            f"the module was compiled for another backend than target {loaded.target}; give --target"
        )
    module, note = copy_module(loaded.module), ""
    require_end(loaded.target, loaded.config.device)
    ids = unique_ids_for(module, report.options.ids)
    if ids is None and TARGETS[loaded.target].has_history:
        note = "without XLA's ids (.hlo.pb), fusions of one kind may swap the numbers in their names"
    in_creation_order(module, ids)
    last = Compilation.of(module, Stage.FUSED, loaded.config).span(Stage.SCHEDULED)
    return Replayed(loaded, last.module, last.events, (), tuple(last.not_repeated), note, was_fused=True)
