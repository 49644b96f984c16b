"""A better order of passes, XLA flags or fusion plan, measured in what runs."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any, get_args

from hlofuse.format.terminal import print_command
from hlofuse.ir.errors import HlofuseError
from hlofuse.library.answer import Answer
from hlofuse.library.heads import head_of
from hlofuse.pipelines import TARGETS
from hlofuse.reports.common.profile import joined_line, profile_json
from hlofuse.search.fusion_plan import OBJECTIVES, search_fusion_plan
from hlofuse.search.policy import load_policy
from hlofuse.search.report import found_json, plan_json, print_found, print_plan
from hlofuse.search.space import Objective, Space
from hlofuse.search.strategies import METHODS, result_of, search

if TYPE_CHECKING:
    from rich.console import Console

    from hlofuse.library.program import Program
    from hlofuse.library.questions import Optimize

_SPACES = {"passes": ("passes",), "flags": ("flags",), "all": ("passes", "flags"), "fusion": ()}


def optimized(report: Program, options: Optimize) -> Answer[Any]:
    """The answer of `optimize`."""
    space, method, passes, policy = options.space, options.method, options.passes, options.policy
    objective: Any = options.objective
    seconds, tries, seed = options.seconds, options.tries, options.seed
    for name, value, choices in (
        ("space", space, _SPACES),
        ("search", method, (*METHODS, "policy")),
        ("objective", objective, (None, *get_args(Objective))),
    ):
        if value not in choices:
            raise HlofuseError(f"{name} {value!r}: expected one of {', '.join(filter(None, choices))}")
    if (method == "policy") != (policy is not None):
        raise HlofuseError("--search policy needs --policy FILE, and --policy needs --search policy")
    plans = space == "fusion"
    if plans and (passes is not None or policy is not None):
        raise HlofuseError("--space fusion takes neither --passes nor --policy")
    if plans and objective not in (None, *OBJECTIVES):
        raise HlofuseError(f"--space fusion takes --objective {', '.join(OBJECTIVES)}")
    loaded = report.at_fusion if plans else report.before_optimizations("optimize")
    assert loaded.config is not None
    if not plans:
        report.options.listener.note(loaded.device_note)
    attach = None if loaded.changes or loaded.profile is None else loaded.attach
    if objective is None:
        timed = plans or loaded.config.device is not None
        objective = "kernels" if not timed else "measured-time" if attach is not None else "time"
    began = time.monotonic()
    with report.options.listener.progress("searching") as progress:

        def searching(_tries: int, _best: float) -> None:
            progress(int(10 * (time.monotonic() - began)), int(10 * seconds))

        if plans:
            found: Any = search_fusion_plan(
                loaded.input,
                loaded.config,
                objective=objective,
                seconds=seconds,
                seed=seed,
                progress=searching,
                attach=attach,
            )
            how = f"{found.plans:,} fusion plans tried in {time.monotonic() - began:.0f} s, seed {seed}"
        else:
            kinds: Any = _SPACES[space]
            searched = Space(loaded.module, loaded.config, objective, kinds, attach)
            if passes is not None:
                searched.check(moves := tuple(passes))
                found = result_of(searched, moves, began)
                how = f"as given, measured in {found.seconds:.0f} s"
            else:
                searched.progress, chosen = searching, None
                if policy is not None:
                    chosen = load_policy(policy)
                found = search(searched, method, seconds, tries or math.inf, seed, chosen)
                count = f"{found.evaluations:,} sequences of {' and '.join(kinds)} tried"
                how = f"{count} in {found.seconds:.0f} s ({method}, seed {seed})"
    base: Any = found.default.account if plans else searched.measured_base
    request: dict[str, Any] = {"space": space, **({} if plans else {"search": method}), "seed": seed}
    if objective == "measured-time":
        how = f"{how}\n{joined_line(base.measured)}"
        request["profile"] = profile_json(base.measured)
    wider = "all" if space in ("passes", "flags") else "fusion" if TARGETS[loaded.target].has_history else ""

    def draw(console: Console) -> None:
        (print_plan if plans else print_found)(found, objective, how, console)
        if passes is None and not plans and not found.moves and wider:
            console.print(
                f"\nNot tried: {'passes and flags together' if wider == 'all' else 'fusion decisions'}"
            )
            print_command(console, 2, "optimize", *report.options.input_arguments, "--space", wider)

    return Answer(
        "search",
        lambda: found,
        json=lambda data: (plan_json if plans else found_json)(data, objective, **request),
        body=draw,
        rows_of=lambda document: document["changes" if plans else "moves"],
        entries_of=lambda data: data.changes if plans else data.steps,
        note=loaded.note,
        heads=[head_of(loaded)],
    )
