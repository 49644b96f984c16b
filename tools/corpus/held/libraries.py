"""Models of flax nnx and a program of JAX alone."""

import math

import jax
import jax.numpy as jnp
from arguments import BF16, F32, KEY, S, entering_when_asked, ints
from jax import lax, nn, random
from steps import nnx_train

PROGRAMS = {}
program = entering_when_asked(PROGRAMS)


def rms(x, scale, eps=1e-5):
    wide = x.astype(F32)
    return (wide * lax.rsqrt(jnp.mean(wide**2, -1, keepdims=True) + eps) * scale).astype(x.dtype)


def attend(q, k, v, causal=False):
    """Grouped queries without a dot algorithm, which old devices do not support."""
    b, t, heads, d = q.shape
    q = q.reshape(b, t, k.shape[2], -1, d)
    s = jnp.einsum("bqkgd,bskd->bkgqs", q, k).astype(F32) * d**-0.5
    if causal:
        s = jnp.where(jnp.tril(jnp.ones((t, t), bool)), s, -1e30)
    p = jnp.exp(s - s.max(-1, keepdims=True))
    p = (p / p.sum(-1, keepdims=True)).astype(v.dtype)
    return jnp.einsum("bkgqs,bskd->bqkgd", p, v).reshape(b, t, heads, d)


@program
def nnx_diffusion_transformer_flow():
    import optax
    from flax import nnx

    class Block(nnx.Module):
        def __init__(self, rngs, d=64):
            self.norms = nnx.List(
                [nnx.LayerNorm(d, use_scale=False, use_bias=False, rngs=rngs) for _ in range(2)]
            )
            self.attend = nnx.MultiHeadAttention(4, d, decode=False, rngs=rngs)
            self.up, self.down = (nnx.Linear(*n, rngs=rngs) for n in ((d, 256), (256, d)))
            zeros = nnx.initializers.zeros
            self.tune = nnx.Linear(d, 6 * d, kernel_init=zeros, rngs=rngs)

        def __call__(self, x, c):
            s1, b1, g1, s2, b2, g2 = jnp.split(self.tune(nnx.silu(c))[:, None], 6, -1)
            x = x + g1 * self.attend(self.norms[0](x) * (1 + s1) + b1)
            return x + g2 * self.down(nnx.gelu(self.up(self.norms[1](x) * (1 + s2) + b2)))

    class Net(nnx.Module):
        def __init__(self, rngs, d=64):
            self.into = nnx.Linear(12, d, rngs=rngs)
            self.place = nnx.Param(random.normal(rngs.params(), (64, d)) * 0.02)
            self.time = nnx.Sequential(nnx.Linear(32, d, rngs=rngs), nnx.silu, nnx.Linear(d, d, rngs=rngs))
            self.label = nnx.Embed(11, d, rngs=rngs)
            self.blocks = nnx.List([Block(rngs) for _ in range(2)])
            self.out = nnx.Linear(d, 12, rngs=rngs)

        def __call__(self, x, t, y):
            b = x.shape[0]
            x = x.reshape(b, 8, 2, 8, 2, 3).transpose(0, 1, 3, 2, 4, 5).reshape(b, 64, 12)
            x = self.into(x) + self.place[...]
            turn = 1000 * t[:, None] * jnp.exp(-math.log(10000) * jnp.arange(16) / 16)
            c = self.time(jnp.concatenate([jnp.cos(turn), jnp.sin(turn)], -1)) + self.label(y)
            for block in self.blocks:
                x = block(x, c)
            x = self.out(x).reshape(b, 8, 8, 2, 2, 3).transpose(0, 1, 3, 2, 4, 5)
            return x.reshape(b, 16, 16, 3).astype(F32)

    def loss(model, key, x, y):
        k1, k2, k3 = random.split(key, 3)
        t = nn.sigmoid(random.normal(k1, (x.shape[0],)))
        noise, wide = random.normal(k2, x.shape), t[:, None, None, None]
        y = jnp.where(random.bernoulli(k3, 0.1, y.shape), 10, y)
        speed = model((1 - wide) * x + wide * noise, t, y)
        return jnp.mean((speed - (noise - x)) ** 2)

    step, (state, *batch) = nnx_train(Net, optax.adamw(1e-4), loss, KEY, S(8, 16, 16, 3), ints(8))

    def averaged(ema, state, *batch):
        state, value = step(state, *batch)
        return jax.tree.map(lambda e, p: 0.999 * e + 0.001 * p, ema, state[0]), state, value

    return averaged, (state[0], state, *batch)


