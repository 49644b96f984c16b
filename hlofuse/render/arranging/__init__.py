"""How what is drawn is set out so that it can be read: no cycles, fewer arrows, panels and columns."""
