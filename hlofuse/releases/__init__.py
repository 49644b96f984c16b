"""XLA releases as data: their names and differences."""

from .named import ANY as ANY
from .named import AROUND_FUSION as AROUND_FUSION
from .named import EARLIEST as EARLIEST
from .named import NAMED as NAMED
from .named import NAMES as NAMES
from .named import NEWEST as NEWEST
from .named import REFERENCE as REFERENCE
from .named import Release as Release
from .named import Span as Span
from .named import behaviours as behaviours
from .named import nearest as nearest
from .named import release_of as release_of
