"""JAX programs whose compilations make up the reference corpus.

Each entry of PROGRAMS is name -> (function, abstract arguments). They only need
to be compiled, never run. Keep one idea per program.
"""

import jax
import jax.numpy as jnp
from arguments import BF16, F16, F32, I32, S, entering
from jax import lax, nn, random

PROGRAMS = {}
program = entering(PROGRAMS)


# ---------------------------------------------------------------- element-wise
@program(S(1024, 1024), S(1024, 1024))
def elementwise_chain(x, y):
    return jnp.tanh(x) * y + jnp.exp(-x * x)


@program(S(1 << 20))
def expensive_with_two_users(x):
    e = jnp.exp(jnp.sin(x))
    return e * 2.0, e + x


@program(S(4096, 512))
def diamond(x):
    a = x * 2.0
    b, c = jnp.sin(a), jnp.cos(a)
    return b + c


@program(S(512, 512), S(512, 512), S(512, 512))
def many_outputs(a, b, c):
    s = a + b
    return s * c, s - c, jnp.maximum(s, c), s.sum()


@program(S(128, 257, dtype=BF16))
def bf16_gelu(x):
    return nn.gelu(x) * x


@program(S(64, 64, 64, dtype=F16))
def f16_upcast(x):
    return (x.astype(F32) ** 2).mean(-1).astype(F16)


@program(S(1 << 18, dtype=I32))
def integer_mix(x):
    return jnp.where((x & 7) == 3, x // 5, x * 31) ^ (x >> 3)


@program(S(100, 100, dtype=jnp.complex64))
def complex_math(z):
    return (z * z.conj()).real + jnp.abs(z)


@program(S(2048, 2048))
def predicate_clip(x):
    return jnp.clip(jnp.where(jnp.isnan(x), 0.0, x), -1.0, 1.0), (x > 0).sum()


@program(S(300, 300))
def mandelbrot(c):
    def body(_, state):
        z, n = state
        z = jnp.where(jnp.abs(z) < 2, z * z + c, z)
        return z, n + (jnp.abs(z) < 2).astype(I32)

    return lax.fori_loop(0, 50, body, (jnp.zeros_like(c), jnp.zeros(c.shape, I32)))[1]


# ------------------------------------------------------------------ reductions
@program(S(1024, 1024))
def softmax(x):
    return nn.softmax(x, axis=-1)


@program(S(1024, 1024))
def softmax_column(x):
    return nn.softmax(x, axis=0)


@program(S(256, 2048), S(2048), S(2048))
def layer_norm(x, g, b):
    m = x.mean(-1, keepdims=True)
    v = ((x - m) ** 2).mean(-1, keepdims=True)
    return (x - m) * lax.rsqrt(v + 1e-6) * g + b


@program(S(256, 2048), S(2048), S(256, 2048))
def layer_norm_grad(x, g, dy):
    def f(x, g):
        m = x.mean(-1, keepdims=True)
        v = ((x - m) ** 2).mean(-1, keepdims=True)
        return (x - m) * lax.rsqrt(v + 1e-6) * g

    return jax.vjp(f, x, g)[1](dy)


@program(S(64, 512, 768, dtype=BF16), S(768, dtype=BF16))
def rms_norm(x, g):
    x32 = x.astype(F32)
    return (x32 * lax.rsqrt((x32 * x32).mean(-1, keepdims=True) + 1e-6)).astype(BF16) * g


@program(S(512, 1000))
def row_col_reductions(x):
    return x.sum(0), x.sum(1), x.max(0), (x * x).sum()


@program(S(128, 10000))
def arg_reductions(x):
    return x.argmax(-1), x.argmin(0)


@program(S(32, 128, 128), S(32, 128, 128))
def sibling_reductions(a, b):
    return (a * b).sum((1, 2)), (a + b).max((1, 2)), jnp.linalg.norm(a, axis=(1, 2))


@program(S(1 << 22))
def big_scalar_reduction(x):
    return jnp.sqrt((x * x).sum()), x.mean(), x.var()


@program(S(1000, 1000))
def cumulative(x):
    return x.cumsum(1), jnp.cumprod(x[:10], 0)


@program(S(8, 64, 64, 16))
def pooling(x):
    return (
        lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME"),
        lax.reduce_window(x, 0.0, lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"),
    )


# --------------------------------------------------- shape changers, data movement
@program(S(512, 1024))
def transpose_chain(x):
    return jnp.sin(x).T * 2.0, x.T + 1.0


@program(S(16, 128, 12, 64))
def transpose_021(x):
    return x.transpose(0, 2, 1, 3) * 0.125, nn.relu(x.transpose(0, 3, 2, 1))


@program(S(1000, 3), S(1000, 5), S(1000, 1))
def concat_features(a, b, c):
    return jnp.tanh(jnp.concatenate([a * 2, b + 1, c], axis=1))


@program(S(128, 128), S(64, 128))
def concat_then_reduce(a, b):
    return jnp.concatenate([jnp.exp(a), b]).sum(0), jnp.concatenate([a, b]).mean()


@program(S(256, 256))
def pad_slice(x):
    p = jnp.pad(x * 3, ((1, 1), (1, 1)))
    return p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:] - 4 * x


@program(S(512, 512))
def heat_stencil_loop(u):
    def step(_, u):
        p = jnp.pad(u, 1, mode="edge")
        return u + 0.1 * (p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:] - 4 * u)

    return lax.fori_loop(0, 100, step, u)


