"""Programs in the slow form of a recipe, as a user writes them."""

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax as L
from jax.nn import one_hot


def several(ids: Any, table: Any, x: Any, d: Any, xs: Any) -> Any:
    rows = one_hot(ids, table.shape[0]) @ table  # kept
    largest = jnp.sort(x, axis=-1)[..., -1]
    return rows, largest, x @ jnp.diag(d), L.map(lambda y: jnp.tanh(y @ y).sum(), xs)


def arguments() -> tuple[Any, ...]:
    f32 = jnp.float32
    return tuple(
        jax.ShapeDtypeStruct(shape, dtype)
        for shape, dtype in [
            ((64,), jnp.int32),
            ((512, 128), f32),
            ((128, 128), f32),
            ((128,), f32),
            ((64, 8, 8), f32),
        ]
    )


def nothing(x: Any) -> Any:
    return 2 * x
