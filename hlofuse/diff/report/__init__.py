"""A ModuleDiff as text, markdown or JSON: one file each."""
