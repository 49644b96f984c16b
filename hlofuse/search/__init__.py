"""Searching for better orders of passes, XLA flags and fusion plans, measured in what runs."""
