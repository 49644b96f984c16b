"""`hlofuse stats`: modules in figures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from hlofuse.cli.common.options import limit_option, report_options
from hlofuse.cli.common.output import Output
from hlofuse.cli.common.replaying import ReplayOptions, replay_options
from hlofuse.cli.common.reporting import head_of

if TYPE_CHECKING:
    from hlofuse.cli.common.reporting import ReportedModule
    from hlofuse.ir.graph import Module
    from hlofuse.reports.common.final_names import LaunchedNames
    from hlofuse.reports.difference.model import Difference


@click.command("stats")
@click.argument("inputs", nargs=-1, required=True, metavar="INPUT...", type=click.Path(allow_dash=True))
@click.option("--after", is_flag=True, help="Replay the fusion passes first and count the result.")
@replay_options
@limit_option(10, "Largest kernels shown; 0 shows all.")
@report_options
def command(
    inputs: tuple[str, ...],
    after: bool,
    limit: int,
    out: Output,
    **request: Any,
) -> int:
    """Count instructions, kernels, fusions, FLOP and bytes of modules at any stage.

    FLOP and bytes include all iterations of loops with a known trip count. In a
    dump directory the module before fusion is counted; with --after, --set, --disable,
    --enable, --rules or --passes, the module after the replayed passes.
    """
    from hlofuse.pipelines import TARGETS
    from hlofuse.reports.stats import statistics
    from hlofuse.reports.stats.json import statistics_json
    from hlofuse.reports.stats.text import print_statistics

    requests = [ReplayOptions(input=path, **request) for path in inputs]
    # A list in JSON is complete: --limit is for people.
    heaviest = None if out.form == "json" else limit or None
    found, differences, heads, notes = [], [], [], []
    replayed = after or requests[0].changes_xla
    for options in requests:
        module, names, difference, reported = _module(options, after or options.changes_xla)
        identity = reported.input.identity
        target = identity.backend.value if identity is not None else "cpu"
        target = target if target in TARGETS else "cpu"
        heads.append(head_of(reported, replayed=replayed, names=names))
        notes.append(reported.input.note)
        found.append(statistics(module, heaviest=heaviest, target=target, names=names))
        differences += [difference] if difference is not None else []
    out.report(
        text=lambda console: print_statistics(found, console),
        json=lambda: statistics_json(found),
        note=next(filter(None, notes), ""),
        heads=heads,
        differences=differences,
        limit=limit,
    )
    return 0


def _module(
    request: ReplayOptions, after: bool
) -> tuple[Module, LaunchedNames | None, Difference | None, ReportedModule]:
    if not after:  # on which device is all the same
        loaded = request.read(any_stage=True, on_note=lambda _: None)
        return loaded.module, None, None, loaded
    from hlofuse.cli.common.naming import final_names_of
    from hlofuse.reports.common.final_names import LaunchedNames
    from hlofuse.reports.difference.model import difference_of

    observed = request.read().observe()
    replay = observed.replay
    names = LaunchedNames(replay, final_names_of(replay))
    return replay.final.module, names, difference_of(observed), replay
