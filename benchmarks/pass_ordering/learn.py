"""A policy learned on the train split: learn.py counts|graph SEED SECONDS OUT.json [LISTS].

MaskablePPO (sb3-contrib), on opcode counts with a perceptron or on the graph with message passing; with LISTS
(from choose.py) it imitates the best of them on each module first. What comes out is the state in which the
policy, always taking its likeliest action, ends on each module of the test split. Needs gymnasium, torch and
sb3-contrib. States are shared between episodes, so an action runs once in each. Seconds are of the processor.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter, OrderedDict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from gymnasium import spaces
from sb3_contrib import MaskablePPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.vec_env import DummyVecEnv
from torch import nn

from hlofuse.gym.env import NUMBERS, HloPassEnv, benchmark, manifest
from hlofuse.ir.copy import copy_module
from hlofuse.ir.graph import Module
from hlofuse.search.space import ACTIONS

LARGEST, STEPS, SIZES = 750, 16, (1024, 3072)
"""Instructions of a module to learn on, actions in an episode, and nodes and edges of a graph there."""
EPISODES, MEASURED = 8, 1500
"""Episodes with chance on each module of the test split, and how large those are at most."""
torch.set_num_threads(1)


@dataclass(eq=False)
class State:
    """A place in the tree of all sequences on a module; `module` is there while it is remembered."""

    moves: tuple[str, ...]
    counts: Counter[str]
    computations: int
    idle: np.ndarray
    children: dict[int, State] = field(default_factory=dict)
    shown: Any = None


class SharedEnv(HloPassEnv):
    """The same environment with the states of earlier episodes at hand; all in the process share them."""

    remembered = 400
    chosen: int | None = None
    _roots: ClassVar[dict[str, State]] = {}
    _modules: ClassVar[OrderedDict[State, Module]] = OrderedDict()

    def _state_of(self, moves: tuple[str, ...], module: Module) -> State:
        self.module = module
        self._look()
        state = State(moves, self._counts, len(module.computations), self._idle)
        self._modules[state] = module
        while len(self._modules) > self.remembered:
            self._modules.popitem(last=False)
        return state

    def _module_at(self, state: State) -> Module:
        if state not in self._modules:
            module = copy_module(self.benchmark.module)
            for move in state.moves:
                ACTIONS[move].run(module)
            self._modules[state] = module
        self._modules.move_to_end(state)
        return self._modules[state]

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, Any]:
        super(HloPassEnv, self).reset(seed=seed)
        number = int(self.np_random.integers(len(self.sources))) if self.chosen is None else self.chosen
        self.benchmark = benchmark(self.sources[number])
        name, self.steps = self.benchmark.name, 0
        self.default = self.benchmark.default_ops("cpu", None)
        if name not in self._roots:
            self._roots[name] = self._state_of((), self.benchmark.module)
        self._at = self._roots[name]
        return self._show(), {}

    def action_masks(self) -> np.ndarray:
        return ~self._at.idle

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        action, at = int(action), self._at
        self.steps += 1
        ends = action == len(self._passes)
        if not ends and not at.idle[action]:
            if action not in at.children:
                module = copy_module(self._module_at(at))
                if self._passes[action].run(module):
                    at.children[action] = self._state_of((*at.moves, self.names[action]), module)
                else:
                    at.idle[action] = True
            self._at = at.children.get(action, at)
        reward = (at.counts.total() - self._at.counts.total()) / self.default
        return self._show(), reward, ends, not ends and self.steps >= self.most_steps, {}

    def _show(self) -> Any:
        self._counts, self.module = self._at.counts, _Sized(self._at.computations)
        if not self._shows_graph:
            return self._observation()
        if self._at.shown is None:
            self.module = self._module_at(self._at)
            self._at.shown = self._observation()
        return self._at.shown


class _Sized:
    """In a module's place where only the number of its computations is asked for."""

    def __init__(self, computations: int) -> None:
        self.computations = range(computations)


class MessagePassing(BaseFeaturesExtractor):
    """Opcodes, three rounds of messages along and against the edges, sums and means; and the counts."""

    def __init__(self, space: spaces.Dict, width: int = 32) -> None:
        super().__init__(space, 2 * width + space["counts"].shape[0])
        self.opcodes = nn.Embedding(len(NUMBERS) + 1, width)
        self.rounds = nn.ModuleList(nn.Linear(3 * width, width) for _ in range(3))

    def forward(self, shown: dict[str, torch.Tensor]) -> torch.Tensor:
        sizes = shown["sizes"].long()
        batch, most = shown["nodes"].shape
        first = (torch.arange(batch) * most)[:, None]
        there = torch.arange(most) < sizes[:, :1]
        edges = (shown["edges"].long()[..., :2] + first[..., None])[
            torch.arange(shown["edges"].shape[1]) < sizes[:, 1:]
        ]
        place = torch.cumsum(there.flatten(), 0) - 1
        source, target = place[edges].T
        x = self.opcodes(shown["nodes"].long()[there])
        for layer in self.rounds:
            along = torch.zeros_like(x).index_add(0, target, x[source])
            against = torch.zeros_like(x).index_add(0, source, x[target])
            degree = torch.ones(len(x)).index_add(0, source, torch.ones(len(source)))
            x = x + torch.relu(layer(torch.cat([x, along, against / degree[:, None]], -1)))
        owner = torch.arange(batch).repeat_interleave(sizes[:, 0])
        total = torch.zeros(batch, x.shape[1]).index_add(0, owner, x)
        pooled = torch.cat([torch.log1p(torch.relu(total)), total / sizes[:, :1].clamp(min=1)], -1)
        return torch.cat([pooled, shown["counts"]], -1)


