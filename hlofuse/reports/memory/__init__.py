"""`memory`: the memory that a module takes, and what is alive at its peak."""

from hlofuse.reports.memory.model import AliveArray as AliveArray
from hlofuse.reports.memory.model import MemoryUse as MemoryUse
from hlofuse.reports.memory.model import memory_use as memory_use
