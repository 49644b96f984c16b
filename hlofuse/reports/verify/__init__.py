"""Our replay against what XLA did."""

from .cases import Case, Until, find_cases
from .verify import verify
