"""Partitioned programs, of which XLA's answers are in tests: data, tensor and expert parallel (PROGRAMS), and
small ones about single passes (CASES).

    hlofuse capture tests/tools/partitioned_programs.py:PROGRAMS --device h100_sxm --mesh 8 -o GPU
    hlofuse capture tests/tools/partitioned_programs.py:PROGRAMS --target cpu --mesh 8 -o CPU
    python -m tests.tools.pack_partitioned tests/data/partitioned.tar.xz gpu=GPU cpu=CPU
"""

# mypy: ignore-errors
# Its functions are programs: jax.jit, and not they, gives their arguments a type.

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

N = 8
PROGRAMS = {}
CASES = {}


def mesh1(name="x"):
    return Mesh(np.array(jax.devices()[:N]), (name,))


def mesh2(a=2, b=4):
    return Mesh(np.array(jax.devices()[:N]).reshape(a, b), ("d", "m"))


def arguments(mesh, shapes):
    """Abstract arguments: each shape is (shape, spec[, dtype]), or a dictionary of them."""

    def argument(shape, spec, dtype=jnp.float32):
        return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, P(*spec)))

    return tuple(
        {k: argument(*v) for k, v in s.items()} if isinstance(s, dict) else argument(*s) for s in shapes
    )


def added(table, make_mesh, shapes, bind):
    """Add what `bind` makes of a mesh and the decorated function."""

    def put(function):
        def both():
            mesh = make_mesh()
            f = bind(mesh, function)
            f.__name__ = function.__name__
            return jax.jit(f), arguments(mesh, shapes)

        table[function.__name__] = both
        return function

    return put


def program(make_mesh, *shapes):
    """Add a function of a mesh and of arguments that are sharded over it."""
    return added(PROGRAMS, make_mesh, shapes, lambda mesh, function: partial(function, mesh))


def mapped(make_mesh, outs, *shapes, table=PROGRAMS, **options):
    """Add a function that shard_map runs on each device."""
    specs = tuple(P(*spec) for _, spec, *_ in shapes)
    options |= {"in_specs": specs, "out_specs": outs}
    return added(table, make_mesh, shapes, lambda mesh, f: jax.shard_map(f, mesh=mesh, **options))


def shard(mesh, x, *spec):
    return lax.with_sharding_constraint(x, NamedSharding(mesh, P(*spec)))


# --- shard_map
@mapped(mesh1, P(), ((1024, 512), ("x",)), ((512, 512), ()))
def sm_psum(x, w):
    return lax.psum(jnp.tanh(x @ w).sum(0), "x")


@mapped(
    mesh1,
    (P(), P(), P(), P()),
    ((1024, 1024), ("x",)),
    ((1024, 1024), ()),
    ((1024, 1024), ()),
    ((1024,), ()),
    ((1024,), ()),
    check_vma=False,
)
def sm_grad_psum(x, w1, w2, b1, b2):
    def loss(p):
        w1, w2, b1, b2 = p
        return jnp.mean((jnp.tanh(x @ w1 + b1) @ w2 + b2) ** 2)

    g = jax.grad(loss)((w1, w2, b1, b2))
    return jax.tree.map(lambda t: lax.psum(t, "x"), g)


@mapped(mesh1, P("x"), ((1024, 512), ("x",)), ((512, 4096), ("x",)))
def sm_all_gather(x, w):
    return jax.nn.relu(x @ lax.all_gather(w, "x", tiled=True))


@mapped(
    mesh1,
    (P("x"), P("x")),
    ((1024, 1024), ("x",)),
    ((1024, 1024), ("x",)),
    ((1024, 1024), ("x",)),
    check_vma=False,
)
def sm_fsdp(x, w1, w2):
    def loss(p):
        w1, w2 = (lax.all_gather(w, "x", tiled=True) for w in p)
        return jnp.mean((jnp.tanh(x @ w1) @ w2) ** 2)

    return jax.grad(loss)((w1, w2))


@mapped(mesh1, P("x"), ((4096, 256), ("x",)))
def sm_all_to_all(x):
    y = lax.all_to_all(jnp.sin(x), "x", 0, 0, tiled=True)
    return lax.all_to_all(jnp.cos(y) * 2, "x", 0, 0, tiled=True)


