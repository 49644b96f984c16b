"""Changes of a what-if run: values of knobs, disabled and added rules. Empty for XLA as it is.

A fusion plan replaces the cost model and the order of the queue on GPU, never a rule about legality.
Passes evaluate their rules with these settings, in order (`in_force`, `first_verdict`).
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TypeAlias, TypeVar

from hlofuse.ir.errors import HlofuseError, any_of
from hlofuse.ir.graph import Instruction, Module
from hlofuse.releases import Release
from hlofuse.rules.catalogue import Knob, Rule, catalogue, knob_values
from hlofuse.rules.verdict import Verdict

KINDS = {
    "apart": "{p} is not fused",
    "first": "{p} is fused first, whatever the cost",
    "last": "{p} is fused last, whatever the cost",
    "split": "{p} and {c} are not merged into a multi-output kernel",
    "join": "{p} and {c} are merged into a multi-output kernel, whatever the cost",
}
PAIRS = ("split", "join")
PLANNED = Rule(
    "PLAN",
    "The fusion plan does not fuse them",
    outcome=True,
    page={"condition": "The fusion plan decides it."},
)
APART_BY_PLAN = Verdict(PLANNED)


def every_rule() -> dict[str, Rule]:
    """The catalogue by code, with the rule of fusion plans."""
    return {**catalogue(), PLANNED.code: PLANNED}


@dataclass(frozen=True, slots=True, order=True)
class Intervention:
    """A decision that differs from XLA's.

    Instructions have their names at the input of priority fusion. A fusion has that of the consumer that it
    grew from, which does not depend on what was fused before.
    """

    kind: str
    producer: str
    consumer: str = ""  # of `PAIRS` only

    def __str__(self) -> str:
        return KINDS[self.kind].format(p=self.producer, c=self.consumer)


FusionPlan: TypeAlias = tuple[Intervention, ...]
"""Interventions, in order of their priority."""


class PlanInForce:
    """A plan during one replay: it knows which instruction grew from which."""

    def __init__(self, plan: FusionPlan) -> None:
        self._places = {s.producer: (s.kind, k) for k, s in enumerate(plan) if s.kind not in PAIRS}
        self._pairs = {frozenset((s.producer, s.consumer)): s.kind for s in plan if s.kind in PAIRS}
        self._origins: dict[Instruction, str] = {}

    def begin(self, module: Module) -> None:
        """Note the names of the instructions before anything is fused."""
        self._origins = {i: i.name for i in module.instructions()}

    def place(self, producer: Instruction) -> tuple[str, int]:
        """`apart`, `first` with a number, or `last`; empty where XLA decides."""
        return self._places.get(self._origins.get(producer, ""), ("", 0))

    def pair(self, a: Instruction, b: Instruction) -> str:
        """`split` or `join` for two kernels that multi-output fusion may join; else empty."""
        return self._pairs.get(frozenset(self._origins.get(x, x.name) for x in (a, b)), "")


@dataclass(frozen=True, slots=True)
class Settings:
    """Overrides for one replay (`--set NAME=VALUE`, `--disable CODE`)."""

    knobs: Mapping[str, float] = field(default_factory=dict)
    disabled: frozenset[str] = frozenset()
    plan: FusionPlan = ()
    """Decisions of the GPU's fusion passes that are taken otherwise."""

    def value(self, knob: Knob) -> float:
        return self.knobs.get(knob.name, knob.default) if self.knobs else knob.default

    def in_release(self, release: Release) -> Settings:
        """With that release's values of the knobs that nothing overrides."""
        values = knob_values(release)
        return replace(self, knobs={**values, **self.knobs}) if values else self


AS_XLA = Settings()


def parse_settings(
    overrides: Iterable[str],
    disabled: Iterable[str],
    *,
    extra_names: Iterable[str] = (),
) -> Settings:
    """The settings; raises for unknown names and codes, with suggestions.

    `extra_names` are further names for `--set`: the device's numbers.
    """
    overrides, disabled = tuple(overrides), tuple(disabled)
    if not overrides and not disabled:
        return AS_XLA
    rules = catalogue()
    knobs = all_knobs()
    values: dict[str, float] = {}
    for text in overrides:
        name, equals, value = text.partition("=")
        if not equals:
            raise HlofuseError(f"--set {text}: expected NAME=VALUE")
        if name not in knobs:
            names = [*knobs, *extra_names]
            meant = _meant(name, names) or "; hlofuse what-if --knobs lists them"
            raise HlofuseError(f"no knob {name!r}{meant}")
        try:
            values[name] = float(value)
        except ValueError:
            raise HlofuseError(f"--set {text}: {value!r} is not a number") from None
        if math.isnan(values[name]):
            raise HlofuseError(f"--set {text}: {value!r} is not a number")
    codes = [c.upper() for c in disabled]
    for code in codes:
        if code not in rules:
            meant = _meant(code, rules) or " (hlofuse rule lists them)"
            raise HlofuseError(f"no rule {code!r}{meant}")
        if rules[code].fixed:
            raise HlofuseError(f"rule {code} cannot be disabled: {rules[code].fixed}")
    return Settings(values, frozenset(codes))


def all_knobs() -> dict[str, Knob]:
    """Every knob of the catalogue by name."""
    return {k.name: k for r in catalogue().values() for k in r.knobs}


def _meant(word: str, names: Iterable[str]) -> str:
    close = difflib.get_close_matches(word, list(names), n=3, cutoff=0.5)
    return f"; did you mean {any_of(close)}?" if close else ""


Q = TypeVar("Q")
"""The question a pass puts to its rules."""


@lru_cache(maxsize=256)
def in_force(
    rules: tuple[Callable[[Q], Verdict | None], ...], release: Release
) -> tuple[Callable[[Q], Verdict | None], ...]:
    """The rules in that release of XLA, in their order."""
    spans = ((evaluate, getattr(evaluate, "rule", None)) for evaluate in rules)
    return tuple(evaluate for evaluate, rule in spans if rule is None or release.has(rule.span, rule.code))


def first_verdict(
    rules: Iterable[Callable[[Q], Verdict | None]], candidate: Q, settings: Settings
) -> Verdict | None:
    """The answer of the first rule that has one; rules switched off are passed over."""
    for evaluate in rules:
        verdict = evaluate(candidate)
        if verdict is not None and verdict.rule.code not in settings.disabled:
            return verdict
    return None


def pair_refusal(
    rules: Iterable[Callable[[Q], Verdict | None]],
    candidate: Q,
    settings: Settings,
) -> Verdict | None:
    """The same where XLA's rules only ever refuse: None if the pair is allowed."""
    verdict = first_verdict(rules, candidate, settings)
    return None if verdict is None or verdict.allows else verdict
