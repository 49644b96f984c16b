"""Programs of haiku and equinox: a net of few bits, and the fold of a chain."""

from functools import partial

import jax
import jax.numpy as jnp
from arguments import BF16, F32, KEY, S, entering_when_asked, ints
from jax import lax, nn, random
from steps import eqx_train

PROGRAMS = {}
program = entering_when_asked(PROGRAMS)


@program
def haiku_learned_step_quantized_distilled():
    import haiku as hk
    import optax

    @partial(jax.custom_vjp, nondiff_argnums=(2, 3))
    def quantized(x, size, low, high):
        return jnp.round(jnp.clip(x / size, low, high)) * size

    def forward(x, size, low, high):
        return quantized(x, size, low, high), (x, size)

    def backward(low, high, kept, g):
        x, size = kept
        y = x / size
        inside = (y > low) & (y < high)
        slope = jnp.where(inside, jnp.round(y) - y, jnp.clip(y, low, high))
        scale = lax.rsqrt(jnp.float32(x.size * high))
        over = tuple(i for i in range(x.ndim) if i >= size.ndim or size.shape[i] == 1)
        grad = jnp.sum(g * slope, axis=over, keepdims=size.ndim > 0) * scale
        return jnp.where(inside, g, 0.0), grad.reshape(size.shape)

    quantized.defvjp(forward, backward)

    class Conv(hk.Module):
        def __init__(self, n, stride=1, kernel=3, exact=False):
            super().__init__()
            self.n, self.stride, self.kernel, self.exact = n, stride, kernel, exact

        def __call__(self, x):
            shape = (self.kernel, self.kernel, x.shape[-1], self.n)
            w = hk.get_parameter("w", shape, init=hk.initializers.VarianceScaling(2.0))
            if not self.exact:
                one = hk.initializers.Constant(0.1)
                w = quantized(w, hk.get_parameter("w_size", (1, 1, 1, self.n), init=one), -8, 7)
                x = quantized(x, hk.get_parameter("x_size", (), init=one), 0, 15)
            return lax.conv_general_dilated(
                x, w, (self.stride,) * 2, "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
            )

    def network(exact):
        def net(x, training):
            norm = lambda x: hk.BatchNorm(True, True, 0.9)(x, training)
            x = nn.relu(norm(Conv(16, exact=True)(x)))
            for n, stride in ((16, 1), (32, 2), (64, 2)):
                y = nn.relu(norm(Conv(n, stride, exact=exact)(x)))
                y = norm(Conv(n, exact=exact)(y))
                if n != x.shape[-1]:
                    x = norm(Conv(n, stride, 1, exact)(x))
                x = nn.relu(x + y)
            return hk.Linear(100)(x.mean((1, 2)))

        return hk.transform_with_state(net)

    pupil, teacher = network(False), network(True)
    images, labels = S(32, 32, 32, 3), ints(32)
    params, stats = jax.eval_shape(lambda k, x: pupil.init(k, x, True), KEY, images)
    others = jax.eval_shape(lambda k, x: teacher.init(k, x, True), KEY, images)
    sizes = lambda p: jax.tree.map_with_path(lambda n, _: "size" in n[-1].key, p)
    tx = optax.chain(
        optax.masked(optax.add_decayed_weights(1e-4), lambda p: jax.tree.map(lambda s: not s, sizes(p))),
        optax.masked(optax.scale(0.1), sizes),
        optax.sgd(optax.cosine_onecycle_schedule(2000, 0.1), 0.9),
    )

    def step(params, stats, others, state, key, images, labels):
        k1, k2, k3 = random.split(key, 3)
        wide = jnp.pad(images, ((0, 0), (4, 4), (4, 4), (0, 0)), "reflect")
        at = random.randint(k1, (images.shape[0], 2), 0, 9)
        images = jax.vmap(lambda x, i: lax.dynamic_slice(x, (i[0], i[1], 0), (32, 32, 3)))(wide, at)
        images = jnp.where(random.bernoulli(k2, 0.5, (32, 1, 1, 1)), images[:, :, ::-1], images)
        hole = random.randint(k3, (32, 2, 1), 0, 32)
        near = jnp.abs(jnp.arange(32) - hole) < 4
        images = jnp.where((near[:, 0, :, None] & near[:, 1, None])[..., None], 0.0, images)

        taught, _ = teacher.apply(*others, None, images, False)

        def loss(params):
            logits, new = pupil.apply(params, stats, None, images, True)
            soft = optax.kl_divergence(nn.log_softmax(logits / 4), nn.softmax(taught / 4)).mean() * 16
            hard = optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()
            return 0.9 * soft + 0.1 * hard, (new, jnp.mean(logits.argmax(-1) == labels))

        (value, (new, right)), grads = jax.value_and_grad(loss, has_aux=True)(params)
        updates, state = tx.update(grads, state, params)
        params = optax.apply_updates(params, updates)
        params = jax.tree.map(lambda p, s: jnp.maximum(p, 1e-5) if s else p, params, sizes(params))
        return params, new, state, value, right

    return step, (params, stats, others, jax.eval_shape(tx.init, params), KEY, images, labels)


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
