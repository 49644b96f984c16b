"""Fusion kept as it is: modules against budgets and a stored baseline (`hlofuse check`)."""

from .baseline import Baseline, read_baseline
from .check import Measured, check_modules
from .model import Check, Code, Finding, Level, Profile
