"""The loss of a small language model: the program of docs/tutorial.md."""

import timeit

import jax
import jax.numpy as jnp

VOCABULARY, WIDTH, TOKENS = 4096, 256, 512


def embed(table, ids):
    return jax.nn.one_hot(ids, VOCABULARY) @ table


def normalize(x):
    return x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-6)


def loss(table, weights, ids, labels):
    hidden = jnp.tanh(normalize(embed(table, ids)) @ weights)
    log_probabilities = jax.nn.log_softmax(hidden @ table.T)
    picked = jnp.sum(jax.nn.one_hot(labels, VOCABULARY) * log_probabilities, axis=-1)
    return -jnp.mean(picked)


def example():
    keys = jax.random.split(jax.random.key(0), 3)
    table = jax.random.normal(keys[0], (VOCABULARY, WIDTH)) * 0.02
    weights = jax.random.normal(keys[1], (WIDTH, WIDTH)) * 0.1
    ids = jax.random.randint(keys[2], (TOKENS,), 0, VOCABULARY)
    return table, weights, ids, jnp.roll(ids, -1)


if __name__ == "__main__":
    arguments, compiled = example(), jax.jit(loss)
    print(f"loss {compiled(*arguments):.4f}")
    calls = timeit.repeat(lambda: compiled(*arguments).block_until_ready(), number=10, repeat=10)
    print(f"{min(calls) * 100:.1f} ms a call")
