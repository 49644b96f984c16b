"""Programs of libraries that nothing of hlofuse was worked out on: a measure of what it makes of unseen ones.

They are like those of libraries.py, and only counted. A program whose modules somebody looks into, to mend
something, belongs there from then on.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from arguments import BF16, F32, KEY, U32, S, entering_when_asked, ints
from jax import lax, nn, random
from steps import (
    IMAGES,
    eqx_train,
    haiku_train,
    keras_infer,
    keras_train,
    labelled,
    linen_train,
    nnx_model,
    nnx_train,
    optax_train,
    shapes,
    sparse,
)

PROGRAMS = {}
program = entering_when_asked(PROGRAMS)


# ------------------------------------------------------------------ keras
@program
def keras_efficientnet_b0_sgd():
    import keras

    schedule = lambda: keras.optimizers.schedules.ExponentialDecay(0.1, 100, 0.96, staircase=True)
    return keras_train(
        lambda: keras.Sequential(
            [
                keras.layers.Input((64, 64, 3)),
                keras.layers.RandomFlip("horizontal"),
                keras.applications.EfficientNetB0(input_shape=(64, 64, 3), classes=10, **IMAGES),
            ]
        ),
        lambda: keras.optimizers.SGD(schedule(), momentum=0.9, weight_decay=1e-5),
        sparse,
        S(4, 64, 64, 3),
        ints(4),
    )


@program
def keras_nasnet_mobile_infer():
    import keras

    return keras_infer(
        lambda: keras.applications.NASNetMobile(input_shape=(64, 64, 3), classes=10, **IMAGES),
        S(2, 64, 64, 3),
    )


@program
def keras_conv_lstm_adamax():
    import keras
    from keras import layers

    def build():
        video = layers.Input((6, 32, 32, 1))
        x = layers.ConvLSTM2D(16, 3, padding="same", return_sequences=True)(video)
        x = layers.ConvLSTM2D(16, 3, padding="same")(layers.BatchNormalization()(x))
        x = layers.SeparableConv2D(32, 3, activation="relu", padding="same")(x)
        x = layers.Concatenate()([layers.GlobalAveragePooling2D()(x), layers.GlobalMaxPooling2D()(x)])
        return keras.Model(video, layers.Dense(7)(layers.PReLU()(layers.Dense(64)(x))))

    return keras_train(build, lambda: keras.optimizers.Adamax(1e-3), sparse, S(4, 6, 32, 32, 1), ints(4))


# ------------------------------------------------------------------ flax linen
@program
def linen_seq2seq_teacher_forcing():
    import optax
    from flax import linen

    class Decoder(linen.Module):
        @functools.partial(
            linen.scan,
            variable_broadcast="params",
            in_axes=1,
            out_axes=1,
            split_rngs={"params": False, "dropout": True},
        )
        @linen.compact
        def __call__(self, carry, x):
            state, last = carry
            x = last if self.is_initializing() else x
            state, y = linen.LSTMCell(128)(state, x)
            logits = linen.Dense(15)(y)
            drawn = random.categorical(self.make_rng("dropout"), logits)
            return (state, nn.one_hot(drawn, 15)), (logits, drawn)

    class Net(linen.Module):
        @linen.compact
        def __call__(self, batch):
            source, target, lengths = batch
            rnn = linen.RNN(linen.LSTMCell(128), return_carry=True)
            state, _ = rnn(source, seq_lengths=lengths)
            _, out = Decoder()((state, target[:, 0]), target[:, :-1])
            return out[0]

    def loss(logits, target):
        mask = jnp.cumsum(target[..., 1], 1) < 1
        each = optax.softmax_cross_entropy(logits, target[:, 1:])
        return jnp.sum(each * mask[:, 1:]) / jnp.sum(mask[:, 1:])

    batch = (S(16, 8, 15), S(16, 6, 15), ints(16))
    return linen_train(Net(), optax.adam(3e-3), loss, batch, S(16, 6, 15))


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


def wmt(decode=False, dtype=F32, layers=2, d=64, vocab=256):
    """An encoder and a decoder that share their embedding, after flax's translation example."""
    from flax import linen

    attention = functools.partial(
        linen.MultiHeadDotProductAttention,
        num_heads=4,
        dtype=dtype,
        use_bias=False,
        kernel_init=linen.initializers.xavier_uniform(),
    )

    class Feed(linen.Module):
        @linen.compact
        def __call__(self, x):
            y = linen.relu(linen.Dense(4 * d, dtype=dtype)(linen.LayerNorm(dtype=dtype)(x)))
            return x + linen.Dense(d, dtype=dtype)(linen.Dropout(0.1, deterministic=decode)(y))

    class Net(linen.Module):
        def setup(self):
            self.embed = linen.Embed(vocab, d, embedding_init=linen.initializers.normal(1.0))
            self.encoder = [(linen.LayerNorm(dtype=dtype), attention(), Feed()) for _ in range(layers)]
            self.decoder = [
                (
                    linen.LayerNorm(dtype=dtype),
                    attention(decode=decode),
                    linen.LayerNorm(dtype=dtype),
                    attention(),
                    Feed(),
                )
                for _ in range(layers)
            ]
            self.norms = linen.LayerNorm(dtype=dtype), linen.LayerNorm(dtype=dtype)

        def encode(self, tokens):
            x = (self.embed(tokens) + sinusoids(tokens.shape[1], d)).astype(dtype)
            mask = linen.make_attention_mask(tokens > 0, tokens > 0)
            for norm, attend, feed in self.encoder:
                y = norm(x)
                x = feed(x + attend(y, y, mask=mask))
            return self.norms[0](x)

        def decode(self, encoded, source, tokens, at=None):
            table = sinusoids(64, d)
            place = table[: tokens.shape[1]] if at is None else lax.dynamic_slice_in_dim(table, at, 1)
            if at is None:
                tokens = jnp.pad(tokens, ((0, 0), (1, 0)))[:, :-1]
            x = (self.embed(tokens) + place).astype(dtype)
            mask = None if decode else linen.make_causal_mask(tokens)
            across = linen.make_attention_mask(tokens >= 0, source > 0)
            for norm, attend, norm2, look, feed in self.decoder:
                y = norm(x)
                x = x + attend(y, y, mask=mask)
                x = feed(x + look(norm2(x), encoded, mask=across))
            return self.embed.attend(self.norms[1](x).astype(F32)) / d**0.5

        def __call__(self, pair):
            source, target = pair
            return self.decode(self.encode(source), source, target)

    return Net()


def sinusoids(length, d):
    angle = np.arange(length)[:, None] * 10000.0 ** (-np.arange(0, d, 2) / d)[None]
    return jnp.asarray(np.concatenate([np.sin(angle), np.cos(angle)], -1), F32)


@program
def linen_translation_bf16():
    import optax

    def loss(logits, target):
        logp = nn.log_softmax(logits)
        confident, low = 0.9, 0.1 / 255
        soft = nn.one_hot(target, 256) * (confident - low) + low
        weight = (target > 0).astype(F32)
        return -(soft * logp).sum(-1).ravel() @ weight.ravel() / weight.sum()

    rate = optax.join_schedules(
        [optax.linear_schedule(0.0, 2e-3, 100), lambda s: 2e-3 * (100 / (s + 100)) ** 0.5], [100]
    )
    tx = optax.adamw(rate, b2=0.98, eps=1e-9, weight_decay=1e-4)
    return linen_train(wmt(dtype=BF16), tx, loss, (ints(4, 32), ints(4, 32)), ints(4, 32))


