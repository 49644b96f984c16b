"""Walks, holes in lists, and what else the mechanisms share."""
