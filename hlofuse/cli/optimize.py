"""`hlofuse optimize`: a better order of passes, XLA flags or fusion plan, measured in what runs."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hlofuse.cli.common.options import (
    input_argument,
    module_option,
    report_options,
    stage_options,
    target_options,
)
from hlofuse.cli.common.output import Output, emit
from hlofuse.cli.common.progress import progress_bar
from hlofuse.cli.common.request import options_of, warn
from hlofuse.ir.errors import HlofuseError
from hlofuse.library.heads import head_of
from hlofuse.library.options import ReplayOptions, is_before_optimizations

if TYPE_CHECKING:
    from hlofuse.library.options import Loaded
    from hlofuse.search.space import Kind, Objective

_METHODS = ("greedy", "beam", "random", "evolve", "mcts", "policy")
_OBJECTIVES = ("time", "kernels", "bytes", "ops", "peak-memory")


@click.command("optimize")
@input_argument
@click.option("--passes", metavar="A,B,…", help="Measure these passes and flags instead of searching.")
@click.option(
    "--search", "method", type=click.Choice(_METHODS), default="evolve", show_default=True, help="How."
)
@click.option(
    "--space",
    type=click.Choice(["passes", "flags", "all", "fusion"]),
    default="passes",
    show_default=True,
    help=(
        "What to change: passes run before XLA's own, XLA_FLAGS that skip passes, both, or fusion decisions."
    ),
)
@click.option(
    "--objective",
    type=click.Choice(_OBJECTIVES),
    help=(
        "What to minimize in the final module; ops counts before XLA's own passes.  [default: time with a"
        " device, else kernels]"
    ),
)
@click.option(
    "--seconds",
    type=click.FloatRange(min=0, min_open=True),
    default=60,
    show_default=True,
    help="Seconds to search.",
)
@click.option("--tries", type=click.IntRange(min=1), help="Maximum number of sequences to try.")
@click.option("--seed", type=int, default=0, show_default=True, help="Random seed.")
@click.option("--policy", metavar="FILE", help="Policy file for --search policy (hlofuse.gym).")
@click.option("--write", metavar="OUT.hlo", type=click.Path(path_type=Path), help="Write the best module.")
@report_options
@module_option
@target_options
@stage_options
def command(
    input: str,
    passes: str | None,
    method: str,
    space: str,
    objective: Objective | None,
    seconds: float,
    tries: int | None,
    seed: int,
    policy: str | None,
    write: Path | None,
    out: Output,
    **request: Any,
) -> int:
    """Search for passes, flags or fusion decisions that make the module in INPUT faster than XLA's defaults.

    Every candidate is replayed to the final kernels and measured there: kernels, bytes, time with lower
    bounds for library calls. The result has no superfluous move. It is XLA's default if nothing
    is better.
    """
    from hlofuse.search.report import found_json, print_found
    from hlofuse.search.space import Space
    from hlofuse.search.strategies import result_of, search

    if (method == "policy") != (policy is not None):
        raise HlofuseError("--search policy needs --policy FILE, and --policy needs --search policy")
    if space == "fusion":
        if passes is not None or policy is not None:
            raise HlofuseError("--space fusion takes neither --passes nor --policy")
        return _plan(options_of(input, request), objective or "time", seconds, seed, write, out)
    loaded = _before_optimizations(options_of(input, request))
    assert loaded.config is not None
    if objective is None:
        objective = "time" if loaded.config.device is not None else "kernels"
    kinds: dict[str, tuple[Kind, ...]] = {
        "passes": ("passes",),
        "flags": ("flags",),
        "all": ("passes", "flags"),
    }
    began = time.monotonic()
    with progress_bar("searching") as progress:
        found_space = Space(loaded.module, loaded.config, objective, kinds[space])
        if passes is not None:
            moves = tuple(p.strip() for p in passes.split(","))
            found_space.check(moves)
            found = result_of(found_space, moves, began)
            how = f"as given, measured in {time.monotonic() - began:.0f} s"
        else:
            found_space.progress = lambda tries, best: progress(_tenths(began), int(10 * seconds))
            chosen = None
            if policy is not None:
                from hlofuse.gym.policy import load_policy

                chosen = load_policy(policy)
            found = search(found_space, method, seconds, tries or math.inf, seed, chosen)
            how = f"{found.evaluations:,} sequences tried in {found.seconds:.0f} s ({method}, seed {seed})"
    if write is not None:
        from hlofuse.ir.text.printer import print_module

        emit(print_module(found_space.module(found.moves)), write)
    out.report(
        text=lambda console: print_found(found, objective, how, console),
        json=lambda: found_json(found, objective, space=space, search=method, seed=seed),
        heads=[head_of(loaded)],
    )
    return 0


def _plan(
    options: ReplayOptions, objective: str, seconds: float, seed: int, write: Path | None, out: Output
) -> int:
    """Search for another fusion plan; the module written is the one after fusion."""
    from hlofuse.ir.text.printer import print_module
    from hlofuse.search.fusion_plan import OBJECTIVES, search_fusion_plan
    from hlofuse.search.report import plan_json, print_plan

    if objective not in OBJECTIVES:
        raise HlofuseError(f"--space fusion takes --objective {', '.join(OBJECTIVES)}")
    loaded = options.read()
    assert loaded.config is not None
    began = time.monotonic()
    with progress_bar("searching") as progress:
        found = search_fusion_plan(
            loaded.input,
            loaded.config,
            objective=objective,
            seconds=seconds,
            seed=seed,
            progress=lambda plans, best: progress(_tenths(began), int(10 * seconds)),
        )
    how = f"{found.plans:,} plans tried in {time.monotonic() - began:.0f} s, seed {seed}"
    if write is not None:
        emit(print_module(found.best.replay.after), write)
    out.report(
        text=lambda console: print_plan(found, objective, how, console),
        json=lambda: plan_json(found, objective, space="fusion", seed=seed),
        note=loaded.note,
        heads=[head_of(loaded)],
    )
    return 0


def _tenths(began: float) -> int:
    """Of a second, since then."""
    return int(10 * (time.monotonic() - began))


def _before_optimizations(options: ReplayOptions) -> Loaded:
    """The module before optimizations: the input, or what lies next to it; HlofuseError without one."""
    from hlofuse.inputs.companions import before_optimizations_of
    from hlofuse.inputs.stage import StageError
    from hlofuse.pipelines import NEEDS_DEVICE

    loaded = options.read(any_stage=True)
    warn(loaded.device_note)
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
    return replace(options, input=str(path), module=None).read(any_stage=True)