@mapped(mesh1, P(None, "x"), ((512, 1024), ("x",)), ((1024, 1024), (None, "x")))
def sm_ring(x, w):
    i = lax.axis_index("x")
    perm = [(k, (k + 1) % N) for k in range(N)]

    def step(k, c):
        x, y = c
        y = lax.dynamic_update_slice(y, x @ w, (((i - k) % N) * 64, 0))
        return lax.ppermute(x, "x", perm), y

    y = lax.pcast(jnp.zeros((512, 128)), ("x",), to="varying")
    return lax.fori_loop(0, N, step, (x, y))[1]


@mapped(mesh1, P("x"), ((512, 1024), ("x",)), ((512, 1024), ("x",)))
def sm_ppermute_two(x, y):
    perm = [(k, (k + 1) % N) for k in range(N)]
    return jnp.tanh(lax.ppermute(jnp.sin(x), "x", perm)) + lax.ppermute(jnp.cos(y), "x", perm)


@mapped(mesh1, (P("x"), P("x")), ((4096, 1024), ("x",)), ((4096, 512), ("x",)))
def sm_reduce_scatter(x, y):
    return (
        lax.psum_scatter(jnp.exp(x), "x", scatter_dimension=0, tiled=True),
        lax.psum_scatter(jnp.exp(y), "x", scatter_dimension=0, tiled=True),
    )


@mapped(
    mesh2, P("d"), ((64, 512, 256), ("d", None, None)), ((256, 1024), (None, "m")), ((1024, 256), ("m", None))
)
def sm_tensor_mlp(x, w1, w2):
    return x + lax.psum(jax.nn.gelu(x @ w1) @ w2, "m")


@mapped(
    mesh1,
    P("x"),
    ((64, 8, 256), ("x",), jnp.bfloat16),
    ((8, 256, 512), ("x",), jnp.bfloat16),
    ((8, 512, 256), ("x",), jnp.bfloat16),
)
def sm_moe(x, w1, w2):  # x: tokens, expert
    y = lax.all_to_all(x, "x", 1, 0, tiled=True)[:, 0]
    y = jax.nn.silu(y @ w1[0]) @ w2[0]
    return lax.all_to_all(y[:, None], "x", 0, 1, tiled=True)


# --- NamedSharding
@program(
    mesh1,
    ((1024, 512), ("x",)),
    {"w1": ((512, 2048), ()), "w2": ((2048, 512), ()), "b1": ((2048,), ()), "b2": ((512,), ())},
)
def ns_dp_grad(mesh, x, p):
    def loss(p):
        h = jnp.tanh(x @ p["w1"] + p["b1"])
        return jnp.mean((h @ p["w2"] + p["b2"]) ** 2)

    value, g = jax.value_and_grad(loss)(p)
    return value, jax.tree.map(lambda a, b: a - 0.1 * b, p, g)


@program(mesh2, ((1024, 512), ("d",)), ((512, 2048), (None, "m")), ((2048, 512), ("m",)))
def ns_tensor_mlp(mesh, x, w1, w2):
    y = jax.nn.gelu(x @ w1) @ w2
    return shard(mesh, y, "d", None)


@program(mesh1, ((1024, 512), ("x",)), {"w1": ((512, 2048), ("x",)), "w2": ((2048, 512), ("x",))})
def ns_fsdp_grad(mesh, x, p):
    def loss(p):
        w = {k: shard(mesh, v) for k, v in p.items()}
        return jnp.mean((jnp.tanh(x @ w["w1"]) @ w["w2"]) ** 2)

    g = jax.grad(loss)(p)
    g = {k: shard(mesh, v, "x") for k, v in g.items()}
    return jax.tree.map(lambda a, b: a - 0.1 * b, p, g)


