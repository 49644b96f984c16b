"""Passes that XLA runs ahead of fusion, one file for each, and the pipelines they stand in."""
