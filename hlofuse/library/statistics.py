"""The answer of `stats`: modules in figures. It loads neither costs nor a replay unless one is needed."""

from collections.abc import Sequence
from functools import partial

from hlofuse.format.terminal import Page
from hlofuse.pipelines import TARGETS
from hlofuse.reports.stats import ModuleStatistics, print_statistics, statistics, statistics_json
from .answer import Answer
from .heads import head_of
from .program import Program
from .questions import Stats


def stats(reports: Sequence[Program], options: Stats) -> Answer[list[ModuleStatistics]]:
    """The answer of `stats`; `after`, a change, or a profile of a module before fusion replays first."""
    found, heads, notes, differences = [], [], [], []
    for report in reports:
        given = report.options
        if options.after or given.changes_xla or (given.profile is not None and not report.is_fused):
            replay = report.replay
            names, module, note = replay.names_at_fusion, replay.final, replay.input.note
            head = head_of(replay, names=True)
            differences.append(report.difference)
        else:
            names, module, note = None, report.module, report.loaded.note
            head = head_of(report.loaded, replayed=False)
        backend = report.identity.backend.value
        target = backend if backend in TARGETS else "cpu"
        found.append(partial(statistics, module, target=target, names=names))
        heads.append(head)
        notes.append(note)

    def draw(console: Page) -> None:
        print_statistics([s(heaviest=console.limit or None) for s in found], console)

    return Answer(
        "stats",
        lambda: [s(heaviest=None) for s in found],  # a list in JSON is complete: limits are for people
        json=statistics_json,
        body=draw,
        rows_of=lambda document: [k for m in document["modules"] for k in m["heaviest"]],
        entries_of=lambda data: [k for m in data for k in m.heaviest],
        note=next(filter(None, notes), ""),
        heads=heads,
        differences=differences,
    )
