"""A gate for each row, then a loss: what this example keeps an eye on."""

import jax
import jax.numpy as jnp


def gated(x, gate):
    """x: f32[rows, columns]; gate: f32[rows]."""
    scale = gate
    return x * scale[:, None] + 1.0


def loss(x, gate, y):
    """Mean squared error of the gated rows."""
    return jnp.mean((gated(x, gate) - y) ** 2)


if __name__ == "__main__":
    x, gate = jax.ShapeDtypeStruct((512, 1024), "float32"), jax.ShapeDtypeStruct((512,), "float32")
    jax.jit(gated).lower(x, gate).compile()
    jax.jit(loss).lower(x, gate, x).compile()