@program(S(1000, 64), S(64, dtype=I32), S(64, 64))
def scatter_add(table, idx, upd):
    return table.at[idx].add(upd * 0.5)


@program(S(50000, 256), S(32, 128, dtype=I32))
def embedding_lookup(table, ids):
    return table[ids] * jnp.sqrt(256.0) + 1.0


@program(S(100, 512), S(1, 512), S(dtype=I32))
def dynamic_update(buf, row, i):
    return lax.dynamic_update_slice(buf, jnp.tanh(row), (i, 0))


@program(S(64, 512))
def scan_update_buffer(x):
    def body(i, buf):
        return buf.at[i].set(jnp.sin(x[i]) + buf[i - 1])

    return lax.fori_loop(1, 64, body, jnp.zeros_like(x))


@program(S(1 << 16))
def sort_and_topk(x):
    return jnp.sort(x * 2), jnp.argsort(-x), lax.top_k(x, 10)


@program(S(128, 128), S(128, 128))
def reverse_roll(a, b):
    return a[::-1] + jnp.roll(b, 3, axis=1), jnp.flip(a, 1) * b


@program(S(60, 80))
def iota_masks(x):
    i, j = lax.broadcasted_iota(I32, x.shape, 0), lax.broadcasted_iota(I32, x.shape, 1)
    return jnp.where(i >= j, x, -1e9), jnp.eye(80) @ x.T


@program(S(128, 64, 32))
def reshape_broadcast(x):
    return (x.reshape(128, -1) + x.sum((1, 2))[:, None]).reshape(64, 128, 32)


# ---------------------------------------------------------------- matmul and conv
@program(S(512, 768), S(768, 3072), S(3072), S(3072, 768))
def mlp(x, w1, b1, w2):
    return nn.gelu(x @ w1 + b1) @ w2 + x


@program(S(512, 768, dtype=BF16), S(768, 3072, dtype=BF16), S(3072, 768, dtype=BF16))
def mlp_grad_bf16(x, w1, w2):
    return jax.grad(lambda x, w1, w2: jnp.square(nn.silu(x @ w1) @ w2).mean().astype(F32), (0, 1, 2))(
        x, w1, w2
    )


@program(S(4, 128, 256, dtype=BF16), S(4, 256, 64, dtype=jnp.int8))
def mixed_dot(x, w):
    return jnp.einsum("bij,bjk->bik", x, w.astype(BF16)) * 0.01


@program(S(2, 8, 256, 64), S(2, 8, 256, 64), S(2, 8, 256, 64))
def attention(q, k, v):
    s = jnp.einsum("bhqd,bhkd->bhqk", q, k) / 8.0
    s = jnp.where(jnp.tril(jnp.ones((256, 256), bool)), s, -1e9)
    return jnp.einsum("bhqk,bhkd->bhqd", nn.softmax(s, -1), v)


@program(S(2, 4, 128, 64), S(2, 4, 128, 64), S(2, 4, 128, 64))
def attention_grad(q, k, v):
    def f(q, k, v):
        s = jnp.einsum("bhqd,bhkd->bhqk", q, k) / 8.0
        return jnp.einsum("bhqk,bhkd->bhqd", nn.softmax(s, -1), v).sum()

    return jax.grad(f, (0, 1, 2))(q, k, v)


@program(S(8, 32, 32, 16), S(3, 3, 16, 32), S(32))
def conv_block(x, w, b):
    y = lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    return nn.relu(y + b)


@program(S(16, 28, 28, 8), S(8), S(8))
def batch_norm_train(x, g, b):
    m, v = x.mean((0, 1, 2)), x.var((0, 1, 2))
    return (x - m) * lax.rsqrt(v + 1e-5) * g + b, 0.9 * m, 0.9 * v


