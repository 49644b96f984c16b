"""The emitter or library of each final kernel, with the rule: the data, and a file for each format."""

from hlofuse.reports.kernels.choose import kernel_selection
from hlofuse.reports.kernels.model import Choice, KernelSelection, Note, Runner

__all__ = ["Choice", "KernelSelection", "Note", "Runner", "kernel_selection"]
