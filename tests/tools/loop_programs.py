"""Programs with loops, branches and updates in place, to see what XLA's copy insertion makes of them.

    loop_programs.py OUT cpu|gpu [--spec H100.txtpb] [--random FIRST LAST]

Needs JAX and its plugin for CUDA (no GPU). Each program is compiled with XLA's dumps in OUT, which
`pack_copies.py` packs. With --random, programs put together at random come instead of those listed here.
"""

# mypy: ignore-errors
# Its functions are programs: jax.jit, and not they, gives their arguments a type.

from __future__ import annotations

import argparse
import functools
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

S = jax.ShapeDtypeStruct
f = jnp.float32
V, M, X = S((1024,), f), S((256, 256), f), S((16, 256), f)
INDEX, FLAG = S((), jnp.int32), S((), jnp.bool_)
Program = tuple[Callable[..., Any], tuple[Any, ...], tuple[int, ...]]
"""A function, the shapes of its arguments, and the numbers of those it may overwrite."""
PROGRAMS: dict[str, Program] = {}


def add(
    name: str, function: Callable[..., Any], *shapes: Any, donate: tuple[int, ...] = ()
) -> Callable[..., Any]:
    PROGRAMS[name] = function, shapes, donate
    return function


def program(*shapes: Any, donate: tuple[int, ...] = ()) -> Callable[..., Any]:
    """Add a function under its name."""
    return lambda function: add(function.__name__, function, *shapes, donate=donate)


@program(M, INDEX)
def while_init_param(c, n):
    return lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] * 1.5), (0, c))


@program(M, INDEX)
def while_two_same_init(c, n):
    return lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] * 1.5, s[2] + s[1]), (0, c, c))


@program(M, INDEX)
def while_invariant(c, n):
    return lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, jnp.sin(s[1]) @ s[2], s[2]), (0, c, c))


@program(M, INDEX)
def switch_dus_reused(a, k):
    return lax.switch(k, [lambda a: a.at[0].set(1.0), lambda a: a.at[1].set(a[0] @ a), lambda a: a], a)


ROW, ROWS, NUMBERS = S((1, 256), f), S((32, 256), f), S((32,), jnp.int32)
add("while_init_donated", while_init_param, M, INDEX, donate=(0,))
add("switch_dus", switch_dus_reused, M, INDEX, donate=(0,))
add("dus_plain", lambda c, r, i: lax.dynamic_update_slice(c, r, (i, 0)), M, ROW, INDEX)
add("dus_donated", lambda c, r, i: lax.dynamic_update_slice(c, r, (i, 0)), M, ROW, INDEX, donate=(0,))
add("set_rows", lambda c, v: c.at[3].set(v[:256]).at[5, 7:9].add(1.0), M, V, donate=(0,))
add("scatter_plain", lambda c, i, u: c.at[i].add(u), M, NUMBERS, ROWS)
add("scatter_donated", lambda c, i, u: (c.at[i].add(u), u * 2), M, NUMBERS, ROWS, donate=(0,))
add("identity_twice", lambda c: (c, c), M)
add("identity_donated", lambda c: (c, c + 1), M, donate=(0,))
add("const_out", lambda c, v: (c + 1, jnp.zeros((7,)), jnp.ones(()), v), M, V)
add("donated_unused", lambda a, v: a[0] * 2, M, V, donate=(0, 1))
add("swap_out", lambda a, b: (b, a), V, V, donate=(0, 1))
add("swap_loop", lambda *s: lax.fori_loop(0, 10, lambda i, ab: (ab[1], ab[0]), s), V, V)
add(
    "swap_loop_donated",
    lambda *s: lax.fori_loop(0, 10, lambda i, s: (s[1] + 1, s[0]), s),
    V,
    V,
    donate=(0, 1),
)
add("rotate3", lambda a, b: lax.fori_loop(0, 5, lambda i, s: (s[1], s[2], s[0] + s[1]), (a, b, a)), M, M)
add("fib", lambda a: lax.fori_loop(0, 10, lambda i, s: (s[1], s[0] + s[1]), (a, a * 2)), V)
for name, taken, other in (
    ("cond_plain", lambda a, b: a @ b, lambda a, b: a + b),
    ("cond_passthrough", lambda a, b: (a, b), lambda a, b: (b, a)),
    ("cond_same_twice", lambda a, b: (a @ b, a), lambda a, b: (b, b)),
):
    add(name, lambda a, b, p, t=taken, o=other: lax.cond(p, t, o, a, b), M, M, FLAG)


