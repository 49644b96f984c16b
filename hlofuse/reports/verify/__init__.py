"""Our replay against what XLA did."""

from hlofuse.reports.verify.cases import Case, Until, find_cases
from hlofuse.reports.verify.compare import verify_module
from hlofuse.reports.verify.final_kernels import compare_final, verify_final
from hlofuse.reports.verify.model import FinalVerdict, FirstDifference, PassVerdict, Report, Verdict
from hlofuse.reports.verify.verify import verify

__all__ = [
    "Case",
    "FinalVerdict",
    "FirstDifference",
    "PassVerdict",
    "Report",
    "Until",
    "Verdict",
    "compare_final",
    "find_cases",
    "verify",
    "verify_final",
    "verify_module",
]
