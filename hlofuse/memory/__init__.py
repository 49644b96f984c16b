"""Memory that a scheduled module takes, by XLA's buffer assignment, and the arrays alive at its peak."""

from .assignment import Assignment as Assignment
from .assignment import LiveArray as LiveArray
from .assignment import assign as assign
