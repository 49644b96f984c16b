"""How far XLA's time model is from a profile."""
