"""Programs of flax linen on images, graphs and tables."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from arguments import BF16, F32, S, entering_when_asked, ints
from jax import lax, nn, random
from language import sinusoids
from steps import labelled, linen_train

PROGRAMS = {}
program = entering_when_asked(PROGRAMS)


@program
def linen_resnet_lamb_bf16():
    import optax
    from flax import linen

    class Block(linen.Module):
        features: int
        stride: int = 1

        @linen.compact
        def __call__(self, x):
            norm = functools.partial(linen.BatchNorm, use_running_average=False, dtype=BF16)
            conv = functools.partial(linen.Conv, use_bias=False, dtype=BF16)
            y = linen.relu(norm()(conv(self.features, (3, 3), (self.stride, self.stride))(x)))
            y = norm(scale_init=linen.initializers.zeros_init())(conv(self.features, (3, 3))(y))
            if x.shape != y.shape:
                x = norm()(conv(self.features, (1, 1), (self.stride, self.stride))(x))
            return linen.relu(x + y)

    class Net(linen.Module):
        @linen.compact
        def __call__(self, x):
            x = linen.Conv(32, (7, 7), (2, 2), dtype=BF16)(x)
            x = linen.max_pool(x, (3, 3), (2, 2), "SAME")
            for n, stride in ((32, 1), (64, 2), (128, 2)):
                x = Block(n, stride)(x)
            return linen.Dense(10, dtype=BF16)(x.mean((1, 2)))

    return linen_train(Net(), optax.lamb(1e-3), labelled, S(8, 64, 64, 3), ints(8))


@program
def linen_vae():
    import optax
    from flax import linen

    class Net(linen.Module):
        @linen.compact
        def __call__(self, x):
            h = linen.relu(linen.Conv(16, (3, 3), (2, 2))(x))
            h = linen.relu(linen.Conv(32, (3, 3), (2, 2))(h)).reshape(x.shape[0], -1)
            mean, logvar = linen.Dense(16)(h), linen.Dense(16)(h)
            z = mean + jnp.exp(0.5 * logvar) * random.normal(self.make_rng("dropout"), mean.shape)
            h = linen.relu(linen.Dense(7 * 7 * 32)(z)).reshape(-1, 7, 7, 32)
            h = linen.relu(linen.ConvTranspose(16, (3, 3), (2, 2))(h))
            return linen.ConvTranspose(1, (3, 3), (2, 2))(h), mean, logvar

    def loss(out, x):
        logits, mean, logvar = out
        bce = optax.sigmoid_binary_cross_entropy(logits, x).sum((1, 2, 3)).mean()
        return bce - 0.5 * (1 + logvar - mean**2 - jnp.exp(logvar)).sum(-1).mean()

    return linen_train(Net(), optax.adam(1e-3), loss, S(16, 28, 28, 1), S(16, 28, 28, 1))


@program
def linen_gcn_spectral_sgdr():
    import optax
    from flax import linen

    class Net(linen.Module):
        @linen.compact
        def __call__(self, x):
            for n in (64, 64):
                x = linen.SpectralNorm(linen.Dense(n))(x, update_stats=True)
                x = linen.WeightNorm(linen.Dense(n))(nn.silu(linen.InstanceNorm()(x[..., None])[..., 0]))
            return linen.Dense(1)(x)

    tx = optax.sgd(
        optax.sgdr_schedule(
            [{"init_value": 0.0, "peak_value": 0.1, "decay_steps": 50, "warmup_steps": 10}] * 2
        )
    )
    return linen_train(Net(), tx, lambda out, y: optax.huber_loss(out, y).mean(), S(32, 16), S(32, 1))


@program
def linen_pixelcnn():
    import optax
    from flax import linen

    class Shifted(linen.Module):
        """A weight-normalised convolution that sees what is above, or above and left."""

        features: int
        kernel: tuple
        right: bool = False

        @linen.compact
        def __call__(self, x):
            h, w = self.kernel
            sides = (w - 1, 0) if self.right else ((w - 1) // 2, w // 2)
            x = jnp.pad(x, ((0, 0), (h - 1, 0), sides, (0, 0)))
            v = self.param("v", linen.initializers.normal(0.05), (h, w, x.shape[-1], self.features))
            g = self.param("g", linen.initializers.ones, (self.features,))
            b = self.param("b", linen.initializers.zeros, (self.features,))
            v = v * (g / jnp.sqrt(jnp.square(v).sum((0, 1, 2)) + 1e-6))
            return (
                lax.conv_general_dilated(x, v, (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC"))
                + b
            )

    class Gated(linen.Module):
        right: bool

        @linen.compact
        def __call__(self, x, aux=None):
            both = lambda x: linen.elu(jnp.concatenate([x, -x], -1))
            conv = functools.partial(Shifted, kernel=(2, 2) if self.right else (2, 3), right=self.right)
            y = conv(x.shape[-1])(both(x))
            if aux is not None:
                y = y + linen.Dense(x.shape[-1])(both(aux))
            y = linen.Dropout(0.5, deterministic=False)(both(y))
            a, b = jnp.split(conv(2 * x.shape[-1])(y), 2, -1)
            return x + a * nn.sigmoid(b)

    class Net(linen.Module):
        @linen.compact
        def __call__(self, x):
            x = jnp.concatenate([x, jnp.ones((*x.shape[:-1], 1))], -1)
            down = lambda x: jnp.pad(x, ((0, 0), (1, 0), (0, 0), (0, 0)))[:, :-1]
            right = lambda x: jnp.pad(x, ((0, 0), (0, 0), (1, 0), (0, 0)))[:, :, :-1]
            above = down(Shifted(24, (2, 3))(x))
            left = down(Shifted(24, (1, 3))(x)) + right(Shifted(24, (2, 1), right=True)(x))
            for _ in range(2):
                above = Gated(False)(above)
                left = Gated(True)(left, above)
            return linen.Dense(5 * 10)(linen.elu(left))

    def loss(out, image):
        weight, out = out[..., :5], out[..., 5:].reshape(*out.shape[:-1], 5, 9)
        mean, scale = out[..., :3], jnp.exp(-jnp.maximum(out[..., 3:6], -7.0))
        turn, x = jnp.tanh(out[..., 6:]), image[..., None, :]
        green = mean[..., 1] + turn[..., 0] * x[..., 0]
        blue = mean[..., 2] + turn[..., 1] * x[..., 0] + turn[..., 2] * x[..., 1]
        centred = x - jnp.stack([mean[..., 0], green, blue], -1)
        upper, lower = scale * (centred + 1 / 255), scale * (centred - 1 / 255)
        inside = nn.sigmoid(upper) - nn.sigmoid(lower)
        logp = jnp.where(
            x < -0.999,
            upper - nn.softplus(upper),
            jnp.where(x > 0.999, -nn.softplus(lower), jnp.log(jnp.maximum(inside, 1e-12))),
        )
        return -jnp.mean(nn.logsumexp(logp.sum(-1) + nn.log_softmax(weight), -1))

    tx = optax.chain(optax.adam(optax.exponential_decay(1e-3, 1, 0.999995), b1=0.95, b2=0.9995))
    return linen_train(Net(), tx, loss, S(4, 16, 16, 3), S(4, 16, 16, 3))


@program
def linen_convnext_ema_bf16():
    import optax
    from flax import linen

    class Block(linen.Module):
        rate: float

        @linen.compact
        def __call__(self, x):
            c = x.shape[-1]
            y = linen.Conv(c, (7, 7), feature_group_count=c, dtype=BF16)(x)
            y = linen.gelu(linen.Dense(4 * c, dtype=BF16)(linen.LayerNorm(1e-6, dtype=BF16)(y)))
            norm = jnp.sqrt(jnp.sum(jnp.square(y.astype(F32)), (1, 2), keepdims=True) + 1e-6)
            norm = norm / (norm.mean(-1, keepdims=True) + 1e-6)
            y = self.param("g", linen.initializers.zeros, (4 * c,)) * (y * norm) + y
            y = linen.Dense(c, dtype=BF16)(y.astype(BF16))
            return x + linen.Dropout(self.rate, broadcast_dims=(1, 2, 3), deterministic=False)(y)

    class Net(linen.Module):
        @linen.compact
        def __call__(self, x):
            rates = iter(np.linspace(0.0, 0.2, 5))
            for stage, (n, depth) in enumerate(((32, 1), (64, 1), (128, 2))):
                if stage:
                    x = linen.LayerNorm(1e-6, dtype=BF16)(x)
                size = 2 if stage else 4
                x = linen.Conv(n, (size, size), (size, size), "VALID", dtype=BF16)(x)
                for _ in range(depth):
                    x = Block(float(next(rates)))(x)
            return linen.Dense(10)(linen.LayerNorm()(x.mean((1, 2)).astype(F32)))

    step, (params, stats, state, *rest) = linen_train(
        Net(), optax.adamw(4e-3, weight_decay=0.05), labelled, S(8, 64, 64, 3), ints(8)
    )

    def with_average(params, average, *rest):
        params, *out = step(params, *rest)
        return params, optax.incremental_update(params, average, 1e-3), *out

    return with_average, (params, params, stats, state, *rest)


@program
def linen_masked_autoencoder():
    import dm_pix as pix
    import optax
    from flax import linen

    class Block(linen.Module):
        @linen.compact
        def __call__(self, x):
            x = x + linen.SelfAttention(4)(linen.LayerNorm()(x))
            y = linen.gelu(linen.Dense(4 * x.shape[-1])(linen.LayerNorm()(x)))
            return x + linen.Dense(x.shape[-1])(y)

    class Net(linen.Module):
        @linen.compact
        def __call__(self, images):
            key = self.make_rng("dropout")
            keys = random.split(key, images.shape[0])

            def augmented(key, image):
                a, b, c = random.split(key, 3)
                image = pix.random_flip_left_right(a, pix.random_crop(b, image, (32, 32, 3)))
                return pix.random_contrast(c, pix.random_brightness(c, image, 0.2), 0.6, 1.4)

            images = jax.vmap(augmented)(keys, images)
            patches = images.reshape(-1, 8, 4, 8, 4, 3).transpose(0, 1, 3, 2, 4, 5).reshape(-1, 64, 48)
            order = jnp.argsort(random.uniform(key, patches.shape[:2]), 1)
            back = jnp.argsort(order, 1)
            pos = sinusoids(64, 64)
            x = linen.Dense(64)(patches) + pos
            x = jnp.take_along_axis(x, order[:, :16, None], 1)
            for _ in range(2):
                x = Block()(x)
            hole = self.param("hole", linen.initializers.normal(0.02), (1, 1, 64))
            x = jnp.concatenate([x, jnp.tile(hole, (x.shape[0], 48, 1))], 1)
            x = Block()(jnp.take_along_axis(x, back[..., None], 1) + pos)
            mean, var = patches.mean(-1, keepdims=True), patches.var(-1, keepdims=True)
            error = jnp.square(linen.Dense(48)(x) - (patches - mean) / jnp.sqrt(var + 1e-6)).mean(-1)
            hidden = (back >= 16).astype(F32)
            return jnp.sum(error * hidden) / hidden.sum()

    return linen_train(Net(), optax.lamb(1e-3, weight_decay=0.05), lambda out: out, S(8, 40, 40, 3))


@program
def linen_dlrm_bags_adagrad():
    import optax
    from flax import linen

    class Net(linen.Module):
        @linen.compact
        def __call__(self, batch):
            dense, ids, rows = batch
            for n in (64, 32):
                dense = linen.relu(linen.Dense(n)(dense))
            bags = [dense]
            for n in range(ids.shape[0]):
                found = linen.Embed(1000, 32)(ids[n] % 1000)
                bags.append(jax.ops.segment_sum(found, rows[n], dense.shape[0], indices_are_sorted=True))
            every = jnp.stack(bags, 1)
            pairs = jnp.einsum("bid,bjd->bij", every, every)
            low = np.tril_indices(every.shape[1], -1)
            x = jnp.concatenate([dense, pairs[:, low[0], low[1]]], -1)
            cross = x
            for _ in range(2):
                cross = x * linen.Dense(x.shape[-1])(linen.Dense(16, use_bias=False)(cross)) + cross
            return linen.Dense(1)(linen.relu(linen.Dense(64)(cross)))[:, 0]

    def loss(out, y):
        return optax.sigmoid_focal_loss(out, y).mean()

    return linen_train(Net(), optax.adagrad(0.02), loss, (S(128, 13), ints(5, 512), ints(5, 512)), S(128))


@program
def linen_molecules_graphs():
    import jraph
    import optax
    from flax import linen

    class Mlp(linen.Module):
        @linen.compact
        def __call__(self, x):
            for _ in range(2):
                x = linen.Dropout(0.1, deterministic=False)(linen.relu(linen.Dense(64)(x)))
            return x

    class Net(linen.Module):
        @linen.compact
        def __call__(self, graph):
            graph = jraph.GraphsTuple(**graph, globals=jnp.zeros((8, 1)))
            graph = jraph.GraphMapFeatures(linen.Dense(64), linen.Dense(64), linen.Dense(64))(graph)
            for _ in range(2):
                update = jraph.concatenated_args(Mlp())
                convolve = jraph.GraphConvolution(update, add_self_edges=True)
                new = convolve(graph)
                graph = graph._replace(nodes=linen.LayerNorm()(new.nodes + graph.nodes))
            owner = jnp.repeat(jnp.arange(8), graph.n_node, total_repeat_length=128)
            return linen.Dense(12)(jraph.segment_mean(graph.nodes, owner, 8))

    def loss(logits, labels):
        known = ~jnp.isnan(labels)
        each = optax.sigmoid_binary_cross_entropy(logits, jnp.where(known, labels, 0.0))
        return jnp.sum(jnp.where(known, each, 0.0)) / known.sum()

    graph = {"nodes": S(128, 9), "edges": S(256, 3), "senders": ints(256), "receivers": ints(256)}
    graph |= {"n_node": ints(8), "n_edge": ints(8)}
    return linen_train(Net(), optax.adam(1e-3), loss, graph, S(8, 12))


@program
def linen_switch_experts_capacity_bf16():
    import optax
    from flax import linen

    class Experts(linen.Module):
        count: int = 4

        @linen.compact
        def __call__(self, x):
            _, t, d = x.shape
            room = int(1.25 * t / self.count)
            wide = x.astype(F32) * random.uniform(self.make_rng("dropout"), x.shape, F32, 0.99, 1.01)
            logits = linen.Dense(self.count, use_bias=False)(wide)
            gates = nn.softmax(logits)
            chosen = nn.one_hot(jnp.argmax(gates, -1), self.count)
            place = jnp.cumsum(chosen, 1) * chosen
            kept = chosen * (place <= room)
            send = kept[..., None] * nn.one_hot((place - 1).astype(jnp.int32), room)
            combine = send * jnp.sum(gates * kept, -1)[..., None, None]
            make = linen.initializers.variance_scaling(1.0, "fan_in", "truncated_normal", batch_axis=0)
            up = self.param("up", make, (self.count, d, 4 * d)).astype(BF16)
            down = self.param("down", make, (self.count, 4 * d, d)).astype(BF16)
            h = jnp.einsum("btec,btd->ebcd", send.astype(BF16), x)
            h = nn.gelu(jnp.einsum("ebcd,edf->ebcf", h, up))
            y = jnp.einsum("ebcf,efd->ebcd", h, down)
            y = jnp.einsum("btec,ebcd->btd", combine.astype(BF16), y)
            balance = self.count * jnp.sum(chosen.mean((0, 1)) * gates.mean((0, 1)))
            return y, 1e-2 * balance + 1e-3 * jnp.mean(nn.logsumexp(logits, -1) ** 2)

    class Net(linen.Module):
        @linen.compact
        def __call__(self, tokens):
            x = linen.Embed(512, 64, dtype=BF16)(tokens)
            extra = 0.0
            for _ in range(2):
                y = linen.RMSNorm(dtype=BF16)(x)
                attend = linen.MultiHeadDotProductAttention(4, dtype=BF16, use_bias=False, normalize_qk=True)
                x = x + attend(y, mask=linen.make_causal_mask(tokens))
                y, more = Experts()(linen.RMSNorm(dtype=BF16)(x))
                x, extra = x + y, extra + more
            return linen.Dense(512, dtype=BF16)(linen.RMSNorm(dtype=BF16)(x)), extra

    loss = lambda out, y: labelled(out[0], y) + out[1]
    tx = optax.adafactor(1e-2, multiply_by_parameter_scale=True, clipping_threshold=1.0)
    return linen_train(Net(), tx, loss, ints(4, 64), ints(4, 64))


@program
def linen_shifted_windows_bf16():
    import optax
    from flax import linen

    w = 4
    row, col = (g.ravel() for g in np.meshgrid(np.arange(w), np.arange(w), indexing="ij"))
    index = (row[:, None] - row + w - 1) * (2 * w - 1) + col[:, None] - col + w - 1

    def windows(x):
        b, h, wide, d = x.shape
        return x.reshape(b, h // w, w, wide // w, w, d).swapaxes(2, 3).reshape(-1, w * w, d)

    class Block(linen.Module):
        shift: int

        @linen.compact
        def __call__(self, x):
            b, h, wide, d = x.shape
            y = jnp.roll(linen.LayerNorm(dtype=BF16)(x), (-self.shift, -self.shift), (1, 2))
            y = windows(y)
            q, k, v = jnp.moveaxis(linen.Dense(3 * d, dtype=BF16)(y).reshape(-1, w * w, 3, 4, d // 4), 2, 0)
            table = self.param("bias", linen.initializers.truncated_normal(0.02), ((2 * w - 1) ** 2, 4))
            s = jnp.einsum("nqhd,nkhd->nhqk", q, k).astype(F32) * (d // 4) ** -0.5
            s = s + table[index].transpose(2, 0, 1)
            if self.shift:
                zone = np.zeros((1, h, wide, 1))
                for a, m in enumerate((slice(-w), slice(-w, -self.shift), slice(-self.shift, None))):
                    for c, n in enumerate((slice(-w), slice(-w, -self.shift), slice(-self.shift, None))):
                        zone[:, m, n] = 3 * a + c
                zone = windows(zone)[..., 0]
                apart = jnp.where(zone[:, :, None] != zone[:, None], -100.0, 0.0)
                s = (s.reshape(b, -1, *s.shape[1:]) + apart[None, :, None]).reshape(s.shape)
            y = jnp.einsum("nhqk,nkhd->nqhd", nn.softmax(s).astype(BF16), v).reshape(-1, w * w, d)
            y = linen.Dense(d, dtype=BF16)(y)
            y = y.reshape(b, h // w, wide // w, w, w, d).swapaxes(2, 3).reshape(x.shape)
            x = x + jnp.roll(y, (self.shift, self.shift), (1, 2))
            y = linen.gelu(linen.Dense(2 * d, dtype=BF16)(linen.LayerNorm(dtype=BF16)(x)))
            return x + linen.Dense(d, dtype=BF16)(y)

    class Net(linen.Module):
        @linen.compact
        def __call__(self, x):
            x = linen.LayerNorm(dtype=BF16)(linen.Conv(32, (4, 4), (4, 4), dtype=BF16)(x))
            for d in (32, 64):
                for shift in (0, w // 2):
                    x = Block(shift)(x)
                b, h, wide, d = x.shape
                x = x.reshape(b, h // 2, 2, wide // 2, 2, d).transpose(0, 1, 3, 4, 2, 5)
                x = x.reshape(b, h // 2, wide // 2, 4 * d)
                x = linen.Dense(2 * d, use_bias=False, dtype=BF16)(linen.LayerNorm(dtype=BF16)(x))
            return linen.Dense(10)(linen.LayerNorm()(x.mean((1, 2))))

    return linen_train(Net(), optax.nadamw(1e-3, weight_decay=0.05), labelled, S(4, 64, 64, 3), ints(4))
