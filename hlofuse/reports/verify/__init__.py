"""Our replay against what XLA did."""

from .cases import Case as Case
from .cases import Until as Until
from .cases import find_cases as find_cases
from .verify import verify as verify
