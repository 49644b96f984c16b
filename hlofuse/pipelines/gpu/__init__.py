"""XLA:GPU's passes before fusion, as data."""
