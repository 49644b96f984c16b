"""A better order of passes, XLA flags or fusion plan, measured in what runs."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, get_args

from hlofuse.ir.errors import HlofuseError
from hlofuse.library.answer import Answer
from hlofuse.library.heads import head_of
from hlofuse.library.options import Loaded, ReplayOptions, is_before_optimizations

if TYPE_CHECKING:
    from hlofuse.library.program import Program

_SPACES = {"passes": ("passes",), "flags": ("flags",), "all": ("passes", "flags"), "fusion": ()}


def optimized(
    report: Program,
    space: str = "passes",
    objective: Any = None,
    *,
    passes: Sequence[str] | None = None,
    method: str = "evolve",
    seconds: float = 60,
    tries: int | None = None,
    seed: int = 0,
    policy: str | None = None,
) -> Answer[Any]:
    """`Report.optimize`."""
    from hlofuse.search.fusion_plan import OBJECTIVES, search_fusion_plan
    from hlofuse.search.report import found_json, plan_json, print_found, print_plan
    from hlofuse.search.space import Objective, Space
    from hlofuse.search.strategies import METHODS, result_of, search

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
    loaded = report.at_fusion if plans else _before_optimizations(report.options)
    assert loaded.config is not None
    if objective is None:
        objective = "time" if plans or loaded.config.device is not None else "kernels"
    began = time.monotonic()
    with report.options.listener.progress("searching") as progress:

        def searching(_tries: int, _best: float) -> None:
            progress(int(10 * (time.monotonic() - began)), int(10 * seconds))

        if plans:
            plan = search_fusion_plan(
                loaded.input,
                loaded.config,
                objective=objective,
                seconds=seconds,
                seed=seed,
                progress=searching,
            )
            how = f"{plan.plans:,} plans tried in {time.monotonic() - began:.0f} s, seed {seed}"
            return Answer(
                "search",
                lambda: plan,
                json=lambda data: plan_json(data, objective, space=space, seed=seed),
                body=lambda console: print_plan(plan, objective, how, console),
                rows_of=lambda document: document["changes"],
                entries_of=lambda data: data.changes,
                note=loaded.note,
                heads=[head_of(loaded)],
            )
        kinds: Any = _SPACES[space]
        searched = Space(loaded.module, loaded.config, objective, kinds)
        if passes is not None:
            searched.check(moves := tuple(passes))
            found = result_of(searched, moves, began)
            how = f"as given, measured in {found.seconds:.0f} s"
        else:
            searched.progress, chosen = searching, None
            if policy is not None:
                from hlofuse.gym.policy import load_policy  # gymnasium is optional

                chosen = load_policy(policy)
            found = search(searched, method, seconds, tries or math.inf, seed, chosen)
            how = f"{found.evaluations:,} sequences tried in {found.seconds:.0f} s ({method}, seed {seed})"
    return Answer(
        "search",
        lambda: found,
        json=lambda data: found_json(data, objective, space=space, search=method, seed=seed),
        body=lambda console: print_found(found, objective, how, console),
        rows_of=lambda document: document["moves"],
        entries_of=lambda data: data.steps,
        heads=[head_of(loaded)],
    )


def _before_optimizations(options: ReplayOptions) -> Loaded:
    """The module before optimizations: the input, or what lies next to it; HlofuseError without one."""
    from hlofuse.inputs.companions import before_optimizations_of
    from hlofuse.inputs.stage import StageError
    from hlofuse.pipelines import NEEDS_DEVICE

    loaded = options.read(any_stage=True)
    options.listener.note(loaded.device_note)
    if loaded.config is None:
        raise HlofuseError(f"target {loaded.target} {NEEDS_DEVICE}")
    try:
        if is_before_optimizations(loaded.module, loaded.target):
            return loaded
    except StageError:
        pass
    path = before_optimizations_of(loaded.module.filename)
    if path is None:
        raise HlofuseError(
            "optimize needs the module before optimizations; give its dump or the whole dump directory"
        )
    return replace(options, input=str(path), module=None, given=None).read(any_stage=True)
