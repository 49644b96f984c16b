"""Passes that only XLA:GPU runs ahead of fusion, and its pipeline."""
