"""Programs of equinox on text and other sequences."""

import jax
import jax.numpy as jnp
import numpy as np
from arguments import S, entering_when_asked, ints
from jax import lax, nn, random
from steps import eqx_train, labelled

PROGRAMS = {}
program = entering_when_asked(PROGRAMS)


@program
def eqx_attention_rotary_novograd():
    import equinox as eqx
    import optax

    class Net(eqx.Module):
        embed: eqx.nn.Embedding
        attend: eqx.nn.MultiheadAttention
        rope: eqx.nn.RotaryPositionalEmbedding
        norm: eqx.nn.RMSNorm
        drop: eqx.nn.Dropout
        out: eqx.nn.Linear

        def __init__(self, key):
            keys = random.split(key, 3)
            self.embed = eqx.nn.Embedding(200, 64, key=keys[0])
            self.attend = eqx.nn.MultiheadAttention(4, 64, use_query_bias=True, key=keys[1])
            self.rope, self.norm = eqx.nn.RotaryPositionalEmbedding(16), eqx.nn.RMSNorm(64)
            self.drop, self.out = eqx.nn.Dropout(0.2), eqx.nn.Linear(64, 200, key=keys[2])

        def __call__(self, tokens, key):
            x = jax.vmap(self.embed)(tokens)
            rotate = lambda q, k, v: (jax.vmap(self.rope, 1, 1)(q), jax.vmap(self.rope, 1, 1)(k), v)
            mask = jnp.tril(jnp.ones((32, 32), bool))
            y = jax.vmap(self.norm)(x)
            x = x + self.drop(self.attend(y, y, y, mask, process_heads=rotate), key=key)
            return jax.vmap(self.out)(x)

    def loss(model, key, x, y):
        return labelled(jax.vmap(model)(x, random.split(key, 8)), y)

    return eqx_train(Net, optax.novograd(1e-3), loss, ints(8, 32), ints(8, 32))


@program
def eqx_gru_classifier_yogi():
    import equinox as eqx
    import optax

    class Net(eqx.Module):
        cell: eqx.nn.GRUCell
        out: eqx.nn.Linear

        def __init__(self, key):
            a, b = random.split(key)
            self.cell, self.out = eqx.nn.GRUCell(2, 32, key=a), eqx.nn.Linear(32, 1, key=b)

        def __call__(self, xs):
            h, _ = lax.scan(lambda h, x: (self.cell(x, h), None), jnp.zeros(32), xs)
            return nn.sigmoid(self.out(h))[0]

    def loss(model, key, x, y):
        p = jax.vmap(model)(x)
        return -jnp.mean(y * jnp.log(p) + (1 - y) * jnp.log(1 - p))

    return eqx_train(Net, optax.yogi(1e-3), loss, S(32, 16, 2), S(32))


@program
def eqx_linear_recurrent_unit():
    import equinox as eqx
    import optax

    class Unit(eqx.Module):
        nu: jax.Array
        theta: jax.Array
        b: tuple
        c: tuple
        d: jax.Array
        glu: eqx.nn.Linear
        norm: eqx.nn.LayerNorm

        def __init__(self, key, n=32, h=48):
            k = random.split(key, 7)
            self.nu = jnp.log(-0.5 * jnp.log(random.uniform(k[0], (n,)) * 0.2 + 0.8))
            self.theta = jnp.log(6.28 * random.uniform(k[1], (n,)))
            self.b = tuple(random.normal(k[2 + i], (n, h)) / np.sqrt(2 * h) for i in range(2))
            self.c = tuple(random.normal(k[4 + i], (h, n)) / np.sqrt(n) for i in range(2))
            self.d, self.glu = random.normal(k[6], (h,)), eqx.nn.Linear(h, 2 * h, key=k[6])
            self.norm = eqx.nn.LayerNorm(h)

        def __call__(self, x, key):
            y = jax.vmap(self.norm)(x)
            step = jnp.exp(-jnp.exp(self.nu) + 1j * jnp.exp(self.theta))
            scale = jnp.sqrt(1 - jnp.abs(step) ** 2)
            into = (y @ (self.b[0] + 1j * self.b[1]).T) * scale
            join = lambda a, b: (a[0] * b[0], b[0] * a[1] + b[1])
            _, h = lax.associative_scan(join, (jnp.broadcast_to(step, into.shape), into))
            y = (h @ (self.c[0] + 1j * self.c[1]).T).real + self.d * y
            y = jax.vmap(self.glu)(nn.gelu(y))
            y = eqx.nn.Dropout(0.1)(nn.glu(y), key=key)
            return x + y

    class Net(eqx.Module):
        into: eqx.nn.Linear
        units: list
        out: eqx.nn.Linear

        def __init__(self, key):
            k = random.split(key, 4)
            self.into, self.out = eqx.nn.Linear(3, 48, key=k[0]), eqx.nn.Linear(48, 10, key=k[1])
            self.units = [Unit(one) for one in k[2:]]

        def __call__(self, x, key):
            x = jax.vmap(self.into)(x)
            for n, unit in enumerate(self.units):
                x = unit(x, random.fold_in(key, n))
            return self.out(x.mean(0))

    def loss(model, key, x, y):
        return labelled(jax.vmap(model)(x, random.split(key, x.shape[0])), y)

    return eqx_train(Net, optax.adamw(1e-3), loss, S(4, 64, 3), ints(4))


