"""The tries of a search, sequences of moves, and the results after XLA's passes. A move is an action
(`actions.toml`) or an XLA flag. Actions run before XLA's passes; flags disable some."""

import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from hashlib import sha256
from typing import Literal

from hlofuse.account.account import Account, scaled_time
from hlofuse.account.measured import NO_MEASURED_TIME
from hlofuse.account.replaying import compiled, final_account
from hlofuse.compilation import Compilation, ReplayConfig
from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.cost.gpu.summary_table import SharedTables
from hlofuse.format import fields
from hlofuse.ir import HlofuseError, Json, Module, Record, copy_module, packaged, print_module, replace
from hlofuse.passes.algebraic.context import Options
from hlofuse.passes.algebraic.simplifier import AlgebraicSimplifier
from hlofuse.passes.base import FixedPoint, Pass, Pipeline, UnimplementedPass
from hlofuse.passes.cse import HloCSE
from hlofuse.passes.dot.dot_merger import DotMerger
from hlofuse.passes.reduction import TreeReductionRewriter
from hlofuse.passes.registry import PassLists
from hlofuse.pipelines.flags import DEFAULT_KINDS, DISABLED, YNN_KINDS, joined, parse_flags
from hlofuse.pipelines.targets import OPTION_FLAGS, TARGETS, Stage, before_fusion
from hlofuse.rules.catalogue import catalogue
from hlofuse.trace import Recorder

ActionKind = Literal["simplify", "expand", "merge"]
_PAIRS = "XLA's dumps"
_CPU = Options(supports_non_canonical_dots=False, executing_on_cpu=True)


class Action(Record):
    kind: ActionKind  # Its main effect: fewer or cheaper instructions, several for one, one for several
    step: Pass
    opcodes: tuple[str, ...]  # Without one of these in the module, nothing changes; empty for no condition
    name: str  # XLA's name with the options that differ from the pass's own
    evidence: str  # The check it passed: XLA's modules around the pass, or small cases with XLA's answer

    def applies(self, opcodes: Iterable[str]) -> bool:
        """False where a module of these opcodes stays as it is for sure."""
        return not self.opcodes or not set(self.opcodes).isdisjoint(opcodes)

    def run(self, module: Module) -> bool:
        """Run it on the module in place; True if that changed anything."""
        return self.step.run(module, Recorder())


_LISTS = PassLists("", {})
_OWN: dict[str, Pass] = {
    "algsimp": AlgebraicSimplifier(_CPU),
    "algsimp(supports_non_canonical_dots=true)": AlgebraicSimplifier(Options()),
    "algsimp(dot_strength_reduction=false)": AlgebraicSimplifier(
        replace(_CPU, dot_strength_reduction=False, dot_to_multiply=False)
    ),
    "cse": HloCSE(layout_sensitive=False, only_fusion_computations=False),
    "dot-merger": DotMerger(64 << 20),
    "tree_reduction_rewriter": TreeReductionRewriter(lambda x: False),
}
"""Passes with options that no text holds, by the names of their actions."""


def _action(row: Json) -> Action:
    name = row["name"]
    step = _OWN[name] if name in _OWN else _LISTS.step(name)
    return Action(row["kind"], step, tuple(row.get("opcodes", ())), name, row.get("evidence", _PAIRS))


_TABLE = packaged(__file__, "actions")
ACTIONS: dict[str, Action] = {a.name: a for a in map(_action, _TABLE["actions"])}
_NAMES = {a.step.name for a in ACTIONS.values()}


def default_order(target: str, device: DeviceDescription | None = None) -> Pass:
    """XLA's order of these passes before fusion, fixed points included."""
    return Pipeline(target, [s for p in before_fusion(target, device) for s in _reduce(p)])


def _reduce(step: Pass) -> list[Pass]:
    if isinstance(step, Pipeline):
        inner = [s for x in step.steps for s in _reduce(x)]
        return [replace(step, steps=inner)] if inner else []
    if isinstance(step, FixedPoint):
        return [replace(step, of=s) for s in _reduce(step.of)]
    return [step] if step.name in _NAMES and not isinstance(step, UnimplementedPass) else []


