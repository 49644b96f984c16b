"""Programs that train what denoises: pictures and texts in one attention."""

import jax
import jax.numpy as jnp
from arguments import BF16, F32, KEY, S, entering_when_asked
from jax import lax, nn, random

PROGRAMS = {}
program = entering_when_asked(PROGRAMS)


@program
def eqx_pictures_texts_joint_flow_remat_bf16():
    import equinox as eqx
    import optax

    b, side, ch, patch, words, told, d, heads, layers = 4, 16, 4, 2, 20, 96, 128, 4, 3
    many, hd = (side // patch) ** 2, d // heads

    def over(f):
        return jax.vmap(f)

    class Half(eqx.Module):
        shift: eqx.nn.Linear
        qkv: eqx.nn.Linear
        out: eqx.nn.Linear
        up: eqx.nn.Linear
        down: eqx.nn.Linear
        gq: eqx.nn.RMSNorm
        gk: eqx.nn.RMSNorm
        norm: eqx.nn.LayerNorm

        def __init__(self, key):
            k = random.split(key, 5)
            self.shift, self.qkv = eqx.nn.Linear(d, 6 * d, key=k[0]), eqx.nn.Linear(d, 3 * d, key=k[1])
            self.out, self.up = eqx.nn.Linear(d, d, key=k[2]), eqx.nn.Linear(d, 4 * d, key=k[3])
            self.down = eqx.nn.Linear(4 * d, d, key=k[4])
            self.gq, self.gk = (eqx.nn.RMSNorm(hd, use_bias=False) for _ in range(2))
            self.norm = eqx.nn.LayerNorm(d, use_weight=False, use_bias=False)

        def before(self, x, c):
            shifts = jnp.split(self.shift(nn.silu(c)), 6)
            y = over(self.norm)(x) * (1 + shifts[1]) + shifts[0]
            q, k, v = jnp.moveaxis(over(self.qkv)(y).reshape(-1, 3, heads, hd), 1, 0)
            return over(over(self.gq))(q), over(over(self.gk))(k), v, shifts

        def after(self, x, y, shifts):
            x = x + shifts[2] * over(self.out)(y)
            y = over(self.norm)(x) * (1 + shifts[4]) + shifts[3]
            return x + shifts[5] * over(self.down)(nn.gelu(over(self.up)(y)))

    class Block(eqx.Module):
        sees: Half
        reads: Half

        def __init__(self, key):
            self.sees, self.reads = (Half(k) for k in random.split(key))

        def __call__(self, x, t, c):
            q, k, v, s = self.sees.before(x, c)
            q2, k2, v2, s2 = self.reads.before(t, c)
            q, k, v = (jnp.concatenate(p) for p in ((q2, q), (k2, k), (v2, v)))
            score = jnp.einsum("qhs,khs->hqk", q, k).astype(F32) / hd**0.5
            y = jnp.einsum("hqk,khs->qhs", nn.softmax(score).astype(v.dtype), v).reshape(-1, d)
            return self.sees.after(x, y[words:], s), self.reads.after(t, y[:words], s2)

    class Net(eqx.Module):
        enter: eqx.nn.Conv2d
        text: eqx.nn.Linear
        time: eqx.nn.MLP
        pooled: eqx.nn.MLP
        blocks: Block
        last: eqx.nn.Linear
        leave: eqx.nn.Linear
        norm: eqx.nn.LayerNorm

        def __init__(self, key):
            k = random.split(key, 7)
            self.enter, self.text = (
                eqx.nn.Conv2d(ch, d, patch, patch, key=k[0]),
                eqx.nn.Linear(told, d, key=k[1]),
            )
            self.time = eqx.nn.MLP(64, d, d, 1, nn.silu, key=k[2])
            self.pooled = eqx.nn.MLP(told, d, d, 1, nn.silu, key=k[3])
            self.blocks = eqx.filter_vmap(Block)(random.split(k[4], layers))
            self.last, self.leave = (
                eqx.nn.Linear(d, 2 * d, key=k[5]),
                eqx.nn.Linear(d, patch**2 * ch, key=k[6]),
            )
            self.norm = eqx.nn.LayerNorm(d, use_weight=False, use_bias=False)

        def __call__(self, x, t, text, pooled):
            waves = 1000 * t * jnp.exp(-jnp.log(10000.0) * jnp.arange(32) / 32)
            waves = jnp.concatenate([jnp.cos(waves), jnp.sin(waves)]).astype(x.dtype)
            c = self.time(waves) + self.pooled(pooled)
            at = jnp.arange(side // patch)[:, None] / 100 ** (jnp.arange(d // 4) / (d // 4))
            one = jnp.concatenate([jnp.sin(at), jnp.cos(at)], -1)
            n = side // patch
            rows, cols = jnp.broadcast_to(one[:, None], (n, n, d // 2)), jnp.broadcast_to(one, (n, n, d // 2))
            places = jnp.concatenate([rows, cols], -1).reshape(many, d).astype(x.dtype)
            x = self.enter(x).reshape(d, many).T + places
            arrays, static = eqx.partition(self.blocks, eqx.is_array)

            @jax.checkpoint
            def layer(carry, p):
                return eqx.combine(p, static)(*carry, c), None

            (x, _), _ = lax.scan(layer, (x, over(self.text)(text)), arrays)
            scale, shift = jnp.split(self.last(nn.silu(c)), 2)
            x = over(self.leave)(over(self.norm)(x) * (1 + scale) + shift).reshape(n, n, patch, patch, ch)
            return jnp.einsum("hwpqc->chpwq", x).reshape(ch, side, side)

    model = eqx.filter_eval_shape(Net, KEY)
    arrays, static = eqx.partition(model, lambda x: isinstance(x, jax.ShapeDtypeStruct))
    tx = optax.chain(
        optax.clip_by_global_norm(1.0), optax.adamw(optax.linear_schedule(0, 1e-4, 1000), 0.9, 0.95)
    )

    def step(arrays, average, state, key, latents, text, pooled):
        k1, k2, k3 = random.split(key, 3)
        t = nn.sigmoid(random.normal(k1, (b,)))
        t = 3 * t / (1 + 2 * t)
        noise = random.normal(k2, latents.shape)
        mixed = (1 - t)[:, None, None, None] * latents + t[:, None, None, None] * noise
        none = random.bernoulli(k3, 0.1, (b,))
        text = jnp.where(none[:, None, None], 0, text).astype(BF16)
        pooled = jnp.where(none[:, None], 0, pooled).astype(BF16)

        def loss(arrays):
            net = eqx.combine(jax.tree.map(lambda p: p.astype(BF16), arrays), static)
            out = jax.vmap(net)(mixed.astype(BF16), t, text, pooled).astype(F32)
            each = jnp.mean((out - (noise - latents)) ** 2, (1, 2, 3))
            return each.mean(), each

        (value, each), grads = jax.value_and_grad(loss, has_aux=True)(arrays)
        updates, state = tx.update(grads, state, arrays)
        arrays = eqx.apply_updates(arrays, updates)
        average = jax.tree.map(lambda a, p: 0.9999 * a + 0.0001 * p, average, arrays)
        bins = jnp.zeros(4).at[jnp.int32(t * 4)].add(each)
        return arrays, average, state, value, bins

    data = S(b, ch, side, side), S(b, words, told), S(b, told)
    return step, (arrays, arrays, jax.eval_shape(tx.init, arrays), KEY, *data)
