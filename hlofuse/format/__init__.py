"""Formatting of text output: safe text, units, Markdown tables. No dependencies."""
