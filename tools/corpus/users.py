"""Small programs that isolate one rule each of the order of an array's users.

As in programs.py each entry of PROGRAMS is name -> (function, abstract arguments), to be compiled and never
run. `tests/data/gpu-users.tar.xz` holds what XLA made of them.
"""

import jax
import jax.numpy as jnp
from arguments import BF16, F32, S, entering
from jax import lax, nn

PROGRAMS = {}
program = entering(PROGRAMS)


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


@program(S(64, 512), S(64, 512))
def clipped_quotient(x, y):
    c = jnp.clip(jnp.mean(jnp.square(x - y), -1, keepdims=True) / 512.0, 0.1, 0.9)
    return (x - y) * c, jnp.log(c), -c, y / 512.0


@program(S(64, 512, dtype=BF16), S(64, 512, dtype=BF16))
def clipped_narrow_quotient(x, y):
    return clipped_quotient(x, y)


@program(S(2, 64, 8, 32), S(2, 64, 8, 32))
def product_that_was_turned(q, k):
    p = jnp.einsum("bthd,bshd->bhts", q, k)
    return p / 2.5, p * p, jnp.sin(p)


@program(S(2, 8, 64, 32), S(2, 8, 64, 32))
def product_as_it_stands(q, k):
    p = jnp.einsum("bhtd,bhsd->bhts", q, k)
    return p / 2.5, p * p, jnp.sin(p)


@program(S(64, 512), S(32, 512), S(512, 1))
def column_of_products(w, z, v):
    u = jnp.exp(v)
    return w @ u, z @ u, (w + 1.0) @ u, jnp.sin(u), u * 3.0


@program(S(256, 512), S(512, 512), S(256, 512))
def quotients_in_products(x, w, y):
    return (jnp.exp(x) / 3.0) @ w, (y / 3.0) @ w, y * 3.0, jnp.sin(x) * 3.0


@program(S(64, 256, dtype=BF16), S(64, 256, dtype=BF16))
def result_of_a_function(x, y):
    def loss(x):
        h = jax.nn.silu(x)
        return jnp.sum(h * y + jnp.sin(h))

    return jax.value_and_grad(loss)(x)


@program(S(2, 32, 256, dtype=BF16), S(256, 256, dtype=BF16), S(256, 256, dtype=BF16))
def narrow_operands_of_products(x, w, v):
    y = x + x @ w
    z = y + jnp.sin(y) @ v
    return jnp.tan(z + jnp.sin(z) @ w), jnp.cos(y), jnp.exp(z)


@program(S(5, 64, 512), S(5, 64, 512))
def results_of_a_loop(x, y):
    def step(total, xy):
        d = jax.grad(lambda x: -jnp.mean(jnp.sum(jax.nn.log_softmax(x) * xy[1], -1)))(xy[0])
        return total + jnp.sum(d), d

    return lax.scan(step, 0.0, (x, y))


@program(S(5, 256, 512), S(512, 512))
def products_of_a_loop(x, w):
    def step(total, x):
        y = jnp.sin(x) @ w
        return total + jnp.sum(y), y

    return lax.scan(step, 0.0, x)


@program(S(512, 512, dtype=BF16), S(512, 512, dtype=BF16))
def narrow_gradient_clipped(w, x):
    def loss(w):
        return jnp.sum(jnp.sin((x @ w).astype(F32)))

    return clipped(jax.grad(loss)(w))


@program(S(64, 64))
def clipped_among_others(x):
    y = jnp.sin(x)
    c = jnp.clip(y, -0.5, 0.5)
    return c * y, jnp.exp(y), jnp.sum(y, 0), jnp.where(c == y, y, 0)


@program(S(64, 100))
def negated_twice(x):
    n = -jnp.sum(jnp.sin(x), 1)
    return jnp.exp(-n), n * 2, jnp.log1p(n)


@program(S(512, 8))
def ranks_of_chosen(x):
    chosen = nn.one_hot(jnp.argmax(x, -1), 8, dtype=jnp.int32)
    rank = jnp.cumsum(chosen, 0) * chosen - 1
    return jnp.where((rank < 40) & (chosen > 0), rank, 0).sum(1), jnp.sum(chosen, 0)


@program(S(256, 64), S(256, 64), S())
def potentials(x, y, e):
    cost = jnp.sum((x[:, None] - y[None]) ** 2, -1)
    f = g = jnp.zeros(256)
    for _ in range(3):
        f = -e * nn.logsumexp((g[None] - cost) / e, 1)
        g = -e * nn.logsumexp((f[:, None] - cost) / e, 0)
    plan = jnp.exp((f[:, None] + g[None] - cost) / e)
    return jnp.sum(plan * cost), plan @ y


@program(S(64, 128), S(64, 128))
def derived_standard_deviation(x, y):
    return jax.grad(lambda x, y: jnp.std(x * y), (0, 1))(x, y)


@program(S(256, 256, dtype=BF16), S(256, 256, dtype=BF16))
def narrow_gelu_by_erfc(x, w):
    def loss(w):
        y = nn.gelu(x @ w, approximate=False)
        return jnp.mean(jnp.square((y - x).astype(F32)))

    return jax.grad(loss)(w)


@program(S(8, 2048))
def quantiles_of_rows(x):
    return jnp.quantile(x, jnp.array([0.1, 0.5, 0.9]), axis=1)


@program(S(128, 64), S(64, 96))
def mean_of_squared_silu(x, w):
    return jax.grad(lambda w: jnp.mean(nn.silu(x @ w) ** 2))(w)