@program
def linen_translation_beam_search():
    net, beams, length, vocab = wmt(decode=True), 4, 16, 256
    tokens = ints(2 * beams, length)
    made = jax.eval_shape(lambda k, s, t: net.init({"params": k}, (s, t)), KEY, tokens, tokens)

    def search(params, cache, source):
        apply = functools.partial(net.apply, {"params": params})
        encoded = apply(source, method="encode")
        wide = lambda x: jnp.repeat(x, beams, 0)
        encoded, source = wide(encoded), wide(source)

        def more(state):
            at, live, _, done, *_ = state
            return (at < length - 1) & ~jnp.all(live.max(1) / 5.0 < done.min(1))

        def step(state):
            at, live, text, done, kept, cache = state
            token = lax.dynamic_slice_in_dim(text, at, 1, 2).reshape(-1, 1)
            variables = {"params": params, "cache": cache}
            logits, new = net.apply(variables, encoded, source, token, at, method="decode", mutable=["cache"])
            logp = nn.log_softmax(logits[:, 0]).reshape(2, beams, vocab) + live[..., None]
            best, which = lax.top_k(logp.reshape(2, -1), 2 * beams)
            text = jnp.take_along_axis(text, (which // vocab)[..., None], 1)
            text = lax.dynamic_update_slice_in_dim(text, (which % vocab)[..., None], at + 1, 2)
            ended = which % vocab == 2
            live, order = lax.top_k(best - 1e7 * ended, beams)
            finished = jnp.concatenate(
                [done, jnp.where(ended, best / ((5.0 + at + 1) / 6.0) ** 0.6, -1e7)], 1
            )
            kept = jnp.concatenate([kept, text], 1)
            done, first = lax.top_k(finished, beams)
            kept = jnp.take_along_axis(kept, first[..., None], 1)
            parent = jnp.take_along_axis(which // vocab, order, 1) + beams * jnp.arange(2)[:, None]
            cache = jax.tree.map(lambda x: x if x.ndim == 0 else x[parent.ravel()], new["cache"])
            return at + 1, live, jnp.take_along_axis(text, order[..., None], 1), done, kept, cache

        live = jnp.tile(jnp.array([0.0] + [-1e7] * (beams - 1)), (2, 1))
        text = jnp.zeros((2, beams, length), jnp.int32)
        state = jnp.int32(0), live, text, jnp.full((2, beams), -1e7), text, cache
        return lax.while_loop(more, step, state)[3:5]

    return search, (made["params"], made["cache"], ints(2, 24))


def maxtext(dtype, quantized=False, layers=4, d=128, heads=8, kv=2, hd=16, ff=256, vocab=1024):
    """A decoder as MaxText writes it: scanned and rematerialized, grouped queries, rotary positions."""
    from flax import linen

    class General(linen.Module):
        features: tuple
        axes: int = 1

        @linen.compact
        def __call__(self, x):
            into = x.shape[-self.axes :]
            make = linen.initializers.variance_scaling(1.0, "fan_in", "truncated_normal")
            contract = tuple(range(x.ndim - self.axes, x.ndim)), tuple(range(self.axes))
            if not quantized:
                kernel = self.param("kernel", make, (*into, *self.features), F32)
                return lax.dot_general(x, kernel.astype(dtype), (contract, ((), ())))
            kernel = self.param("kernel", lambda k, s: jnp.zeros(s, jnp.int8), (*into, *self.features))
            scale = self.param("scale", linen.initializers.ones, self.features)
            size = jnp.max(jnp.abs(x), axis=contract[0], keepdims=True) / 127.0
            rounded = jnp.clip(jnp.round(x / size), -127, 127).astype(jnp.int8)
            out = lax.dot_general(rounded, kernel, (contract, ((), ())), preferred_element_type=jnp.int32)
            size = size.reshape(*x.shape[: -self.axes], *(1 for _ in self.features))
            return (out.astype(F32) * size * scale).astype(dtype)

    class Norm(linen.Module):
        @linen.compact
        def __call__(self, x):
            y = x.astype(F32)
            y = (y * lax.rsqrt(jnp.mean(lax.square(y), -1, keepdims=True) + 1e-6)).astype(dtype)
            return y * self.param("scale", linen.initializers.ones, (x.shape[-1],)).astype(dtype)

    def rotary(x, place):
        scale = 10000 ** (2 * jnp.arange(hd // 2) / hd)
        turn = place[..., None, None] / scale
        sin, cos = jnp.sin(turn), jnp.cos(turn)
        a, b = jnp.split(x, 2, axis=-1)
        return jnp.concatenate((a * cos - b * sin, b * cos + a * sin), -1).astype(dtype)

    class Layer(linen.Module):
        decode: bool = False

        @linen.compact
        def __call__(self, x, segments, place):
            y = linen.with_logical_constraint(Norm(name="pre")(x), ("batch", "length", "embed"))
            q = rotary(General((heads, hd), name="query")(y) / hd**0.5, place)
            k = rotary(General((kv, hd), name="key")(y), place)
            v = General((kv, hd), name="value")(y)
            if self.decode:
                old = [self.variable("cache", n, jnp.zeros, (x.shape[0], 128, kv, hd), dtype) for n in "kv"]
                index = self.variable("cache", "index", jnp.zeros, (), jnp.int32)
                for one, new in zip(old, (k, v)):
                    one.value = lax.dynamic_update_slice_in_dim(one.value, new, index.value, 1)
                k, v = old[0].value, old[1].value
                mask = (jnp.arange(128) <= index.value)[None, None]
                index.value = index.value + 1
            else:
                t = x.shape[1]
                mask = (segments[:, :, None] == segments[:, None]) & jnp.tril(jnp.ones((t, t), bool))
            q = q.reshape(*q.shape[:2], kv, heads // kv, hd)
            s = jnp.einsum("btkgd,bskd->bkgts", q, k).astype(F32)
            s = jnp.where(mask[:, None, None], s, -0.7 * np.finfo(np.float32).max)
            top = jnp.max(s, -1, keepdims=True)
            p = jnp.exp(s - top)
            out = jnp.einsum("bkgts,bskd->btkgd", p.astype(dtype), v)
            total = jnp.moveaxis(p.sum(-1), 3, 1)[..., None]
            out = (out / total).astype(dtype).reshape(*out.shape[:2], heads, hd)
            x = x + General((d,), axes=2, name="out")(out)
            y = Norm(name="post")(x)
            y = linen.silu(General((ff,), name="gate")(y)) * General((ff,), name="up")(y)
            return x + General((d,), name="down")(y), None

    class Net(linen.Module):
        decode: bool = False

        @linen.compact
        def __call__(self, batch):
            tokens, segments, place = batch
            table = self.param("embedding", linen.initializers.normal(1.0), (vocab, d), F32)
            x = jnp.take(table, tokens, 0).astype(dtype)
            block = linen.remat(
                Layer,
                prevent_cse=False,
                policy=jax.checkpoint_policies.checkpoint_dots_with_no_batch_dims,
                static_argnums=(-1,),
            )
            scanned = linen.scan(
                Layer if self.decode else block,
                variable_axes={"params": 0, "cache": 0},
                split_rngs={"params": True},
                in_axes=(linen.broadcast, linen.broadcast),
                length=layers,
            )
            x, _ = scanned(decode=self.decode)(x, segments, place)
            return General((vocab,), name="logits")(Norm(name="final")(x)).astype(F32)

    return Net


@program
def maxtext_scan_remat_bf16():
    import optax

    def loss(logits, target, weight):
        top = nn.logsumexp(logits, -1)
        each = top - jnp.take_along_axis(logits, target[..., None], -1)[..., 0] + 1e-4 * top**2
        return jnp.sum(each * weight) / (jnp.sum(weight) + 1e-8)

    rate = optax.warmup_cosine_decay_schedule(0.0, 3e-4, 100, 1000, 3e-5)
    tx = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(rate, 0.9, 0.95, weight_decay=0.1))
    batch = ints(4, 64), ints(4, 64), ints(4, 64)
    return linen_train(maxtext(BF16)(), tx, loss, batch, ints(4, 64), S(4, 64))


@program
def maxtext_int8_decode():
    net = maxtext(BF16, quantized=True, layers=2)(decode=True)
    made = jax.eval_shape(lambda k, x: net.init(k, (x, x, x)), KEY, ints(4, 1))

    def generate(params, cache, token, key):
        def one(carry, key):
            cache, token, place = carry
            variables = {"params": params, "cache": cache}
            logits, new = net.apply(variables, (token, token, place), mutable=["cache"])
            order = jnp.sort(logits[:, 0] / 0.7, axis=-1)[:, ::-1]
            mass = jnp.cumsum(nn.softmax(order), -1)
            least = jnp.take_along_axis(order, jnp.sum(mass < 0.9, -1, keepdims=True), -1)
            token = random.categorical(key, jnp.where(logits[:, 0] < least, -1e30, logits[:, 0]))[:, None]
            return (new["cache"], token, place + 1), token

        return lax.scan(one, (cache, token, jnp.zeros_like(token)), random.split(key, 8))

    return generate, (made["params"], made["cache"], ints(4, 1), KEY)


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
def linen_bert_question_answering():
    import optax
    from flax import linen

    class Layer(linen.Module):
        @linen.compact
        def __call__(self, x, mask):
            drop = linen.Dropout(0.1, deterministic=False)
            q, k, v = (linen.DenseGeneral((4, 32), name=n)(x) for n in ("query", "key", "value"))
            s = jnp.einsum("bqhd,bkhd->bhqk", q, k) / np.sqrt(32) + mask
            y = jnp.einsum("bhqk,bkhd->bqhd", drop(nn.softmax(s)), v)
            x = linen.LayerNorm(1e-12)(x + drop(linen.DenseGeneral(128, axis=(-2, -1))(y)))
            y = linen.Dense(128)(nn.gelu(linen.Dense(512)(x), approximate=False))
            return linen.LayerNorm(1e-12)(x + drop(y))

    class Net(linen.Module):
        @linen.compact
        def __call__(self, batch):
            ids, kinds, attend = batch
            x = linen.Embed(2000, 128)(ids) + linen.Embed(2, 128)(kinds)
            x = x + linen.Embed(64, 128)(jnp.arange(64))[None]
            x = linen.Dropout(0.1, deterministic=False)(linen.LayerNorm(1e-12)(x))
            mask = (1.0 - attend[:, None, None].astype(F32)) * jnp.finfo(F32).min
            for _ in range(2):
                x = Layer()(x, mask)
            return linen.Dense(2)(x)

    def loss(out, start, end):
        start_logits, end_logits = out[..., 0], out[..., 1]
        return (labelled(start_logits, start) + labelled(end_logits, end)) / 2

    decayed = lambda p: jax.tree.map_with_path(lambda path, _: "LayerNorm" not in str(path), p)
    rate = optax.linear_schedule(5e-5, 0.0, 1000)
    tx = optax.MultiSteps(
        optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(rate, weight_decay=0.01, mask=decayed)), 2
    )
    return linen_train(Net(), tx, loss, (ints(4, 64), ints(4, 64), ints(4, 64)), ints(4), ints(4))


@program
def linen_rwkv():
    import optax
    from flax import linen

    class Mix(linen.Module):
        @linen.compact
        def __call__(self, x):
            d = x.shape[-1]
            learned = lambda n: self.param(n, linen.initializers.uniform(1.0), (d,))
            past = jnp.pad(x, ((0, 0), (1, 0), (0, 0)))[:, :-1]
            mixed = lambda n: past + (x - past) * learned("mix_" + n)
            k = linen.Dense(d, use_bias=False)(mixed("k"))
            v = linen.Dense(d, use_bias=False)(mixed("v"))
            r = nn.sigmoid(linen.Dense(d, use_bias=False)(mixed("r")))
            w, u = -jnp.exp(learned("decay")), learned("first")

            def one(state, kv):
                a, b, top = state
                k, v = kv
                m = jnp.maximum(top, u + k)
                e, f = jnp.exp(top - m), jnp.exp(u + k - m)
                out = (e * a + f * v) / (e * b + f)
                m = jnp.maximum(top + w, k)
                e, f = jnp.exp(top + w - m), jnp.exp(k - m)
                return (e * a + f * v, e * b + f, m), out

            zero = jnp.zeros((x.shape[0], d))
            _, y = lax.scan(one, (zero, zero, zero - 1e38), (k.swapaxes(0, 1), v.swapaxes(0, 1)))
            return linen.Dense(d, use_bias=False)(r * y.swapaxes(0, 1))

    class Channels(linen.Module):
        @linen.compact
        def __call__(self, x):
            past = jnp.pad(x, ((0, 0), (1, 0), (0, 0)))[:, :-1]
            mix = self.param("mix", linen.initializers.uniform(1.0), (2, x.shape[-1]))
            k, r = (x * m + past * (1 - m) for m in mix)
            y = linen.Dense(x.shape[-1])(jnp.square(nn.relu(linen.Dense(256)(k))))
            return nn.sigmoid(linen.Dense(x.shape[-1])(r)) * y

    class Net(linen.Module):
        @linen.compact
        def __call__(self, tokens):
            x = linen.LayerNorm()(linen.Embed(300, 64)(tokens))
            for _ in range(2):
                x = x + Mix()(linen.LayerNorm()(x))
                x = x + Channels()(linen.LayerNorm()(x))
            return linen.Dense(300)(linen.LayerNorm()(x))

    return linen_train(Net(), optax.adam(6e-4, 0.9, 0.99), labelled, ints(4, 32), ints(4, 32))


@program
def linen_conformer_tagger_crf():
    import optax
    from flax import linen

    class Block(linen.Module):
        @linen.compact
        def __call__(self, x):
            d = x.shape[-1]
            feed = lambda x: linen.Dense(d)(nn.swish(linen.Dense(4 * d)(linen.LayerNorm()(x))))
            x = x + 0.5 * feed(x)
            x = x + linen.MultiHeadDotProductAttention(4, dropout_rate=0.1, deterministic=False)(
                linen.LayerNorm()(x)
            )
            y = nn.glu(linen.Dense(2 * d)(linen.LayerNorm()(x)))
            y = linen.Conv(d, (15,), feature_group_count=d)(y)
            y = nn.swish(linen.BatchNorm(use_running_average=False)(y))
            x = x + linen.Dense(d)(y)
            return linen.LayerNorm()(x + 0.5 * feed(x))

    class Net(linen.Module):
        @linen.compact
        def __call__(self, wave):
            frames = jnp.stack([wave[:, n * 160 : n * 160 + 400] for n in range(64)], 1)
            power = jnp.abs(jnp.fft.rfft(frames * np.hanning(400).astype(np.float32), 512)) ** 2
            mel = self.param("mel", linen.initializers.uniform(0.1), (257, 40))
            x = jnp.log(power @ mel + 1e-6)
            x = linen.relu(linen.Conv(16, (3, 3), (2, 2))(x[..., None]))
            x = linen.Dense(64)(x.reshape(*x.shape[:2], -1))
            for _ in range(2):
                x = Block()(x)
            return linen.Dense(9)(x), self.param("moves", linen.initializers.zeros, (9, 9))

    def loss(out, tags, length):
        score, moves = out
        valid = jnp.arange(32)[None] < length[:, None]

        def forward(alpha, at):
            score, valid = at
            new = nn.logsumexp(alpha[:, :, None] + moves[None], 1) + score
            return jnp.where(valid[:, None], new, alpha), None

        steps = score.swapaxes(0, 1), valid.T
        alpha, _ = lax.scan(forward, steps[0][0], jax.tree.map(lambda x: x[1:], steps))
        single = jnp.take_along_axis(score, tags[..., None], -1)[..., 0] * valid
        pairs = moves[tags[:, :-1], tags[:, 1:]] * valid[:, 1:]
        return jnp.mean(nn.logsumexp(alpha, -1) - single.sum(1) - pairs.sum(1))

    return linen_train(Net(), optax.adan(1e-3), loss, S(4, 10600), ints(4, 32), ints(4))


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


# ------------------------------------------------------------------ flax nnx
@program
def nnx_mixture_of_experts_adamw():
    import optax
    from flax import nnx

    class Layer(nnx.Module):
        def __init__(self, rngs, d=64, experts=4, ff=128):
            self.norms = nnx.List([nnx.RMSNorm(d, rngs=rngs) for _ in range(2)])
            self.attend = nnx.MultiHeadAttention(4, d, decode=False, use_bias=False, rngs=rngs)
            self.router = nnx.Linear(d, experts, use_bias=False, rngs=rngs)
            make = lambda *shape: nnx.Param(random.normal(rngs.params(), shape) * 0.02)
            self.gate, self.up, self.down = (
                make(experts, d, ff),
                make(experts, d, ff),
                make(experts, ff, d),
            )

        def __call__(self, x):
            x = x + self.attend(self.norms[0](x), mask=nnx.make_causal_mask(x[..., 0]))
            y = self.norms[1](x).reshape(-1, x.shape[-1])
            weight = nn.softmax(self.router(y))
            best, which = lax.top_k(weight, 2)
            best = best / best.sum(-1, keepdims=True)
            order = jnp.argsort(which.ravel(), stable=True)
            sorted_rows = y[order // 2]
            sizes = jnp.bincount(which.ravel(), length=4).astype(jnp.int32)
            h = nn.silu(lax.ragged_dot(sorted_rows, self.gate[...], sizes))
            h = h * lax.ragged_dot(sorted_rows, self.up[...], sizes)
            out = lax.ragged_dot(h, self.down[...], sizes)
            out = jnp.zeros_like(out).at[order].set(out).reshape(-1, 2, y.shape[-1])
            share = jnp.mean(nn.one_hot(which, 4).sum(1), 0)
            return x + (out * best[..., None]).sum(1).reshape(x.shape), 4 * jnp.sum(share * weight.mean(0))

    class Net(nnx.Module):
        def __init__(self, rngs):
            self.embed = nnx.Embed(400, 64, rngs=rngs)
            self.layers = nnx.List([Layer(rngs) for _ in range(2)])
            self.norm = nnx.RMSNorm(64, rngs=rngs)

        def __call__(self, tokens):
            x, extra = self.embed(tokens), 0.0
            for layer in self.layers:
                x, balance = layer(x)
                extra += balance
            return self.embed.attend(self.norm(x)), extra

    def loss(model, x, y):
        logits, extra = model(x)
        return labelled(logits, y) + 0.01 * extra

    return nnx_train(Net, optax.adamw(1e-3), loss, ints(4, 32), ints(4, 32))


@program
def nnx_whisper_greedy_decode():
    from flax import nnx

    d, frames = 64, 50

    class Net(nnx.Module):
        def __init__(self, rngs):
            self.convs = nnx.List([nnx.Conv(40, d, (3,), rngs=rngs), nnx.Conv(d, d, (3,), (2,), rngs=rngs)])
            attention = lambda **k: nnx.MultiHeadAttention(4, d, rngs=rngs, **k)
            norms = lambda n: nnx.List([nnx.LayerNorm(d, rngs=rngs) for _ in range(n)])
            feed = lambda: nnx.List([nnx.Linear(d, 4 * d, rngs=rngs), nnx.Linear(4 * d, d, rngs=rngs)])
            self.encoder = nnx.List([nnx.List([norms(2), attention(decode=False), feed()]) for _ in range(2)])
            self.decoder = nnx.List(
                [
                    nnx.List([norms(3), attention(decode=True), attention(decode=False), feed()])
                    for _ in range(2)
                ]
            )
            self.embed, self.place = nnx.Embed(500, d, rngs=rngs), nnx.Embed(32, d, rngs=rngs)
            self.norms = norms(2)

        def encode(self, mel):
            x = mel
            for conv in self.convs:
                x = nn.gelu(conv(x), approximate=False)
            x = x + sinusoids(frames, d)
            for norms, attend, (up, down) in self.encoder:
                x = x + attend(norms[0](x))
                x = x + down(nn.gelu(up(norms[1](x)), approximate=False))
            return self.norms[0](x)

        def __call__(self, token, at, encoded):
            x = self.embed(token) + self.place(at)
            for norms, attend, look, (up, down) in self.decoder:
                x = x + attend(norms[0](x))
                x = x + look(norms[1](x), encoded, encoded)
                x = x + down(nn.gelu(up(norms[2](x)), approximate=False))
            return self.embed.attend(self.norms[1](x))

    def make(rngs):
        model = Net(rngs)
        for block in model.decoder:
            block[1].init_cache((2, 32, d))
        return model

    graph, state = nnx_model(make)

    def transcribe(state, mel):
        encoded = nnx.merge(graph, state).encode(mel)

        def more(carry):
            _, _, at, ended = carry
            return (at < 31) & ~jnp.all(ended)

        def one(carry):
            state, text, at, ended = carry
            model = nnx.merge(graph, state)
            token = lax.dynamic_slice_in_dim(text, at, 1, 1)
            logits = model(token, at[None], encoded)[:, 0]
            token = jnp.where(ended, 3, jnp.where(jnp.arange(500) < 3, -jnp.inf, logits).argmax(-1))
            text = lax.dynamic_update_slice_in_dim(text, token[:, None].astype(jnp.int32), at + 1, 1)
            return nnx.state(model), text, at + 1, ended | (token == 3)

        start = state, jnp.zeros((2, 32), jnp.int32), jnp.int32(0), jnp.zeros(2, bool)
        return lax.while_loop(more, one, start)[1]

    return transcribe, (state, S(2, 2 * frames, 40))


@program
def nnx_realnvp_lion():
    import optax
    from flax import nnx

    class Coupling(nnx.Module):
        def __init__(self, rngs, c, flip):
            self.flip, self.into = flip, nnx.Conv(c // 2, 32, (3, 3), rngs=rngs)
            self.mid, self.out = nnx.Conv(32, 32, (1, 1), rngs=rngs), nnx.Conv(32, c, (3, 3), rngs=rngs)
            self.log, self.bias = nnx.Param(jnp.zeros(c)), nnx.Param(jnp.zeros(c))
            self.turn = nnx.Param(random.orthogonal(rngs.params(), c))

        def __call__(self, x):
            n = x.shape[1] * x.shape[2]
            x = (x + self.bias[...]) * jnp.exp(self.log[...])
            x = jnp.einsum("bhwc,cd->bhwd", x, self.turn[...])
            total = n * (self.log[...].sum() + jnp.linalg.slogdet(self.turn[...])[1])
            a, b = jnp.split(x, 2, -1)
            a, b = (b, a) if self.flip else (a, b)
            shift, scale = jnp.split(self.out(nn.relu(self.mid(nn.relu(self.into(a))))), 2, -1)
            scale = nn.sigmoid(scale + 2.0)
            b = (b + shift) * scale
            out = jnp.concatenate((b, a) if self.flip else (a, b), -1)
            return out, total + jnp.log(scale).sum((1, 2, 3))

    class Net(nnx.Module):
        def __init__(self, rngs):
            self.levels = nnx.List([nnx.List([Coupling(rngs, c, n % 2) for n in range(2)]) for c in (12, 24)])

        def __call__(self, x):
            total = 0.0
            for level in self.levels:
                b, h, w, c = x.shape
                x = x.reshape(b, h // 2, 2, w // 2, 2, c).transpose(0, 1, 3, 5, 2, 4)
                x = x.reshape(b, h // 2, w // 2, 4 * c)
                for flow in level:
                    x, change = flow(x)
                    total = total + change
                x, out = jnp.split(x, 2, -1)
                total = total - 0.5 * jnp.sum(out**2 + jnp.log(2 * jnp.pi), (1, 2, 3))
            return total - 0.5 * jnp.sum(x**2 + jnp.log(2 * jnp.pi), (1, 2, 3))

    loss = lambda model, x: -model(x).mean() / (16 * 16 * 3 * np.log(2))
    return nnx_train(Net, optax.lion(1e-4, weight_decay=1e-3), loss, S(8, 16, 16, 3))


# ------------------------------------------------------------------ equinox
@program
def eqx_unet_attention_diffusion():
    import equinox as eqx
    import optax

    class Res(eqx.Module):
        norms: list
        convs: list
        time: eqx.nn.Linear
        skip: eqx.nn.Conv2d
        drop: eqx.nn.Dropout

        def __init__(self, i, o, key):
            k = random.split(key, 4)
            self.norms = [eqx.nn.GroupNorm(8, i), eqx.nn.GroupNorm(8, o)]
            self.convs = [
                eqx.nn.Conv2d(i, o, 3, padding=1, key=k[0]),
                eqx.nn.Conv2d(o, o, 3, padding=1, key=k[1]),
            ]
            self.time, self.skip = eqx.nn.Linear(64, o, key=k[2]), eqx.nn.Conv2d(i, o, 1, key=k[3])
            self.drop = eqx.nn.Dropout(0.1)

        def __call__(self, x, t, key):
            y = self.convs[0](nn.silu(self.norms[0](x))) + self.time(nn.silu(t))[:, None, None]
            y = self.convs[1](self.drop(nn.silu(self.norms[1](y)), key=key))
            return (y + self.skip(x)) / np.sqrt(2)

    class Attend(eqx.Module):
        norm: eqx.nn.GroupNorm
        qkv: eqx.nn.Conv2d
        out: eqx.nn.Conv2d

        def __init__(self, c, key):
            a, b = random.split(key)
            self.norm, self.qkv = eqx.nn.GroupNorm(8, c), eqx.nn.Conv2d(c, 3 * c, 1, key=a)
            self.out = eqx.nn.Conv2d(c, c, 1, key=b)

        def __call__(self, x):
            c, h, w = x.shape
            q, k, v = self.qkv(self.norm(x)).reshape(3, 4, c // 4, h * w)
            s = nn.softmax(jnp.einsum("hct,hcs->hts", q, k) / np.sqrt(c // 4), -1)
            y = jnp.einsum("hts,hcs->hct", s, v).reshape(c, h, w)
            return (x + self.out(y)) / np.sqrt(2)

    class Net(eqx.Module):
        into: eqx.nn.Conv2d
        time: eqx.nn.MLP
        downs: list
        mid: tuple
        ups: list
        out: eqx.nn.Conv2d

        def __init__(self, key):
            k = iter(random.split(key, 12))
            self.into = eqx.nn.Conv2d(3, 16, 3, padding=1, key=next(k))
            self.time = eqx.nn.MLP(64, 64, 128, 1, activation=nn.silu, key=next(k))
            self.downs = [Res(16, 32, next(k)), Res(32, 64, next(k))]
            self.mid = Res(64, 64, next(k)), Attend(64, next(k)), Res(64, 64, next(k))
            self.ups = [Res(128, 32, next(k)), Res(64, 16, next(k))]
            self.out = eqx.nn.Conv2d(16, 3, 3, padding=1, key=next(k))

        def __call__(self, x, t, key):
            keys = iter(random.split(key, 6))
            freq = jnp.exp(-jnp.log(10000.0) * jnp.arange(32) / 32)
            t = self.time(jnp.concatenate([jnp.sin(t * freq), jnp.cos(t * freq)]))
            x, kept = self.into(x), []
            for res in self.downs:
                x = res(x, t, next(keys))
                kept.append(x)
                x = x.reshape(x.shape[0], x.shape[1] // 2, 2, x.shape[2] // 2, 2).mean((2, 4))
            x = self.mid[2](self.mid[1](self.mid[0](x, t, next(keys))), t, next(keys))
            for res in self.ups:
                skip = kept.pop()
                x = jax.image.resize(x, (x.shape[0], *skip.shape[1:]), "nearest")
                x = res(jnp.concatenate([x, skip]), t, next(keys))
            return self.out(nn.silu(x))

    def loss(model, key, x):
        a, b, c = random.split(key, 3)
        level = jnp.exp(random.normal(a, (x.shape[0],)) * 1.2 - 1.2)[:, None, None, None]
        noise = random.normal(b, x.shape) * level
        weight = (level**2 + 0.25) / (0.5 * level) ** 2
        scale = 1 / jnp.sqrt(0.25 + level**2)
        out = jax.vmap(model)((x + noise) * scale, jnp.log(level).ravel() / 4, random.split(c, x.shape[0]))
        clean = 0.25 * scale**2 * (x + noise) + 0.5 * level * scale * out
        return jnp.mean(weight * (clean - x) ** 2)

    return eqx_train(Net, optax.adam(2e-4), loss, S(4, 3, 16, 16))


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
def eqx_physics_informed_burgers():
    import equinox as eqx
    import optax

    def loss(model, key, inside, start, edge):
        u = lambda t, x: model(jnp.stack([t, x]))

        def residual(at):
            t, x = at
            ut, ux = jax.grad(u, (0, 1))(t, x)
            uxx = jax.jvp(lambda x: jax.grad(u, 1)(t, x), (x,), (jnp.ones(()),))[1]
            return ut + u(t, x) * ux - (0.01 / jnp.pi) * uxx

        pde = jnp.mean(jax.vmap(residual)(inside) ** 2)
        initial = jnp.mean((jax.vmap(lambda x: u(0.0, x))(start) + jnp.sin(jnp.pi * start)) ** 2)
        walls = jnp.mean(jax.vmap(lambda t: u(t, -1.0) ** 2 + u(t, 1.0) ** 2)(edge))
        return pde + 10 * initial + walls

    make = lambda key: eqx.nn.MLP(2, "scalar", 48, 3, activation=jnp.tanh, key=key)
    tx = optax.chain(optax.scale_by_adam(), optax.scale_by_trust_ratio(), optax.scale(-1e-3))
    return eqx_train(make, tx, loss, S(256, 2), S(64), S(64))


# ------------------------------------------------------------------ haiku and what builds on it
@program
def haiku_graph_attention_nodes():
    import haiku as hk
    import jraph
    import optax

    def net(graph):
        graph = jraph.GraphsTuple(**graph, edges=None, globals=None)
        for heads, n in ((4, 16), (1, 7)):

            def query(x, heads=heads, n=n):
                return hk.Linear(heads * n, with_bias=False)(x).reshape(-1, heads, n)

            def logit(sent, received, _edges):
                both = nn.leaky_relu(jnp.concatenate([sent, received], -1), 0.2)
                return hk.Linear(1)(both)

            nodes = hk.dropout(hk.next_rng_key(), 0.5, graph.nodes)
            sent, received = query(nodes)[graph.senders], query(nodes)[graph.receivers]
            weight = logit(sent, received, None)
            weight = jraph.segment_softmax(weight, graph.receivers, 128)
            out = jax.ops.segment_sum(sent * weight, graph.receivers, 128)
            graph = graph._replace(nodes=nn.elu(out.reshape(128, -1)))
        return graph.nodes

    def loss(logits, labels, mask):
        each = optax.softmax_cross_entropy_with_integer_labels(logits, labels)
        return jnp.sum(each * mask) / mask.sum()

    graph = {"nodes": S(128, 64), "senders": ints(512), "receivers": ints(512)}
    graph |= {"n_node": ints(1), "n_edge": ints(1)}
    tx = optax.chain(optax.add_decayed_weights(5e-4), optax.contrib.dog())
    return haiku_train(net, tx, loss, graph, ints(128), S(128))


@program
def haiku_soft_actor_critic():
    import distrax
    import haiku as hk
    import optax

    def actor(obs):
        mean, scale = jnp.split(hk.nets.MLP([64, 64, 6])(obs), 2, -1)
        base = distrax.MultivariateNormalDiag(mean, jnp.exp(jnp.clip(scale, -20, 2)))
        return distrax.Transformed(base, distrax.Block(distrax.Tanh(), 1))

    def critics(obs, action):
        x = jnp.concatenate([obs, action], -1)
        return jnp.concatenate([hk.nets.MLP([64, 64, 1])(x) for _ in range(2)], -1)

    actor, critics = (hk.without_apply_rng(hk.transform(f)) for f in (actor, critics))
    a = jax.eval_shape(actor.init, KEY, S(1, 11))
    c = jax.eval_shape(critics.init, KEY, S(1, 11), S(1, 3))
    tx = optax.adam(3e-4)
    states = [jax.eval_shape(tx.init, p) for p in (a, c, S())]

    def update(a, c, target, log_alpha, states, key, obs, action, reward, discount, following):
        k1, k2 = random.split(key)
        alpha = jnp.exp(log_alpha)
        new, logp = actor.apply(a, following).sample_and_log_prob(seed=k1)
        value = critics.apply(target, following, new).min(-1) - alpha * logp
        goal = lax.stop_gradient(reward + discount * 0.99 * value)

        def critic_loss(c):
            return jnp.mean((critics.apply(c, obs, action) - goal[:, None]) ** 2)

        def actor_loss(a):
            act, logp = actor.apply(a, obs).sample_and_log_prob(seed=k2)
            return jnp.mean(alpha * logp - critics.apply(c, obs, act).min(-1)), logp.mean()

        lc, gc = jax.value_and_grad(critic_loss)(c)
        (la, entropy), ga = jax.value_and_grad(actor_loss, has_aux=True)(a)
        galpha = jax.grad(lambda x: -jnp.exp(x) * lax.stop_gradient(entropy - 3.0))(log_alpha)
        out = []
        for grad, state, params in zip((ga, gc, galpha), states, (a, c, log_alpha)):
            updates, state = tx.update(grad, state, params)
            out.append((optax.apply_updates(params, updates), state))
        target = optax.incremental_update(out[1][0], target, 0.005)
        return out, target, la, lc

    batch = S(128, 11), S(128, 3), S(128), S(128), S(128, 11)
    return update, (a, c, c, S(), states, KEY, *batch)


@program
def rlax_impala_recurrent():
    import haiku as hk
    import optax
    import rlax

    def net(x):
        frames, start = x
        core = hk.LSTM(64)

        def torso(frame):
            for n in (16, 32):
                frame = hk.Conv2D(n, 3)(frame)
                frame = hk.max_pool(frame, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")
                frame = frame + hk.Conv2D(n, 3)(nn.relu(hk.Conv2D(n, 3)(nn.relu(frame))))
            return nn.relu(hk.Linear(64)(hk.Flatten()(nn.relu(frame))))

        h = hk.BatchApply(torso)(frames / 255.0)
        core = hk.ResetCore(core)
        out, _ = hk.dynamic_unroll(core, (h, start), core.initial_state(h.shape[1]))
        heads = hk.BatchApply(hk.Linear(7))(out)
        return heads[..., :6], heads[..., 6]

    def loss(out, action, behaviour, reward, discount):
        logits, value = out
        pi = nn.log_softmax(logits[:-1])
        logp = jnp.take_along_axis(pi, action[..., None], -1)[..., 0]
        rho = jnp.exp(logp - behaviour)
        v = jax.vmap(rlax.vtrace_td_error_and_advantage, 1, 1)(
            lax.stop_gradient(value[:-1]), lax.stop_gradient(value[1:]), reward, 0.99 * discount, rho
        )
        ones = jnp.ones_like(reward)
        pg = jax.vmap(rlax.policy_gradient_loss, 1)(logits[:-1], action, v.pg_advantage, ones)
        entropy = jax.vmap(rlax.entropy_loss, 1)(logits[:-1], ones)
        target = lax.stop_gradient(v.errors + value[:-1])
        return pg.sum() + 0.5 * jnp.sum((value[:-1] - target) ** 2) + 0.01 * entropy.sum()

    tx = optax.chain(optax.clip_by_global_norm(40.0), optax.rmsprop(6e-4, decay=0.99, eps=0.1))
    frames = S(11, 4, 24, 24, 3), S(11, 4, dtype=jnp.bool_)
    return haiku_train(net, tx, loss, frames, ints(10, 4), S(10, 4), S(10, 4), S(10, 4))


# ------------------------------------------------------------------ optax
@program
def optax_shampoo_like():
    import optax

    def scale_by_shampoo(every=10):
        def init(params):
            square = lambda n: jnp.eye(n) * 1e-4
            return jax.tree.map(lambda p: tuple(square(n) for n in p.shape) * 2, params), jnp.zeros(
                (), jnp.int32
            )

        def root(m, order):
            w, v = jnp.linalg.eigh(m + 1e-6 * jnp.eye(len(m)))
            return (v * jnp.maximum(w, 1e-8) ** (-1 / order)) @ v.T

        def update(grads, state, params=None):
            kept, count = state

            def one(g, parts):
                n = g.ndim
                stats = [
                    parts[i] + jnp.tensordot(g, g, (tuple(j for j in range(n) if j != i),) * 2)
                    for i in range(n)
                ]
                fresh = lambda: tuple(root(s, 2 * n) for s in stats)
                roots = lax.cond(count % every == 0, fresh, lambda: tuple(parts[n:]))
                for r in roots:
                    g = jnp.tensordot(g, r, ((0,), (0,)))
                return g, (*stats, *roots)

            leaves, tree = jax.tree.flatten(grads)
            done = [one(g, p) for g, p in zip(leaves, tree.flatten_up_to(kept))]
            new, kept = (tree.unflatten(x) for x in zip(*done))
            return new, (kept, count + 1)

        return optax.GradientTransformation(init, update)

    tx = optax.chain(scale_by_shampoo(), optax.trace(0.9, nesterov=True), optax.scale(-0.1))
    return optax_train(tx, sizes=(32, 64, 10))


@program
def optax_mechanized_madgrad():
    import optax.contrib

    return optax_train(optax.contrib.mechanize(optax.contrib.madgrad(1e-2)), sizes=(64, 128, 128, 10))


# ------------------------------------------------------------------ inference
@program
def blackjax_hmc_chains():
    import blackjax

    def density(x, data):
        scale = jnp.exp(x["log"])
        return (
            -0.5 * jnp.sum(x["z"] ** 2)
            - 0.5 * jnp.sum(((data - x["mu"] - scale * x["z"]) / 10.0) ** 2)
            - x["mu"] ** 2 / 50
            - nn.softplus(x["log"])
        )

    def run(key, x, data):
        sampler = blackjax.hmc(lambda x: density(x, data), 0.1, jnp.ones(10), 8)

        def one(states, key):
            states, info = jax.vmap(sampler.step)(random.split(key, 16), states)
            return states, (states.position["mu"], info.acceptance_rate)

        _, (draws, accepted) = lax.scan(one, jax.vmap(sampler.init)(x), random.split(key, 10))
        ess = blackjax.diagnostics.potential_scale_reduction(draws.T)
        return draws, accepted.mean(), ess

    return run, (KEY, {"z": S(16, 8), "mu": S(16), "log": S(16)}, S(8))


@program
def blackjax_tempered_smc():
    import blackjax

    def run(key, particles):
        prior = lambda x: -0.5 * jnp.sum(x**2) / 9
        likelihood = lambda x: nn.logsumexp(
            jnp.array([-2 * jnp.sum((x - 2) ** 2), -2 * jnp.sum((x + 2) ** 2)])
        )
        smc = blackjax.adaptive_tempered_smc(
            prior,
            likelihood,
            blackjax.mala.build_kernel(),
            blackjax.mala.init,
            {"step_size": jnp.full((1,), 0.05)},
            blackjax.smc.resampling.systematic,
            0.5,
            num_mcmc_steps=4,
        )
        more = lambda c: c[0].tempering_param < 1

        def one(carry):
            state, key = carry
            key, now = random.split(key)
            return smc.step(now, state)[0], key

        return lax.while_loop(more, one, (smc.init(particles), key))[0].particles

    return run, (KEY, S(256, 2))


@program
def dynamax_kalman_em():
    from dynamax.linear_gaussian_ssm import LinearGaussianSSM

    model = LinearGaussianSSM(4, 3)
    params, props = model.initialize(random.PRNGKey(0))

    def fit(params, emissions):
        def one(params, _):
            stats, ll = jax.vmap(lambda y: model.e_step(params, y))(emissions)
            state = model.initialize_m_step_state(params, props)
            return model.m_step(params, props, stats, state)[0], ll.sum()

        return lax.scan(one, params, length=3)

    shaped = jax.tree.map(lambda x: S(*jnp.shape(x)), params)
    return fit, (shaped, S(4, 32, 3))


@program
def numpyro_mixture_subsampled_svi():
    import numpyro
    import numpyro.distributions as dist
    from numpyro.infer import SVI, TraceMeanField_ELBO, autoguide

    def model(y):
        weights = numpyro.sample("weights", dist.Dirichlet(jnp.ones(3)))
        with numpyro.plate("parts", 3):
            loc = numpyro.sample("loc", dist.Normal(0, 5))
            scale = numpyro.sample("scale", dist.InverseGamma(3.0, 1.0))
        mixture = dist.MixtureSameFamily(dist.Categorical(weights), dist.Normal(loc, scale))
        with numpyro.plate("data", y.shape[0], subsample_size=64) as index:
            numpyro.sample("y", mixture, obs=y[index])

    def run(key, y):
        svi = SVI(model, autoguide.AutoNormal(model), numpyro.optim.Adagrad(1e-2), TraceMeanField_ELBO(4))
        state = svi.init(key, y)
        return lax.scan(lambda s, _: svi.update(s, y), state, length=10)

    return run, (KEY, S(512))


@program
def tinygp_quasiseparable():
    import jaxopt
    from tinygp import GaussianProcess
    from tinygp.kernels import quasisep

    def loss(p, x, y):
        kernel = quasisep.SHO(sigma=jnp.exp(p["sigma"]), omega=jnp.exp(p["omega"]), quality=0.7)
        kernel = kernel + quasisep.Matern32(scale=jnp.exp(p["scale"]))
        gp = GaussianProcess(kernel, x, diag=jnp.exp(p["noise"]), assume_sorted=True)
        return -gp.log_probability(y)

    def fit(p, x, y):
        return jaxopt.GradientDescent(loss, maxiter=5, maxls=4).run(p, x, y).params

    return fit, ({k: S() for k in ("sigma", "omega", "scale", "noise")}, S(100), S(100))


# ------------------------------------------------------------------ mathematics and physics
@program
def diffrax_continuous_flow():
    import diffrax
    import equinox as eqx
    import optax

    def loss(model, key, x):
        def field(t, state, given):
            (y, _), (model, noise) = state, given
            f = lambda y: model(jnp.append(y, t))
            value, back = jax.vjp(f, y)
            return value, jnp.sum(back(noise)[0] * noise)

        def one(x, key):
            out = diffrax.diffeqsolve(
                diffrax.ODETerm(field),
                diffrax.Bosh3(),
                1.0,
                0.0,
                -0.1,
                (x, 0.0),
                (model, random.normal(key, x.shape)),
                adjoint=diffrax.BacksolveAdjoint(),
                stepsize_controller=diffrax.ConstantStepSize(),
                max_steps=16,
            )
            z, change = out.ys
            return -0.5 * jnp.sum(z[0] ** 2) - jnp.log(2 * jnp.pi) + change[0]

        return -jax.vmap(one)(x, random.split(key, x.shape[0])).mean()

    make = lambda key: eqx.nn.MLP(3, 2, 32, 2, activation=jnp.tanh, key=key)
    return eqx_train(make, optax.adamw(1e-3), loss, S(64, 2))


@program
def ott_gromov_wasserstein():
    from ott.geometry import pointcloud
    from ott.problems.linear import linear_problem
    from ott.problems.quadratic import quadratic_problem
    from ott.solvers.linear import sinkhorn
    from ott.solvers.quadratic import gromov_wasserstein

    def solve(x, y, a):
        first, second = pointcloud.PointCloud(x), pointcloud.PointCloud(y)
        problem = quadratic_problem.QuadraticProblem(first, second, a=a)
        inner = sinkhorn.Sinkhorn(max_iterations=20)
        solver = gromov_wasserstein.GromovWasserstein(
            linear_solver=inner, epsilon=0.1, max_iterations=5, min_iterations=0
        )
        out = solver(problem)
        fused = linear_problem.LinearProblem(pointcloud.PointCloud(out.matrix @ y, y, epsilon=0.1))
        return out.matrix, inner(fused).f

    return solve, (S(40, 2), S(32, 3), S(40))


@program
def jax_md_neighbour_list():
    from jax_md import energy, partition, simulate, space

    displacement, shift = space.periodic(9.0)
    listed, potential = energy.lennard_jones_neighbor_list(
        displacement,
        9.0,
        sigma=1.0,
        epsilon=1.0,
        r_cutoff=2.0,
        dr_threshold=0.4,
        format=partition.OrderedSparse,
    )
    init, apply = simulate.nve(potential, shift, 1e-3)

    start = np.random.RandomState(0).uniform(0, 9, (128, 3)).astype(np.float32)

    def run(key, r, neighbours):
        neighbours = neighbours.update(r)
        state = init(key, r, kT=0.5, neighbor=neighbours)

        def one(_, carry):
            state, neighbours = carry
            neighbours = neighbours.update(state.position)
            return apply(state, neighbor=neighbours), neighbours

        state, neighbours = lax.fori_loop(0, 10, one, (state, neighbours))
        return state.position, potential(state.position, neighbor=neighbours), neighbours.did_buffer_overflow

    return run, (KEY, S(128, 3), shapes(listed.allocate(start)))


@program
def lattice_boltzmann_cylinder():
    moves = np.array([[x, y] for x in (0, 1, -1) for y in (0, 1, -1)])
    weight = np.array([(4 / 9, 1 / 9, 1 / 36)[abs(m).sum()] for m in moves], np.float32)
    opposite = np.array([int(np.where((moves == -m).all(1))[0][0]) for m in moves])

    def equilibrium(rho, u):
        along = jnp.einsum("id,xyd->xyi", moves.astype(np.float32), u)
        size = jnp.sum(u**2, -1, keepdims=True)
        return rho[..., None] * weight * (1 + 3 * along + 4.5 * along**2 - 1.5 * size)

    def run(f, solid, inlet):
        def one(f, _):
            right = moves[:, 0] == 1
            f = f.at[-1, :, ~right & (moves[:, 0] == -1)].set(f[-2, :, moves[:, 0] == -1])
            rho = f.sum(-1)
            u = jnp.einsum("xyi,id->xyd", f, moves.astype(np.float32)) / rho[..., None]
            u = u.at[0].set(inlet)
            edge = equilibrium(rho, u)
            f = f.at[0, :, right].set(edge[0][:, right].T)
            f = f - (f - edge) / 0.6
            f = jnp.where(solid[..., None], f[..., opposite], f)
            f = jnp.stack([jnp.roll(f[..., i], tuple(m), (0, 1)) for i, m in enumerate(moves)], -1)
            curl = jnp.gradient(u[..., 1], axis=0) - jnp.gradient(u[..., 0], axis=1)
            return f, jnp.sum(curl**2)

        return lax.scan(one, f, length=50)

    return run, (S(128, 48, 9), S(128, 48, dtype=jnp.bool_), S(48, 2))


@program
def spectral_navier_stokes():
    n = 64
    k = np.fft.fftfreq(n, 1 / n).astype(np.float32)
    kx, ky = np.meshgrid(k, k[: n // 2 + 1] * np.where(np.arange(n // 2 + 1) == n // 2, -1, 1), indexing="ij")
    laplace = kx**2 + ky**2
    mask = ((abs(kx) < n / 3) & (abs(ky) < n / 3)).astype(np.float32)

    def run(vorticity, viscosity, force):
        def change(w):
            psi = w / jnp.where(laplace == 0, 1.0, laplace)
            u, v = jnp.fft.irfft2(1j * ky * psi), jnp.fft.irfft2(-1j * kx * psi)
            wx, wy = jnp.fft.irfft2(1j * kx * w), jnp.fft.irfft2(1j * ky * w)
            return mask * jnp.fft.rfft2(force - u * wx - v * wy)

        def one(w, _):
            for scale in (1 / 3, 0.5, 1.0):
                half = 0.005 * scale * viscosity * laplace
                new = (w * (1 - half) + 0.01 * scale * change(w)) / (1 + half)
            energy = jnp.sum(jnp.abs(new) ** 2 / jnp.maximum(laplace, 1.0))
            return new, energy

        w, energy = lax.scan(one, jnp.fft.rfft2(vorticity), length=20)
        return jnp.fft.irfft2(w), energy

    return run, (S(n, n), S(), S(n, n))


@program
def leapfrog_bodies_grad():
    def run(mass, position, velocity):
        def pull(x):
            apart = x[None] - x[:, None]
            distance = jnp.sum(apart**2, -1) + 1e-2
            return jnp.einsum("ijd,ij,j->id", apart, distance**-1.5, mass)

        def one(state, _):
            x, v = state
            v = v + 0.005 * pull(x)
            x = x + 0.01 * v
            return (x, v + 0.005 * pull(x)), None

        (x, v), _ = lax.scan(jax.checkpoint(one), (position, velocity), length=16)
        kinetic = 0.5 * jnp.sum(mass * jnp.sum(v**2, -1))
        apart = jnp.sqrt(jnp.sum((x[None] - x[:, None]) ** 2, -1) + 1e-2)
        return kinetic - 0.5 * jnp.sum(mass[:, None] * mass / apart) + jnp.sum(x[0] ** 2)

    return jax.value_and_grad(run, (0, 2)), (S(96), S(96, 3), S(96, 3))


@program
def linear_algebra_factorings():
    from jax.scipy import linalg

    def run(a, b, c):
        q, r = jnp.linalg.qr(a)
        x = linalg.solve_triangular(r, q.T @ b)
        cov = a.T @ a + 0.1 * jnp.eye(a.shape[1])
        factor = linalg.cho_factor(cov, lower=True)
        y = linalg.cho_solve(factor, a.T @ b)
        w, v = jnp.linalg.eigh(cov)
        u, s, vt = jnp.linalg.svd(c, full_matrices=False)
        low = (u[:, :8] * s[:8]) @ vt[:8]
        z = jnp.linalg.solve(cov, y) + linalg.expm(-cov / jnp.trace(cov)) @ x
        polar = u @ vt
        return x, z, v @ jnp.diag(jnp.sqrt(w)) @ v.T, low, polar, jnp.linalg.slogdet(cov)[1]

    return run, (S(64, 24), S(64, 5), S(40, 32))


@program
def jaxopt_projected_implicit():
    import jaxopt

    def inner(w, c, x, y):
        return jnp.mean(jnp.maximum(0, 1 - y * (x @ w)) ** 2) + jnp.exp(c) * jnp.sum(w**2)

    def outer(c, x, y, xv, yv):
        solver = jaxopt.ProjectedGradient(
            inner, jaxopt.projection.projection_simplex, maxiter=30, implicit_diff=True
        )
        w = solver.run(jnp.full(x.shape[1], 1 / x.shape[1]), c=c, x=x, y=y).params
        return jnp.mean((xv @ w - yv) ** 2)

    return jax.value_and_grad(outer), (S(), S(64, 16), S(64), S(32, 16), S(32))


@program
def retrieval_quantized_clusters():
    def search(query, base, centres, codes, owner, rows):
        distance = jnp.sum(query**2, -1)[:, None] - 2 * query @ centres.T + jnp.sum(centres**2, -1)
        _, near = lax.approx_min_k(distance, 4)
        parts = query.reshape(query.shape[0], 8, 4)
        table = jnp.sum((parts[:, :, None] - codes[None]) ** 2, -1)
        each = jax.vmap(lambda t: t[jnp.arange(8), base].sum(-1))(table)
        inside = jnp.any(owner[None, :, None] == near[:, None], -1)
        best, which = lax.top_k(-jnp.where(inside, each, jnp.inf), 32)
        exact = jnp.sum((rows[which] - query[:, None]) ** 2, -1)
        keys = jnp.argsort(exact, -1)[:, :10]
        order = jnp.lexsort((owner[which].astype(F32), exact))
        seen = jnp.cumsum(jnp.sort(which, -1)[:, 1:] != jnp.sort(which, -1)[:, :-1], -1)
        sums = jax.ops.segment_sum(rows, owner, 64) / jnp.maximum(jnp.bincount(owner, length=64), 1)[:, None]
        return jnp.take_along_axis(which, keys, 1), best, order, seen, sums

    return search, (S(16, 32), ints(1024, 8), S(64, 32), S(8, 256, 4), ints(1024), S(1024, 32))


@program
def pix_augmentations():
    import dm_pix as pix

    def augmented(key, image, label):
        k = random.split(key, 8)
        image = image.astype(F32) / 255.0
        image = pix.random_crop(k[0], pix.pad_to_size(image, 40, 40), (32, 32, 3))
        image = pix.random_flip_left_right(k[1], image)
        image = pix.random_hue(k[2], pix.random_saturation(k[3], image, 0.6, 1.4), 0.1)
        image = pix.random_gamma(k[4], jnp.clip(image, 1e-3, 1.0), 0.8, 1.2)
        image = pix.rotate(image, random.uniform(k[5], (), minval=-0.3, maxval=0.3))
        image = pix.gaussian_blur(image, 0.8, 3, padding="SAME")
        image = jnp.where(random.uniform(k[6]) < 0.1, pix.solarize(image, 0.5), image)
        return pix.rgb_to_grayscale(image, keep_dims=True) * 0.1 + image * 0.9, nn.one_hot(label, 10)

    def batch(key, images, labels):
        a, b, c = random.split(key, 3)
        x, y = jax.vmap(augmented)(random.split(a, images.shape[0]), images, labels)
        share = random.beta(b, 0.2, 0.2)
        order = random.permutation(c, images.shape[0])
        return share * x + (1 - share) * x[order], share * y + (1 - share) * y[order]

    return batch, (KEY, S(16, 32, 32, 3, dtype=jnp.uint8), ints(16))


@program
def brax_spring_rollout():
    from brax import envs

    env = envs.get_environment("reacher", backend="spring")

    def rollout(key, w):
        def one(state, _):
            state = env.step(state, jnp.tanh(state.obs @ w))
            return state, state.reward

        return lax.scan(one, env.reset(key), length=8)[1].sum()

    return jax.vmap(rollout), (S(8, 2, dtype=U32), S(8, env.observation_size, env.action_size))


@program
def evosax_snes_policy():
    from evosax.algorithms import SNES

    search = SNES(population_size=16, solution=jnp.zeros(6 * 8 + 8))
    settings = search.default_params

    def play(weights, key):
        first, last = weights[:48].reshape(6, 8), weights[48:]

        def one(x, key):
            force = jnp.tanh(jnp.tanh(x @ first) @ last)
            x = x + 0.05 * jnp.concatenate([x[3:], -jnp.sin(x[:3]) + force])
            return x + 0.01 * random.normal(key, (6,)), -jnp.sum(x**2)

        return lax.scan(one, random.normal(key, (6,)), random.split(key, 20))[1].sum()

    def run(key, mean):
        def one(state, key):
            a, b, c = random.split(key, 3)
            population, state = search.ask(a, state, settings)
            fitness = -jax.vmap(play, (0, None))(population, b)
            state, _metrics = search.tell(c, population, fitness, state, settings)
            return state, fitness.min()

        return lax.scan(one, search.init(key, mean, settings), random.split(key, 5))[1]

    return run, (KEY, S(56))
