"""What a what-if run changes: other values for knobs, rules switched off. Empty for XLA as it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hlofuse.rules.catalogue import Knob


@dataclass(frozen=True, slots=True)
class Settings:
    """Overrides for one replay (`--set NAME=VALUE`, `--disable CODE`)."""

    knobs: Mapping[str, float] = field(default_factory=dict)
    disabled: frozenset[str] = frozenset()

    def value(self, knob: Knob) -> float:
        """The knob's value in this run."""
        return self.knobs.get(knob.name, knob.default) if self.knobs else knob.default


AS_XLA = Settings()
