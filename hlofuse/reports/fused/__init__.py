"""`explain` of a module after fusion: its fusions, and why two kernels are still two."""
