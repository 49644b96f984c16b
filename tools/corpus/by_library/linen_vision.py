"""Programs of linen that train what sees: pictures mixed, pictures beside their texts."""

from functools import partial

import jax
import jax.numpy as jnp
from arguments import BF16, F32, KEY, S, entering_when_asked, ints
from jax import lax, nn, random

PROGRAMS = {}
program = entering_when_asked(PROGRAMS)


@program
def linen_residual_squeezed_mixup_bf16():
    import optax
    from flax import linen

    b, size, classes = 32, 64, 100
    conv = partial(linen.Conv, use_bias=False, dtype=BF16)
    norm = partial(linen.BatchNorm, momentum=0.9, dtype=BF16)

    class Squeeze(linen.Module):
        @linen.compact
        def __call__(self, x):
            y = x.mean((1, 2), keepdims=True)
            y = nn.relu(linen.Conv(x.shape[-1] // 4, (1, 1), dtype=BF16)(y))
            return x * nn.sigmoid(linen.Conv(x.shape[-1], (1, 1), dtype=BF16)(y))

    class Bottleneck(linen.Module):
        width: int
        stride: int
        train: bool

        @linen.compact
        def __call__(self, x):
            n = partial(norm, use_running_average=not self.train)
            y = nn.relu(n()(conv(self.width, (1, 1))(x)))
            y = nn.relu(n()(conv(self.width, (3, 3), self.stride)(y)))
            y = n(scale_init=linen.initializers.zeros)(conv(4 * self.width, (1, 1))(y))
            y = Squeeze()(y)
            if x.shape != y.shape:
                if self.stride > 1:
                    x = linen.avg_pool(x, (2, 2), (2, 2), "SAME")
                x = n()(conv(4 * self.width, (1, 1))(x))
            return nn.relu(x + y)

    class Net(linen.Module):
        @linen.compact
        def __call__(self, x, train):
            n = partial(norm, use_running_average=not train)
            for width, stride in (16, 2), (16, 1), (32, 1):
                x = nn.relu(n()(conv(width, (3, 3), stride)(x)))
            x = linen.max_pool(x, (3, 3), (2, 2), "SAME")
            for i, (width, count) in enumerate([(16, 2), (32, 2), (64, 2)]):
                for j in range(count):
                    x = Bottleneck(width, 2 if i and not j else 1, train)(x)
            x = linen.Dropout(0.1, deterministic=not train)(x.mean((1, 2)))
            return linen.Dense(classes, dtype=F32)(x)

    net = Net()
    rate = optax.warmup_cosine_decay_schedule(0.0, 0.4, 500, 10000)
    decayed = lambda params: jax.tree.map(lambda p: p.ndim > 1, params)
    tx = optax.chain(optax.add_decayed_weights(5e-5, decayed), optax.sgd(rate, 0.9, nesterov=True))

    def step(params, stats, state, average, key, images, labels):
        k1, k2, k3, k4 = random.split(key, 4)
        x = (images.astype(F32) / 255 - jnp.array([0.485, 0.456, 0.406])) / jnp.array([0.229, 0.224, 0.225])
        flip = random.bernoulli(k1, 0.5, (b, 1, 1, 1))
        x = jnp.where(flip, x[:, :, ::-1], x)
        share = random.beta(k2, 0.2, 0.2)
        other = random.permutation(k3, b)
        x = (share * x + (1 - share) * x[other]).astype(BF16)
        hot = optax.smooth_labels(nn.one_hot(labels, classes), 0.1)
        hot = share * hot + (1 - share) * hot[other]

        def objective(params):
            variables = {"params": params, "batch_stats": stats}
            out, new = net.apply(variables, x, True, mutable=["batch_stats"], rngs={"dropout": k4})
            return optax.softmax_cross_entropy(out, hot).mean(), (out, new["batch_stats"])

        (value, (out, new)), grads = jax.value_and_grad(objective, has_aux=True)(params)
        updates, state = tx.update(grads, state, params)
        params = optax.apply_updates(params, updates)
        average = optax.incremental_update(params, average, 1e-4)
        right = jnp.mean(out.argmax(-1) == labels)
        return params, new, state, average, {"loss": value, "right": right, "norm": optax.global_norm(grads)}

    shown = S(b, size, size, 3, dtype=BF16)
    variables = jax.eval_shape(lambda k, x: net.init({"params": k, "dropout": k}, x, True), KEY, shown)
    params, stats = variables["params"], variables["batch_stats"]
    images = S(b, size, size, 3, dtype=jnp.uint8)
    return step, (params, stats, jax.eval_shape(tx.init, params), params, KEY, images, ints(b))


@program
def linen_pictures_texts_contrastive_bf16():
    import optax
    from flax import linen

    b, size, patch, d, heads, length, vocab = 32, 64, 16, 128, 4, 24, 1024

    class Block(linen.Module):
        @linen.compact
        def __call__(self, x, mask):
            y = linen.LayerNorm(dtype=BF16)(x)
            x = x + linen.MultiHeadDotProductAttention(heads, dtype=BF16)(y, y, mask=mask)
            y = linen.Dense(4 * d, dtype=BF16)(linen.LayerNorm(dtype=BF16)(x))
            y = y * nn.sigmoid(1.702 * y)
            return x + linen.Dense(d, dtype=BF16)(y), None

    def tower(x, mask, layers):
        made = linen.scan(
            linen.remat(Block),
            variable_axes={"params": 0},
            split_rngs={"params": True},
            in_axes=linen.broadcast,
            length=layers,
        )
        return made()(x, mask)[0]

    class Sees(linen.Module):
        @linen.compact
        def __call__(self, images):
            x = linen.Conv(d, (patch, patch), patch, use_bias=False, dtype=BF16)(images)
            x = x.reshape(b, -1, d)
            first = self.param("first", linen.initializers.normal(d**-0.5), (d,))
            x = jnp.concatenate([jnp.broadcast_to(first.astype(BF16), (b, 1, d)), x], 1)
            x = x + self.param("places", linen.initializers.normal(d**-0.5), x.shape[1:]).astype(BF16)
            x = tower(linen.LayerNorm(dtype=BF16)(x), None, 3)
            return linen.Dense(64, use_bias=False, dtype=BF16)(linen.LayerNorm(dtype=BF16)(x[:, 0]))

    class Reads(linen.Module):
        @linen.compact
        def __call__(self, text):
            x = linen.Embed(vocab, d, dtype=BF16)(text)
            x = x + self.param("places", linen.initializers.normal(0.01), x.shape[1:]).astype(BF16)
            mask = linen.combine_masks(
                linen.make_causal_mask(text), linen.make_attention_mask(text > 0, text > 0)
            )
            x = linen.LayerNorm(dtype=BF16)(tower(x, mask, 2))
            x = x[jnp.arange(b), text.argmax(-1)]
            return linen.Dense(64, use_bias=False, dtype=BF16)(x)

    class Both(linen.Module):
        @linen.compact
        def __call__(self, images, text):
            unit = lambda x: x / jnp.linalg.norm(x, axis=-1, keepdims=True)
            scale = self.param("scale", lambda _: jnp.log(jnp.array(1 / 0.07)))
            return unit(Sees()(images).astype(F32)), unit(Reads()(text).astype(F32)), jnp.exp(scale)

    net = Both()
    rate = optax.warmup_cosine_decay_schedule(0.0, 5e-4, 2000, 100000)
    decayed = lambda params: jax.tree.map(lambda p: p.ndim > 1, params)
    tx = optax.chain(
        optax.clip_by_global_norm(1.0), optax.adamw(rate, 0.9, 0.98, 1e-6, weight_decay=0.2, mask=decayed)
    )

    def step(params, state, images, text):
        x = ((images / 255 - 0.5) / 0.25).astype(BF16)

        def objective(params):
            seen, read, scale = net.apply({"params": params}, x, text)
            logits = scale * seen @ read.T
            each = lambda z: -jnp.mean(jnp.diagonal(nn.log_softmax(z)))
            return 0.5 * (each(logits) + each(logits.T)), logits

        (value, logits), grads = jax.value_and_grad(objective, has_aux=True)(params)
        updates, state = tx.update(grads, state, params)
        params = optax.apply_updates(params, updates)
        params["scale"] = jnp.clip(params["scale"], 0, jnp.log(100.0))
        found = lax.top_k(logits, 5)[1] == jnp.arange(b)[:, None]
        return params, state, value, found[:, 0].mean(), found.any(1).mean()

    images, text = S(b, size, size, 3, dtype=jnp.uint8), ints(b, length)
    shown = S(b, size, size, 3, dtype=BF16)
    params = jax.eval_shape(net.init, KEY, shown, text)["params"]
    return step, (params, jax.eval_shape(tx.init, params), images, text)
