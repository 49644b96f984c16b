"""Fusion rules from other packages (docs/extending.md).

A package names a tuple of `FusionRule` objects in the entry point group `hlofuse.rules`. They apply only on
request (`--rules NAME`): a replay without them is XLA's.
"""

from hlofuse.plugins.active import ActiveRules, Candidate, FusionRule, installed_names, load_rules

__all__ = [
    "ActiveRules",
    "Candidate",
    "FusionRule",
    "installed_names",
    "load_rules",
]
