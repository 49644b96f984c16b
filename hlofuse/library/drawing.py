"""Pictures, plots and the page of a program."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from hlofuse.account import Account, KernelTimes, Observed
from hlofuse.compilation import Compilation, ModuleTexts, Span, replay_config
from hlofuse.explorer import Fused, page_html, page_of, passes_of, sequence_of
from hlofuse.format import listing, printable, us_text
from hlofuse.ir import HlofuseError, Module, Strings
from hlofuse.pipelines.targets import Stage
from hlofuse.plot.figure import Plot, plot_kernels, plot_memory, plot_passes
from hlofuse.releases import nearest
from hlofuse.render import Drawing, render
from hlofuse.render.scene import pair_of
from hlofuse.reports.common.head import BRIEF
from hlofuse.reports.common.model import both_names
from hlofuse.reports.common.names import renamed_kernels
from hlofuse.reports.comparison.text import difference_lines, warning_line
from .loading import on_device
from .naming import drawn_names, unoptimized_of
from .program import Program
from .reasons import final_of_tpu


def drawn(
    program: Program,
    view: str | None,
    *,
    focus: str | None = None,
    open: Strings = (),
    caption: Strings = (),
    **how: Any,
) -> Drawing:
    """`Report.render`: names are any names, and what limits the replay stands in the picture."""
    listener = program.options.listener
    shown: Module | Compilation = program.module
    names = {}
    view = shown_view(program, view)
    if view != "before":
        shown, names = program.replay, renamed_kernels(program.replay)
        difference = program.difference
        caption = (
            *((BRIEF,) if program.at_fusion.note else ()),
            *(difference_lines(difference) if difference is not None else ()),
            *caption,
        )
    open = tuple(n for name in open for n in drawn_names(shown, view, name))
    with listener.activity("drawing"):
        about = drawn_names(shown, view, focus) if focus is not None else ()
        how |= {"focus": about, "open": open, "final_names": names, "times": _times(program, view)}
        return render(shown, view, caption=caption, **how)


def _times(program: Program, view: str) -> dict[str, str]:
    """The time of a launch of each kernel at the end of fusion, its kind, and the number of launches."""
    if view == "before" and not program.is_fused:
        return {}
    names = {} if program.is_fused else program.replay.names_at_fusion
    found = {}
    for row in program.account.rows:
        us, kind, is_floor = row.us, "est.", row.is_floor
        if row.measured_us is not None and row.runs:
            us, kind, is_floor = row.measured_us / row.runs, "measured", False
        if us is not None:
            name, often = row.instruction.name, f" × {row.runs:,}" if row.runs > 1 else ""
            found[names.get(name, name)] = f"{kind} {us_text(us, is_floor)}{often}"
    return found


def shown_view(program: Program, view: str | None) -> str:
    """The view that was asked for, else `after` where fusion can be replayed and `before` where it cannot."""
    if view is not None or program.options.takes_any_stage:
        return view or "after"
    loaded = program.loaded
    stage = loaded.identity.shown
    fits = not stage.is_fused and not stage.foreign_to(loaded.target)
    if fits and loaded.config is None:
        program.options.listener.note(f"drawn before fusion; give --device to replay target {loaded.target}")
    return "after" if fits and loaded.config is not None else "before"


def plotted(program: Program, kind: str) -> Plot:
    if kind == "memory":
        if program.account.totals.memory_bytes is None:
            raise HlofuseError("--kind memory needs the module that runs: its dump after optimizations")
        return plot_memory(program.account.module, program.account.memory, program.account.module.name)
    loaded = program.at_fusion
    device = loaded.device
    replay = loaded.replay([ModuleTexts()] if kind == "passes" else [])
    times = (
        KernelTimes(device, replay.config.release, flags=replay.config.build.flags)
        if device is not None
        else None
    )
    alerts: Strings = (warning_line(loaded.changes),) if loaded.changes else ()
    if loaded.note:
        alerts += (BRIEF,)
    pair = pair_of(replay)
    if kind == "passes":
        return plot_passes(replay, times, alerts)
    labels = {final: both_names(final, name) for final, name in replay.names_at_fusion.items()}
    backend = replay.config.build.backend
    account = times.account if times is not None else partial(Account, backend=backend)
    before, after = account(replay.before), account(replay.final)
    return plot_kernels(pair, before, after, replay.names_at_fusion, pair.title, alerts, labels=labels)


def explored(
    program: Program,
    other: Program | None,
    device: str | None,
    release: str | None,
    source: str | None,
    timeline: bool,
) -> str:
    listener = program.options.listener
    program = final_of_tpu(program) or program
    replays: Mapping[str, Observed | Fused] = {}
    if program.is_taken_as_it_is and device is None and release is None:
        replays = _as_they_are([program, *filter(None, [other and (final_of_tpu(other) or other)])])
    replays = replays or _side_by_side(program, other, device, release)
    before = program.module if program.is_fused else program.replay.before
    sequence = sequence_of(before) if timeline and Path(program.options.input).is_dir() else None
    passes = None
    if sequence is not None:
        with listener.progress("comparing dumps") as progress:
            passes = passes_of(sequence, before, progress)
    with listener.activity("writing"):
        page = page_of(replays, passes, unoptimized_of, source)
        html = page_html(page)
    if source is not None:
        embedded = listing([f.name for f in page.files if f.text], 5)
        listener.note(f"the page contains the text of {embedded or 'no source file'}")
    return html


def _as_they_are(programs: Sequence[Program]) -> dict[str, Fused]:
    """The kernels of fused modules, each under what distinguishes it from the other."""
    sides = []
    for program in programs:
        loaded, account = program.loaded, program.account_as_it_is
        config = loaded.config or replay_config("cpu", xla=loaded.release.name)
        replay = Compilation(loaded.input, config)
        replay.spans[Stage.FUSED] = Span(program.module)
        replay.spans[Stage.SCHEDULED] = Span(account.module)
        times = account if loaded.device is None else KernelTimes(loaded.device, loaded.release)
        sides.append(Fused(replay, account, program.verdict_as_it_is, times.kernel))
    labels = _labels(*sides) if len(sides) > 1 else ["as it is"]
    return dict(zip(labels, sides, strict=True))


def _side_by_side(
    program: Program, other: Program | None, device: str | None, release: str | None
) -> dict[str, Observed]:
    """The replays of the page, each under what distinguishes it from the other."""
    observed = program.observed
    if other is None and device is None and release is None:
        return {"as XLA": observed.xla, "what if": observed} if observed.xla else {"as XLA": observed}
    if release is not None:
        release, note = nearest(release)
        program.options.listener.note(note)
    second = other.replayed if other is not None else on_device(program.options, observed, device, release)
    return dict(zip(_labels(observed, second), (observed, second), strict=True))


def _labels(first: Observed | Fused, second: Observed | Fused) -> tuple[str, str]:
    """The differences, at most two of device, release and the parts of the path."""
    sides = []
    for replay in (first.replay, second.replay):
        path = Path(replay.before.filename or "").parts
        sides.append((replay.device or replay.target, f"XLA {replay.config.release.name}", *reversed(path)))
    pairs = [pair for pair in zip(*sides, strict=False) if pair[0] != pair[1]] or [("first", "second")]
    one, other = zip(*pairs[:2], strict=True)
    return printable(" · ".join(one)), printable(" · ".join(other))
