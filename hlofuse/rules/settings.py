"""What a what-if run changes: other values for knobs, rules off, rules added. Empty for XLA as it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from hlofuse.releases import Release
from hlofuse.rules.catalogue import Knob, knob_values
from hlofuse.rules.plan import FusionPlan
from hlofuse.rules.verdict import PluginRules


@dataclass(frozen=True, slots=True)
class Settings:
    """Overrides for one replay (`--set NAME=VALUE`, `--disable CODE`, `--rules PACKAGE`)."""

    knobs: Mapping[str, float] = field(default_factory=dict)
    disabled: frozenset[str] = frozenset()
    plugins: PluginRules | None = None
    """Rules that are not XLA's."""
    lifted: bool = False
    """Every refusal that could be disabled is passed over; for the pair that a rule from outside allows."""
    plan: FusionPlan = ()
    """Decisions of the GPU's fusion passes that are taken otherwise."""

    def value(self, knob: Knob) -> float:
        """The knob's value in this run."""
        return self.knobs.get(knob.name, knob.default) if self.knobs else knob.default

    def in_release(self, release: Release) -> Settings:
        """With that release's values of the knobs that nothing overrides."""
        values = knob_values(release)
        return replace(self, knobs={**values, **self.knobs}) if values else self

    def in_pass(self, name: str, target: str) -> Settings:
        """As they hold in one pass (XLA's name) of a target."""
        if self.plugins is None:
            return self
        return replace(self, plugins=self.plugins.in_pass(name, target, self.disabled))


AS_XLA = Settings()
