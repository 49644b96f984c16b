"""`memory`: the memory that a module takes, and what is alive at its peak."""

from .model import MemoryUse as MemoryUse
from .model import memory_use as memory_use
