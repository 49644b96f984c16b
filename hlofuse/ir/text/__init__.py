"""HLO text: the grammar, the fast path, the printer."""
