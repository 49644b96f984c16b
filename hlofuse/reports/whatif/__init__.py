"""What-if runs: sweeps over knobs and devices, and the rule that costs a module most.

The folder is not called `what_if`, as the function is: importing it would hide the function.
"""

from hlofuse.reports.whatif.model import FixedRule, Point, Ranking, RelaxedRule, Sweep, SweepAxis
from hlofuse.reports.whatif.run import what_if

__all__ = ["FixedRule", "Point", "Ranking", "RelaxedRule", "Sweep", "SweepAxis", "what_if"]
