"""An episode runs passes on a module, shown by opcode counts or as arrays, and less of it is a reward."""

import copy
import json
import tarfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import gymnasium
import numpy as np
from gymnasium import spaces

from hlofuse.account.measured import attach
from hlofuse.compilation import replay_config
from hlofuse.inputs.companions import companions_of
from hlofuse.inputs.many import load
from hlofuse.inputs.profile import read_profile
from hlofuse.ir import HlofuseError, Json, Module, Record, copy_module, numbered, parse_module
from hlofuse.ir.opcodes import OPCODES
from hlofuse.search.space import ACTIONS, Objective, Space, default_ops, module_hash
from hlofuse.search.strategies import LONGEST

if TYPE_CHECKING:
    from hlofuse.judge.judge import Judgement

NUMBERS = numbered(sorted(OPCODES))  # The place of an opcode in the counts, and its number in the graph
COUNTS = len(NUMBERS) + 2
Source = str | Path | Module


class Benchmark(Record, eq=False):
    """A module before optimizations, to be read only."""

    name: str
    module: Module
    hash: str

    @cache  # noqa: B019
    def default_ops(self, target: str, device: str | None) -> int:
        """Instructions of all computations that XLA's order of the actions leaves."""
        return default_ops(self.module, target, replay_config(target, device).device)

    @cache  # noqa: B019
    def space(
        self,
        objective: Objective,
        target: str,
        device: str | None,
        profile: str | None,
    ) -> Space:
        """The space of sequences before XLA's own passes; `HlofuseError` without a measured time."""
        times = read_profile(profile) if profile is not None else None
        joined = (lambda replay: attach(replay.final, times)) if times is not None else None
        return Space(self.module, replay_config(target, device), objective, attach=joined)


def expanded(modules: Source | Iterable[Source]) -> list[Source]:
    """The modules, or those of a split ("train", "test", "all")."""
    if modules in ("train", "test", "all"):
        return [m["name"] for m in manifest() if modules in ("all", m["split"])]
    return [modules] if isinstance(modules, str | Path | Module) else list(modules)


@lru_cache(maxsize=256)
def benchmark(source: Source) -> Benchmark:
    """A module, a shipped one by name, or a dump, before optimizations if it has that; else HlofuseError."""
    if isinstance(source, Module):
        return Benchmark(source.name, source, module_hash(source))
    if source in _texts():
        module = parse_module(_texts()[str(source)])
    else:
        module = load(source)
        if (before := companions_of(module).before_optimizations) is not None:
            module = load(before)
    return Benchmark(str(source), module, module_hash(module))


@cache
def manifest() -> list[Json]:
    """Name, family, split, instructions and hash of each shipped module."""
    return list(json.loads((_folder() / "manifest.json").read_text(encoding="utf-8")))


@cache
def _texts() -> dict[str, str]:
    with tarfile.open(_folder() / "modules.tar.xz") as tar:
        return {m.name[:-4]: file.read().decode() for m in tar if (file := tar.extractfile(m)) is not None}


def _folder() -> Path:
    packaged = Path(__file__).parent / "modules"
    return packaged if packaged.is_dir() else Path(__file__).parents[2] / "benchmarks" / "pass_ordering"


END = "stop"


