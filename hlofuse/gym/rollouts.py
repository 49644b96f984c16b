"""Many episodes at once: in this process, in others, or as tasks of Ray; the same episodes either way."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from hlofuse.gym.env import HloPassEnv

Choose = Callable[[Any, np.ndarray, np.random.Generator], int]  # of an observation and its mask


class Episode(NamedTuple):
    seed: int
    module: str
    state: dict[str, Any]
    reward: float
    ops: int
    default: int
    steps: int


def at_random(observation: Any, mask: np.ndarray, random: np.random.Generator) -> int:
    """Any action that is not masked, "stop" only where there is no other."""
    return int(random.choice(np.flatnonzero(mask[:-1]))) if mask[:-1].any() else len(mask) - 1


def roll_out(
    seeds: Sequence[int],
    options: Mapping[str, Any],
    choose: Choose = at_random,
    *,
    jobs: int = 1,
    ray: Any = None,
) -> list[Episode]:
    """An episode for each seed; `options` are those of `HloPassEnv`. Each job is a process here, or with the
    package `ray` a task on the cluster that `ray.init` has joined."""
    parts = [seeds[k::jobs] for k in range(jobs)]
    if ray is not None:
        task = ray.remote(_episodes)
        done = ray.get([task.remote(options, choose, part) for part in parts])
    elif jobs == 1:
        done = [_episodes(options, choose, seeds)]
    else:
        with ProcessPoolExecutor(jobs) as pool:
            done = list(pool.map(partial(_episodes, options, choose), parts))
    return [done[k % jobs][k // jobs] for k in range(len(seeds))]


def _episodes(options: Mapping[str, Any], choose: Choose, seeds: Sequence[int]) -> list[Episode]:
    env, found = HloPassEnv(**options), []
    for seed in seeds:
        observation, info = env.reset(seed=seed)
        total, ended = 0.0, False
        while not ended:
            action = choose(observation, env.action_masks(), env.np_random)
            observation, reward, stopped, truncated, info = env.step(action)
            total, ended = total + reward, stopped or truncated
        found.append(Episode(seed, info["module"], env.state, total, info["ops"], info["default"], env.steps))
    return found
