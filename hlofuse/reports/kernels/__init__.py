"""The emitter or library of each final kernel, with the rule: the data, and a file for each format."""

from .choose import kernel_selection
from .model import Choice, KernelSelection

__all__ = ["Choice", "KernelSelection", "kernel_selection"]
