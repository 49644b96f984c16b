"""Layout assignment: which order in memory each array gets (`xla/service/layout_assignment.cc`)."""
