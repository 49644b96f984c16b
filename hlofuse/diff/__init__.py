"""Compare two modules: instructions by structure, fusions by what they compute."""

from .compare import diff as diff
from .model import Added as Added
from .model import Changed as Changed
from .model import Detail as Detail
from .model import FusionChange as FusionChange
from .model import FusionKind as FusionKind
from .model import Kind as Kind
from .model import ModuleDiff as ModuleDiff
from .model import Moved as Moved
from .model import Removed as Removed
