"""Passes on sorts and on the greatest elements."""