@program(M, INDEX, donate=(0,))
def shift_history(h, n):
    return lax.fori_loop(0, n, lambda i, h: h.at[1:].set(h[:-1]).at[0].set(h[255] + i), h)


@program(V, V)
def associative(*pair):
    return lax.associative_scan(lambda x, y: (x[0] * y[0], x[1] * y[0] + y[1]), pair)


@program(M, S((1, 256), f), INDEX, donate=(0,))
def dus_read_after(c, r, i):
    d = lax.dynamic_update_slice(c, r, (i, 0))
    return d, c.sum(), d.max()


@program(M, S((1, 256), f), INDEX)
def dus_computed(c, r, i):
    c = jnp.tanh(c)
    d = lax.dynamic_update_slice(c, r, (i, 0))
    return d, c @ d


@program(X, M)
def scan_rnn(xs, w):
    def body(h, x):
        h = jnp.tanh(h @ w + x)
        return h, h

    return lax.scan(body, jnp.zeros((256,)), xs)


@program(X, M)
def scan_grad(xs, w):
    return jax.grad(lambda w: scan_rnn(xs, w)[1].sum())(w)


@program(X, M, M, donate=(1,))
def train_step(xs, w, m):
    m = 0.9 * m + jax.grad(lambda w: (scan_rnn(xs, w)[1] ** 2).sum())(w)
    return w - 0.1 * m, m


@program(S((64, 256), f), M)
def loop_cond(xs, w):
    def body(c, x):
        h, n = c
        h = lax.cond(n % 2 == 0, lambda h: jnp.tanh(h @ w), lambda h: h + x, h)
        return (h, n + 1), h

    return lax.scan(body, (jnp.zeros((256,)), 0), xs)


@program(S((8, 64, 64), f))
def nested_loops(c):
    def outer(i, c):
        def inner(j, c):
            return c.at[i, j].set(c[i, j] * 2 + c[i, 63 - j])

        return lax.fori_loop(0, 64, inner, c)

    return lax.fori_loop(0, 8, outer, c)


add("nested_loops_donated", nested_loops, S((8, 64, 64), f), donate=(0,))


@program(S((4, 128, 256), f), S((4, 128, 256), f), S((32, 4, 1, 256), f), donate=(0, 1))
def kv_cache_loop(k, v, xs):
    def body(c, x):
        k, v, i = c
        k = lax.dynamic_update_slice(k, x, (0, i, 0))
        v = lax.dynamic_update_slice(v, x * 2, (0, i, 0))
        s = jax.nn.softmax(jnp.einsum("bqd,bkd->bqk", x, k))
        o = jnp.einsum("bqk,bkd->bqd", s, v)
        return (k, v, i + 1), o

    (k, v, _), o = lax.scan(body, (k, v, 0), xs)
    return k, v, o


@program(S((4, 128, 256), f), S((32, 4, 1, 256), f))
def kv_cache_reused(k, xs):
    def body(c, x):
        k, i = c
        k2 = lax.dynamic_update_slice(k, x, (0, i, 0))
        return (k2, i + 1), (k * x).sum()

    return lax.scan(body, (k, 0), xs)


@program(M)
def power_iteration(a):
    def body(s):
        v, _, i = s
        w = a @ v
        w = w / jnp.linalg.norm(w)
        return w, v, i + 1

    return lax.while_loop(
        lambda s: (s[2] < 50) & (jnp.abs(s[0] - s[1]).max() > 1e-3),
        body,
        (jnp.ones((256,)), jnp.zeros((256,)), 0),
    )


