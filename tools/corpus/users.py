"""Small programs that isolate one rule each of the order of an array's users.

As in programs.py each entry of PROGRAMS is name -> (function, abstract arguments), to be compiled and never
run. `tests/data/gpu-users.tar.xz` holds what XLA made of them.
"""

import jax
import jax.numpy as jnp
from jax import lax

F32, BF16 = jnp.float32, jnp.bfloat16
PROGRAMS = {}


def S(*shape, dtype=F32):
    return jax.ShapeDtypeStruct(shape, dtype)


def program(*args):
    def add(fn):
        PROGRAMS[fn.__name__] = (fn, args)
        return fn

    return add


def norm(x, g):
    wide = x.astype(F32)
    return (wide * lax.rsqrt(jnp.mean(wide * wide, -1, keepdims=True) + 1e-6) * g).astype(x.dtype)


def clipped(d):
    wide = d.astype(F32)
    return (wide * jnp.minimum(1.0, 1.0 / jnp.sqrt(jnp.sum(jnp.square(wide))))).astype(d.dtype)


def moments(d, m, v):
    return 0.9 * m + 0.1 * d, 0.99 * v + 0.01 * d * d


@program(S(64, 512, dtype=BF16), S(64, 512, dtype=BF16), S(512))
def widened_sum_read_wide_and_narrow(a, b, g):
    x = a + b
    y = x + norm(x, g)
    return y + norm(y, g), y


@program(S(64, 512, dtype=BF16), S(64, 512, dtype=BF16), S(64, 512, dtype=BF16))
def wide_product_read_narrow(d, m, v):
    return moments(clipped(d), m, v)


@program(S(64, 64, dtype=BF16), S(64, 64, dtype=BF16), S(64))
def cast_there_and_back(x, y, g):
    def halves(wide):
        return wide[:, :32] * 2.0, jnp.exp(wide[:, 32:])

    return *halves(norm(x, g).astype(F32)), norm(y, g)


@program(S(256, 512), S(256, 512), S(256, 512))
def divided_and_multiplied(x, y, z):
    return jnp.tanh(x / 30.0) * 30.0, y * 30.0, z / 30.0


@program(S(2, 128, 8, 64), S(2, 128, 2, 64), S(2, 128, 32))
def expanded_once(q, k, angles):
    c = jnp.cos(angles)[:, :, None, :]
    return q[..., :32] * c, k[..., :32] * c


@program(S(128))
def expanded_in_two_ways(x):
    y = jnp.exp(x)
    return y[:, None] * y[None, :]


@program(S(8, 16, 4, 64), S(64))
def summed_once(x, w):
    return clipped(jax.grad(lambda w: jnp.sum(jnp.sin(x * w.reshape(1, 1, 1, 64))))(w))


@program(S(8, 16, 4, 64), S(64))
def summed_again(x, w):
    return clipped(jax.grad(lambda w: jnp.sum(jnp.sin(x * w[None, None, None, :])))(w))


@program(S(2, 128, 512), S(512), S(512), S(512, 512))
def means_of_kept_dimensions(x, g, h, w):
    return jax.grad(lambda x, g, h: jnp.sum(jnp.sin(norm(norm(x, 1.0 + g) @ w, 1.0 + h))), (0, 1, 2))(x, g, h)


@program(S(2, 128, 512, dtype=BF16), *3 * [S(512, dtype=BF16)])
def convert_behind_a_moved_reshape(x, w, m, v):
    def loss(w):
        return jnp.sum(jnp.sin((x.astype(F32) * (1.0 + w.astype(F32))).astype(BF16)).astype(F32))

    return moments(clipped(jax.grad(loss)(w)), m, v)
