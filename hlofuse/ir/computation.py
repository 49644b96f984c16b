"""`Computation`, until everybody imports it from `hlofuse.ir.graph`."""

from hlofuse.ir.graph import Computation

__all__ = ["Computation"]
