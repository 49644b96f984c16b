"""Passes on what calls what: calls, conditionals, whole computations."""
