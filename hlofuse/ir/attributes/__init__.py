"""Attribute values as small frozen objects; each names the XLA message it stands for. Values that nothing
reads (shardings, replica groups, sparsity, statistics) are checked and stay text."""
