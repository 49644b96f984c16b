"""Structures with equinox: attention among frames in space."""

from functools import partial

import jax
import jax.numpy as jnp
from arguments import BF16, F32, S, entering_when_asked, ints
from jax import lax, nn, random
from steps import eqx_train

PROGRAMS = {}
program = entering_when_asked(PROGRAMS)


@program
def eqx_invariant_points_frames_bf16():
    import equinox as eqx
    import optax

    n, d, pair, heads, points, hidden = 48, 64, 32, 4, 4, 16

    def rotation(q):
        a, b, c, d = jnp.moveaxis(q / jnp.sqrt(jnp.sum(q**2, -1, keepdims=True) + 1e-8), -1, 0)
        rows = [
            [a * a + b * b - c * c - d * d, 2 * (b * c - a * d), 2 * (b * d + a * c)],
            [2 * (b * c + a * d), a * a - b * b + c * c - d * d, 2 * (c * d - a * b)],
            [2 * (b * d - a * c), 2 * (c * d + a * b), a * a - b * b - c * c + d * d],
        ]
        return jnp.stack([jnp.stack(r, -1) for r in rows], -2)

    def linear(i, o, key, bias=True):
        return eqx.nn.Linear(i, o, use_bias=bias, key=key)

    class Layer(eqx.Module):
        qkv: eqx.nn.Linear
        marks: eqx.nn.Linear
        bias: eqx.nn.Linear
        out: eqx.nn.Linear
        weight: jax.Array
        norms: list
        wide: list
        move: eqx.nn.Linear
        drop: eqx.nn.Dropout

        def __init__(self, key):
            k = random.split(key, 7)
            self.qkv = linear(d, 3 * heads * hidden, k[0], False)
            self.marks = linear(d, heads * (3 * points) * 3, k[1])
            self.bias = linear(pair, heads, k[2], False)
            self.out = linear(heads * (hidden + pair + 4 * points), d, k[3])
            self.weight = jnp.zeros(heads)
            self.norms = [eqx.nn.LayerNorm(d) for _ in range(2)]
            self.wide = [linear(d, d, k[4]), linear(d, d, k[5])]
            self.move = linear(d, 6, k[6])
            self.drop = eqx.nn.Dropout(0.1)

        def __call__(self, x, z, turn, place, real, key):
            each = jax.vmap
            q, k, v = jnp.split(each(self.qkv)(x).astype(BF16).reshape(n, heads, -1), 3, -1)
            local = each(self.marks)(x).reshape(n, heads * 3 * points, 3)
            world = jnp.einsum("nij,npj->npi", turn, local) + place[:, None]
            qp, kp, vp = jnp.split(world.reshape(n, heads, 3 * points, 3), 3, 2)
            score = jnp.einsum("qhc,khc->hqk", q, k).astype(F32) * hidden**-0.5
            score += jnp.moveaxis(each(each(self.bias))(z), -1, 0)
            far = jnp.sum((qp[:, None] - kp[None]) ** 2, (-1, -2))
            size = (2 / (9 * points)) ** 0.5 / 2
            score -= size * jnp.moveaxis(far * nn.softplus(self.weight), -1, 0)
            score = jnp.where(real, score * 3**-0.5, -1e9)
            p = nn.softmax(score)
            plain = jnp.einsum("hqk,khc->qhc", p.astype(BF16), v).astype(F32)
            pairs = jnp.einsum("hqk,qkc->qhc", p, z)
            marks = jnp.einsum("hqk,khpi->qhpi", p, vp) - place[:, None, None]
            marks = jnp.einsum("nji,nhpj->nhpi", turn, marks)
            length = jnp.sqrt(jnp.sum(marks**2, -1) + 1e-8)
            parts = plain, pairs, length, marks.reshape(n, heads, -1)
            y = jnp.concatenate([a.reshape(n, -1) for a in parts], -1)
            x = each(self.norms[0])(x + self.drop(each(self.out)(y), key=key))
            y = each(self.wide[1])(nn.relu(each(self.wide[0])(x)))
            x = each(self.norms[1])(x + y)
            move = each(self.move)(x)
            quarter = jnp.concatenate([jnp.ones((n, 1)), move[:, :3]], -1)
            place = place + jnp.einsum("nij,nj->ni", turn, move[:, 3:])
            return x, turn @ rotation(quarter), place

    class Folder(eqx.Module):
        kinds: eqx.nn.Embedding
        apart: eqx.nn.Embedding
        left: eqx.nn.Linear
        right: eqx.nn.Linear
        layer: Layer
        angles: eqx.nn.MLP
        sure: eqx.nn.Linear

        def __init__(self, key):
            k = random.split(key, 7)
            self.kinds = eqx.nn.Embedding(21, d, key=k[0])
            self.apart = eqx.nn.Embedding(33, pair, key=k[1])
            self.left, self.right = linear(d, pair, k[2]), linear(d, pair, k[3])
            self.layer = Layer(k[4])
            self.angles = eqx.nn.MLP(d, 4, 64, 2, key=k[5])
            self.sure = linear(d, 10, k[6])

        def __call__(self, kind, real, key):
            x = jax.vmap(self.kinds)(kind)
            apart = jnp.clip(jnp.arange(n)[:, None] - jnp.arange(n), -16, 16) + 16
            z = jax.vmap(self.left)(x)[:, None] + jax.vmap(self.right)(x) + self.apart.weight[apart]
            turn, place = jnp.broadcast_to(jnp.eye(3), (n, 3, 3)), jnp.zeros((n, 3))
            every = []
            for k in random.split(key, 2):
                x, turn, place = self.layer(x, z, lax.stop_gradient(turn), place, real, k)
                every.append((turn, place))
            angles = jax.vmap(self.angles)(x).reshape(n, 2, 2)
            return every, angles, jax.vmap(self.sure)(x)

    def aligned_error(turn, place, turn_, place_, real):
        local = lambda r, t: jnp.einsum("nji,nmj->nmi", r, t[None] - t[:, None])
        apart = jnp.sqrt(jnp.sum((local(turn, place) - local(turn_, place_)) ** 2, -1) + 1e-4)
        both = real[:, None] * real
        return jnp.sum(jnp.minimum(apart, 10.0) * both) / (10 * jnp.maximum(both.sum(), 1))

    def one(model, key, kind, real, turn, place, angle):
        every, angles, sure = model(kind, real, key)
        value = sum(aligned_error(r, t, turn, place, real) for r, t in every) / len(every)
        unit = angles / jnp.sqrt(jnp.sum(angles**2, -1, keepdims=True) + 1e-8)
        wanted = jnp.stack([jnp.cos(angle), jnp.sin(angle)], -1)
        value += 0.5 * jnp.mean(jnp.sum((unit - wanted) ** 2, -1) * real[:, None])
        last = lax.stop_gradient(every[-1][1])
        gaps = lambda t: jnp.sqrt(jnp.sum((t[:, None] - t) ** 2, -1) + 1e-8)
        off = jnp.abs(gaps(last) - gaps(place))
        near = (gaps(place) < 15) & (real[:, None] * real > 0) & ~jnp.eye(n, dtype=bool)
        good = jnp.mean(off[..., None] < jnp.array([0.5, 1.0, 2.0, 4.0]), -1)
        score = jnp.sum(good * near, 1) / jnp.maximum(near.sum(1), 1)
        band = jnp.clip((score * 10).astype(jnp.int32), 0, 9)
        value += 0.01 * optax.softmax_cross_entropy_with_integer_labels(sure, band).mean()
        return value

    def loss(model, key, *batch):
        keys = random.split(key, batch[0].shape[0])
        return jnp.mean(jax.vmap(partial(one, model))(keys, *batch))

    tx = optax.apply_if_finite(optax.chain(optax.clip_by_global_norm(0.1), optax.amsgrad(1e-3)), 5)
    batch = ints(4, n), S(4, n), S(4, n, 3, 3), S(4, n, 3), S(4, n, 2)
    return eqx_train(Folder, tx, loss, *batch)
