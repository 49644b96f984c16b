"""Passes on gathers and scatters."""
