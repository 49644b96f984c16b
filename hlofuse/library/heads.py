"""The first lines of a report: what it rests on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from hlofuse.compilation import Compilation
from hlofuse.inputs import load
from hlofuse.inputs.identity import identify_file
from hlofuse.ir import HlofuseError, Json, replace
from hlofuse.pipelines import TARGETS
from hlofuse.pipelines.targets import Stage
from hlofuse.reports.common.head import Head, NamesSource, not_repeated_in

if TYPE_CHECKING:
    from hlofuse.reports.common.xla_result import XlaResult
    from .loading import Loaded
    from .program import Program

    ReportedModule: TypeAlias = Compilation | Loaded  # A replay, or a module that has been read


def head_of(
    reported: ReportedModule,
    *,
    replayed: bool = True,
    result: XlaResult | None = None,
    names: bool = False,
) -> Head | None:
    """The head of a module that is `replayed`, or taken as it is; None where a library call gave it."""
    identity, config = reported.input.identity, reported.config
    if identity is None:
        return None
    if config is None or not replayed:
        return Head(identity)
    order = reported.order_source if TARGETS[config.target].depends_on_order else None
    if order is not None and identity.shown.name is Stage.BEFORE:
        order = "replayed"
    head = Head(identity, order, reported.input.record is not None, config.build, result)
    if isinstance(reported, Compilation):
        source: NamesSource | None = ("dump" if reported.has_xla_final else "replayed") if names else None
        return replace(head, final_names=source, not_repeated=lambda: not_repeated_in(reported))
    return head


def rests_on(report: Program) -> Json:
    """Note, head and differences of an answer about what runs: the module as it is, or its replay."""
    if report.is_taken_as_it_is:
        return {"note": report.loaded.note, "heads": [head_of(report.loaded, replayed=False)]}
    heads = [head_of(report.replay, names=True)]
    return {"note": report.replayed.note, "heads": heads, "differences": [report.difference]}


def head_of_dump(path: Path) -> Head | None:
    """The head of a dump that is taken as it is; None for one that cannot be read."""
    try:
        return Head(identify_file(load(path)))
    except HlofuseError:
        return None
