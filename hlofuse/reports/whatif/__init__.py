"""Sweeps over knobs and devices, and the rule that costs a module most."""

from .model import Ranking, Sweep
