"""What XLA:GPU runs before its fusion passes, as data."""
