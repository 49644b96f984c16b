"""JAX programs for what XLA:CPU does after fusion: loops that become one kernel, barriers, library calls.

Each entry of PROGRAMS is name -> (function, abstract arguments), as in programs.py; DONATED names the
arguments whose memory results may take.
"""

import jax
import jax.numpy as jnp
from arguments import BF16, F16, F32, I32, KEY, S, entering
from jax import lax, random

PROGRAMS = {}
DONATED = {"donated": (0,), "donated_update": (0,)}
program = entering(PROGRAMS)


# ---------------------------------------------------------------- loops over little data
@program(S(4), S(dtype=I32))
def small_while(x, n):
    return lax.while_loop(lambda c: c[1] < n, lambda c: (jnp.sin(c[0]) * 2 + 1, c[1] + 1), (x, 0))[0]


@program(S(8), S(8))
def small_fori(x, y):
    return lax.fori_loop(0, 1000, lambda i, c: (c[0] * c[1] + i, c[1] - c[0] * 0.5), (x, y))


@program(S(8))
def small_scan(x):
    return lax.scan(lambda c, _: (c * 1.5 + 1, c.sum()), x, None, length=10)


@program(S())
def newton(a):
    return lax.while_loop(lambda x: jnp.abs(x * x - a) > 1e-3, lambda x: 0.5 * (x + a / x), a) + 1


@program(S(4), S(dtype=I32))
def small_nested(x, n):
    def inner(y):
        return lax.fori_loop(0, n, lambda i, c: c * 1.1 + i, y)

    return lax.fori_loop(0, n * 2, lambda i, c: inner(c) + 1, x)


@program(S(4), S(64, 64), S(dtype=I32))
def small_and_large_loops(x, m, n):
    a = lax.fori_loop(0, n, lambda i, c: c * 1.1 + i, x)
    b = lax.fori_loop(0, n, lambda i, c: jnp.tanh(c @ c), m)
    return a, b, lax.fori_loop(0, n, lambda i, c: c - a, x)


@program(S(16), S(dtype=I32))
def small_loop_with_sort(a, n):
    return lax.fori_loop(0, n, lambda i, c: jnp.sort(c * 1.5 + i), a)


@program(KEY, S(dtype=I32))
def random_loop(k, n):
    return lax.fori_loop(0, n, lambda i, c: c + random.uniform(random.fold_in(k, i)), jnp.float32(0))


@program(S(64, 64), S(64, 64), S(dtype=I32))
def exchange_in_loop(a, b, n):
    return lax.fori_loop(0, n, lambda i, c: (c[1], c[0]), (a, b))


# ---------------------------------------------------------------- memory and order
@program(S(64, 64), S(64, 64))
def donated(x, y):
    return jnp.sin(x) * y + x, y.sum()


@program(S(1024), S(4), S(dtype=I32))
def donated_update(x, u, i):
    return lax.dynamic_update_slice(x, u, (i,)), x[:3]


@program(S(64, 64), S(64, 64))
def barriers(x, y):
    a, b = lax.optimization_barrier((jnp.sin(x), jnp.cos(y)))
    return a + b, a @ lax.optimization_barrier(a)


@program(S(8), S(8))
def passed_through(x, y):
    return x, y, x + y, x


@program()
def constants():
    return jnp.arange(10), jnp.zeros((3, 3)), jnp.float32(2)


# ---------------------------------------------------------------- libraries and the runtime
@program(S(dtype=F32), S(dtype=F32))
def random_state(a, b):
    return lax.rng_uniform(a, b, (100,))


@program(S(64, 32), S(64, dtype=I32))
def sorts(x, k):
    return jnp.sort(x, axis=0), jnp.argsort(x, axis=1), lax.sort((k, k * 2), num_keys=2), lax.top_k(x, 3)


@program(S(8, 8, dtype=I32), S(3, 3), S(5, 64), S(64, 64, dtype=F16), S(2, 2, dtype=jnp.bool_))
def dots(i, t, a, h, b):
    return i @ i, t @ t, h @ h, jnp.dot(b, b), jnp.einsum("ij,ik->jk", a, a), a @ jnp.ones((64, 1))


@program(S(2, 16, 16, 3), S(3, 3, 3, 8), S(2, 3, 16, 16, dtype=I32), S(8, 3, 3, 3, dtype=I32))
def convolutions(x, k, y, i):
    channels_last, channels_first = ("NHWC", "HWIO", "NHWC"), ("NCHW", "OIHW", "NCHW")
    return (
        lax.conv_general_dilated(x, k, (1, 1), "SAME", dimension_numbers=channels_last),
        lax.conv_general_dilated(y, i, (1, 1), "SAME", dimension_numbers=channels_first),
    )


@program(S(dtype=I32), S(64))
def conditionals(i, x):
    branches = [lambda x: x + 1, lambda x: x * 2, jnp.sort]
    return lax.switch(i, branches, x), lax.cond(i > 3, lambda x: x, lambda x: -x, x)


@program(S(32, 32, dtype=jnp.complex64))
def transforms(x):
    return jnp.fft.fft2(x), jnp.fft.rfft(x.real)


@program(S(8, 8))
def decompositions(x):
    return jnp.linalg.eigh(x @ x.T), jnp.linalg.qr(x)


@program(S(64, dtype=I32), S(100, 8), S(64, 8))
def scatters(i, x, u):
    return x.at[i].add(u), x.at[i].min(u), jax.ops.segment_sum(u, i, 10)


@program(S(64, dtype=BF16), S(64, dtype=jnp.bool_))
def narrow_types(a, d):
    return a * 2 + a, d & ~d, a.astype(F32).sum()
