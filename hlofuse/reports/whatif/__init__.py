"""Sweeps over knobs and devices, and the rule that costs a module most."""

from .model import FixedRule, Point, Ranking, RelaxedRule, Sweep, SweepAxis

__all__ = ["FixedRule", "Point", "Ranking", "RelaxedRule", "Sweep", "SweepAxis"]
