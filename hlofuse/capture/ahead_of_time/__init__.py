"""What the process that compiles runs, with the user's JAX: Python 3.10, its library and jax only."""
