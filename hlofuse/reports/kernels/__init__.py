"""The emitter or library of each final kernel, with the rule: the data, and a file for each format."""

from .model import Choice, KernelSelection, kernel_selection