@program
def eqx_selective_scan_ademamix():
    import equinox as eqx
    import optax.contrib

    class Mamba(eqx.Module):
        norm: eqx.nn.RMSNorm
        into: eqx.nn.Linear
        conv: eqx.nn.Conv1d
        project: eqx.nn.Linear
        step: eqx.nn.Linear
        a: jax.Array
        d: jax.Array
        out: eqx.nn.Linear

        def __init__(self, key, d=32, e=64, n=8):
            k = random.split(key, 5)
            self.norm, self.into = eqx.nn.RMSNorm(d), eqx.nn.Linear(d, 2 * e, use_bias=False, key=k[0])
            self.conv = eqx.nn.Conv1d(e, e, 4, padding=3, groups=e, key=k[1])
            self.project = eqx.nn.Linear(e, 4 + 2 * n, use_bias=False, key=k[2])
            self.step, self.out = eqx.nn.Linear(4, e, key=k[3]), eqx.nn.Linear(e, d, key=k[4])
            self.a, self.d = jnp.log(jnp.tile(jnp.arange(1.0, n + 1), (e, 1))), jnp.ones(e)

        def __call__(self, x):
            u, gate = jnp.split(jax.vmap(self.into)(jax.vmap(self.norm)(x)), 2, -1)
            u = nn.silu(self.conv(u.T)[:, : x.shape[0]].T)
            delta, b, c = jnp.split(jax.vmap(self.project)(u), [4, 12], -1)
            delta = nn.softplus(jax.vmap(self.step)(delta))
            decay = jnp.exp(delta[..., None] * -jnp.exp(self.a))
            drive = delta[..., None] * b[:, None] * u[..., None]

            @jax.checkpoint
            def one(h, at):
                decay, drive, c = at
                h = decay * h + drive
                return h, h @ c

            _, y = lax.scan(one, jnp.zeros(decay.shape[1:]), (decay, drive, c), unroll=2)
            return x + jax.vmap(self.out)((y + u * self.d) * nn.silu(gate))

    class Net(eqx.Module):
        embed: eqx.nn.Embedding
        blocks: list
        norm: eqx.nn.RMSNorm

        def __init__(self, key):
            k = random.split(key, 3)
            self.embed = eqx.nn.Embedding(128, 32, key=k[0])
            self.blocks, self.norm = [Mamba(one) for one in k[1:]], eqx.nn.RMSNorm(32)

        def __call__(self, tokens):
            x = jax.vmap(self.embed)(tokens)
            for block in self.blocks:
                x = block(x)
            return jax.vmap(self.norm)(x) @ self.embed.weight.T

    loss = lambda model, key, x, y: labelled(jax.vmap(model)(x), y)
    return eqx_train(Net, optax.contrib.ademamix(1e-3, alpha=5.0), loss, ints(4, 32), ints(4, 32))


