"""Rules from outside: what another package may add to a replay (docs/extending.md).

A package names a tuple of `FusionRule` objects in the entry point group
`hlofuse.rules`. Nothing of it takes part in a replay unless asked for (`--rules NAME`): a replay without
is XLA's.
"""

from hlofuse.plugins.active import ActiveRules, Candidate, FusionRule, installed_names, load_rules

__all__ = [
    "ActiveRules",
    "Candidate",
    "FusionRule",
    "installed_names",
    "load_rules",
]
