"""Memory that a scheduled module takes, by XLA's buffer assignment, and the arrays alive at its peak."""

from hlofuse.memory.assignment import Assignment as Assignment
from hlofuse.memory.assignment import LiveArray as LiveArray
from hlofuse.memory.assignment import assign as assign
