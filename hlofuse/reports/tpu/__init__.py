"""`explain` of the dumps around XLA:TPU's fusion passes."""