@program
def eqx_pairformer_triangles():
    import equinox as eqx
    import optax

    class Dense(eqx.Module):
        w: jax.Array
        b: jax.Array | None

        def __init__(self, key, n, m, bias=True):
            self.w = random.truncated_normal(key, -2, 2, (n, m)) * n**-0.5
            self.b = jnp.zeros(m) if bias else None

        def __call__(self, x):
            return x @ self.w if self.b is None else x @ self.w + self.b

    def over(norm, x):
        flat = jax.vmap(norm)(x.reshape(-1, x.shape[-1]))
        return flat.reshape(x.shape)

    class Product(eqx.Module):
        norms: list
        dense: list
        rule: str = eqx.field(static=True)

        def __init__(self, key, rule, d=32):
            k = random.split(key, 6)
            self.norms = [eqx.nn.LayerNorm(d) for _ in range(2)]
            self.dense = [Dense(one, d, d) for one in k]
            self.rule = rule

        def __call__(self, z, mask):
            x = over(self.norms[0], z)
            a, ga, b, gb, g = (f(x) for f in self.dense[:5])
            a, b = nn.sigmoid(ga) * a * mask, nn.sigmoid(gb) * b * mask
            y = jnp.einsum(self.rule, a, b)
            return z + nn.sigmoid(g) * self.dense[5](over(self.norms[1], y))

    class Attend(eqx.Module):
        norm: eqx.nn.LayerNorm
        dense: list
        flip: bool = eqx.field(static=True)

        def __init__(self, key, flip, d=32):
            k = random.split(key, 6)
            self.norm = eqx.nn.LayerNorm(d)
            self.dense = [Dense(one, d, d, False) for one in k[:5]] + [Dense(k[5], d, 4, False)]
            self.flip = flip

        def __call__(self, z, mask):
            x = over(self.norm, z.swapaxes(0, 1) if self.flip else z)
            q, k, v = (f(x).reshape(*x.shape[:2], 4, 8) for f in self.dense[:3])
            s = jnp.einsum("iqhd,ikhd->ihqk", q, k) * 8**-0.5
            s = s + jnp.moveaxis(self.dense[5](x), -1, 0) + 1e9 * (mask[..., 0][:, None, None] - 1)
            y = jnp.einsum("ihqk,ikhd->iqhd", nn.softmax(s), v).reshape(x.shape)
            y = self.dense[4](y * nn.sigmoid(self.dense[3](x)))
            return z + (y.swapaxes(0, 1) if self.flip else y)

    class Change(eqx.Module):
        norm: eqx.nn.LayerNorm
        dense: list

        def __init__(self, key, d):
            k = random.split(key, 3)
            self.norm = eqx.nn.LayerNorm(d)
            sizes = (d, 4 * d), (d, 4 * d), (4 * d, d)
            self.dense = [Dense(one, *n, False) for one, n in zip(k, sizes)]

        def __call__(self, x):
            y = over(self.norm, x)
            return x + self.dense[2](nn.silu(self.dense[0](y)) * self.dense[1](y))

    class Block(eqx.Module):
        products: list
        attends: list
        changes: list

        def __init__(self, key):
            k = random.split(key, 6)
            self.products = [Product(one, r) for one, r in zip(k[:2], ("ikc,jkc->ijc", "kic,kjc->ijc"))]
            self.attends = [Attend(one, flip) for one, flip in zip(k[2:4], (False, True))]
            self.changes = [Change(k[4], 32), Change(k[5], 48)]

        def __call__(self, s, z, mask):
            for product in self.products:
                z = product(z, mask)
            for look in self.attends:
                z = look(z, mask)
            return self.changes[1](s), self.changes[0](z)

    class Net(eqx.Module):
        into: list
        blocks: list
        out: Dense

        def __init__(self, key):
            k = random.split(key, 6)
            sizes = (21, 48), (48, 32), (48, 32)
            self.into = [Dense(one, *n, False) for one, n in zip(k[:3], sizes)]
            self.blocks, self.out = [Block(one) for one in k[3:5]], Dense(k[5], 32, 16)

        def __call__(self, kinds, mask):
            s = self.into[0](nn.one_hot(kinds, 21))
            z = self.into[1](s)[:, None] + self.into[2](s)[None]
            both = (mask[:, None] * mask[None])[..., None]
            for block in self.blocks:
                s, z = eqx.filter_checkpoint(block)(s, z, both)
            return self.out(z + z.swapaxes(0, 1))

    def loss(model, key, kinds, mask, places):
        apart = jnp.sqrt(jnp.sum((places[:, None] - places[None]) ** 2, -1) + 1e-6)
        which = jnp.sum(apart[..., None] > jnp.linspace(2.0, 20.0, 15), -1)
        each = optax.softmax_cross_entropy_with_integer_labels(model(kinds, mask), which)
        pairs = mask[:, None] * mask[None]
        return jnp.sum(each * pairs) / (1e-6 + pairs.sum())

    tx = optax.chain(optax.clip_by_global_norm(0.1), optax.adam(1e-3, 0.9, 0.95))
    return eqx_train(Net, tx, loss, ints(40), S(40), S(40, 3))
