"""Searching for better orders of passes and XLA flags, measured in what runs."""
