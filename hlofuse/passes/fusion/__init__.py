"""XLA's fusion passes, one file each."""
