"""How the fast path says that a piece of text is the grammar's to read."""

from __future__ import annotations


class Declined(Exception):
    """The text is out of the ordinary; it may be right or wrong."""
