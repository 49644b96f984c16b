"""The environment: an episode runs passes on a module, and less of it is a reward."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import gymnasium
import numpy as np
from gymnasium import spaces

from hlofuse.gym.benchmark import Source, benchmark, expanded
from hlofuse.gym.observation import counts_array, counts_space, graph_arrays, graph_space
from hlofuse.ir.copy import copy_module
from hlofuse.ir.errors import HlofuseError
from hlofuse.ir.graph import Module
from hlofuse.ir.text.printer import print_module
from hlofuse.search.actions import ACTIONS
from hlofuse.search.space import Objective
from hlofuse.search.strategies import LONGEST

if TYPE_CHECKING:
    from hlofuse.judge.judge import Judgement

STOP = "stop"


class HloPassEnv(gymnasium.Env[Any, int]):
    """Actions are passes of `hlofuse.search.actions`, and "stop"; rewards are relative to a default order.

    With objective "ops" a step's reward is by how much the instructions of all computations decrease, as a
    share of what XLA's order for `baseline` leaves. For other objectives it comes with the end: by how much
    what XLA compiles behind the actions is less than what it compiles alone, as a share of that, and -1 for
    what it could not compile.
    """

    metadata = {"render_modes": ["ansi"], "render_fps": 1}  # noqa: RUF012

    def __init__(
        self,
        modules: Source | Iterable[Source] = "train",
        *,
        objective: Objective = "ops",
        baseline: str = "cpu",
        device: str | None = None,
        observation: Literal["counts", "graph"] = "counts",
        sizes: tuple[int, int] = (2048, 8192),
        actions: Sequence[str] = tuple(ACTIONS),
        most_steps: int = LONGEST,
        render_mode: str | None = None,
    ) -> None:
        """`modules`: "train", "test", "all", names of shipped modules, dumps or modules.

        `baseline` and `device` are the target and device of the default, `sizes` the most nodes and edges of
        a graph, `actions` those to choose from.
        """
        self.sources, self.names = expanded(modules), (*actions, STOP)
        self.objective, self._default_of = objective, (baseline, device)
        self._passes = [ACTIONS[name] for name in actions]
        self.most_steps, self.render_mode, self._sizes = most_steps, render_mode, sizes
        self.action_space = spaces.Discrete(len(self.names))  # type: ignore[assignment]
        self._shows_graph = observation == "graph"
        self.observation_space = graph_space(*sizes) if self._shows_graph else counts_space()

    def reset(self, *, seed: int | None = None, options: Mapping[str, Any] | None = None) -> tuple[Any, Any]:
        """A module by chance, or the one of `options["module"]`, a number in `sources`."""
        super().reset(seed=seed)
        number = (options or {}).get("module", self.np_random.integers(len(self.sources)))
        self.benchmark = benchmark(self.sources[number])
        self.module = copy_module(self.benchmark.module)
        self.steps, self.actions = 0, list[str]()
        self._look()
        return self._observation(), self._info(False)

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Run an action; one that is masked changes nothing."""
        before, stops = self.ops, self.names[action] == STOP
        changed = not stops and not self._idle[action] and self._passes[action].run(self.module)
        self.steps += 1
        if changed:
            self.actions.append(self.names[action])
            self._look()
        elif not stops:
            self._idle[action] = True
        truncated = not stops and self.steps >= self.most_steps
        reward = (before - self.ops) / self.default
        if self.objective != "ops":
            reward = self._gain() if stops or truncated else 0.0
        return self._observation(), reward, stops, truncated, self._info(changed)

    def action_masks(self) -> np.ndarray:
        """False for what changes nothing in this state: its precondition says so, or it was tried."""
        return ~self._idle

    @property
    def ops(self) -> int:
        """Instructions of all computations."""
        return self._counts.total()

    @property
    def default(self) -> int:
        """What the default order leaves of them."""
        return self.benchmark.default_ops(*self._default_of)

    @property
    def state(self) -> dict[str, Any]:
        """As JSON: the module's hash, and the actions that have changed it since."""
        return {"module": self.benchmark.hash, "actions": [*self.actions]}

    @staticmethod
    def replay(module: Source, state: Mapping[str, Any]) -> Module:
        """The module of a state; HlofuseError where that began with another, or has an unknown action."""
        start = benchmark(module)
        if start.hash != state["module"]:
            raise HlofuseError(f"the state is of module {state['module']}, and {start.name} is {start.hash}")
        replayed = copy_module(start.module)
        for name in state["actions"]:
            if name not in ACTIONS:
                raise HlofuseError(f"there is no pass {name!r} to run: hlofuse passes lists them")
            ACTIONS[name].run(replayed)
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
        self._counts = Counter([i.opcode for c in self.module.computations for i in c])
        self._idle = np.array([*(not action.applies(self._counts) for action in self._passes), False])

    def _gain(self) -> float:
        space = self.benchmark.space(self.objective, *self._default_of)
        value = space.value(tuple(self.actions))
        return max(-1.0, (space.default_value - value) / (space.default_value or 1))

    def _observation(self) -> Any:
        counts = counts_array(self._counts, len(self.module.computations), self.steps)
        return {"counts": counts, **graph_arrays(self.module, *self._sizes)} if self._shows_graph else counts

    def _info(self, changed: bool) -> dict[str, Any]:
        return {"module": self.benchmark.name, "ops": self.ops, "default": self.default, "changed": changed}
