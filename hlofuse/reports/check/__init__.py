"""Fusion kept as it is: modules against budgets and a stored baseline (`hlofuse check`)."""

from .baseline import Baseline as Baseline
from .baseline import read_baseline as read_baseline
from .check import Measured as Measured
from .check import check_modules as check_modules
from .model import Check as Check
from .model import Code as Code
from .model import Finding as Finding
from .model import Level as Level
from .model import Profile as Profile