@program(V)
def loop_constants(v):
    return lax.fori_loop(
        0,
        5,
        lambda i, s: (s[0] + 1, s[1] * 2, jnp.zeros((8,)), s[2]),
        (v, jnp.ones((4,)), jnp.zeros((8,)), jnp.ones((8,))),
    )


@program(M, S((16,), jnp.int32))
def sort_and_set(m, i):
    s = jnp.sort(m, axis=1)
    return s.at[i].set(0.0), s


@program(M, M, M, donate=(0, 2))
def adam_like(p, g, m):
    m2 = 0.9 * m + g
    return p - m2, m2, (m * p).sum()


@program(S((4, 256, 256), f), X)
def stacked_layers(ws, x):
    def layer(h, w):
        return jnp.tanh(h @ w), h.mean()

    return lax.scan(layer, x, ws)


@program(S((4, 256, 256), f), X, donate=(0,))
def stacked_train(ws, x):
    def loss(ws):
        h, _ = lax.scan(jax.checkpoint(lambda h, w: (jnp.tanh(h @ w), None)), x, ws)
        return (h**2).sum()

    return ws - 0.01 * jax.grad(loss)(ws)


@program(V, INDEX)
def early_exit(v, n):
    def body(s):
        i, v, _ = s
        v2 = v.at[i].set(v[i] + v.sum())
        return i + 1, v2, v2[i] > 10

    return lax.while_loop(lambda s: (s[0] < n) & ~s[2], body, (0, v, False))


@program(M, FLAG, INDEX)
def cond_in_while_dus(a, p, n):
    def body(s):
        i, a, b = s
        a, b = lax.cond(p, lambda a, b: (a.at[i].set(b[i]), b), lambda a, b: (b, a), a, b)
        return i + 1, a, b

    return lax.while_loop(lambda s: s[0] < n, body, (0, a, a * 2))


@program(S((2,), jnp.uint32), M)
def random_steps(key, m):
    def body(c, _):
        k, m = c
        k, s = jax.random.split(k)
        return (k, m + jax.random.normal(s, (256, 256))), m[0]

    return lax.scan(body, (key, m), None, length=7)


@program(M, M)
def while_tuple_read_old(a, b):
    def body(i, s):
        a, b = s
        a2 = a.at[i].add(b[i])
        b2 = b.at[i].set(a[i])
        return a2, b2

    return lax.fori_loop(0, 256, body, (a, b))


@program(M, M, donate=(0,))
def aliased_read_later(a, b):
    c = a.at[0].set(b[0])
    d = jnp.dot(b, a)
    return c, d


# ------------------------------------------------------------ at random

N = 4096


