"""Matching of instructions between modules: one key with its strictnesses, and pairs."""
