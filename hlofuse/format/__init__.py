"""Small helpers for what a person reads: safe text, units, markdown tables. No dependencies."""
