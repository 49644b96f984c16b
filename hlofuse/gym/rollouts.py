"""Many episodes at once: in this process, in others, or as tasks of Ray; the same episodes either way."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, Literal

import numpy as np

from hlofuse.gym.env import HloPassEnv, State

Choose = Callable[[Any, np.ndarray, np.random.Generator], int]
"""An action for an observation and its mask."""


@dataclass(frozen=True, slots=True)
class Episode:
    """What came of it; `state` can be replayed on `module`."""

    seed: int
    module: str
    state: State
    reward: float
    ops: int
    default: int
    steps: int


def at_random(observation: Any, mask: np.ndarray, random: np.random.Generator) -> int:
    """Any action that is not masked, "stop" only where there is no other."""
    return int(random.choice(np.flatnonzero(mask[:-1]))) if mask[:-1].any() else len(mask) - 1


def roll_out(
    seeds: Sequence[int],
    options: Mapping[str, Any] | None = None,
    choose: Choose = at_random,
    *,
    jobs: int = 1,
    workers: Literal["processes", "ray"] = "processes",
) -> list[Episode]:
    """An episode for each seed, in their order; `options` are those of `HloPassEnv`.

    With several jobs each is a process here, or a task on the cluster that `ray.init` has joined.
    """
    run = partial(_episodes, dict(options or {}), choose)
    if jobs == 1 and workers != "ray":
        return run(seeds)
    parts = [seeds[k::jobs] for k in range(jobs)]
    if workers == "ray":
        import ray

        task = ray.remote(_episodes)
        done = ray.get([task.remote(dict(options or {}), choose, part) for part in parts])
    else:
        with ProcessPoolExecutor(jobs) as pool:
            done = list(pool.map(run, parts))
    place = {seed: k for k, seed in enumerate(seeds)}
    return sorted(chain(*done), key=lambda e: place[e.seed])


def _episodes(options: dict[str, Any], choose: Choose, seeds: Sequence[int]) -> list[Episode]:
    env = HloPassEnv(**options)
    return [_episode(env, choose, seed) for seed in seeds]


def _episode(env: HloPassEnv, choose: Choose, seed: int) -> Episode:
    observation, info = env.reset(seed=seed)
    total, ended = 0.0, False
    while not ended:
        action = choose(observation, env.action_masks(), env.np_random)
        observation, reward, stopped, truncated, info = env.step(action)
        total, ended = total + reward, stopped or truncated
    return Episode(seed, info["module"], env.state, total, info["ops"], info["default"], env.steps)
