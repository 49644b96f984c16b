"""Shared parts of passes before fusion: making and replacing instructions, shapes, products, values."""
