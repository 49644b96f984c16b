"""Our replay against what XLA did."""

from hlofuse.verifier.cases import Case, find_cases
from hlofuse.verifier.compare import verify_module
from hlofuse.verifier.verdicts import Difference, PassVerdict, Report, Verdict
from hlofuse.verifier.verify import verify

__all__ = [
    "Case",
    "Difference",
    "PassVerdict",
    "Report",
    "Verdict",
    "find_cases",
    "verify",
    "verify_module",
]
