"""Passes on the types of floats."""