class HloPassEnv(gymnasium.Env[Any, int]):
    """Actions are passes of `hlofuse.search.space`, and "stop"; rewards are relative to a default order. With
    objective "ops" a step's reward is the decrease of instructions in all computations, as a share of those
    that XLA's order for `baseline` leaves. Other objectives count at the end: XLA's compilation after the
    actions against its compilation alone, and -1 where it could not compile."""

    def __init__(
        self,
        modules: Source | Iterable[Source] = "train",
        *,
        objective: Objective = "ops",
        baseline: str = "cpu",
        device: str | None = None,
        profile: str | None = None,
        observation: Literal["counts", "graph"] = "counts",
        sizes: tuple[int, int] = (2048, 8192),
        actions: Sequence[str] = tuple(ACTIONS),
        most_steps: int = LONGEST,
    ) -> None:
        """`modules`: a split, names of shipped modules, dumps or modules. `baseline` and `device` are those
        of the default, `profile` of "measured-time"; `sizes` are the most nodes and edges of a graph."""
        self.sources, self.names = expanded(modules), (*actions, END)
        self.objective, self._default_of, self._profile = objective, (baseline, device), profile
        self._passes = [ACTIONS[name] for name in actions]
        self.most_steps, self._sizes = most_steps, sizes
        self.action_space = spaces.Discrete(len(self.names))  # type: ignore[assignment]
        self._shows_graph = observation == "graph"
        self.observation_space = graph_space(*sizes) if self._shows_graph else counts_space()

    def reset(self, *, seed: int | None = None, options: Mapping[str, Any] | None = None) -> tuple[Any, Any]:
        """A module by chance, or the one of `options["module"]`, a number in `sources`."""
        super().reset(seed=seed)
        number = (options or {}).get("module", self.np_random.integers(len(self.sources)))
        self.benchmark = benchmark(self.sources[number])
        self.module = copy_module(self.benchmark.module)
        self.default = self.benchmark.default_ops(*self._default_of)
        """Instructions that the default order leaves."""
        self.steps, self.actions = 0, list[str]()
        self._look()
        return self._observation(), self._info(False)

    def step(self, action: int) -> tuple[Any, float, bool, bool, Json]:
        """Run an action; one that is masked changes nothing."""
        before, ends = self.ops, self.names[action] == END
        changed = not ends and not self._idle[action] and self._passes[action].run(self.module)
        self.steps += 1
        if changed:
            self.actions.append(self.names[action])
            self._look()
        elif not ends:
            self._idle[action] = True
        truncated = not ends and self.steps >= self.most_steps
        reward = (before - self.ops) / self.default
        if self.objective != "ops":
            reward = self._gain() if ends or truncated else 0.0
        return self._observation(), reward, ends, truncated, self._info(changed)

    def action_masks(self) -> np.ndarray:
        """False for what changes nothing in this state: its precondition says so, or it was tried."""
        return ~self._idle

    @property
    def ops(self) -> int:
        return self._counts.total()

    @property
    def state(self) -> Json:
        """As JSON: the module's hash, and the actions that have changed it since."""
        return {"module": self.benchmark.hash, "actions": [*self.actions]}

    @staticmethod
    def replay(module: Source, state: Mapping[str, Any]) -> Module:
        """The module of a state; HlofuseError where that began with another or names an unknown action."""
        start = benchmark(module)
        if start.hash != state["module"]:
            raise HlofuseError(f"the state is for module {state['module']}, but {start.name} is {start.hash}")
        if unknown := next((name for name in state["actions"] if name not in ACTIONS), None):
            raise HlofuseError(f"the state names {unknown!r}: no such action; ACTIONS has their names")
        replayed = copy_module(start.module)
        for name in state["actions"]:
            ACTIONS[name].run(replayed)
        return replayed

    def fork(self) -> "HloPassEnv":
        """A second environment in the same state; neither changes the other."""
        other = copy.copy(self)
        other.module, other.actions, other._idle = (
            copy_module(self.module),
            [*self.actions],
            self._idle.copy(),
        )
        other._np_random = copy.deepcopy(self._np_random)
        return other

    def validate(self, **how: Any) -> "Judgement":
        """Whether the module computes what it did at first, by XLA: `hlofuse.judge.judge`."""
        from hlofuse.judge.judge import judge

        return judge(self.benchmark.module, self.module, **how)

    def _look(self) -> None:
        self._counts = Counter([i.opcode for c in self.module.computations for i in c])
        self._idle = np.array([*(not action.applies(self._counts) for action in self._passes), False])

    def _gain(self) -> float:
        space = self.benchmark.space(self.objective, *self._default_of, self._profile)
        value = space.value(tuple(self.actions))
        return max(-1.0, (space.default_value - value) / (space.default_value or 1))

    def _observation(self) -> Any:
        counts = counts_array(self._counts, len(self.module.computations), self.steps)
        return {"counts": counts, **graph_arrays(self.module, *self._sizes)} if self._shows_graph else counts

    def _info(self, changed: bool) -> Json:
        return {"module": self.benchmark.name, "ops": self.ops, "default": self.default, "changed": changed}


def counts_array(counts: Counter[str], computations: int, steps: int) -> np.ndarray:
    """log(1 + n) for the instructions of each opcode, then for the computations and the steps so far."""
    return np.log1p(np.array([*map(counts.__getitem__, NUMBERS), computations, steps], np.float32))


def counts_space() -> spaces.Box:
    return spaces.Box(0.0, 32.0, (COUNTS,), np.float32)


def graph_space(nodes: int, edges: int) -> spaces.Dict:
    """`nodes` by opcode, `edges` as (from, to, 1 for a called root), `sizes` and `counts`, cut to fit."""
    return spaces.Dict(
        counts=counts_space(),
        nodes=spaces.Box(0, len(NUMBERS), (nodes,), np.int32),
        edges=spaces.Box(0, max(nodes - 1, 1), (edges, 3), np.int32),
        sizes=spaces.Box(0, max(nodes, edges), (2,), np.int32),
    )


def graph_arrays(module: Module, nodes: int, edges: int) -> Json:
    """The arrays of `graph_space` but for the counts."""
    number = {i: n for n, i in enumerate(i for c in module.computations for i in c) if n < nodes}
    pairs = [
        (number[source], n, int(source.computation is not i.computation))
        for i, n in number.items()
        for source in (*i.operands, *(c.root for c in i.called_computations))
        if source in number
    ][:edges]
    shown, linked = np.zeros(nodes, np.int32), np.zeros((edges, 3), np.int32)
    shown[: len(number)] = [NUMBERS.get(i.opcode, len(NUMBERS)) for i in number]
    linked[: len(pairs)] = np.array(pairs, np.int32).reshape(-1, 3)
    return {"nodes": shown, "edges": linked, "sizes": np.array([len(number), len(pairs)], np.int32)}
