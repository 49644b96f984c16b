"""Passes on reductions, of arrays and of windows."""