Objective = Literal["time", "measured-time", "kernels", "bytes", "ops", "peak-memory"]
Kind = Literal["passes", "flags"]
Moves = tuple[str, ...]
_REMEMBERED = 256  # modules of sequences at hand to go on from
_REPEATS = 4  # Sequences that a method may propose, repeated ones too, for each that counts as a try
_NEVER = float("inf")
TIMES = ("time", "measured-time")
SAME = 0.0005  # of a figure: a report shows no smaller change
FIELDS = {"time": "us", "measured-time": "scaled_us", "peak-memory": "peak_temporary_bytes"}
"""Field names in a `Score`, where the objective has another name."""


class Score(Record):
    ops: int  # Instructions of all computations as the actions leave it, before XLA's own passes
    lowered_ops: int  # The same at the input of fusion
    kernels: int
    launches: int
    bytes: int
    us: float | None  # None without a device
    scaled_us: float | None
    """Measured time, scaled where kernels change; None without a profile and where nothing says it."""
    floor_us: float  # The part of it for which there is only a lower bound
    peak_temporary_bytes: int
    bounded_work: Mapping[tuple[str, ...], int]  # Kernels with only a lower bound (`Account.bounded_work`)

    def by(self, objective: Objective) -> float:
        """The minimized figure of the objective; infinite for an unknown time."""
        found: float | None = getattr(self, FIELDS.get(objective, objective))
        return _NEVER if found is None else found

    def to_json(self) -> Json:
        """Every field under its own name, `time_us` for the time."""
        names = "ops lowered_ops kernels launches bytes time_us=us scaled_us~ floor_us peak_temporary_bytes"
        return fields(self, names)


def count_ops(module: Module) -> int:
    return sum(map(len, module.computations))


def default_ops(module: Module, target: str, device: DeviceDescription | None) -> int:
    """Instructions of all computations that XLA's order of the actions leaves."""
    module = copy_module(module)
    default_order(target, device).run(module, Recorder())
    return count_ops(module)


def module_hash(module: Module) -> str:
    """The same for modules of the same text, on any machine."""
    return sha256(print_module(module).encode()).hexdigest()[:16]


class SpentBudget(Exception):
    """The budget of a search is used up; it never leaves `search`."""