class Clock(BaseCallback):
    """Stop when the time is over."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.until = time.process_time() + seconds

    def _on_step(self) -> bool:
        return time.process_time() < self.until


def followed(model: MaskablePPO, name: str, kind: str) -> dict[str, Any]:
    """Where the policy ends on a module, and the best state of that and of eight episodes with chance."""
    env = SharedEnv(name, observation=kind, most_steps=STEPS, sizes=(16384, 49152))
    found, runs = [], []
    for tried in range(1 + EPISODES):
        shown, _ = env.reset()
        ended = False
        while not ended:
            with torch.no_grad():
                choices = model.policy.get_distribution(tensors_of(shown), env.action_masks()[None])
                choice = choices.mode() if tried == 0 else choices.sample()
            shown, _, at_end, truncated, _ = env.step(int(choice))
            ended = at_end or truncated
            runs.append((env._at.counts.total(), env._at.moves))
        found.append(runs[-1])
    (ops, moves), (best, best_moves) = found[0], min(runs, key=lambda r: (r[0], len(r[1])))
    figures = {"ops": ops, "default": env.default, "actions": moves}
    return figures | {"best": {"ops": best, "actions": best_moves}}


def tensors_of(shown: Any) -> Any:
    if isinstance(shown, dict):
        return {k: torch.as_tensor(v[None]) for k, v in shown.items()}
    return torch.as_tensor(shown[None])


def imitated(model: MaskablePPO, names: list[str], lists: list[list[str]], kind: str) -> None:
    """Fit the policy to the best of the lists on each module."""
    env, pairs = SharedEnv(names, observation=kind, most_steps=STEPS, sizes=SIZES), []
    for number in range(len(names)):
        episodes = []
        for moves in lists:
            env.chosen = number
            shown, _ = env.reset(seed=0)
            episode = []
            for move in [*moves, "stop"]:
                action = env.names.index(move)
                before, mask = env._at, env.action_masks().copy()
                later, _, ended, _, _ = env.step(action)
                if env._at is not before or ended:
                    episode.append((shown, mask, action))
                shown = later
            episodes.append((env._counts.total(), len(episode), episode))
        pairs += min(episodes, key=lambda e: e[:2])[2]
    optimizer = torch.optim.Adam(model.policy.parameters(), 1e-3)
    shown = [p[0] for p in pairs]
    if kind == "graph":
        shown = {k: torch.as_tensor(np.stack([s[k] for s in shown])) for k in shown[0]}
    else:
        shown = torch.as_tensor(np.stack(shown))
    masks, actions = np.stack([p[1] for p in pairs]), torch.as_tensor([p[2] for p in pairs])
    for _ in range(40):
        for part in torch.randperm(len(pairs)).split(64):
            batch = {k: v[part] for k, v in shown.items()} if kind == "graph" else shown[part]
            loss = -model.policy.get_distribution(batch, masks[part.numpy()]).log_prob(actions[part]).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


def main(kind: str, seed: int, seconds: float, out: str, imitate: str = "") -> None:
    lists = [json.loads(line) for line in Path(imitate).read_text().splitlines()] if imitate else []
    began = time.process_time()
    names = [m["name"] for m in manifest() if m["split"] == "train" and m["instructions"] <= LARGEST]
    env = DummyVecEnv([lambda: SharedEnv(names, observation=kind, most_steps=STEPS, sizes=SIZES)] * 8)
    graph = {"features_extractor_class": MessagePassing} if kind == "graph" else {}
    model = MaskablePPO(
        "MlpPolicy" if kind == "counts" else "MultiInputPolicy",
        env,
        seed=seed,
        gamma=1.0,
        learning_rate=1e-4 if lists and kind == "graph" else 1e-3,
        n_steps=128 if kind == "counts" else 64,
        batch_size=256 if kind == "counts" else 128,
        n_epochs=6 if kind == "counts" else 4,
        ent_coef=0.0 if lists and kind == "graph" else 0.005,
        policy_kwargs={"net_arch": [128, 128], **graph},
        device="cpu",
    )
    if lists:
        imitated(model, names, lists, kind)
    model.learn(10**9, callback=Clock(seconds - (time.process_time() - began)))
    steps = model.num_timesteps
    print(f"{kind} {seed}: {steps} steps, {time.process_time() - began:.0f} s", flush=True)
    modules = {
        m["name"]: followed(model, m["name"], kind)
        for m in manifest()
        if m["split"] == "test" and m["instructions"] <= MEASURED
    }
    method = f"ppo_{kind}" + ("_imitating" if lists else "")
    best = {name: m.pop("best") for name, m in modules.items()}
    runs = []
    for how, figures in ((method, modules), (f"{method}, best of {EPISODES}", best)):
        share = np.mean([1 - figures[n]["ops"] / m["default"] for n, m in modules.items()])
        print(f"{how} {seed}: {share:.2%} fewer on test", flush=True)
        runs.append({"method": how, "seed": seed, "steps": steps, "modules": figures})
    Path(out).write_text(json.dumps(runs))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), *sys.argv[4:])
