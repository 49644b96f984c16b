"""Sets of words, written as text."""

from __future__ import annotations


def words(text: str) -> frozenset[str]:
    """The set of the words in a text."""
    return frozenset(text.split())
