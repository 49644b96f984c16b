"""What if XLA decided otherwise? Sweeps over knobs and devices, and which rule costs a module most.

The folder is not called `what_if`, as the function is: importing it would hide the function.
"""

from hlofuse.reports.whatif.model import Axis, FixedRule, Point, Ranking, RelaxedRule, Sweep
from hlofuse.reports.whatif.run import what_if

__all__ = ["Axis", "FixedRule", "Point", "Ranking", "RelaxedRule", "Sweep", "what_if"]
