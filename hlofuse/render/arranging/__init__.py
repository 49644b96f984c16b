"""Layout of a scene for readability: no cycles, fewer arrows, panels and columns."""
