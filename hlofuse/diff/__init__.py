"""Compare two modules: instructions by structure, fusions by what they compute."""

from hlofuse.diff.compare import diff as diff
from hlofuse.diff.model import Added as Added
from hlofuse.diff.model import Changed as Changed
from hlofuse.diff.model import Detail as Detail
from hlofuse.diff.model import FusionChange as FusionChange
from hlofuse.diff.model import FusionKind as FusionKind
from hlofuse.diff.model import Kind as Kind
from hlofuse.diff.model import ModuleDiff as ModuleDiff
from hlofuse.diff.model import Moved as Moved
from hlofuse.diff.model import Removed as Removed
