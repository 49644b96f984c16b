"""Who runs each kernel that is left after fusion, and why: the data, and a file for each format."""

from hlofuse.reports.kernels.choose import kernel_selection
from hlofuse.reports.kernels.model import Choice, KernelSelection, Note, Runner

__all__ = ["Choice", "KernelSelection", "Note", "Runner", "kernel_selection"]
