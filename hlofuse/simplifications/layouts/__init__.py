"""Layout assignment (`xla/service/layout_assignment.cc`): how arrays lie in memory, with copies between."""
