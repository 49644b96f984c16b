"""Attribute values as small frozen objects; each names the XLA message it stands for.

What nothing reads (shardings, replica groups, sparsity, statistics and similar) is checked, and stays text.
"""
