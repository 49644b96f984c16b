"""The compiling process, with the user's JAX: Python 3.10, its library and jax only."""