@program
def nnx_lora_on_int8_llama_bf16():
    import optax
    from flax import nnx

    class Frozen(nnx.Variable):
        pass

    class Adapted(nnx.Module):
        def __init__(self, n, m, rngs, rank=8):
            self.kernel = Frozen(jnp.zeros((n, m), jnp.int8))
            self.scale = Frozen(jnp.ones(m, BF16))
            self.a = nnx.Param(random.normal(rngs.params(), (n, rank)) * 0.02)
            self.b = nnx.Param(jnp.zeros((rank, m)))

        def __call__(self, x):
            low = x @ self.a[...].astype(BF16) @ self.b[...].astype(BF16)
            return x @ (self.kernel[...].astype(BF16) * self.scale[...]) + 2.0 * low

    class Block(nnx.Module):
        def __init__(self, rngs, d=128, ff=320):
            self.norms = nnx.List([Frozen(jnp.ones(d)) for _ in range(2)])
            sizes = {"q": (d, d), "k": (d, 64), "v": (d, 64), "o": (d, d)}
            sizes |= {"gate": (d, ff), "up": (d, ff), "down": (ff, d)}
            self.dense = nnx.Dict({n: Adapted(*s, rngs) for n, s in sizes.items()})

        def __call__(self, x, cos, sin):
            b, t, d = x.shape
            turn = lambda z: z * cos + jnp.concatenate([-z[..., 16:], z[..., :16]], -1) * sin
            y, f = rms(x, self.norms[0][...]), self.dense
            q, k, v = (f[n](y).reshape(b, t, -1, 32) for n in "qkv")
            y = attend(turn(q), turn(k), v, causal=True)
            x = x + f["o"](y.reshape(b, t, d))
            y = rms(x, self.norms[1][...])
            return x + f["down"](nn.silu(f["gate"](y)) * f["up"](y))

    class Net(nnx.Module):
        def __init__(self, rngs):
            self.table = Frozen(jnp.zeros((512, 128), BF16))
            self.blocks = nnx.List([Block(rngs) for _ in range(2)])
            self.norm = Frozen(jnp.ones(128))

        def __call__(self, tokens):
            x = self.table[...][tokens]
            angle = jnp.arange(tokens.shape[1])[:, None] / 10000 ** (jnp.arange(16) / 16)
            angle = jnp.tile(angle, 2)[:, None]
            cos, sin = jnp.cos(angle).astype(BF16), jnp.sin(angle).astype(BF16)
            for block in self.blocks:
                x = nnx.remat(Block.__call__)(block, x, cos, sin)
            return rms(x, self.norm[...]) @ self.table[...].T

    def loss(model, tokens, mask):
        logits = model(tokens[:, :-1]).astype(F32)
        each = optax.softmax_cross_entropy_with_integer_labels(logits, tokens[:, 1:])
        return jnp.sum(each * mask) / jnp.maximum(mask.sum(), 1)

    tx = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(optax.linear_schedule(2e-4, 0, 1000)))
    return nnx_train(Net, tx, loss, ints(4, 65), S(4, 64))


@program
def nnx_spline_network_lion():
    import optax
    from flax import nnx

    class Splines(nnx.Module):
        """A layer of the Kolmogorov-Arnold kind: a cubic spline on each edge, beside a silu."""

        def __init__(self, n, m, rngs, cells=8, order=3):
            self.order = order
            step = 2.0 / cells
            self.grid = nnx.Variable(jnp.arange(-order, cells + order + 1) * step - 1.0)
            self.base = nnx.Linear(n, m, use_bias=False, rngs=rngs)
            self.coef = nnx.Param(0.1 * random.normal(rngs.params(), (n, cells + order, m)))
            self.scale = nnx.Param(jnp.ones((n, m)))
            self.norm = nnx.BatchNorm(m, rngs=rngs)

        def basis(self, x):
            g, x = self.grid[...], x[..., None]
            b = ((x >= g[:-1]) & (x < g[1:])).astype(F32)
            for k in range(1, self.order + 1):
                left = (x - g[: -k - 1]) / (g[k:-1] - g[: -k - 1]) * b[..., :-1]
                b = left + (g[k + 1 :] - x) / (g[k + 1 :] - g[1:-k]) * b[..., 1:]
            return b

        def __call__(self, x):
            weight = self.coef[...] * self.scale[...][:, None]
            y = self.base(nnx.silu(x)) + jnp.einsum("bnk,nkm->bm", self.basis(jnp.tanh(x)), weight)
            return self.norm(y)

    class Net(nnx.Module):
        def __init__(self, rngs):
            self.tables = nnx.List([nnx.Embed(n, 8, rngs=rngs) for n in (12, 7, 50)])
            self.layers = nnx.List([Splines(*n, rngs) for n in ((40, 64), (64, 32))])
            self.mean, self.spread = (nnx.Linear(32, 1, rngs=rngs) for _ in range(2))

        def __call__(self, numbers, kinds):
            x = [table(kinds[:, i]) for i, table in enumerate(self.tables)]
            x = jnp.concatenate([numbers, *x], -1)
            for layer in self.layers:
                x = layer(x)
            return self.mean(x)[:, 0], nnx.softplus(self.spread(x))[:, 0] + 1e-3

    def loss(model, numbers, kinds, y):
        mean, spread = model(numbers, kinds)
        fit = jnp.mean(jnp.log(spread) + 0.5 * ((y - mean) / spread) ** 2)
        for layer in model.layers:
            size = jnp.abs(layer.coef[...]).mean(1)
            p = size / size.sum()
            fit += 1e-3 * (size.sum() - jnp.sum(p * jnp.log(p + 1e-9)))
        return fit

    mask = lambda tree: jax.tree.map(lambda x: x.ndim > 1, tree)
    tx = optax.lion(optax.cosine_onecycle_schedule(500, 3e-4), weight_decay=0.1, mask=mask)
    return nnx_train(Net, tx, loss, S(128, 16), ints(128, 3), S(128))