@program(S(4, 16, 16, 8), S(3, 3, 8, 8), S(3, 3, 8, 8))
def residual_block_grad(x, w1, w2):
    def f(x, w1, w2):
        c = lambda a, w: lax.conv_general_dilated(
            a, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        return (nn.relu(x + c(nn.relu(c(x, w1)), w2)) ** 2).mean()

    return jax.grad(f, (1, 2))(x, w1, w2)


# ------------------------------------------------------------- training and models
@program(
    {k: S(256, 256) for k in "abcd"},
    {k: S(256, 256) for k in "abcd"},
    {k: S(256, 256) for k in "abcd"},
    {k: S(256, 256) for k in "abcd"},
)
def adam_update(p, g, m, v):
    m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
    v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, g)
    p = jax.tree.map(lambda p, m, v: p - 1e-3 * m / (jnp.sqrt(v) + 1e-8), p, m, v)
    return p, m, v


@program(
    [S(n) for n in (7, 33, 128, 1000, 65, 4096, 11, 500)],
    [S(n) for n in (7, 33, 128, 1000, 65, 4096, 11, 500)],
)
def sgd_many_small(ps, gs):
    return [p - 0.01 * g for p, g in zip(ps, gs)]


def _block(p, x, heads=4):
    b, t, d = x.shape
    ln = lambda x: (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)
    h = ln(x)
    q, k, v = jnp.split(h @ p["qkv"], 3, -1)
    r = lambda a: a.reshape(b, t, heads, d // heads).transpose(0, 2, 1, 3)
    q, k, v = r(q), r(k), r(v)
    s = jnp.einsum("bhqd,bhkd->bhqk", q, k) / jnp.sqrt(d // heads)
    s = jnp.where(jnp.tril(jnp.ones((t, t), bool)), s, -1e9)
    o = jnp.einsum("bhqk,bhkd->bhqd", nn.softmax(s, -1), v).transpose(0, 2, 1, 3).reshape(b, t, d)
    x = x + o @ p["o"]
    return x + nn.gelu(ln(x) @ p["up"]) @ p["down"]


_P = {"qkv": S(128, 384), "o": S(128, 128), "up": S(128, 512), "down": S(512, 128)}


@program(_P, S(4, 64, 128))
def gpt2_block(p, x):
    return _block(p, x)


@program(_P, S(4, 64, 128))
def gpt2_block_grad(p, x):
    return jax.grad(lambda p: (_block(p, x) ** 2).mean())(p)


@program([_P] * 4, S(4, 64, 128), S(500, 128), S(4, 64, dtype=I32))
def gpt2_train_step(ps, x, emb, y):
    def loss(ps, emb):
        h = x
        for p in ps:
            h = _block(p, h)
        lp = nn.log_softmax(h @ emb.T, -1)
        return -jnp.take_along_axis(lp, y[..., None], -1).mean()

    l, g = jax.value_and_grad(loss, (0, 1))(ps, emb)
    return l, jax.tree.map(lambda p, g: p - 0.1 * g, (ps, emb), g)


@program(S(32, 100, 64), S(64, 512), S(128, 512), S(512))
def lstm_scan(xs, wx, wh, b):
    def cell(c, x):
        h, s = c
        i, f, g, o = jnp.split(x @ wx + h @ wh + b, 4, -1)
        s = nn.sigmoid(f) * s + nn.sigmoid(i) * jnp.tanh(g)
        h = nn.sigmoid(o) * jnp.tanh(s)
        return (h, s), h

    z = jnp.zeros((32, 128))
    return lax.scan(cell, (z, z), xs.transpose(1, 0, 2))[1]


@program(S(256, 64), S(64, 8), S(8, 64, 128))
def moe_router(x, wr, we):
    g = nn.softmax(x @ wr)
    w, i = lax.top_k(g, 2)
    return (jnp.einsum("td,edf->tef", x, we)[jnp.arange(256)[:, None], i] * w[..., None]).sum(1)


@program(S(2, dtype=jnp.uint32), S(128, 512))
def dropout(key, x):
    return jnp.where(random.bernoulli(key, 0.9, x.shape), x / 0.9, 0.0)


@program(S(2, dtype=jnp.uint32))
def monte_carlo_pi(key):
    p = random.uniform(key, (100000, 2))
    return 4 * ((p * p).sum(-1) < 1).mean()


# --------------------------------------------------------------------- science code
@program(S(10000), S(10000), S(10000), S(10000))
def black_scholes(s, k, t, v):
    d1 = (jnp.log(s / k) + (0.03 + v * v / 2) * t) / (v * jnp.sqrt(t))
    d2 = d1 - v * jnp.sqrt(t)
    cdf = lambda x: 0.5 * (1 + lax.erf(x / jnp.sqrt(2.0)))
    return s * cdf(d1) - k * jnp.exp(-0.03 * t) * cdf(d2)


@program(S(256, 3), S(256))
def n_body(pos, mass):
    d = pos[:, None] - pos[None]
    r = (d * d).sum(-1) + 1e-3
    return -(d * (mass[None] * r**-1.5)[..., None]).sum(1)


@program(S(100, 4), S(4, 4))
def rk4(y, a):
    f = lambda y: jnp.tanh(y @ a)
    k1 = f(y)
    k2 = f(y + 0.05 * k1)
    k3 = f(y + 0.05 * k2)
    k4 = f(y + 0.1 * k3)
    return y + 0.1 / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


@program(S(64, 64), S(64))
def linear_algebra(a, b):
    m = a @ a.T + jnp.eye(64)
    return jnp.linalg.solve(m, b), jnp.linalg.cholesky(m)


@program(S(1024))
def fft_filter(x):
    return jnp.fft.irfft(jnp.fft.rfft(x * jnp.hanning(1024)) * jnp.exp(-jnp.arange(513) / 100))


@program(S(100), S(100))
def conditional_and_while(x, y):
    z = lax.cond(x.sum() > 0, lambda: jnp.sin(x) + y, lambda: x * y - 1)
    return lax.while_loop(lambda s: (s * s).sum() > 1e-3, lambda s: s * 0.5 + jnp.cos(s) * 1e-6, z)


# ------------------------------------------------------- the Cartpole study (2023)
def _cartpole_dynamics(x, xd, th, thd, force):
    ct, st = jnp.cos(th), jnp.sin(th)
    tmp = (force + 0.05 * thd**2 * st) / 1.1
    tha = (9.8 * st - ct * tmp) / ((4.0 / 3.0 - 0.1 * ct**2 / 1.1) * 0.5)
    xa = tmp - 0.05 * tha * ct / 1.1
    return x + 0.02 * xd, xd + 0.02 * xa, th + 0.02 * thd, thd + 0.02 * tha


def _reset(done, state, noise):
    return [jnp.where(done, n, s) for s, n in zip(state, noise)]


@program(S(2048, 4), S(2048, dtype=I32), S(2, dtype=jnp.uint32))
def cartpole_baseline(state, action, key):
    s = _cartpole_dynamics(*state.T, jnp.where(action == 1, 10.0, -10.0))
    st = jnp.stack(s, 1)
    done = (jnp.abs(st[:, 0]) > 2.4) | (jnp.abs(st[:, 2]) > 0.2)
    noise = random.uniform(key, (2048, 4), minval=-0.05, maxval=0.05)
    return jnp.where(done[:, None], noise, st), jnp.ones(2048), done


@program(S(2048, 4), S(2048, dtype=I32), S(2048, 4))
def cartpole_precomputed_noise(state, action, noise):
    s = _cartpole_dynamics(*state.T, jnp.where(action == 1, 10.0, -10.0))
    st = jnp.stack(s, 1)
    done = (jnp.abs(st[:, 0]) > 2.4) | (jnp.abs(st[:, 2]) > 0.2)
    return jnp.where(done[:, None], noise, st), jnp.ones(2048), done


@program([S(2048)] * 4, S(2048, dtype=I32), [S(2048)] * 4)
def cartpole_no_concatenate(state, action, noise):
    s = _cartpole_dynamics(*state, jnp.where(action == 1, 10.0, -10.0))
    done = (jnp.abs(s[0]) > 2.4) | (jnp.abs(s[2]) > 0.2)
    return _reset(done, s, noise), jnp.ones(2048), done


@program([S(2048)] * 4, S(10, 2048, dtype=I32), [S(2048)] * 4)
def cartpole_unrolled_10(state, actions, noise):
    for t in range(10):
        s = _cartpole_dynamics(*state, jnp.where(actions[t] == 1, 10.0, -10.0))
        done = (jnp.abs(s[0]) > 2.4) | (jnp.abs(s[2]) > 0.2)
        state = _reset(done, s, noise)
    return state, done


@program([S(2048)] * 4, S(100, 2048, dtype=I32), [S(2048)] * 4)
def cartpole_scan(state, actions, noise):
    def step(state, a):
        s = _cartpole_dynamics(*state, jnp.where(a == 1, 10.0, -10.0))
        done = (jnp.abs(s[0]) > 2.4) | (jnp.abs(s[2]) > 0.2)
        return _reset(done, s, noise), done

    return lax.scan(step, state, actions)
