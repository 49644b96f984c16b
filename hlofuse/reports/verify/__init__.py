"""Our replay against what XLA did."""

from hlofuse.reports.verify.cases import Case as Case
from hlofuse.reports.verify.cases import Until as Until
from hlofuse.reports.verify.cases import find_cases as find_cases
from hlofuse.reports.verify.compare import verify_module as verify_module
from hlofuse.reports.verify.model import Verdict as Verdict
from hlofuse.reports.verify.verify import compare_final as compare_final
from hlofuse.reports.verify.verify import verify as verify
