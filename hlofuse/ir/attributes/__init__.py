"""Attribute values as small frozen objects; each names the XLA message it stands for.

`str(value)` is the text XLA prints for it.
"""
