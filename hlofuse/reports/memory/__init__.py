"""`memory`: the memory that a module takes, and what is alive at its peak."""

from .model import MemoryUse, memory_use
