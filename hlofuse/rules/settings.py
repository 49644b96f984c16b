"""Changes of a what-if run: values of knobs, disabled and added rules. Empty for XLA as it is. Passes
evaluate their rules with these settings, in order (`in_force`, `first_verdict`)."""

import difflib
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeVar

from hlofuse.ir.errors import HlofuseError, any_of
from hlofuse.ir.record import replace
from hlofuse.releases import Release
from .catalogue import Knob, Rule, catalogue, knob_values
from .verdict import Decision


@dataclass(frozen=True, slots=True)
class Settings:
    """Overrides for one replay (`--set NAME=VALUE`, `--disable CODE`)."""

    knobs: Mapping[str, float] = field(default_factory=dict)
    disabled: frozenset[str] = frozenset()

    def enables(self, rule: Rule) -> bool:
        return rule.code not in self.disabled

    def value(self, knob: Knob) -> float:
        return self.knobs.get(knob.name, knob.default) if self.knobs else knob.default

    def in_release(self, release: Release) -> "Settings":
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
    """The settings; unknown names and codes raise, with suggestions. `extra_names`: the device's numbers."""
    overrides, disabled = tuple(overrides), tuple(disabled)
    if not overrides and not disabled:
        return AS_XLA
    rules = catalogue()
    knobs = all_knobs()
    values = dict[str, float]()
    for text in overrides:
        name, equals, value = text.partition("=")
        if not equals:
            raise HlofuseError(f"--set {text}: expected NAME=VALUE")
        if name not in knobs:
            names = [*knobs, *extra_names]
            meant = (
                _meant(name, names) or "; hlofuse what-if --knobs lists them, those of a device for GPUs only"
            )
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
    return {k.name: k for r in catalogue().values() for k in r.knobs}


def _meant(word: str, names: Iterable[str]) -> str:
    close = difflib.get_close_matches(word, list(names), n=3, cutoff=0.5)
    return f"; did you mean {any_of(close)}?" if close else ""


Q = TypeVar("Q")  # The question a pass puts to its rules


@lru_cache(maxsize=256)
def in_force(
    rules: tuple[Callable[[Q], Decision], ...], release: Release
) -> tuple[Callable[[Q], Decision], ...]:
    """The rules in that release of XLA, in their order."""
    spans = ((evaluate, getattr(evaluate, "rule", None)) for evaluate in rules)
    return tuple(evaluate for evaluate, rule in spans if rule is None or release.has(rule.span, rule.code))


def first_verdict(rules: Iterable[Callable[[Q], Decision]], candidate: Q, settings: Settings) -> Decision:
    """The answer of the first rule that has one; rules switched off are passed over."""
    for evaluate in rules:
        verdict = evaluate(candidate)
        if verdict is not None and verdict.rule.code not in settings.disabled:
            return verdict
    return None


def pair_refusal(
    rules: Iterable[Callable[[Q], Decision]],
    candidate: Q,
    settings: Settings,
) -> Decision:
    """The same where XLA's rules only ever refuse: None if the pair is allowed."""
    verdict = first_verdict(rules, candidate, settings)
    return None if verdict is None or verdict.allows else verdict
