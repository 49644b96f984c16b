"""Fusion kept as it is: modules against budgets and a stored baseline (`hlofuse check`)."""

from hlofuse.reports.check.baseline import Baseline, read_baseline
from hlofuse.reports.check.check import Measured, check_modules
from hlofuse.reports.check.model import Check, Code, Finding, Level, ModuleCheck, Profile

__all__ = [
    "Baseline",
    "Check",
    "Code",
    "Finding",
    "Level",
    "Measured",
    "ModuleCheck",
    "Profile",
    "check_modules",
    "read_baseline",
]
