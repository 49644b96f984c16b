"""XLA:CPU as the judge of a module: it compiles, counts and runs a prediction."""