class Space:
    """The moves on one module, and the value of sequences of them; each is worked out once."""

    def __init__(
        self,
        module: Module,
        config: ReplayConfig,
        objective: Objective,
        kinds: Iterable[Kind] = ("passes",),
        attach: Callable[[Compilation], object] | None = None,
    ) -> None:
        """`module` is before optimizations, `config` for the replay after the moves. `attach` joins XLA's own
        replay to a profile. `HlofuseError` where the objective lacks a measured time."""
        self.start = module
        self.config = config
        self.objective = objective
        self.best: Moves = ()
        self.evaluations = self._proposed = 0
        self.deadline = _NEVER
        self.most_evaluations = _NEVER
        self.progress: Callable[[int, float], None] | None = None
        self._modules: OrderedDict[Moves, Module] = OrderedDict({(): module})
        self._values: dict[Moves, float] = {}
        self._scores: dict[tuple[str, Moves], Score | None] = {}
        self._tables = SharedTables()
        self._default_work: Mapping[tuple[str, ...], int] = {}
        self._attach = attach
        self.measured_base: Account | None = None
        """Launches with XLA's own order, with measured times if joined to a profile."""
        kinds = set(kinds)
        flags = self._flags() if "flags" in kinds else ()
        self.moves: Moves = (*(ACTIONS if "passes" in kinds else ()), *flags)
        """Everything that may follow anything."""
        self.default_value = self.value(())
        if objective == "measured-time" and self.default().scaled_us is None:
            raise HlofuseError(NO_MEASURED_TIME)

    def _flags(self) -> list[str]:
        """Passes that change this module and that XLA can do without, left out; and flags about fusion."""
        optional = {a.step.name for a in ACTIONS.values() if a.kind != "expand"}
        optional |= {r.pass_name for r in catalogue().values() if r.flag}
        config = self.config
        changed = Compilation.of(self.start, Stage.BEFORE, config).span(Stage.INPUT).changing_passes
        passes = [f"--{DISABLED}={name}" for name in changed if name in optional]
        options = [OPTION_FLAGS[o] for o in TARGETS[config.target].options if o in OPTION_FLAGS]
        kinds = sorted(DEFAULT_KINDS) if config.build.backend == "cpu" else ()
        return [*passes, *options, *(f"--{YNN_KINDS}=-{kind}" for kind in kinds)]

    def check(self, moves: Moves) -> None:
        """HlofuseError for a move that is neither an action nor a flag."""
        unknown = next((m for m in moves if m not in ACTIONS and not m.startswith("--xla_")), None)
        if unknown is not None:
            raise HlofuseError(f"no pass {unknown!r}; hlofuse passes lists them")
        parse_flags(" ".join(m for m in moves if m not in ACTIONS))

    def module(self, moves: Moves) -> Module:
        """The module after the actions among the moves, to be read only."""
        actions = tuple(m for m in moves if m in ACTIONS)
        at = len(actions)
        while actions[:at] not in self._modules:
            at -= 1
        module = self._modules[actions[:at]]
        for k in range(at, len(actions)):
            changed = copy_module(module)
            module = changed if ACTIONS[actions[k]].run(changed) else module
            self._modules[actions[: k + 1]] = module
        self._modules.move_to_end(actions)
        while len(self._modules) > _REMEMBERED:
            self._modules.popitem(last=False)
            self._modules[()] = self.start
        return module

    def changes(self, moves: Moves, move: str) -> bool:
        """False for an action that would leave the module as it is, and for a flag that is set."""
        if move not in ACTIONS:
            return move not in moves
        before = self.module(moves)
        applies = ACTIONS[move].applies({i.opcode for i in before.instructions()})
        return applies and self.module((*moves, move)) is not before

    def value(self, moves: Moves) -> float:
        """The minimized figure; infinite where XLA could not compile. `SpentBudget` after the limit."""
        self._proposed += 1
        spent = self.evaluations >= self.most_evaluations or self._proposed > _REPEATS * self.most_evaluations
        if spent or time.monotonic() > self.deadline:
            raise SpentBudget
        if moves in self._values:
            return self._values[moves]
        if self.objective == "ops":
            value = float(count_ops(self.module(moves)))
        else:
            score = self.score(moves, with_peak=self.objective == "peak-memory")
            value = _NEVER if score is None else score.by(self.objective)
            if self.objective in TIMES and score is not None:
                self._default_work = score.bounded_work if not moves else self._default_work
                # By another library, or in other shapes: its time is unknown.
                value = value if score.bounded_work == self._default_work else _NEVER
        self._values[moves] = value
        self.evaluations += 1
        best = self._values.get(self.best, _NEVER)
        if (value, len(moves)) < (best, len(self.best)):
            self.best = moves
        if self.progress is not None:
            self.progress(self.evaluations, min(value, best))
        return value

    def fittest(self) -> list[Moves]:
        """The best sequences that were tried, at most 16."""
        return sorted(self._values, key=lambda moves: (self._values[moves], len(moves)))[:16]

    def score(self, moves: Moves, *, with_peak: bool = True) -> Score | None:
        """All figures, peak memory only if asked for; None for what XLA could not compile."""
        module = self.module(moves)
        flags = tuple(sorted({m for m in moves if m not in ACTIONS}))
        key = (module_hash(module), (*flags, str(with_peak)))
        if key not in self._scores:
            self._scores[key] = self._score_of(module, flags, with_peak)
        return self._scores[key]

    def _score_of(self, module: Module, flags: Moves, with_peak: bool) -> Score | None:
        own = joined((*self.config.build.flags, *flags))
        try:
            observed = compiled(module, self.config, own, self._tables)
        except HlofuseError:
            return None
        is_default = module is self.start and not flags
        if is_default and self._attach is not None:
            self._attach(observed.replay)
        account = final_account(observed, with_peak=with_peak)
        self.measured_base = account if is_default else self.measured_base
        totals = account.totals
        return Score(
            count_ops(module),
            count_ops(observed.replay.before),
            totals.kernels,
            totals.launches,
            totals.cost.bytes_accessed,
            totals.us,
            scaled_time(self.measured_base, account) if self.measured_base is not None else None,
            totals.floor_us or 0.0,
            totals.peak_temporary_bytes or 0,
            account.bounded_work,
        )

    def default(self) -> Score:
        """XLA's own compilation to compare with; for the objective `ops` with what its order leaves.
        HlofuseError where the module cannot be compiled as it is."""
        score = self.score(())
        if score is None:
            raise HlofuseError(f"{self.start.name} cannot be lowered for {self.config.target}")
        if self.objective != "ops":
            return score
        return replace(score, ops=default_ops(self.start, self.config.target, self.config.device))
