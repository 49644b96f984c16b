"""XLA's time model compared with a profile."""
