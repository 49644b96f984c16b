"""Pictures, plots and the page of a report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from hlofuse.format.escape import printable
from hlofuse.library.naming import drawn_name, final_names_of, renamed_kernels, unoptimized_of

if TYPE_CHECKING:
    from hlofuse.account import Observed
    from hlofuse.ir.graph import Module
    from hlofuse.library.program import Program
    from hlofuse.render import Drawing
    from hlofuse.replay import Replay


def drawn(
    report: Program,
    view: str | None,
    *,
    focus: str | None = None,
    open: tuple[str, ...] = (),
    collapse: tuple[str, ...] = (),
    caption: tuple[str, ...] = (),
    **how: Any,
) -> Drawing:
    """`Report.render`: names are any names, and what limits the replay stands in the picture."""
    from hlofuse.render import render
    from hlofuse.reports.common.unoptimized import BRIEF
    from hlofuse.reports.difference.phrases import difference_lines

    listener = report.options.listener
    shown: Module | Replay = report.module
    names: dict[str, str] = {}
    view = view or shown_view(report)
    if view != "before":
        shown, names = report.replay, renamed_kernels(report.replay)
        difference = report.difference
        caption = (
            *((BRIEF,) if report.at_fusion.note else ()),
            *(difference_lines(difference) if difference is not None else ()),
            *caption,
        )
    open, collapse = (
        tuple(drawn_name(shown, view, n, listener) for n in names_) for names_ in (open, collapse)
    )
    with listener.activity("drawing"):
        return render(
            shown,
            view,
            focus=drawn_name(shown, view, focus, listener) if focus is not None else None,
            open=open,
            collapse=collapse,
            caption=caption,
            final_names=names,
            **how,
        )


def shown_view(report: Program) -> str:
    """`after` where fusion can be replayed, else `before`."""
    from hlofuse.inputs import stage_of

    if report.options.takes_any_stage:
        return "after"
    loaded = report.loaded
    stage = stage_of(loaded.module, loaded.target)
    fits = not stage.is_fused and not stage.foreign_to(loaded.target)
    return "after" if fits and loaded.config is not None else "before"


def explored(report: Program, compare_device: str | None, timeline: bool) -> str:
    """`Report.explore`."""
    from hlofuse.explorer import page_html, page_of, passes_of, sequence_of

    observed, listener = report.observed, report.options.listener
    replays = _side_by_side(report, compare_device)
    before = observed.replay.before
    sequence = sequence_of(before) if timeline and Path(report.options.input).is_dir() else None
    passes = None
    if sequence is not None:
        with listener.progress("comparing dumps") as progress:
            passes = passes_of(sequence, before, progress)
    with listener.activity("writing"):
        return page_html(page_of(replays, passes, final_names_of, unoptimized_of))


def _side_by_side(report: Program, other: str | None) -> dict[str, Observed]:
    """The replays of the page, each under what tells it from the others."""
    observed = report.observed
    if other is not None:
        second = report.options.on_device(observed, other)
        same = observed.replay.device == second.replay.device
        return {
            printable(observed.replay.device or "first"): observed,
            printable(second.replay.device or "second") + " (other)" * same: second,
        }
    if observed.xla is not None:
        return {"as XLA": observed.xla, "what if": observed}
    return {"as XLA": observed}
