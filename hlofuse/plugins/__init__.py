"""Rules and fusions from outside: what another package may add to a replay (docs/extending.md).

A package names a tuple of `FusionRule` and `CustomFusion` objects in the entry point group
`hlofuse.rules`. Nothing of it takes part in a replay unless asked for (`--rules NAME`): a replay without
is XLA's.
"""

from hlofuse.plugins.active import ActiveRules, installed_names, load_rules
from hlofuse.plugins.entries import Candidate, CustomFusion, FusionRule, Kernel, KernelCost
from hlofuse.plugins.pattern import Match

__all__ = [
    "ActiveRules",
    "Candidate",
    "CustomFusion",
    "FusionRule",
    "Kernel",
    "KernelCost",
    "Match",
    "installed_names",
    "load_rules",
]
