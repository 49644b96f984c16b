"""What a program could change: recipes that XLA has proven, found in a module and tried on it."""