def step(r, depth, vals, i):
    """one random statement over the list of arrays (all f32[N]); i an index scalar"""
    k = (
        r.choice("ew ew dus dus scatter swap read const cond switch loop loop while scan sort mat".split())
        if depth
        else r.choice(["ew", "dus", "dus", "scatter", "swap", "read", "const", "mat"])
    )
    n = len(vals)
    a = r.randrange(n)
    b = r.randrange(n)
    v = list(vals)
    if k == "ew":
        v[a] = jnp.sin(v[a]) + v[b] * r.choice([1.0, 2.0])
    elif k == "dus":
        w = r.choice([1, 16, 256])
        v[a] = lax.dynamic_update_slice(
            v[a], v[b][:w] * 2 if r.random() < 0.5 else lax.dynamic_slice(v[b], (i + 1,), (w,)), (i,)
        )
    elif k == "scatter":
        v[a] = v[a].at[jnp.stack([i, i + 3])].add(v[b][:2])
    elif k == "swap":
        v[a], v[b] = v[b], v[a]
    elif k == "read":
        v[a] = v[a] + v[b].sum()
    elif k == "const":
        v[a] = jnp.zeros((N,)) if r.random() < 0.5 else jnp.full((N,), 3.0)
    elif k == "sort":
        v[a] = jnp.sort(v[b])
    elif k == "mat":
        v[a] = (v[b].reshape(64, 64) @ v[a].reshape(64, 64)).reshape(N)
    elif k in ("cond", "switch"):
        m = 2 if k == "cond" else 3
        seeds = [r.random() for _ in range(m)]

        def branch(s, v):
            return block(random.Random(s), depth - 1, v, i, random.Random(s).randrange(0, 3))

        fs = [functools.partial(branch, s) for s in seeds]
        v = lax.switch(i % m, fs, v) if k == "switch" else lax.cond(i > 3, *fs, v)
    elif k == "loop":
        s = r.random()
        v = lax.fori_loop(
            0,
            r.choice([5, 9]),
            lambda j, v: block(random.Random(s), depth - 1, v, j, random.Random(s).randrange(1, 4)),
            v,
        )
    elif k == "while":
        s = r.random()

        def body(c):
            j, v = c
            return j + 1, block(random.Random(s), depth - 1, v, j, random.Random(s).randrange(1, 4))

        _, v = lax.while_loop(lambda c: (c[0] < 20) & (c[1][0][0] < 1e6), body, (i, v))
    elif k == "scan":
        s = r.random()

        def sb(v, x):
            v = block(random.Random(s), depth - 1, v, x.astype(jnp.int32), random.Random(s).randrange(1, 3))
            return v, v[0][:32] + x

        v, ys = lax.scan(sb, v, jnp.arange(7.0))
        v[a] = lax.dynamic_update_slice(v[a], ys.reshape(-1), (i,))
    return v


def block(r, depth, vals, i, count):
    v = list(vals)
    for _ in range(count):
        v = step(r, depth, v, i)
    return v


def at_random(seed):
    r = random.Random(seed)
    n = r.choice([2, 3, 4])
    count = r.choice([2, 3, 5])
    s = r.random()

    def f(*a):
        *v, i = a
        q = random.Random(s)
        out = block(q, 2, v, i, count)
        if q.random() < 0.3:
            out.append(out[0])
        if q.random() < 0.3:
            out.append(v[0])
        if q.random() < 0.2:
            out.append(jnp.zeros((3,)))
        return out

    donate = tuple(k for k in range(n) if r.random() < 0.5)
    return f, (*[S((N,), jnp.float32)] * n, S((), jnp.int32)), donate


def main() -> None:
    """Compile in a child process that dumps, as XLA reads its flags once."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("target", choices=["cpu", "gpu"])
    parser.add_argument("--spec", type=Path)
    parser.add_argument("--random", nargs=2, type=int, metavar=("FIRST", "LAST"))
    parser.add_argument("--child", action="store_true")
    a = parser.parse_args()
    if not a.child:
        flags = f"--xla_dump_to={a.out} --xla_dump_hlo_as_text --xla_dump_hlo_pass_re=.*"
        env = dict(os.environ, XLA_FLAGS=flags, JAX_SKIP_CUDA_CONSTRAINTS_CHECK="1")
        if a.target == "cpu":
            env["JAX_PLATFORMS"] = "cpu"
        sys.exit(subprocess.call([sys.executable, *sys.argv, "--child"], env=env))
    sharding = None
    if a.target == "gpu":
        from jax.experimental import topologies

        topology = topologies.get_topology_desc(
            platform="cuda", target_config=a.spec.read_text(), topology="1x1x1"
        )
        mesh = jax.sharding.Mesh(topology.devices[:1], ("x",))
        sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
    programs = {f"r{k}": at_random(k) for k in range(*a.random)} if a.random else PROGRAMS
    for name, (function, shapes, donate) in programs.items():
        placed = [S(s.shape, s.dtype, sharding=sharding) for s in shapes]

        def entry(*xs: Any, function: Callable[..., Any] = function) -> Any:
            return function(*xs)

        entry.__name__ = entry.__qualname__ = name
        jax.jit(entry, donate_argnums=donate).lower(*placed).compile()


if __name__ == "__main__":
    main()
