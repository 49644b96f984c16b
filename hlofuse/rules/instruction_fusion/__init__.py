"""Rules of the fusion driver all targets share (`xla/service/instruction_fusion.cc`): codes IF…"""

from hlofuse.rules.instruction_fusion import driver, duplication, in_place, in_place_slices
from hlofuse.rules.instruction_fusion.question import FusionState, Pair

__all__ = ["FusionState", "Pair", "driver", "duplication", "in_place", "in_place_slices"]
