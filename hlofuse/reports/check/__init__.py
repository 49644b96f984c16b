"""Fusion kept as it is: modules against budgets and a stored baseline (`hlofuse check`)."""

from hlofuse.reports.check.baseline import Baseline as Baseline
from hlofuse.reports.check.baseline import read_baseline as read_baseline
from hlofuse.reports.check.check import Measured as Measured
from hlofuse.reports.check.check import check_modules as check_modules
from hlofuse.reports.check.model import Check as Check
from hlofuse.reports.check.model import Code as Code
from hlofuse.reports.check.model import Finding as Finding
from hlofuse.reports.check.model import Level as Level
from hlofuse.reports.check.model import Profile as Profile
