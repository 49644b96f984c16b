"""Our replay against what XLA did."""

from hlofuse.reports.verify.cases import Case, find_cases
from hlofuse.reports.verify.compare import verify_module
from hlofuse.reports.verify.model import FirstDifference, PassVerdict, Report, Verdict
from hlofuse.reports.verify.verify import verify

__all__ = [
    "Case",
    "FirstDifference",
    "PassVerdict",
    "Report",
    "Verdict",
    "find_cases",
    "verify",
    "verify_module",
]
