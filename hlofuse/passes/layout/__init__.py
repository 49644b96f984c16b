"""Layout assignment: which order in memory each array gets (`xla/service/layout_assignment.cc`). One
mechanism for all targets; `layout_assignment.py` of `cpu/` and `gpu/` has what each requires."""
