"""XLA:CPU as the judge of a module: it compiles, counts and runs what hlofuse only predicts."""
