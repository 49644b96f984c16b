"""Attribute values as small frozen objects; each names the XLA message it stands for.

What names devices (shardings, replica groups, domains) is checked when it is read, and stays text.
"""
