# ruff: noqa: B023 (the lambdas are called at once)
"""Random JAX programs, one for each seed, for differential tests of a replay against XLA.

A program is a few inputs and a chain of random operations on earlier values; what JAX refuses is left
out. The same seed is the same program. The operations are chosen for the rules: in-place chains,
diamonds, concatenates, softmaxes, small matrix products, windows, control flow, odd types.

Needs jax; `ask_xla.py random` compiles them.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

jax.config.update("jax_enable_x64", True)

MAX_ELEMENTS = 200_000
DTYPES = ["float32"] * 6 + [
    "bfloat16",
    "float16",
    "float64",
    "complex64",
    "complex128",
    "int32",
    "int64",
    "int8",
    "uint8",
    "uint32",
    "bool",
]
Value = Any
Direction = Callable[[Value], Value]


class Choices:
    """Random picks among the values made so far."""

    def __init__(self, seed: float, values: list[Value]) -> None:
        self.q: Any = random.Random(seed)  # a list of JAX functions has no type of its own
        self.values = values

    def pick(self, wanted: Callable[[Value], bool] = lambda v: True) -> Value:
        return self.q.choice([v for v in self.values if wanted(v)] or self.values[:1])

    def floating(self) -> Value:
        return self.pick(lambda v: jnp.issubdtype(v.dtype, jnp.floating))

    def integer(self) -> Value:
        return self.pick(lambda v: jnp.issubdtype(v.dtype, jnp.integer))

    def like(self, a: Value) -> Value:
        return self.pick(lambda v: v.shape == a.shape and v.dtype == a.dtype)

    def axis(self, a: Value) -> int:
        found: int = self.q.randrange(a.ndim)
        return found

    def matrix(self) -> Value:
        return self.pick(lambda v: v.ndim == 2 and jnp.issubdtype(v.dtype, jnp.floating))

    def vector(self) -> Value:
        return self.pick(lambda v: v.ndim == 1 and jnp.issubdtype(v.dtype, jnp.floating))

    def cube(self) -> Value:
        return self.pick(lambda v: v.ndim == 3 and jnp.issubdtype(v.dtype, jnp.floating))


def half(a: Value) -> list[int]:
    return [max(1, d // 2) for d in a.shape]


def pointwise(c: Choices) -> list[Direction]:
    q = c.q
    unary = [
        jnp.exp,
        jnp.tanh,
        jnp.sqrt,
        jnp.log,
        jnp.sin,
        jnp.cos,
        jnp.tan,
        jnp.abs,
        jnp.sign,
        jnp.floor,
        jnp.ceil,
        jnp.round,
        jnp.sinh,
        jnp.cosh,
        jnp.arcsin,
        jnp.arctan,
        jnp.arcsinh,
        jnp.cbrt,
        jnp.expm1,
        jnp.log1p,
        lax.rsqrt,
        lax.erf,
        jax.nn.gelu,
        jax.nn.sigmoid,
        jnp.isfinite,
        jnp.reciprocal,
        lax.erf_inv,
        lax.lgamma,
    ]
    binary = [
        jnp.add,
        jnp.multiply,
        jnp.subtract,
        jnp.maximum,
        jnp.minimum,
        jnp.divide,
        jnp.power,
        jnp.arctan2,
        jnp.remainder,
        jnp.greater,
        jnp.not_equal,
        jnp.hypot,
        jnp.nextafter,
    ]
    integer = [
        lambda a: a << 1,
        lambda a: a >> 1,
        lambda a: a & 7,
        lambda a: a ^ 3,
        lambda a: ~a,
        lax.population_count,
        lax.clz,
        lambda a: a // 7,
        lambda a: a % 5,
        lambda a: 9 // (a + 1),
        lambda a: a * a,
    ]
    return [
        lambda a: q.choice(binary[:3])(a, c.like(a)),
        lambda a: q.choice(binary)(a, c.like(a)),
        lambda a: q.choice(unary)(c.floating()),
        lambda a: q.choice(unary)(c.floating() * 0.5),
        lambda a: q.choice(integer)(c.integer()),
        lambda a: jnp.where(a > 0, a, a * 2),
        lambda a: jnp.clip(a, -1, 1),
        lambda a: a.astype(
            q.choice(["float32", "bfloat16", "float16", "int32", "float64", "int8", "bool", "complex64"])
        ),
        lambda a: c.floating().astype(jnp.float8_e4m3fn).astype(jnp.float32),
        lambda a: lax.reduce_precision(c.floating(), 5, 7),
        lambda a: lax.bitcast_convert_type(c.pick(lambda v: v.dtype == jnp.float32), jnp.int32),
        lambda a: lax.bitcast_convert_type(c.pick(lambda v: v.dtype == jnp.float32), jnp.int8),
        lambda a: lax.complex(f := c.floating().astype(jnp.float32), f * 2),
        lambda a: jnp.real(c.pick(jnp.iscomplexobj)) + jnp.imag(c.pick(jnp.iscomplexobj)),
        lambda a: (a - jnp.mean(a, axis=c.axis(a), keepdims=True)) / 3,
    ]


def movement(c: Choices) -> list[Direction]:
    q = c.q
    return [
        jnp.transpose,
        lambda a: jnp.swapaxes(a, 0, c.axis(a)),
        lambda a: a.reshape(-1),
        lambda a: a.reshape(2, -1),
        lambda a: jnp.broadcast_to(a[None], (q.choice([2, 4, 64]), *a.shape)) if a.ndim < 3 else a,
        lambda a: jnp.broadcast_to(a[..., None], (*a.shape, q.choice([2, 16]))) if a.ndim < 3 else a,
        lambda a: jnp.concatenate([a, c.like(a)], axis=c.axis(a)),
        lambda a: jnp.concatenate([a * i for i in range(q.choice([3, 7, 8, 9, 12]))], axis=c.axis(a)),
        lambda a: jnp.stack([a, c.like(a), a + a], axis=q.choice([0, -1])),
        lambda a: jnp.pad(a, [(1, 2)] * a.ndim),
        lambda a: lax.pad(a, jnp.zeros((), a.dtype), [(q.choice([-1, 0, 2]), 1, q.choice([0, 1]))] * a.ndim),
        lambda a: a[tuple(slice(0, n) for n in half(a))],
        lambda a: a[tuple(slice(None, None, 2) for _ in a.shape)],
        lambda a: jnp.flip(a, c.axis(a)),
        lambda a: jnp.roll(a, 1, c.axis(a)) + jnp.roll(a, 2, c.axis(a)) + a,
        lambda a: sum(jnp.pad(a[k:], [(0, k)] + [(0, 0)] * (a.ndim - 1)) for k in range(q.choice([2, 3, 5]))),
        lambda a: jnp.arange(a.size).reshape(a.shape).astype(a.dtype) + a,
        lambda a: jax.nn.one_hot(c.integer().reshape(-1)[:50] % 8, 8) * 2,
        lambda a: jnp.tril(c.matrix()),
        lambda a: jnp.repeat(a, 2, axis=c.axis(a)),
        lambda a: jnp.tile(a, (2,) * a.ndim),
        lambda a: a + jnp.asarray(list(range(a.shape[-1])), a.dtype),
    ]


def reductions(c: Choices) -> list[Direction]:
    q = c.q

    def many(a: Value) -> Value:
        return sum((jnp.sum(a * (k + 1), axis=0) for k in range(q.choice([3, 6, 7, 9]))), start=0)

    def softmax_by_hand(a: Value) -> Value:
        b = q.choice([lambda v: v * 0.5, lambda v: v + 1, lambda v: v, lambda v: jnp.tanh(v)])(c.floating())
        m = jnp.max(b, axis=-1, keepdims=True)
        e = jnp.exp(q.choice([lambda: b - m, lambda: m - b, lambda: b - 2 * m])())
        return e / jnp.sum(e, axis=-1, keepdims=True)

    return [
        lambda a: q.choice([jnp.sum, jnp.max, jnp.min, jnp.prod, jnp.mean])(a, axis=c.axis(a)),
        lambda a: q.choice([jnp.sum, jnp.max])(a),
        lambda a: jnp.argmax(a, axis=c.axis(a)),
        lambda a: jnp.any(a > 0, axis=c.axis(a)),
        many,
        softmax_by_hand,
        softmax_by_hand,
        lambda a: jax.nn.softmax(c.floating(), axis=c.q.choice([0, -1])),
        lambda a: jax.nn.logsumexp(c.floating(), axis=-1),
        lambda a: jnp.var(c.floating(), axis=-1),
        lambda a: lax.rsqrt(jnp.mean((f := c.floating()) ** 2, -1, keepdims=True) + 1e-5) * f,
        lambda a: q.choice([jnp.cumsum, jnp.cumprod])(a, axis=c.axis(a)),
        lambda a: lax.cummax(a, axis=c.axis(a)),
        lambda a: lax.reduce_window(
            c.floating(), 0.0, lax.add, (2,) * c.floating().ndim, (1,) * c.floating().ndim, "SAME"
        ),
        lambda a: lax.reduce_window(c.matrix(), -jnp.inf, lax.max, (3, 1), (2, 1), "VALID") * 2,
        lambda a: jax.grad(lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (2, 2), "VALID").sum())(
            c.matrix()
        ),
        lambda a: (jnp.max(a, axis=-1, keepdims=True) + a) * jnp.sum(a, -1, keepdims=True),
        lambda a: jnp.sort(a, axis=c.axis(a)),
        lambda a: lax.top_k(c.floating(), 1)[0],
        lambda a: lax.sort((a.reshape(-1), a.reshape(-1)), num_keys=1)[1],
    ]


def products(c: Choices) -> list[Direction]:
    q = c.q

    def convolve(a: Value) -> Value:
        m = c.matrix().astype(q.choice([jnp.float32, jnp.float32, jnp.float64, jnp.bfloat16]))
        if q.random() < 0.5:
            image = m[None, :, :, None] if q.random() < 0.6 else m[None, None]
            layout = ("NHWC", "HWIO", "NHWC") if image.shape[-1] == 1 else ("NCHW", "OIHW", "NCHW")
            kernel = jnp.ones((3, 3, 1, 2) if layout[0] == "NHWC" else (2, 1, 3, 3), m.dtype)
            dilation = q.choice([(1, 1), (2, 2)])
            return lax.conv_general_dilated(
                image,
                kernel,
                q.choice([(1, 1), (2, 1)]),
                "SAME",
                rhs_dilation=dilation,
                dimension_numbers=layout,
            )[0]
        return lax.conv_general_dilated(
            m[:, :, None], jnp.ones((3, 1, 4), m.dtype), (1,), "SAME", dimension_numbers=("NWC", "WIO", "NWC")
        )[..., 0]

    return [
        lambda a: (m := c.matrix()) @ jnp.ones(m.shape[1], m.dtype) + 1,
        lambda a: (m := c.matrix()) @ (m[0] * 2) + m[:, 0],
        lambda a: (m := c.matrix() * 3) @ jnp.tanh(m[0]),
        lambda a: jnp.exp(v := c.vector()) @ jnp.outer(v, v),
        lambda a: jnp.dot(v := c.vector(), v * 2) + v.sum(),
        lambda a: jnp.dot(m := c.matrix(), m.T) + 1,
        lambda a: jnp.einsum("bij,bkj->bik", k := c.cube(), k * 2),
        lambda a: jnp.einsum("bij,bj->bi", k := c.cube(), k[:, 0]) + 1,
        lambda a: jnp.outer(v := c.vector(), v).sum(0),
        lambda a: c.integer().reshape(-1) @ c.integer().reshape(-1),
        convolve,
        convolve,
        lambda a: jnp.fft.fft(c.floating().astype(jnp.float32)),
        lambda a: jnp.linalg.cholesky((m := c.matrix().astype(jnp.float32)) @ m.T + jnp.eye(m.shape[0])),
        lambda a: jax.scipy.linalg.solve_triangular(
            (m := c.matrix().astype(jnp.float32)) @ m.T, m, lower=True
        ),
    ]


def memory(c: Choices) -> list[Direction]:
    q = c.q

    def update_chain(a: Value) -> Value:
        size = half(a)
        for k in range(q.choice([1, 2, 3])):
            at = [jnp.int32(q.choice([0, 1]))] * a.ndim
            where = at if q.random() < 0.6 else [jnp.argmax(a.reshape(-1)).astype(jnp.int32)] * a.ndim
            part = q.choice(
                [
                    lambda: lax.dynamic_slice(a, where, size) * 2,
                    lambda: lax.dynamic_slice(a, at, size) + jnp.sum(a).astype(a.dtype),
                    lambda: c.like(a)[tuple(slice(0, n) for n in size)],
                    lambda: jnp.full(size, k, a.dtype),
                    lambda: jnp.flip(lax.dynamic_slice(a, where, size), 0),
                ]
            )()
            a = lax.dynamic_update_slice(a, part, where)
            if q.random() < 0.4:
                a = a + 1
        return a

    indices = jnp.array([0, 1, 0])
    return [
        update_chain,
        update_chain,
        update_chain,
        lambda a: lax.dynamic_slice(a, [jnp.argmax(a.reshape(-1)).astype(jnp.int32)] * a.ndim, half(a)),
        lambda a: jnp.take(a, indices, axis=c.axis(a)),
        lambda a: jnp.take(a, c.integer().reshape(-1)[:20], axis=0, mode=q.choice(["clip", "fill", "wrap"])),
        lambda a: jnp.take_along_axis(a, jnp.argsort(a, axis=-1), axis=-1),
        lambda a: q.choice(
            [
                lambda r: r.add(a[:2]),
                lambda r: r.set(a[:2]),
                lambda r: r.max(a[:2]),
                lambda r: r.multiply(a[:2]),
            ]
        )(a.at[jnp.array([0, 0])]),
        lambda a: a.at[..., 0].set(7) + a,
        lambda a: a.at[1:].add(a[:-1]),
        lambda a: a.at[c.integer().reshape(-1)[:4]].set(0),
        lambda a: jax.ops.segment_sum(a.reshape(-1), jnp.arange(a.size) % 5, 5),
        lambda a: lax.optimization_barrier(a * 3) + a,
    ]


def control(c: Choices) -> list[Direction]:
    q = c.q

    def scan(a: Value) -> Value:
        f = c.floating()
        carry, ys = lax.scan(lambda s, x: (jnp.tanh(s) * 2 + x, s.sum()), f[0], f, unroll=q.choice([1, 1, 2]))
        return carry if q.random() < 0.5 else ys

    def gradient(a: Value) -> Value:
        f = c.floating()
        return jax.grad(lambda x: jnp.sum(jax.nn.softmax(jnp.tanh(x) * 2) ** 2))(f)

    return [
        lambda a: lax.fori_loop(0, 3, lambda i, x: jnp.tanh(x) * 2 + i.astype(x.dtype), c.floating()),
        lambda a: lax.fori_loop(0, 4, lambda i, x: x.at[i % x.shape[0]].set(x.sum(0)), c.floating()),
        lambda a: lax.while_loop(lambda s: s.sum() < 100, lambda s: s * 2 + 1, jnp.abs(c.floating()) + 1),
        lambda a: lax.cond(a.reshape(-1)[0] > 0, lambda x: jnp.sin(x) + x, lambda x: x * x + 1, c.floating()),
        lambda a: lax.switch(
            jnp.argmax(a.reshape(-1)) % 3,
            [lambda x: x + x, lambda x: jnp.exp(x) * 2, lambda x: x.T.T],
            c.floating(),
        ),
        lambda a: lax.map(lambda x: jnp.exp(x) / (1 + x), c.floating()),
        scan,
        scan,
        gradient,
        lambda a: jax.random.normal(jax.random.PRNGKey(3), half(a)) + 1,
        lambda a: jax.random.bernoulli(jax.random.key(7), 0.3, a.shape) * a,
        lambda a: jax.checkpoint(lambda x: jnp.sin(jnp.sin(x)))(c.floating()),
    ]


def random_program(seed: int) -> tuple[Callable[..., Any], list[jax.ShapeDtypeStruct]]:
    """A function and the shapes of its arguments."""
    q = random.Random(seed * 7919 + 13)
    rank = q.choice([1, 2, 2, 2, 3])
    sizes = [2, 3, 4, 8, 16] if rank == 3 else [1, 2, 3, 8, 17, 32, 64, 128, 130, 200]
    if rank == 1:
        sizes = [1, 5, 64, 128, 1000, 4095, 4096]
    shape = tuple(q.choice(sizes) for _ in range(rank))
    kinds = [q.choice(DTYPES) for _ in range(q.randint(1, 3))]
    steps, choices = q.randint(3, 26), q.random()
    families = q.sample([pointwise, movement, reductions, products, memory, control], q.randint(2, 6))

    def program(*arguments: Value) -> tuple[Value, ...]:
        values = list(arguments)
        c = Choices(choices, values)
        groups = [pointwise(c), *(f(c) for f in families)]
        for _ in range(steps):
            try:
                value = c.q.choice(c.q.choice(groups))(c.pick())
            except Exception:
                continue
            if 0 < value.size < MAX_ELEMENTS:
                values.append(value)
        return tuple(values[-c.q.randint(1, 4) :])

    return program, [jax.ShapeDtypeStruct(shape, jnp.dtype(kind)) for kind in kinds]
