"""A better order of passes or XLA flags, measured in what runs."""

import math
import time
from typing import Any

from rich.console import Console

from hlofuse.format.terminal import print_command
from hlofuse.inputs.stage import require_input_stage
from hlofuse.ir import HlofuseError
from hlofuse.reports.common.profile import joined_line, profile_json
from hlofuse.search.report import found_json, print_found
from hlofuse.search.space import Space
from hlofuse.search.strategies import result_of, search
from .answer import Answer
from .heads import head_of
from .program import Program
from .questions import METHODS, OBJECTIVES, SPACES, Optimize


def optimized(report: Program, options: Optimize) -> Answer[Any]:
    space, method, seed = options.space, options.method, options.seed
    objective: Any = options.objective
    for name, value, choices in (
        ("space", space, SPACES),
        ("search", method, METHODS),
        ("objective", objective, (None, *OBJECTIVES)),
    ):
        if value not in choices:
            raise HlofuseError(f"{name} {value!r}: expected one of {', '.join(filter(None, choices))}")
    if (stage := report.identity.shown).foreign_to(report.loaded.target):
        require_input_stage(report.module, report.loaded.target, stage)  # it says what there is instead
    loaded = report.before_optimizations("optimize")
    assert loaded.config is not None
    loaded.note_device()
    attach = None if loaded.changes or loaded.profile is None else loaded.attach
    if objective is None:
        objective = "time" if attach is None else "measured-time"
    began = time.monotonic()
    with report.options.listener.progress("searching, seconds") as progress:

        def searching(_tries: int, _best: float) -> None:
            seconds = int(options.seconds)
            progress(min(int(time.monotonic() - began), seconds), seconds)

        kinds: Any = SPACES[:2] if space == "all" else (space,)
        searched = Space(loaded.module, loaded.config, objective, kinds, attach)
        if options.passes is not None:
            searched.check(moves := tuple(options.passes))
            found = result_of(searched, moves, began)
            how = f"as given, measured in {found.seconds:.0f} s"
        else:
            searched.progress = searching
            found = search(searched, method, options.seconds, options.tries or math.inf, seed)
            count = f"{found.evaluations:,} sequences of {' and '.join(kinds)} tried"
            how = f"{count} in {found.seconds:.1f} s ({method}, seed {seed})"
    base: Any = searched.measured_base
    request = {"space": space, "search": method, "seed": seed}
    if objective == "measured-time":
        how = f"{how}\n{joined_line(base.measured)}"
        request |= profile_json(base.measured)

    def draw(console: Console) -> None:
        print_found(found, objective, how, console)
        if options.passes is None and not found.moves and space != "all":
            console.print("\nNot tried: passes and flags together")
            print_command(console, 2, "optimize", *report.options.input_arguments, "--space", "all")

    return Answer(
        "search",
        lambda: found,
        json=lambda data: found_json(data, objective, **request),
        body=draw,
        rows_of="moves",
        entries_of=lambda data: data.steps,
        note=loaded.note,
        heads=[head_of(loaded)],
    )
