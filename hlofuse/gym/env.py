"""The environment: an episode runs passes on a module, and less of it is a reward.

A state is the module's hash and the actions so far; anyone replays it (`HloPassEnv.replay`).
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import gymnasium
import numpy as np
from gymnasium import spaces

from hlofuse.gym.benchmark import Source, benchmark, expanded
from hlofuse.gym.observation import counts_array, counts_space, graph_arrays, graph_space, opcode_counts
from hlofuse.ir.copy import copy_module
from hlofuse.ir.errors import HlofuseError
from hlofuse.ir.graph import Module
from hlofuse.ir.text.printer import print_module
from hlofuse.replay import replay_config
from hlofuse.search.actions import ACTIONS, Action
from hlofuse.search.space import Objective, Space
from hlofuse.search.strategies import LONGEST

if TYPE_CHECKING:
    from hlofuse.judge.judge import Judgement

STOP = "stop"
Observation = Literal["counts", "graph"]
State = dict[str, Any]


class HloPassEnv(gymnasium.Env[Any, int]):
    """Actions are passes of `hlofuse.search.actions`, and "stop"; a reward is relative to a default order.

    With objective "ops" a step's reward is by how much the instructions of all computations decrease, as a
    share of what XLA's order for `baseline` leaves. For other objectives it is at the end of the episode: by
    how much what XLA compiles behind the actions is less than what it compiles alone, as a share of that; -1
    for what it could not compile.
    """

    metadata = {"render_modes": ["ansi"], "render_fps": 1}  # noqa: RUF012

    def __init__(
        self,
        modules: Source | Iterable[Source] = "train",
        *,
        objective: Objective = "ops",
        baseline: str = "cpu",
        device: str | None = None,
        observation: Observation = "counts",
        sizes: tuple[int, int] = (2048, 8192),
        actions: Sequence[str] | None = None,
        most_steps: int = LONGEST,
        render_mode: str | None = None,
    ) -> None:
        """`modules`: "train", "test", "all", names of shipped modules, dumps or modules.

        `baseline` and `device` are the target and device of the default, `sizes` the most nodes and edges
        of a graph, `actions` those to choose from. HlofuseError for an action that there is not.
        """
        self.sources = expanded(modules)
        self.objective, self.baseline, self.device = objective, baseline, device
        self.names = (*(ACTIONS if actions is None else actions), STOP)
        self._passes = _named(self.names[:-1])
        self.most_steps, self.render_mode, self._sizes = most_steps, render_mode, sizes
        self.action_space = spaces.Discrete(len(self.names))
        self._shows_graph = observation == "graph"
        self.observation_space = graph_space(*sizes) if self._shows_graph else counts_space()

    def reset(self, *, seed: int | None = None, options: Mapping[str, Any] | None = None) -> tuple[Any, Any]:
        """A module by chance, or that of `options["module"]`, a number in `sources` or a source itself."""
        super().reset(seed=seed)
        source = (options or {}).get("module")
        if source is None:
            source = int(self.np_random.integers(len(self.sources)))
        self.benchmark = benchmark(self.sources[source] if isinstance(source, int) else source)
        self.module = copy_module(self.benchmark.module)
        self.actions: list[str] = []
        """Those that changed the module."""
        self.steps = 0
        self._look()
        return self._observation(), self._info(False)

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Run an action; one that is masked changes nothing."""
        stops = self.names[action] == STOP
        changed = not stops and bool(self.action_masks()[action]) and self._passes[action].run(self.module)
        self.steps += 1
        before = self.ops
        if changed:
            self.actions.append(self.names[action])
            self._look()
        elif not stops:
            self._idle[action] = True
        truncated = not stops and self.steps >= self.most_steps
        if self.objective == "ops":
            reward = (before - self.ops) / self.default
        else:
            reward = self._gain() if stops or truncated else 0.0
        return self._observation(), reward, stops, truncated, self._info(changed)

    def action_masks(self) -> np.ndarray:
        """False for what changes nothing in this state: its precondition says so, or it was tried."""
        masks = ~self._idle
        for n, action in enumerate(self._passes):
            if masks[n] and not action.applies(self._counts):
                masks[n] = False
        return masks

    @property
    def ops(self) -> int:
        """Instructions of all computations."""
        return self._counts.total()

    @property
    def default(self) -> int:
        """What the default order leaves of them."""
        return self.benchmark.default_ops(self.baseline)

    @property
    def state(self) -> State:
        """As JSON: whence, and which actions since."""
        return {"module": self.benchmark.hash, "actions": list(self.actions)}

    @staticmethod
    def replay(module: Source, state: State) -> Module:
        """The module of a state; HlofuseError where that began with another than `module`."""
        start = benchmark(module)
        if start.hash != state["module"]:
            raise HlofuseError(f"the state is of module {state['module']}, and {start.name} is {start.hash}")
        replayed = copy_module(start.module)
        for action in _named(state["actions"]):
            action.run(replayed)
        return replayed

    def fork(self) -> HloPassEnv:
        """A second environment in the same state; neither changes the other."""
        other = copy.copy(self)
        other.module, other.actions, other._idle = (
            copy_module(self.module),
            [*self.actions],
            self._idle.copy(),
        )
        other._np_random = copy.deepcopy(self._np_random)
        return other

    def validate(self, **how: Any) -> Judgement:
        """Whether the module computes what it did at first, by XLA: `hlofuse.judge.judge`."""
        from hlofuse.judge.judge import judge

        return judge(self.benchmark.module, self.module, **how)

    def render(self) -> str:
        """The module as text."""
        return print_module(self.module)

    def _look(self) -> None:
        self._counts = opcode_counts(self.module)
        self._idle = np.zeros(len(self.names), bool)

    def _gain(self) -> float:
        space = Space(self.benchmark.module, replay_config(self.baseline, self.device), self.objective)
        value = space.value(tuple(self.actions))
        return max(-1.0, (space.default_value - value) / (space.default_value or 1))

    def _observation(self) -> Any:
        counts = counts_array(self._counts, len(self.module.computations), self.steps)
        return {"counts": counts, **graph_arrays(self.module, *self._sizes)} if self._shows_graph else counts

    def _info(self, changed: bool) -> dict[str, Any]:
        return {"module": self.benchmark.name, "ops": self.ops, "default": self.default, "changed": changed}


def _named(names: Iterable[str]) -> list[Action]:
    unknown = [n for n in names if n not in ACTIONS]
    if unknown:
        raise HlofuseError(f"there is no pass {unknown[0]!r} to run: hlofuse passes lists them")
    return [ACTIONS[n] for n in names]


def register() -> None:
    """Enter it into gymnasium's registry."""
    gymnasium.register("hlofuse/PassOrdering-v0", "hlofuse.gym.env:HloPassEnv")
