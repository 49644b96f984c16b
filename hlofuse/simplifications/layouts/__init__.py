"""Layout assignment: which order in memory each array gets (`xla/service/layout_assignment.cc`).

One mechanism for all targets; `cpu.py` and `gpu.py` say what theirs ask for.
"""
