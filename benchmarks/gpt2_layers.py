"""Programs for `replay_gpu.py --programs`: GPT-2 layers, one after the other (needs jax).

python benchmarks/replay_gpu.py --device v100 --spec v100.txtpb --programs benchmarks/gpt2_layers.py
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

_WIDTH, _HEADS, _BATCH, _LENGTH = 256, 8, 4, 64
_WEIGHTS = {"qkv": (_WIDTH, 3 * _WIDTH), "out": (_WIDTH, _WIDTH), "up": (_WIDTH, 4 * _WIDTH)}
_WEIGHTS |= {"down": (4 * _WIDTH, _WIDTH)}


def _normalized(x: Any) -> Any:
    centered = x - x.mean(axis=-1, keepdims=True)
    return centered * jax.lax.rsqrt((centered**2).mean(axis=-1, keepdims=True) + 1e-5)


def _layer(weights: Any, x: Any) -> Any:
    joint = (_normalized(x) @ weights["qkv"]).reshape(_BATCH, _LENGTH, 3, _HEADS, _WIDTH // _HEADS)
    query, key, value = (joint[:, :, k].swapaxes(1, 2) for k in range(3))
    scores = query @ key.swapaxes(2, 3) * (_WIDTH // _HEADS) ** -0.5
    scores = jnp.where(jnp.tril(jnp.ones((_LENGTH, _LENGTH), bool)), scores, -jnp.inf)
    mixed = (jax.nn.softmax(scores) @ value).swapaxes(1, 2).reshape(x.shape)
    x = x + mixed @ weights["out"]
    return x + jax.nn.gelu(_normalized(x) @ weights["up"]) @ weights["down"]


def _program(layers: int) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    weights = {name: jax.ShapeDtypeStruct(shape, jnp.float32) for name, shape in _WEIGHTS.items()}

    def run(stack: Any, x: Any) -> Any:
        for layer in stack:
            x = _layer(layer, x)
        return x

    return run, ([weights] * layers, jax.ShapeDtypeStruct((_BATCH, _LENGTH, _WIDTH), jnp.float32))


PROGRAMS = {f"gpt2_{layers}_layers": _program(layers) for layers in (6, 24)}
