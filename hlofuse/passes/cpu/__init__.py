"""Passes that only XLA:CPU runs ahead of fusion, and its pipeline."""
