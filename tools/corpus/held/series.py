"""Programs of keras and flax linen on series: quantities to foretell, and speech."""

import jax
import jax.numpy as jnp
from arguments import S, entering_when_asked, ints
from jax import lax, random
from steps import keras_train, linen_train

PROGRAMS = {}
program = entering_when_asked(PROGRAMS)


@program
def keras_temporal_fusion_quantiles():
    import keras
    from keras import layers as kl
    from keras import ops

    past, ahead, n, levels = 48, 12, 32, (0.1, 0.5, 0.9)

    def gated(x, skip, rate=0.1):
        x = kl.Dropout(rate)(x)
        x = kl.Multiply()([kl.Dense(n)(x), kl.Dense(n, activation="sigmoid")(x)])
        return kl.LayerNormalization()(kl.Add()([x, skip]))

    def residual(x, more=None, out=n):
        y = kl.Dense(n)(x)
        if more is not None:
            y = kl.Add()([y, kl.Dense(n, use_bias=False)(more)])
        y = kl.Dense(out)(kl.Activation("elu")(y))
        return gated(y, x if x.shape[-1] == out else kl.Dense(out)(x)) if out == n else y

    def chosen(parts, more=None):
        weight = kl.Softmax()(residual(kl.Concatenate()(parts), more, len(parts)))
        every = ops.stack([kl.Dense(n, activation="elu")(part) for part in parts], -1)
        return ops.sum(every * ops.expand_dims(weight, -2), -1)

    def make():
        kind = kl.Input((2,), dtype="int32")
        seen, known = kl.Input((past, 2)), kl.Input((past + ahead, 2))
        still = ops.reshape(kl.Embedding(60, n)(kind), (-1, 2 * n))
        about = [kl.Dense(n, activation="elu")(still) for _ in range(4)]
        split = lambda x: [kl.Dense(n)(x[..., i : i + 1]) for i in range(x.shape[-1])]
        along = lambda x, length: kl.RepeatVector(length)(x)
        before = chosen([*split(seen), *split(known[:, :past])], along(about[0], past))
        after = chosen(split(known[:, past:]), along(about[0], ahead))
        y, h, c = kl.LSTM(n, return_sequences=True, return_state=True)(before, initial_state=about[1:3])
        z = kl.LSTM(n, return_sequences=True)(after, initial_state=[h, c])
        x = gated(kl.Concatenate(1)([y, z]), kl.Concatenate(1)([before, after]))
        rich = residual(x, along(about[3], past + ahead))
        seen_by = kl.MultiHeadAttention(4, n // 4)(rich, rich, use_causal_mask=True)
        x = gated(gated(residual(gated(seen_by, rich)), rich)[:, past:], x[:, past:])
        return keras.Model([kind, seen, known], kl.Dense(len(levels))(x))

    def pinball(y, made):
        apart = ops.expand_dims(y, -1) - made
        q = ops.convert_to_tensor(levels)
        return ops.mean(ops.sum(ops.maximum(q * apart, (q - 1) * apart), -1))

    adam = lambda: keras.optimizers.Adam(1e-3, global_clipnorm=0.5)
    x = [ints(32, 2), S(32, past, 2), S(32, past + ahead, 2)]
    return keras_train(make, adam, pinball, x, S(32, ahead))


@program
def linen_transducer_lattice_step():
    import optax
    from flax import linen

    b, frames, bands, words, vocab, d = 4, 96, 40, 12, 64, 96

    class Transducer(linen.Module):
        @linen.compact
        def __call__(self, batch):
            x, words = batch
            key = self.make_rng("dropout")
            for axis, widest, k in zip((1, 2), (12, 8), random.split(key)):
                k1, k2 = random.split(k)
                size = x.shape[axis]
                start = random.randint(k1, (b, 1), 0, size - widest)
                width = random.randint(k2, (b, 1), 0, widest)
                hidden = (jnp.arange(size) >= start) & (jnp.arange(size) < start + width)
                x = jnp.where(jnp.expand_dims(hidden, 3 - axis), 0.0, x)
            x = x[..., None]
            for n in (16, 32):
                x = linen.relu(linen.Conv(n, (3, 3), (2, 2))(x))
            x = linen.Dense(d)(x.reshape(b, frames // 4, -1))
            y = linen.RNN(linen.OptimizedLSTMCell(d))(x)
            x = linen.LayerNorm()(x + y + linen.Conv(d, (5,), feature_group_count=d)(y))
            y = linen.Embed(vocab, d)(jnp.pad(words, ((0, 0), (1, 0))))
            y = linen.RNN(linen.GRUCell(d))(y)
            z = jnp.tanh(linen.Dense(d)(x)[:, :, None] + linen.Dense(d, use_bias=False)(y)[:, None])
            return linen.log_softmax(linen.Dense(vocab)(z)), words

    def lattice(logp, words, length, count):
        blank = logp[..., 0]
        said = jnp.take_along_axis(logp[:, :-1], words[None, :, None], -1)[..., 0]

        def row(before, at):
            blank, said = at
            along = jnp.concatenate([jnp.zeros(1), jnp.cumsum(said)])
            new = along + lax.cumlogsumexp(before - along)
            return new + blank, new + blank

        start = jnp.where(jnp.arange(logp.shape[1]) == 0, 0.0, -1e30)
        _, every = lax.scan(row, start, (blank, said))
        return -every[length - 1, count]

    def loss(out, length, count):
        logp, words = out
        return jnp.mean(jax.vmap(lattice)(logp, words, length, count) / count)

    rate = lambda at: 0.05 * d**-0.5 * jnp.minimum((at + 1) ** -0.5, (at + 1) * 1000**-1.5)
    tx = optax.chain(optax.zero_nans(), optax.clip_by_global_norm(5.0), optax.nadam(rate, b2=0.98))
    batch = S(b, frames, bands), ints(b, words)
    return linen_train(Transducer(), tx, loss, batch, ints(b), ints(b))
