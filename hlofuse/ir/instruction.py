"""`Instruction`, until everybody imports it from `hlofuse.ir.graph`."""

from hlofuse.ir.graph import Instruction

__all__ = ["Instruction"]