@program(
    mesh2,
    ((16, 128, 512), ("d",), jnp.bfloat16),
    {
        "q": ((512, 512), (None, "m"), jnp.bfloat16),
        "k": ((512, 512), (None, "m"), jnp.bfloat16),
        "v": ((512, 512), (None, "m"), jnp.bfloat16),
        "o": ((512, 512), ("m", None), jnp.bfloat16),
    },
)
def ns_attention(mesh, x, p):
    b, t, d = x.shape
    q, k, v = ((x @ p[n]).reshape(b, t, 8, 64) for n in "qkv")
    s = jax.nn.softmax(jnp.einsum("bthd,bshd->bhts", q, k) / 8, -1)
    y = jnp.einsum("bhts,bshd->bthd", s, v).reshape(b, t, d) @ p["o"]
    return shard(mesh, x + y, "d", None, None)


@program(mesh2, ((1024, 1024), ("d", "m")))
def ns_reshard(mesh, x):
    y = shard(mesh, jnp.sin(x), "m", "d")
    return jnp.cos(y) * 2


@program(mesh1, ((1024, 1024), ("x",)))
def ns_reshard_dims(mesh, x):
    y = shard(mesh, jnp.sin(x), None, "x")
    return shard(mesh, jnp.cos(y), "x", None)


@program(mesh1, ((512, 256), ("x",)), ((4, 256, 256), ()), ((4, 256), ()))
def ns_scan_grad(mesh, x, w, b):
    def loss(w, b):
        def layer(h, wb):
            return jnp.tanh(h @ wb[0] + wb[1]), None

        return jnp.mean(lax.scan(layer, x, (w, b))[0] ** 2)

    return jax.grad(loss, (0, 1))(w, b)


@program(mesh1, ((1024, 256), ("x",)), ((256,), ()), ((256,), ()))
def ns_norms(mesh, x, g, b):
    def loss(g, b):
        m, v = x.mean(0), x.var(0)
        return ((x - m) * lax.rsqrt(v + 1e-5) * g + b).sum()

    return jax.value_and_grad(loss, (0, 1))(g, b)


@program(mesh2, ((512, 256), ("d",)), ((1024, 256), ("m",)), ((512,), ("d",), jnp.int32))
def ns_embedding(mesh, x, table, ids):
    def loss(table):
        logits = (x + table[ids]) @ table.T
        return -jnp.take_along_axis(jax.nn.log_softmax(logits), ids[:, None], 1).mean()

    return jax.value_and_grad(loss)(table)


@program(mesh1, ((512, 128), ("x",)), ((128, 8), ()), ((8, 128, 256), ("x",)), ((8, 256, 128), ("x",)))
def ns_moe(mesh, x, gate, w1, w2):
    g = jax.nn.softmax(x @ gate)
    d = jax.nn.one_hot(jnp.argmax(g, -1), 8)
    xe = shard(mesh, jnp.einsum("te,td->etd", d, x), "x")
    ye = jnp.einsum("etf,efd->etd", jax.nn.relu(jnp.einsum("etd,edf->etf", xe, w1)), w2)
    return shard(mesh, jnp.einsum("etd,te->td", ye, g * d), "x")


@program(
    mesh1, ((2048, 1024), ("x",), jnp.bfloat16), dict.fromkeys("abcdef", ((1024, 1024), (), jnp.bfloat16))
)
def ns_dp_deep_bf16(mesh, x, p):
    def loss(p):
        h = x
        for k in "abcdef":
            h = jax.nn.relu(h @ p[k])
        return jnp.mean(h.astype(jnp.float32) ** 2)

    return jax.grad(loss)(p)


@program(mesh1, ((2048, 256), ("x",)), ((2048,), ("x",)))
def ns_stats(mesh, x, y):
    return x.sum(0), x.max(0), (x * y[:, None]).sum(0), y.sum(), y.max(), jnp.sort(y)[:8]


# --- small programs about single passes
HALF = [[0, 1, 2, 3], [4, 5, 6, 7]]


def case(*shapes):
    replicated = [(dims, (), *dtype) for dims, *dtype in shapes]
    return mapped(mesh1, P(), *replicated, table=CASES, check_vma=False)


LIMIT = 30 * 2**20 // 4  # elements; the threshold is 7 bytes more


@case(((LIMIT,),), ((1,),))
def sums_at_threshold(a, b):
    return lax.psum(jnp.sin(a), "x"), lax.psum(jnp.sin(b), "x")


@case(((LIMIT,),), ((2,),))
def sums_over_threshold(a, b):
    return lax.psum(jnp.sin(a), "x"), lax.psum(jnp.sin(b), "x")


