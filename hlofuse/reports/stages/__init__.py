"""Modules that are not the input of the fusion passes: what can be said of them, and what cannot."""
