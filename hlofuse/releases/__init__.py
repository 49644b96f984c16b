"""XLA releases as data: their names and differences."""

from hlofuse.releases.named import ANY as ANY
from hlofuse.releases.named import AROUND_FUSION as AROUND_FUSION
from hlofuse.releases.named import EARLIEST as EARLIEST
from hlofuse.releases.named import NAMED as NAMED
from hlofuse.releases.named import NAMES as NAMES
from hlofuse.releases.named import NEWEST as NEWEST
from hlofuse.releases.named import REFERENCE as REFERENCE
from hlofuse.releases.named import Release as Release
from hlofuse.releases.named import Span as Span
from hlofuse.releases.named import behaviours as behaviours
from hlofuse.releases.named import nearest as nearest
from hlofuse.releases.named import release_of as release_of
