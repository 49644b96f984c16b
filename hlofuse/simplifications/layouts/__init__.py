"""Layout assignment (`xla/service/layout_assignment.cc`): how arrays lie in memory, and the copies between."""