@case(((LIMIT + 2,),), ((2,),), ((3,),))
def sum_too_large(a, b, c):
    return lax.psum(jnp.sin(a), "x"), lax.psum(jnp.sin(b), "x"), lax.psum(jnp.sin(c), "x")


@case(((8, 4),), ((8, 4),), ((16,), jnp.bfloat16), ((32,),), ((6, 2),), ((3,),))
def sums_of_kinds(a, b, c, d, e, f):
    return (
        lax.psum(jnp.sin(a), "x"),
        lax.pmax(jnp.sin(b), "x"),
        lax.psum(jnp.sin(c), "x"),
        lax.psum(jnp.sin(d), "x", axis_index_groups=HALF),
        lax.psum(jnp.sin(e), "x"),
        lax.psum(jnp.sin(f), "x", axis_index_groups=HALF),
    )


@case(((8, 4),), ((8, 4),), ((8,),))
def sums_in_sequence(a, b, c):
    s = lax.psum(jnp.sin(a), "x")
    t = lax.psum(jnp.cos(s) * b, "x")
    return t, lax.psum(jnp.sin(c), "x"), s.sum()


@case(((8, 4),))
def sum_of_what_is_read_again(a):
    s = jnp.sin(a).sum(0)
    t = lax.psum(s, "x")
    return jnp.cos(t), s * t.sum()


@case(((8, 4),), ((8, 4, 2), jnp.bfloat16), ((8,), jnp.int32))
def gathers_of_dimensions(a, b, c):
    return (
        lax.all_gather(jnp.sin(a), "x", axis=1, tiled=True),
        lax.all_gather(jnp.sin(b), "x", axis=1, tiled=True),
        lax.all_gather(c * c, "x", axis=0, tiled=True),
    )


@case(((8, 16),), ((16, 8),), ((8, 8), jnp.bfloat16), ((24, 8),))
def scatters_of_dimensions(a, b, c, d):
    return (
        lax.psum_scatter(jnp.sin(a), "x", scatter_dimension=0, tiled=True),
        lax.psum_scatter(jnp.sin(b), "x", scatter_dimension=1, tiled=True),
        lax.psum_scatter(jnp.sin(c), "x", scatter_dimension=0, tiled=True),
        lax.psum_scatter(jnp.sin(d), "x", scatter_dimension=1, tiled=True),
    )


@case(((8, 4),), ((8, 4),), ((8,),), ((8,), jnp.int32))
def permutes(a, b, c, d):
    up, down = [(k, (k + 1) % 8) for k in range(8)], [(k, (k - 1) % 8) for k in range(8)]
    return (
        lax.ppermute(jnp.sin(a), "x", up),
        lax.ppermute(jnp.sin(b), "x", down),
        lax.ppermute(jnp.cos(c), "x", up),
        lax.ppermute(d + d, "x", up),
    )


@case(((8, 4),))
def permute_in_loop(a):
    up = [(k, (k + 1) % 8) for k in range(8)]

    def step(k, c):
        x, y = c
        return lax.ppermute(x, "x", up), lax.dynamic_update_slice(y, jnp.sin(x), (8 * k, 0))

    return lax.fori_loop(0, 8, step, (a, jnp.zeros((64, 4))))[1]


@case(((8, 4),), ((4, 4),))
def sum_in_loop(a, w):
    def step(k, c):
        return lax.psum(jnp.tanh(c @ w) + k, "x")

    return lax.fori_loop(0, 9, step, a)


@case(((8, 64),), ((8, 64),))
def exchange(a, b):
    return lax.all_to_all(jnp.sin(a), "x", 0, 1, tiled=True), lax.all_to_all(
        jnp.sin(b), "x", 1, 0, tiled=True
    )


@case(((8, 8),), ((8, 8),))
def sum_with_other_work(a, b):
    return lax.psum(jnp.sin(a), "x") + jnp.exp(b).sum(), jnp.sort(b)


@case(((8, 8),), ((4, 4),))
def sum_of_tuple(a, b):
    return lax.psum((jnp.sin(a), b), "x"), lax.pmin(a, "x"), lax.pmean(b, "x")
