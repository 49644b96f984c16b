"""Our replay against what XLA did."""

from .cases import Case as Case
from .cases import Until as Until
from .cases import find_cases as find_cases
from .compare import verify_module as verify_module
from .model import Verdict as Verdict
from .verify import compare_final as compare_final
from .verify import verify as verify
