"""Print how many times faster the change of a recipe is on this machine's CPU.

    measure_recipe.py PAGE

Run by recipes.py with the interpreter whose JAX compiles; it needs nothing of hlofuse.
"""

# mypy: ignore-errors

import sys
import time
from pathlib import Path

import jax
import numpy as np


def random_values(shape):
    values = np.random.default_rng(0).uniform(0.5, 2.0, shape.shape)
    return jax.numpy.asarray(values).astype(shape.dtype)


def fastest(names, side, times=7):
    """Seconds of one run; arguments are copied before each, because it may be given them for good."""
    function = jax.jit(names[side], donate_argnums=names.get(f"donate_{side}", ()))
    given = jax.tree.map(random_values, names.get(f"arguments_{side}", names.get("arguments")))
    best = float("inf")
    for _ in range(times):
        copies = jax.block_until_ready(jax.tree.map(jax.numpy.copy, given))
        start = time.perf_counter()
        jax.block_until_ready(function(*copies))
        best = min(best, time.perf_counter() - start)
    return best


if __name__ == "__main__":
    defined = {}
    exec(Path(sys.argv[1]).read_text(encoding="utf-8").split("```python\n")[1].split("```")[0], defined)
    print(fastest(defined, "before") / fastest(defined, "after"))
